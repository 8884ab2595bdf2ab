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
from becket.dialects.mapping import LinkState
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
from becket.testing.transcripts.file import LinkEnd
from becket.testing.transcripts.scripted_extension import (
    CallScript,
    CallScripts,
    ScriptNotification,
    build_scripted_extension,
)

__all__ = ["ExtensionConformanceRun"]


class PendingResponse(Struct, frozen=True, eq=False):
    """A request of the host that is being answered."""

    script: CallScript
    request: DecodedRequest | None


class ExtensionConformanceRun(ConformanceRun):
    """Our extension, and the recorded host."""

    role = "extension"
    end_of_link = LinkEnd.CHILD

    def __init__(self, recorded: RecordedSession) -> None:
        super().__init__(recorded)
        self._cues = CallScripts()
        self._handled: list[str] = recorded.given.get("handles", [])
        self._handshake = recorded.handshake_result()
        self._link_state = recorded.link_state(self._handshake)
        self._open: dict[bytes, PendingResponse] = {}
        self._server: ExtensionServer
        self._is_over = anyio.Event()

    async def start(self) -> None:
        """Makes up the extension that was recorded, and lets it serve."""
        about = self._handshake.info
        version = about.build.version if about is not None and about.build is not None else None
        asked = [self._decode_request(request) for request in self.recorded.requests(LinkEnd.CHILD)]
        meant = [one.params for one in asked if one is not None]
        heard = dict.fromkeys(self._find_dialect_notifications())
        try:
            self._server = build_scripted_extension(
                self.recorded.id,
                self._cues,
                version=version or "",
                declared=self._find_declared(),
                commands=dict.fromkeys(one.command for one in meant if isinstance(one, CommandInvoke)),
                hooks=dict.fromkeys(
                    [*self._handshake.hooks, *(one.kind for one in meant if isinstance(one, HookEvent))]
                ),
                methods=dict.fromkeys(
                    [*self._find_dialect_methods(), *(name for name in self._handled if name not in heard)]
                ),
                notifications=heard,
                is_asked=about is None,
            )
        except TypeError as error:
            raise ConformanceAborted(f"no extension of ours can be like this one: {error}") from error
        began = anyio.Event()
        self.tasks.start_soon(self._serve, began)
        await began.wait()

    async def _serve(self, began: anyio.Event) -> None:
        async with self._server.over(self.ours, dialect=self.recorded.dialect):
            began.set()
            await self._is_over.wait()

    def _find_declared(self) -> Capabilities:
        """Returns what the recorded one has declared, without what it served by handlers of its own."""
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
        """Yields the methods of the extension's own, which the recorded one had."""
        words = self.recorded.mapping
        by_itself = {
            words.handshake_method,
            words.shutdown_method(self._link_state),
            *words.builtin_methods,
            *words.cancel_methods,
        }
        for request in self.recorded.requests(LinkEnd.CHILD):
            asked = self._decode_request(request)
            is_own = asked.is_dialect_only if asked is not None else request.method not in by_itself
            if is_own and not is_method_not_found(self.recorded.find_response(request, LinkEnd.CHILD)):
                yield request.method

    def _find_dialect_notifications(self) -> Iterator[str]:
        """Yields what the recorded extension was told and is none of the contract's."""
        for told in self.recorded.notifications(LinkEnd.CHILD):
            is_of_link = told.method.startswith("$/")
            if (
                not is_of_link
                and self.recorded.mapping.decode_notification(told.method, told.params, self._link_state) is None
            ):
                yield told.method

    def _decode_request(self, request: Request) -> DecodedRequest | None:
        if request.method == self.recorded.mapping.handshake_method:
            return None
        return self.recorded.decode_request(request, self._link_state, self._handled)

    def prepare_incoming(self, said: DecodedEntry) -> None:
        """Prepares for a request."""
        request = said.message
        if isinstance(request, Request):
            asked = self._decode_request(request)
            cue = self._cues.add(request.method if asked is None else asked.contract.name)
            self._open[request.id] = PendingResponse(cue, asked)

    async def trigger(self, said: DecodedEntry) -> None:
        """Has the extension say something, unless it does so by itself."""
        try:
            await self._send(said)
        except (BecketError, ValueError) as error:
            raise ConformanceAborted(f"entry {said.number}: no extension of ours says this: {error}") from error

    async def _send(self, said: DecodedEntry) -> None:
        match said.message:
            case Success() | Failure() as answer:
                self._respond(answer)
            case NotificationMessage() as told:
                await self._send_notification(told)
            case Request() as request:
                self.tasks.start_soon(self._call, request)
            case _:
                raise ConformanceAborted(
                    f"entry {said.number}: this is no message, and no extension of ours would write it"
                )

    def _respond(self, answer: Success | Failure) -> None:
        answering = self._open.get(answer.id)
        if answering is None:
            return
        asked = answering.request
        if isinstance(answer, Failure):
            answering.script.end(error=build_rpc_error(answer))
        elif asked is None:
            answering.script.end(Raw(answer.result))
        elif asked.gathering is None:
            self._end(answering, lambda: asked.decode_result(answer.result, self._link_state))
        else:
            asked.gathering.on_response(answer.result)

    def _end(self, answering: PendingResponse, read: Callable[[], Any]) -> None:
        """Has a call end with what it came to, which may be an error."""
        try:
            answering.script.end(read())
        except RpcError as error:
            answering.script.end(error=error)
        except RemoteError as error:
            answering.script.end(error=RpcError(error.code, error.message, error.data))

    async def _send_notification(self, told: NotificationMessage) -> None:
        params = Raw(b"null") if told.params is None else told.params
        for id, answering in self._open.items():
            asked = answering.request
            reader = (
                None if asked is None or answering.script.has_ended else asked.event_reader_for(told.method, params)
            )
            if asked is not None and reader is not None:
                if asked.is_dialect_only:
                    self._emit_dialect_event(answering, asked, ScriptNotification(told.method, params), reader)
                else:
                    self._emit_event(id, answering, asked, reader.decode(params))
                return
        found = self.recorded.mapping.decode_notification(told.method, told.params, self._link_state)
        if found is None:
            await self._server.host.notify(told.method, None if told.params is None else Raw(told.params))
        else:
            await self._server.host.notify(*found)

    def _emit_event(self, id: bytes, answering: PendingResponse, asked: DecodedRequest, event: Any) -> None:
        """Has a call put out an event; what is said for it at its end comes with the end."""
        if asked.gathering is not None:
            gathering = asked.gathering
            if gathering.on_event(event):
                self._end(answering, lambda: asked.map_result(gathering.result(), self._link_state))
                return
        elif isinstance(event, ProviderDone | CommandDone):
            for said in self.recorded.entries:
                if isinstance(said.message, Success | Failure) and said.message.id == id and said.is_to(LinkEnd.HOST):
                    self._respond(said.message)
            return
        answering.script.emit(event)

    def _emit_dialect_event(
        self, answering: PendingResponse, asked: DecodedRequest, notice: ScriptNotification, reader: EventReader[Any]
    ) -> None:
        """Has a call that only the dialect knows tell of itself as authors do, or end with what the last event says."""
        try:
            event = reader.decode(notice.params)
        except ValueError:  # nothing keeps an author from telling it
            answering.script.emit(notice)
            return
        gathering = asked.gathering
        if gathering is None or not gathering.on_event(event):
            answering.script.emit(notice)
            return
        failure = asked.find_failure(notice.params, self._link_state)
        if failure is None:
            self._end(answering, lambda: asked.map_result(gathering.result(), self._link_state))
        else:
            answering.script.end(error=RpcError(0, failure))

    async def _call(self, request: Request) -> None:
        asked = self.recorded.decode_request(request, LinkState(self.recorded.id, extra=self.recorded.extra))
        try:
            if asked is None:
                await self._server.host.call(request.method, self.recorded.own_params(request))
            else:
                await self._server.host.call(asked.contract, asked.params)
        except BecketError:
            pass  # what the host has answered is the recorded host's affair

    async def stop(self) -> None:
        """Lets the extension go."""
        self._is_over.set()

    def dispose(self) -> None:
        """Lets go of what nobody has told the extension to do."""
        self._cues.close()
