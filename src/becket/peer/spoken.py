"""Handlers of the contract under the words of another dialect.

Whoever serves the contract registers its methods and sends its events; here they are put under the names by which the
other side asks, and what goes and comes is translated by the dialect's phrases. Native links never come here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import anyio
from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.commands import OutputFrame
from becket.contract.providers import Usage
from becket.contract.shapes import is_object
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.speech import Speech, TalePhrase
from becket.errors import RequestCancelled, RpcError
from becket.methods.descriptors import Method, Notification
from becket.methods.dispatch import answer_to, is_end_of
from becket.methods.registry import Handler, Registry
from becket.peer.deferred import Deferred
from becket.peer.outbound import READY

__all__ = ["SpokenContext", "translate_methods"]

TOLD = frozenset(notification.name for notification in NOTIFICATIONS)
OURS = TOLD | {method.name for method in METHODS}


def translate_methods(methods: Registry, speech: Speech, scene: Scene) -> Registry:
    """Returns handlers under a dialect's names for those of the contract; what is not of the contract stays as it is,
    also where the dialect has such a name, unless it has a phrase under that name too.

    Handlers of what the dialect has no word for are left out: nobody can ask for them."""
    spoken = Registry()
    runs = AcknowledgedRuns()
    for handler in sorted(methods.handlers(), key=lambda each: each.name in OURS):  # an author's own come first
        if handler.is_for_notifications:
            tale = speech.tales.get(handler.name)
            if tale is not None:
                listen(spoken, handler, tale, scene)
        elif handler.name in speech.phrases:
            phrase = speech.phrases[handler.name]
            for own in phrase.heard_as(scene):
                if own.name not in spoken:
                    serve(spoken, handler, Translation(phrase, own, scene, speech.check_call), runs)
    return spoken.including(methods.without(OURS | speech.phrases.keys()))


def listen(spoken: Registry, handler: Handler, tale: TalePhrase, scene: Scene) -> None:
    def take(params: Any, ctx: Any) -> Any:
        return handler.function(*(tale.hear(params, scene), ctx)[: handler.arity])

    async def take_on_loop(params: Any, ctx: Any) -> None:
        await take(params, ctx)

    told: Notification[Any] = Notification(tale.heard_as, Any, requires=handler.requires)
    spoken.on(told, thread=handler.in_thread, unless_streamed=handler.unless_streamed)(
        take_on_loop if handler.is_async else take
    )


class Translation(Struct, frozen=True, eq=False):
    """One method of the contract under one name of a dialect, on one link."""

    phrase: Phrase
    own: Method[Any, Any]
    scene: Scene
    check_call: Callable[[str, Scene], None] | None

    def hear(self, params: Any) -> tuple[Saying, Any]:
        """Returns the request as it came, and as the contract has it."""
        saying = Saying(self.own, params)
        return saying, self.phrase.hear(saying, self.scene)

    def answer(self, result: Any, saying: Saying) -> Any:
        return self.phrase.answer(result, saying, self.scene)

    def respond(self, outcome: Any, saying: Saying) -> Any:
        """Returns the answer to an outcome that came later: a result, or the exception of a failure."""
        return self.fail(outcome, saying) if isinstance(outcome, Exception) else self.answer(outcome, saying)

    def context(self, context: Any, saying: Saying, run: OpenRun | None = None) -> SpokenContext:
        return SpokenContext(context, self, saying, run)

    def tell(self, notification: str, params: Any, saying: Saying) -> Tale | None:
        """Returns what goes out for a notification that belongs to the request; None for what cannot be said."""
        if notification not in TOLD:
            return Tale(notification, params)
        return None if self.phrase.tell is None else self.phrase.tell(event_of(params), saying, self.scene)

    def fail(self, failure: Exception, saying: Saying) -> Any:
        """Returns the answer that tells of a failure, or raises it."""
        if self.phrase.fail is None or isinstance(failure, RequestCancelled):
            raise failure
        return self.phrase.fail(answer_to(failure, self.own.name), saying, self.scene)

    def end(self, result: Any, error: RpcError | None, saying: Saying) -> Iterable[Tale]:
        assert self.phrase.end is not None  # what is acknowledged has an end
        return self.phrase.end(result, error, saying, self.scene)


def event_of(params: Any) -> Any:
    """Returns the event that the params of a notification of the contract hold."""
    if isinstance(params, OutputFrame):
        return params.event
    if is_object(params):  # usage has members of any name, and travels flat
        return Usage({name: value for name, value in params.items() if name != "type"})
    return params


def serve(spoken: Registry, handler: Handler, words: Translation, runs: AcknowledgedRuns) -> None:
    """Registers the handler under the dialect's name of its method."""
    phrase, own = words.phrase, words.own
    is_acknowledged = phrase.acknowledge is not None

    def call(params: Any, ctx: Any) -> Any:
        return handler.function(*(params, ctx)[: handler.arity])

    def answer(params: Any, ctx: Any) -> Any:
        saying, heard = words.hear(params)
        try:
            result = call(heard, words.context(ctx, saying))
        except Exception as failure:
            if is_end_of(ctx.peer.close_reason, failure):
                raise
            return words.fail(failure, saying)
        if isinstance(result, Deferred):
            return result.translated(lambda outcome: words.respond(outcome, saying))
        return words.answer(result, saying)

    async def answer_on_loop(params: Any, ctx: Any) -> Any:
        saying, heard = words.hear(params)
        try:
            result = await call(heard, words.context(ctx, saying))
        except Exception as failure:
            if is_end_of(ctx.peer.close_reason, failure):
                raise
            return words.fail(failure, saying)
        return words.answer(result, saying)

    def acknowledge(params: Any, ctx: Any) -> None:
        saying, heard = words.hear(params)
        ctx.answer(phrase.acknowledge(saying, words.scene))  # type: ignore[misc]
        result, error = None, None
        with runs.open(phrase, params) as run:
            try:
                result = call(heard, words.context(ctx, saying, run))
            except Exception as failure:
                if is_end_of(ctx.peer.close_reason, failure):
                    raise
                error = answer_to(failure, own.name)
        for tale in words.end(result, error, saying):
            ctx.peer.notify(tale.method, tale.params)

    async def acknowledge_on_loop(params: Any, ctx: Any) -> None:
        saying, heard = words.hear(params)
        ctx.answer(phrase.acknowledge(saying, words.scene))  # type: ignore[misc]
        result, error = None, None
        with runs.open(phrase, params) as run, anyio.CancelScope() as scope:
            run.scope = scope
            try:
                result = await call(heard, words.context(ctx, saying, run))
            except Exception as failure:
                if is_end_of(ctx.peer.close_reason, failure):
                    raise
                error = answer_to(failure, own.name)
        if scope.cancelled_caught:
            error = RequestCancelled()
        for tale in words.end(result, error, saying):
            await ctx.peer.notify(tale.method, tale.params)

    plain, on_loop = (acknowledge, acknowledge_on_loop) if is_acknowledged else (answer, answer_on_loop)
    asked: Method[Any, Any] = Method(own.name, own.params, Any, requires=handler.requires)
    spoken.handle(asked, thread=handler.in_thread)(on_loop if handler.is_async else plain)
    if phrase.cancelled_as is not None and phrase.cancelled_as.name not in spoken:
        spoken.handle(phrase.cancelled_as)(runs.canceller(phrase))


class AcknowledgedRuns:
    """What goes on after its acknowledgement, and can be ended by a request of its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, object], OpenRun] = {}

    def open(self, phrase: Phrase, params: Any) -> OpenRun:
        key = None if phrase.cancelled_as is None else phrase.key_of(params)  # else nobody ever asks for it
        return OpenRun(self._open, (id(phrase), key))

    def canceller(self, phrase: Phrase) -> Callable[[Any], Any]:
        def cancel(params: Any) -> dict[str, Any]:
            run = self._open.get((id(phrase), phrase.key_of(params)))
            if run is not None:
                run.cancel()
            return {}

        return cancel


class OpenRun:
    """One of them, for as long as the block lasts. A coroutine ends with its `scope`; nothing can stop a thread, which
    sees `ctx.is_cancelled`."""

    def __init__(self, open_runs: dict[tuple[int, object], OpenRun], key: tuple[int, object]) -> None:
        self.is_cancelled = False
        self.scope: anyio.CancelScope | None = None
        self._open = open_runs
        self._key = key

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.scope is not None:
            self.scope.cancel()

    def __enter__(self) -> OpenRun:
        self._open[self._key] = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._open.get(self._key) is self:
            del self._open[self._key]


# -- events


class SpokenContext:
    """The context of a request whose events go out in the words of its dialect; all else is the context's own."""

    __slots__ = ("_context", "_run", "_words", "saying")

    def __init__(self, context: Any, words: Translation, saying: Saying, run: OpenRun | None) -> None:
        self._context = context
        self._words = words
        self._run = run
        self.saying = saying
        """The request as it came."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller no longer wants the answer; of one that was acknowledged, the events that follow."""
        return (self._run is not None and self._run.is_cancelled) or self._context.is_cancelled

    @property
    def peer(self) -> SpokenPeer:
        """The peer that the request came from."""
        return SpokenPeer(self._context.peer, self.translate)

    def call(self, method: str | Method[Any, Any], params: Any = None, **options: Any) -> Any:
        """Calls the host from within the request.

        Raises:
            NotSupported: it has not announced to serve this; nothing was sent.
        """
        if self._words.check_call is not None:
            self._words.check_call(method if isinstance(method, str) else method.name, self._words.scene)
        return self._context.call(method, params, **options)

    def progress(self, value: object) -> Coroutine[Any, Any, None]:
        """Reports from within the call, if there is a word for it."""
        report = self._words.phrase.progress
        return self._send(None if report is None else report(value, self.saying, self._words.scene))

    def notify(self, method: str | Notification[Any], params: Any = None) -> Coroutine[Any, Any, None]:
        """Sends what belongs to the request, if there is a word for it."""
        return self._send(self.translate(method, params))

    def _send(self, tale: Tale | None) -> Coroutine[Any, Any, None]:
        if tale is None:
            return READY
        tellers = self._context.peer if self._words.phrase.acknowledge is not None else self._context
        told: Coroutine[Any, Any, None] = tellers.notify(tale.method, tale.params)
        return told

    def translate(self, method: str | Notification[Any], params: Any) -> Tale | None:
        name = method if isinstance(method, str) else method.name
        return self._words.tell(name, params, self.saying)


class SpokenPeer:
    """A peer as a handler of the contract sees it: what it is told goes out in the words of its dialect."""

    __slots__ = ("_peer", "_translate")

    def __init__(self, peer: Any, translate: Callable[[str | Notification[Any], Any], Tale | None]) -> None:
        self._peer = peer
        self._translate = translate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    def notify(self, method: str | Notification[Any], params: Any = None) -> Any:
        tale = self._translate(method, params)
        return READY if tale is None else self._peer.notify(tale.method, tale.params)

    def notify_nowait(self, method: str | Notification[Any], params: Any = None) -> None:
        tale = self._translate(method, params)
        if tale is not None:
            self._peer.notify_nowait(tale.method, tale.params)
