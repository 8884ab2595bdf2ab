"""Conformance run of our host against a recorded extension."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anyio
import msgspec
from msgspec import Raw, Struct

from becket.contract.memory import MEMORY_APPEND
from becket.contract.tools import TOOL_CALL
from becket.dialects.link_state import LinkState
from becket.errors import BecketError, RemoteError
from becket.host.extension_connection import ExtensionConnection
from becket.host.serving.client import ContractClient, MappedStream
from becket.host.starting.connect import ExtensionOptions, connect_extension_over
from becket.jsonrpc.messages import Failure, NotificationMessage, Request, Success
from becket.methods.registry import Registry
from becket.methods.streams import Stream
from becket.permissions.names import PERMISSIONS
from becket.stores.in_memory import InMemoryStore
from becket.testing.transcripts.conformance import (
    MESSAGE_TIMEOUT,
    ConformanceAborted,
    ConformanceRun,
    DecodedEntry,
    RecordedSession,
    build_rpc_error,
    is_method_not_found,
)
from becket.testing.transcripts.decoder import DecodedRequest
from becket.testing.transcripts.file_format import FrameSent, LinkEnd

__all__ = ["HostConformanceRun"]


class ObservedOutcome(Struct, frozen=True):
    """The outcome of a call of ours."""

    result: Any = None
    error: BecketError | None = None
    events: tuple[Any, ...] = ()


class HostConformanceRun(ConformanceRun):
    """Our host, and the recorded extension."""

    role = "host"
    end_of_link = LinkEnd.HOST

    def __init__(self, recorded: RecordedSession, options: Mapping[str, Any]) -> None:
        super().__init__(recorded)
        self._options = options
        self._extension: ExtensionConnection | None = None
        self._is_connected = anyio.Event()
        self._meanings: dict[int, tuple[str, Any]] = {}  # by entry number: the method, and the expected outcome
        self._outcomes: dict[int, ObservedOutcome] = {}

    async def start(self) -> None:
        """Starts connecting, which performs the handshake."""
        self.tasks.start_soon(self._connect)

    async def _connect(self) -> None:
        recorded = self.recorded
        options: ExtensionOptions = {
            "dialect": recorded.dialect,
            "config": recorded.config,
            "root": recorded.root,
            "host": recorded.host,
            "grants": recorded.given.get("grants", [*PERMISSIONS]),
            "store": self._open_store(),
            "methods": self._build_methods(),
            "extra": recorded.extra,
            **self._options,  # type: ignore[typeddict-item]
        }
        try:
            self._extension = await connect_extension_over(self.ours, id=recorded.id, **options).open()
            outcome = ObservedOutcome(describe_declared(self._extension))
        except BecketError as error:
            outcome = ObservedOutcome(error=error)
        opening = next((step.number for step in recorded.entries if isinstance(step.message, Request)), 0)
        self._outcomes[opening] = outcome
        self._is_connected.set()
        self.collector.data_received(b"")  # wakes the waiters, though nothing was written

    def _open_store(self) -> InMemoryStore:
        """Returns a store whose clock gives the recorded times."""
        times = deque(self._find_times())
        return InMemoryStore(clock=lambda: times.popleft() if times else 0)

    def _find_times(self) -> Iterator[int]:
        recorded = self.recorded
        state = LinkState(recorded.id, extra=recorded.extra)
        for request in recorded.requests(LinkEnd.HOST):
            decoded = recorded.decode_request(request, state)
            response = recorded.find_response(request, LinkEnd.HOST)
            if decoded is not None and decoded.contract is MEMORY_APPEND and isinstance(response, Success):
                yield decoded.decode_result(response.result, state).timestamp_ms

    def _build_methods(self) -> Registry:
        """Returns the methods that the extension calls and that are not the contract's."""
        recorded = self.recorded
        responses: dict[str, deque[Success | Failure]] = {}
        for request in recorded.requests(LinkEnd.HOST):
            response = recorded.find_response(request, LinkEnd.HOST)
            is_known = recorded.mapping.has_mapping(request.method, LinkState(recorded.id, extra=recorded.extra))
            if response is not None and not is_known and not is_method_not_found(response):
                responses.setdefault(request.method, deque()).append(response)
        methods = Registry()
        for name, waiting in responses.items():
            methods.handle(name)(build_handler(waiting))
        return methods

    async def trigger(self, step: DecodedEntry) -> None:
        """Makes the host send a message, unless it does so by itself: in the handshake, and in responses."""
        entry, message = step.entry, step.message
        if isinstance(entry, FrameSent) and entry.means is not None and isinstance(message, Request):
            self._meanings[step.number] = message.method, msgspec.json.decode(entry.means)
        if isinstance(message, Success | Failure):
            return
        await self.wait_until(
            lambda: bool(self.collector.frames) or self._is_connected.is_set(), f"entry {step.number}"
        )
        if self.collector.frames:
            return
        extension = self._extension
        if extension is None:
            because = next(iter(self._outcomes.values())).error
            raise ConformanceAborted(f"entry {step.number}: the handshake has failed: {because}")
        if isinstance(message, Request):
            self._send_request(step.number, message, extension)
        elif isinstance(message, NotificationMessage):
            await self._send_notification(message, extension)

    def _send_request(self, number: int, request: Request, extension: ExtensionConnection) -> None:
        client = extension.client
        if request.method == self.recorded.mapping.shutdown_method(client.link_state):
            self.tasks.start_soon(extension.shutdown)
            return
        decoded = self.recorded.decode_request(request, client.link_state)
        if decoded is None:
            self.tasks.start_soon(self._send_dialect_request, number, request, extension)
        else:
            self.tasks.start_soon(self._send_contract_request, number, decoded, client)

    async def _send_dialect_request(self, number: int, request: Request, extension: ExtensionConnection) -> None:
        try:
            params = self.recorded.own_params(request)
            self._outcomes[number] = ObservedOutcome(await extension.peer.call(request.method, params))
        except BecketError as error:
            self._outcomes[number] = ObservedOutcome(error=error)

    async def _send_contract_request(self, number: int, decoded: DecodedRequest, client: ContractClient) -> None:
        events: list[Any] = []
        contract: Any = decoded.contract
        is_stream, params = isinstance(decoded.contract, Stream), decoded.params
        try:
            if is_stream:
                mapped: MappedStream[Any, Any] = client.stream(contract, params)
                async with mapped.stream as stream:
                    async for event in stream:
                        events.append(event)
                    result = mapped.read(await stream.result())
            else:
                params = client.attach_meta(params, None) if contract is TOOL_CALL else params
                result = await client.call(contract, params)
            outcome = ObservedOutcome(result, None, tuple(events))
        except BecketError as error:
            outcome = ObservedOutcome(None, error, tuple(events))
        self._outcomes[number] = outcome

    async def _send_notification(self, message: NotificationMessage, extension: ExtensionConnection) -> None:
        await extension.peer.notify(message.method, None if message.params is None else Raw(message.params))

    async def close(self) -> None:
        """Closes the connection, as the recorded host did."""
        with anyio.move_on_after(MESSAGE_TIMEOUT):
            await self._is_connected.wait()  # also if the host has closed the connection itself
        if not self._is_connected.is_set():
            raise ConformanceAborted("the handshake has not ended")
        if self._extension is not None:
            await self._extension.aclose()

    async def check_no_extra_output(self) -> None:
        """Reports what arrived beyond the recording, and outcomes that differ."""
        await super().check_no_extra_output()
        for number, (method, meant) in self._meanings.items():
            problem = find_outcome_difference(meant, self._outcomes.get(number))
            if problem is not None:
                self.problems.append(f"entry {number}: `{method}` {problem}")

    async def stop(self) -> None:
        """Stops the extension."""
        if self._extension is not None:
            await self._extension.aclose()


def describe_declared(extension: ExtensionConnection) -> dict[str, Any]:
    offered = extension.handshake.capabilities
    declared = {"tools": offered.tools, "providers": offered.providers, "capabilities": offered.capabilities}
    return {name: list(value) for name, value in declared.items() if value}


def build_handler(waiting: deque[Success | Failure]) -> Callable[[Any], Any]:
    def respond(params: Any) -> Any:
        recorded = waiting.popleft()
        if isinstance(recorded, Failure):
            raise build_rpc_error(recorded)
        return Raw(recorded.result)

    return respond


def find_outcome_difference(meant: Any, outcome: ObservedOutcome | None) -> str | None:
    """Returns how the outcome of a call differs from the expected one, or None."""
    if outcome is None:
        return "has come to nothing yet"
    if "events" in meant:
        events = json_of(outcome.events)
        if events != meant["events"]:
            return f"had the events {as_json(events)}, and not {as_json(meant['events'])}"
    if "error" in meant:
        if outcome.error is None:
            return f"came to {as_json(outcome.result)}, and not to an error"
        expected = meant["error"] if isinstance(meant["error"], dict) else {"message": meant["error"]}
        found = describe_error(outcome.error)
        different = {name: found.get(name) for name in expected if found.get(name) != expected[name]}
        return f"failed with {as_json(different)}, and not with {as_json(expected)}" if different else None
    if outcome.error is not None:
        return f"failed: {outcome.error}"
    if "result" in meant and json_of(outcome.result) != meant["result"]:
        return f"came to {as_json(outcome.result)}, and not to {as_json(meant['result'])}"
    return None


def describe_error(error: BecketError) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": type(error).__name__, "message": str(getattr(error, "because", error))}
    if isinstance(error, RemoteError):
        described |= {"message": error.message, "code": error.code, "data": error.data}
        described["meaning"] = None if error.meaning is None else error.meaning.name
    return described


def json_of(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
