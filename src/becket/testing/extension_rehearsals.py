"""Our extension, and a recorded host: an `ExtensionServer` that declares and does what the recorded one did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
from msgspec import Raw, Struct

from becket.contract.commands import CommandDone, Invoke
from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookEvent
from becket.contract.providers import PROVIDER_STREAM, ProviderDone
from becket.contract.tools import TOOL_CALL
from becket.dialects.phrases import Scene
from becket.errors import BecketError, RemoteError, RpcError
from becket.extension.server import ExtensionServer
from becket.methods.streams import EventReader
from becket.rpc.messages import Failure, Notification, Request, Success
from becket.testing.interpreters import Asked
from becket.testing.rehearsals import Failed, Recorded, Rehearsal, Said, error_of, is_unknown
from becket.testing.stand_in_extensions import Cue, Cues, Notice, build_stand_in
from becket.testing.transcripts import Side

__all__ = ["ExtensionRehearsal"]


class Answering(Struct, frozen=True, eq=False):
    """A request of the host that is being answered."""

    cue: Cue
    asked: Asked | None


class ExtensionRehearsal(Rehearsal):
    """Our extension, and the recorded host."""

    who = "extension"
    me = Side.CHILD

    def __init__(self, recorded: Recorded) -> None:
        super().__init__(recorded)
        self._cues = Cues()
        self._handled: list[str] = recorded.given.get("handles", [])
        self._greeted = recorded.greeted()
        self._scene = recorded.scene(self._greeted)
        self._open: dict[bytes, Answering] = {}
        self._server: ExtensionServer
        self._is_over = anyio.Event()

    async def begin(self) -> None:
        """Makes up the extension that was recorded, and lets it serve."""
        about = self._greeted.about
        version = about.build.version if about is not None and about.build is not None else None
        asked = [self._ask(request) for request in self.recorded.requests(Side.CHILD)]
        meant = [one.params for one in asked if one is not None]
        heard = dict.fromkeys(self._find_own_notifications())
        try:
            self._server = build_stand_in(
                self.recorded.id,
                self._cues,
                version=version or "",
                declared=self._find_declared(),
                commands=dict.fromkeys(one.command for one in meant if isinstance(one, Invoke)),
                hooks=dict.fromkeys([*self._greeted.hooks, *(one.kind for one in meant if isinstance(one, HookEvent))]),
                methods=dict.fromkeys([*self._find_own(), *(name for name in self._handled if name not in heard)]),
                notifications=heard,
                is_asked=about is None,
            )
        except TypeError as error:
            raise Failed(f"no extension of ours can be like this one: {error}") from error
        began = anyio.Event()
        self.tasks.start_soon(self._serve, began)
        await began.wait()

    async def _serve(self, began: anyio.Event) -> None:
        async with self._server.over(self.ours, dialect=self.recorded.dialect):
            began.set()
            await self._is_over.wait()

    def _find_declared(self) -> Capabilities:
        """Returns what the recorded one has declared, without what it served by handlers of its own."""
        declared, scene = self._greeted.declared, self._scene
        replaced = frozenset[str]().union(*(self.recorded.words.meanings(name, scene) for name in self._handled))
        return Capabilities(
            () if TOOL_CALL.name in replaced else declared.tools,
            () if PROVIDER_STREAM.name in replaced else declared.providers,
            declared.capabilities,
        )

    def _find_own(self) -> Iterator[str]:
        """Yields the methods of the extension's own, which the recorded one had."""
        words = self.recorded.words
        by_itself = {words.opening, words.goodbye(self._scene), *words.queries, *words.cancels}
        for request in self.recorded.requests(Side.CHILD):
            asked = self._ask(request)
            is_own = asked.is_own if asked is not None else request.method not in by_itself
            if is_own and not is_unknown(self.recorded.answer_to(request, Side.CHILD)):
                yield request.method

    def _find_own_notifications(self) -> Iterator[str]:
        """Yields what the recorded extension was told and is none of the contract's."""
        for told in self.recorded.notifications(Side.CHILD):
            is_of_link = told.method.startswith("$/")
            if not is_of_link and self.recorded.words.tell(told.method, told.params, self._scene) is None:
                yield told.method

    def _ask(self, request: Request) -> Asked | None:
        if request.method == self.recorded.words.opening:
            return None
        return self.recorded.ask(request, self._scene, self._handled)

    def note(self, said: Said) -> None:
        """Prepares for a request."""
        request = said.message
        if isinstance(request, Request):
            asked = self._ask(request)
            cue = self._cues.add(request.method if asked is None else asked.contract.name)
            self._open[request.id] = Answering(cue, asked)

    async def bring_about(self, said: Said) -> None:
        """Has the extension say something, unless it does so by itself."""
        try:
            await self._say(said)
        except (BecketError, ValueError) as error:
            raise Failed(f"entry {said.number}: no extension of ours says this: {error}") from error

    async def _say(self, said: Said) -> None:
        match said.message:
            case Success() | Failure() as answer:
                self._answer(answer)
            case Notification() as told:
                await self._tell(told)
            case Request() as request:
                self.tasks.start_soon(self._call, request)
            case _:
                raise Failed(f"entry {said.number}: this is no message, and no extension of ours would write it")

    def _answer(self, answer: Success | Failure) -> None:
        answering = self._open.get(answer.id)
        if answering is None:
            return
        asked = answering.asked
        if isinstance(answer, Failure):
            answering.cue.end(error=error_of(answer))
        elif asked is None:
            answering.cue.end(Raw(answer.result))
        elif asked.gathering is None:
            self._end(answering, lambda: asked.read_result(answer.result, self._scene))
        else:
            asked.gathering.acknowledge(answer.result)

    def _end(self, answering: Answering, read: Callable[[], Any]) -> None:
        """Has a call end with what it came to, which may be an error."""
        try:
            answering.cue.end(read())
        except RpcError as error:
            answering.cue.end(error=error)
        except RemoteError as error:
            answering.cue.end(error=RpcError(error.code, error.message, error.data))

    async def _tell(self, told: Notification) -> None:
        params = Raw(b"null") if told.params is None else told.params
        for id, answering in self._open.items():
            asked = answering.asked
            reader = None if asked is None or answering.cue.has_ended else asked.reader_of(told.method, params)
            if asked is not None and reader is not None:
                if asked.is_own:
                    self._put_own(answering, asked, Notice(told.method, params), reader)
                else:
                    self._put(id, answering, asked, reader.decode(params))
                return
        found = self.recorded.words.tell(told.method, told.params, self._scene)
        if found is None:
            await self._server.host.notify(told.method, None if told.params is None else Raw(told.params))
        else:
            await self._server.host.notify(*found)

    def _put(self, id: bytes, answering: Answering, asked: Asked, event: Any) -> None:
        """Has a call put out an event; what is said for it at its end comes with the end."""
        if asked.gathering is not None:
            gathering = asked.gathering
            if gathering.take(event):
                self._end(answering, lambda: asked.read_value(gathering.result(), self._scene))
                return
        elif isinstance(event, ProviderDone | CommandDone):
            for said in self.recorded.said:
                if isinstance(said.message, Success | Failure) and said.message.id == id and said.is_to(Side.HOST):
                    self._answer(said.message)
            return
        answering.cue.put(event)

    def _put_own(self, answering: Answering, asked: Asked, notice: Notice, reader: EventReader[Any]) -> None:
        """Has a call that only the dialect knows tell of itself as authors do, or end with what the last event says."""
        try:
            event = reader.decode(notice.params)
        except ValueError:  # nothing keeps an author from telling it
            answering.cue.put(notice)
            return
        gathering = asked.gathering
        if gathering is None or not gathering.take(event):
            answering.cue.put(notice)
            return
        failure = asked.find_failure(notice.params, self._scene)
        if failure is None:
            self._end(answering, lambda: asked.read_value(gathering.result(), self._scene))
        else:
            answering.cue.end(error=RpcError(0, failure))

    async def _call(self, request: Request) -> None:
        asked = self.recorded.ask(request, Scene(self.recorded.id, particulars=self.recorded.particulars))
        try:
            if asked is None:
                await self._server.host.call(request.method, None if request.params is None else Raw(request.params))
            else:
                await self._server.host.call(asked.contract, asked.params)
        except BecketError:
            pass  # what the host has answered is the recorded host's affair

    async def end(self) -> None:
        """Lets the extension go."""
        self._is_over.set()

    def dispose(self) -> None:
        """Lets go of what nobody has told the extension to do."""
        self._cues.close()
