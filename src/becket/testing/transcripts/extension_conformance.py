"""Conformance run of our extension against a recorded host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
from msgspec import Raw, Struct

from becket.contract.commands import CommandDone, CommandInvoke
from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookEvent
from becket.contract.providers import PROVIDER_STREAM, ProviderDone
from becket.contract.tools import TOOL_CALL
from becket.dialects.link_state import LinkState
from becket.errors import BecketError, RemoteError, RpcError
from becket.extension.server import ExtensionServer
from becket.jsonrpc.messages import Failure, NotificationMessage, Request, Success
from becket.methods.streams import EventReader
from becket.testing.transcripts.conformance import (
    ConformanceAborted,
    ConformanceRun,
    DecodedEntry,
    RecordedSession,
    build_rpc_error,
    is_method_not_found,
)
from becket.testing.transcripts.decoder import DecodedRequest
from becket.testing.transcripts.file_format import LinkEnd
from becket.testing.transcripts.scripted_extension import (
    CallScript,
    CallScripts,
    ScriptNotification,
    build_scripted_extension,
)

__all__ = ["ExtensionConformanceRun"]


class PendingResponse(Struct, frozen=True, eq=False):
    """A request of the host that is being handled."""

    script: CallScript
    request: DecodedRequest | None


class ExtensionConformanceRun(ConformanceRun):
    """Our extension, and the recorded host."""

    role = "extension"
    end_of_link = LinkEnd.CHILD

    def __init__(self, recorded: RecordedSession) -> None:
        super().__init__(recorded)
        self._scripts = CallScripts()
        self._handled: list[str] = recorded.given.get("handles", [])
        self._handshake = recorded.handshake_result()
        self._link_state = recorded.link_state(self._handshake)
        self._open: dict[bytes, PendingResponse] = {}
        self._server: ExtensionServer
        self._is_over = anyio.Event()

    async def start(self) -> None:
        """Builds the extension that was recorded, and starts it."""
        about = self._handshake.info
        version = about.build.version if about is not None and about.build is not None else None
        decoded = [self._decode_request(request) for request in self.recorded.requests(LinkEnd.CHILD)]
        meant = [one.params for one in decoded if one is not None]
        notifications = dict.fromkeys(self._find_dialect_notifications())
        try:
            self._server = build_scripted_extension(
                self.recorded.id,
                self._scripts,
                version=version or "",
                declared=self._find_declared(),
                commands=dict.fromkeys(one.command for one in meant if isinstance(one, CommandInvoke)),
                hooks=dict.fromkeys(
                    [*self._handshake.hooks, *(one.kind for one in meant if isinstance(one, HookEvent))]
                ),
                methods=dict.fromkeys(
                    [*self._find_dialect_methods(), *(name for name in self._handled if name not in notifications)]
                ),
                notifications=notifications,
                requests_info=about is None,
            )
        except TypeError as error:
            raise ConformanceAborted(f"our extension cannot be built like this one: {error}") from error
        began = anyio.Event()
        self.tasks.start_soon(self._serve, began)
        await began.wait()

    async def _serve(self, began: anyio.Event) -> None:
        async with self._server.over(self.ours, dialect=self.recorded.dialect):
            began.set()
            await self._is_over.wait()

    def _find_declared(self) -> Capabilities:
        """Returns what the recorded extension declared, without what it served by handlers of its own."""
        declared, state = self._handshake.capabilities, self._link_state
        replaced = frozenset[str]().union(
            *(self.recorded.mapping.contract_methods(name, state) for name in self._handled)
        )
        return Capabilities(
            () if TOOL_CALL.name in replaced else declared.tools,
            () if PROVIDER_STREAM.name in replaced else declared.providers,
            declared.capabilities,
        )

    def _find_dialect_methods(self) -> Iterator[str]:
        """Yields the extension's own methods that the recording uses."""
        mapping = self.recorded.mapping
        by_itself = {
            mapping.handshake_method,
            mapping.shutdown_method(self._link_state),
            *mapping.builtin_methods,
            *mapping.cancel_methods,
        }
        for request in self.recorded.requests(LinkEnd.CHILD):
            decoded = self._decode_request(request)
            is_own = decoded.is_dialect_only if decoded is not None else request.method not in by_itself
            if is_own and not is_method_not_found(self.recorded.find_response(request, LinkEnd.CHILD)):
                yield request.method

    def _find_dialect_notifications(self) -> Iterator[str]:
        """Yields the notifications to the extension that are not the contract's."""
        for notification in self.recorded.notifications(LinkEnd.CHILD):
            is_of_link = notification.method.startswith("$/")
            if (
                not is_of_link
                and self.recorded.mapping.decode_notification(
                    notification.method, notification.params, self._link_state
                )
                is None
            ):
                yield notification.method

    def _decode_request(self, request: Request) -> DecodedRequest | None:
        if request.method == self.recorded.mapping.handshake_method:
            return None
        return self.recorded.decode_request(request, self._link_state, self._handled)

    def prepare_incoming(self, step: DecodedEntry) -> None:
        """Prepares for a request."""
        request = step.message
        if isinstance(request, Request):
            decoded = self._decode_request(request)
            script = self._scripts.add(request.method if decoded is None else decoded.contract.name)
            self._open[request.id] = PendingResponse(script, decoded)

    async def trigger(self, step: DecodedEntry) -> None:
        """Makes the extension send a message, unless it does so by itself."""
        try:
            await self._send(step)
        except (BecketError, ValueError) as error:
            raise ConformanceAborted(f"entry {step.number}: our extension cannot send this: {error}") from error

    async def _send(self, step: DecodedEntry) -> None:
        match step.message:
            case Success() | Failure() as response:
                self._respond(response)
            case NotificationMessage() as notification:
                await self._send_notification(notification)
            case Request() as request:
                self.tasks.start_soon(self._call, request)
            case _:
                raise ConformanceAborted(
                    f"entry {step.number}: this is not a message, and our extension would not write it"
                )

    def _respond(self, response: Success | Failure) -> None:
        pending = self._open.get(response.id)
        if pending is None:
            return
        decoded = pending.request
        if isinstance(response, Failure):
            pending.script.end(error=build_rpc_error(response))
        elif decoded is None:
            pending.script.end(Raw(response.result))
        elif decoded.gathering is None:
            self._end(pending, lambda: decoded.decode_result(response.result, self._link_state))
        else:
            decoded.gathering.on_response(response.result)

    def _end(self, pending: PendingResponse, read: Callable[[], Any]) -> None:
        """Ends a call with its outcome, which may be an error."""
        try:
            pending.script.end(read())
        except RpcError as error:
            pending.script.end(error=error)
        except RemoteError as error:
            pending.script.end(error=RpcError(error.code, error.message, error.data))

    async def _send_notification(self, notification: NotificationMessage) -> None:
        params = Raw(b"null") if notification.params is None else notification.params
        for id, pending in self._open.items():
            decoded = pending.request
            reader = (
                None
                if decoded is None or pending.script.has_ended
                else decoded.event_reader_for(notification.method, params)
            )
            if decoded is not None and reader is not None:
                if decoded.is_dialect_only:
                    self._emit_dialect_event(pending, decoded, ScriptNotification(notification.method, params), reader)
                else:
                    self._emit_event(id, pending, decoded, reader.decode(params))
                return
        found = self.recorded.mapping.decode_notification(notification.method, notification.params, self._link_state)
        if found is None:
            await self._server.host.notify(
                notification.method, None if notification.params is None else Raw(notification.params)
            )
        else:
            await self._server.host.notify(*found)

    def _emit_event(self, id: bytes, pending: PendingResponse, decoded: DecodedRequest, event: Any) -> None:
        """Makes a call emit an event; messages that belong to its end are sent at its end."""
        if decoded.gathering is not None:
            gathering = decoded.gathering
            if gathering.on_event(event):
                self._end(pending, lambda: decoded.map_result(gathering.result(), self._link_state))
                return
        elif isinstance(event, ProviderDone | CommandDone):
            for step in self.recorded.entries:
                if isinstance(step.message, Success | Failure) and step.message.id == id and step.is_to(LinkEnd.HOST):
                    self._respond(step.message)
            return
        pending.script.emit(event)

    def _emit_dialect_event(
        self, pending: PendingResponse, decoded: DecodedRequest, notice: ScriptNotification, reader: EventReader[Any]
    ) -> None:
        """Makes a call that only the dialect has emit a notification as authors do, or end with the outcome in the
        last event."""
        try:
            event = reader.decode(notice.params)
        except ValueError:  # an author may send it all the same
            pending.script.emit(notice)
            return
        gathering = decoded.gathering
        if gathering is None or not gathering.on_event(event):
            pending.script.emit(notice)
            return
        failure = decoded.find_failure(notice.params, self._link_state)
        if failure is None:
            self._end(pending, lambda: decoded.map_result(gathering.result(), self._link_state))
        else:
            pending.script.end(error=RpcError(0, failure))

    async def _call(self, request: Request) -> None:
        decoded = self.recorded.decode_request(request, LinkState(self.recorded.id, extra=self.recorded.extra))
        try:
            if decoded is None:
                await self._server.host.call(request.method, self.recorded.own_params(request))
            else:
                await self._server.host.call(decoded.contract, decoded.params)
        except BecketError:
            pass  # the host's response is part of the recording

    async def stop(self) -> None:
        """Stops the extension."""
        self._is_over.set()

    def dispose(self) -> None:
        """Releases calls that were never scripted."""
        self._scripts.close()
