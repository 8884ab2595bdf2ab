"""Our host, and a recorded extension: what the host says, and what its calls come to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anyio
import msgspec
from msgspec import Raw, Struct

from becket.contract.memory import MEMORY_APPEND
from becket.contract.tools import TOOL_CALL
from becket.dialects.phrases import Scene
from becket.errors import BecketError, RemoteError
from becket.host.connecting import ExtensionOptions, connect_extension_over
from becket.host.extension import Extension
from becket.host.voice import SpokenStream, Voice
from becket.methods.permissions import PERMISSIONS
from becket.methods.registry import Registry
from becket.methods.streams import Stream
from becket.rpc.messages import Failure, Notification, Request, Success
from becket.stores.in_memory import InMemoryStore
from becket.testing.interpreters import Asked
from becket.testing.rehearsals import PATIENCE, Failed, Recorded, Rehearsal, Said, error_of, is_unknown
from becket.testing.transcripts import Frame, Side

__all__ = ["HostRehearsal"]


class Outcome(Struct, frozen=True):
    """What a call of ours has come to."""

    result: Any = None
    error: BecketError | None = None
    events: tuple[Any, ...] = ()


class HostRehearsal(Rehearsal):
    """Our host, and the recorded extension."""

    who = "host"
    me = Side.HOST

    def __init__(self, recorded: Recorded, options: Mapping[str, Any]) -> None:
        super().__init__(recorded)
        self._options = options
        self._extension: Extension | None = None
        self._is_connected = anyio.Event()
        self._meanings: dict[int, tuple[str, Any]] = {}  # of entries: which request, and what it is to come to
        self._outcomes: dict[int, Outcome] = {}

    async def begin(self) -> None:
        """Connects, which is as much of the conversation as the handshake is."""
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
            "particulars": recorded.particulars,
            **self._options,  # type: ignore[typeddict-item]
        }
        try:
            self._extension = await connect_extension_over(self.ours, id=recorded.id, **options)
            outcome = Outcome(describe_declared(self._extension))
        except BecketError as error:
            outcome = Outcome(error=error)
        opening = next((said.number for said in recorded.said if isinstance(said.message, Request)), 0)
        self._outcomes[opening] = outcome
        self._is_connected.set()
        self.listener.data_received(b"")  # there is news, though nothing was written

    def _open_store(self) -> InMemoryStore:
        """Returns a store in which everything happens when it did."""
        times = deque(self._find_times())
        return InMemoryStore(clock=lambda: times.popleft() if times else 0)

    def _find_times(self) -> Iterator[int]:
        recorded = self.recorded
        scene = Scene(recorded.id, particulars=recorded.particulars)
        for request in recorded.requests(Side.HOST):
            asked = recorded.ask(request, scene)
            answer = recorded.answer_to(request, Side.HOST)
            if asked is not None and asked.contract is MEMORY_APPEND and isinstance(answer, Success):
                yield asked.read_result(answer.result, scene).timestamp_ms

    def _build_methods(self) -> Registry:
        """Returns those methods that the extension asks for and that are none of the contract's."""
        recorded = self.recorded
        answers: dict[str, deque[Success | Failure]] = {}
        for request in recorded.requests(Side.HOST):
            answer = recorded.answer_to(request, Side.HOST)
            is_known = recorded.words.knows(request.method, Scene(recorded.id, particulars=recorded.particulars))
            if answer is not None and not is_known and not is_unknown(answer):
                answers.setdefault(request.method, deque()).append(answer)
        methods = Registry()
        for name, waiting in answers.items():
            methods.handle(name)(build_answer(waiting))
        return methods

    async def bring_about(self, said: Said) -> None:
        """Has the host say something, unless it does so by itself: in the first exchange, and in answers."""
        entry, message = said.entry, said.message
        if isinstance(entry, Frame) and entry.means is not None and isinstance(message, Request):
            self._meanings[said.number] = message.method, msgspec.json.decode(entry.means)
        if isinstance(message, Success | Failure):
            return
        await self.until(lambda: bool(self.listener.frames) or self._is_connected.is_set(), f"entry {said.number}")
        if self.listener.frames:
            return
        extension = self._extension
        if extension is None:
            because = next(iter(self._outcomes.values())).error
            raise Failed(f"entry {said.number}: the handshake has failed: {because}")
        if isinstance(message, Request):
            self._ask(said.number, message, extension)
        elif isinstance(message, Notification):
            await self._tell(message, extension)

    def _ask(self, number: int, request: Request, extension: Extension) -> None:
        voice = extension._voice  # pyright: ignore[reportPrivateUsage]
        if request.method == self.recorded.words.goodbye(voice.scene):
            self.tasks.start_soon(extension.shutdown)
            return
        asked = self.recorded.ask(request, voice.scene)
        if asked is None:
            self.tasks.start_soon(self._ask_own, number, request, extension)
        else:
            self.tasks.start_soon(self._ask_contract, number, asked, voice)

    async def _ask_own(self, number: int, request: Request, extension: Extension) -> None:
        try:
            params = None if request.params is None else Raw(request.params)
            self._outcomes[number] = Outcome(await extension.peer.call(request.method, params))
        except BecketError as error:
            self._outcomes[number] = Outcome(error=error)

    async def _ask_contract(self, number: int, asked: Asked, voice: Voice) -> None:
        events: list[Any] = []
        contract: Any = asked.contract
        is_stream, params = isinstance(asked.contract, Stream), asked.params
        try:
            if is_stream:
                spoken: SpokenStream[Any, Any] = voice.stream(contract, params)
                async with spoken.stream as stream:
                    async for event in stream:
                        events.append(event)
                    result = spoken.read(await stream.result())
            else:
                params = voice.seal(params, None) if contract is TOOL_CALL else params
                result = await voice.call(contract, params)
            outcome = Outcome(result, None, tuple(events))
        except BecketError as error:
            outcome = Outcome(None, error, tuple(events))
        self._outcomes[number] = outcome

    async def _tell(self, message: Notification, extension: Extension) -> None:
        await extension.peer.notify(message.method, None if message.params is None else Raw(message.params))

    async def close(self) -> None:
        """Closes the link, as the host had done."""
        with anyio.move_on_after(PATIENCE):
            await self._is_connected.wait()  # also of a host that has closed the link itself
        if not self._is_connected.is_set():
            raise Failed("the handshake has not ended")
        if self._extension is not None:
            await self._extension.aclose()

    async def check_silence(self) -> None:
        """Notes what came beyond the recording, and what requests came to."""
        await super().check_silence()
        for number, (method, meant) in self._meanings.items():
            problem = find_other_meaning(meant, self._outcomes.get(number))
            if problem is not None:
                self.problems.append(f"entry {number}: `{method}` {problem}")

    async def end(self) -> None:
        """Lets go of the extension."""
        if self._extension is not None:
            await self._extension.aclose()


def describe_declared(extension: Extension) -> dict[str, Any]:
    declared = {"tools": extension.tools, "providers": extension.providers, "capabilities": extension.capabilities}
    return {name: list(value) for name, value in declared.items() if value}


def build_answer(waiting: deque[Success | Failure]) -> Callable[[Any], Any]:
    def answer(params: Any) -> Any:
        recorded = waiting.popleft()
        if isinstance(recorded, Failure):
            raise error_of(recorded)
        return Raw(recorded.result)

    return answer


def find_other_meaning(meant: Any, outcome: Outcome | None) -> str | None:
    """Returns in what a call came to something else than was said of it."""
    if outcome is None:
        return "has come to nothing yet"
    if "events" in meant:
        events = json_of(outcome.events)
        if events != meant["events"]:
            return f"had the events {as_json(events)}, and not {as_json(meant['events'])}"
    if "error" in meant:
        if outcome.error is None:
            return f"came to {as_json(outcome.result)}, and not to an error"
        wanted = meant["error"] if isinstance(meant["error"], dict) else {"message": meant["error"]}
        found = describe_error(outcome.error)
        different = {name: found.get(name) for name in wanted if found.get(name) != wanted[name]}
        return f"failed with {as_json(different)}, and not with {as_json(wanted)}" if different else None
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
