"""Notifications of an extension for the functions of `Extension.on`: tasks, widgets and its settings editor. Those that
come after the response of a run go to the run as well. What has no subscriber is dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Raw

from becket.contract.commands import COMMAND_INVOKE
from becket.contract.providers import PROVIDER_STREAM
from becket.contract.settings import SETTINGS_EDITOR_CLOSE, SETTINGS_EDITOR_COMMITTED, SETTINGS_EDITOR_RENDER
from becket.contract.tasks import TASK_READERS
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT
from becket.host.runs import Runs
from becket.methods.registry import Registry
from becket.methods.streams import EventReader
from becket.peer.claims import Listener
from becket.peer.context import AnyContext
from becket.typed.decoding import UNDECODABLE, result_decoder

__all__ = ["Told"]

K = TypeVar("K")

READERS: Final[Mapping[str, EventReader[Any]]] = MappingProxyType(
    {
        **TASK_READERS,
        **{
            told.name: EventReader(result_decoder(told.params), (told.params,))
            for told in (
                SETTINGS_EDITOR_RENDER,
                SETTINGS_EDITOR_COMMITTED,
                SETTINGS_EDITOR_CLOSE,
                WIDGET_UPSERT,
                WIDGET_DISMISS,
            )
        },
    }
)
KINDS: Final = frozenset(kind for reader in READERS.values() for kind in reader.types)


class Told:
    """The notifications of one extension: all of those that functions may subscribe to, and the late ones of runs."""

    def __init__(self, runs: Runs) -> None:
        self.skipped = 0
        self._runs = runs
        self._takers: list[tuple[tuple[type, ...], Listener]] = []

    def register(self, methods: Registry) -> None:
        """Adds a handler for each of them. Those without functions are handled only where no running call receives
        them: a stream of such events stays on the fast path."""
        for name in {*READERS, *COMMAND_INVOKE.events, *PROVIDER_STREAM.events}:
            methods.on(name, unless_streamed=name not in READERS)(self._handler(name))

    def _handler(self, name: str) -> Callable[[Raw, AnyContext], None]:
        def take(params: Raw, ctx: AnyContext) -> None:
            if not ctx.is_streamed:
                self._runs.take_trailing(name, params)
            if self._takers and name in READERS:
                self._hand_out(READERS[name], params)

        return take

    def _hand_out(self, reader: EventReader[Any], raw: Raw) -> None:
        try:
            event = reader.decode(raw)
        except UNDECODABLE:
            self.skipped += 1
            return
        for kinds, listener in tuple(self._takers):
            if isinstance(event, kinds):
                try:
                    listener.function(*((event,) if listener.arity else ()))
                except Exception:  # the others receive it all the same
                    logging.getLogger("becket.host").exception("a function for `%s` failed", type(event).__name__)

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for notifications of these classes.

        Raises:
            TypeError: there are no notifications of such a class, or the function is `async def`.
        """
        for kind in kinds:
            if kind not in KINDS:
                known = ", ".join(sorted(known.__name__ for known in KINDS))
                raise TypeError(f"an extension sends no `{kind.__name__}` to functions of `on`, only: {known}")

        def register(function: Callable[[K], Any]) -> Callable[[K], Any]:
            listener = Listener(function)
            if listener.is_async:
                raise TypeError(f"{listener.function!r} is `async def`: what is told is taken by plain functions")
            self._takers.append((kinds, listener))
            return function

        return register
