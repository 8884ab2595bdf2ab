"""What an extension tells of its own accord: tasks, widgets, its settings editor, and the last words of a run.

A notification that a running call has claimed never gets here. What nobody wants is dropped.
"""

from __future__ import annotations

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
    """The notifications of one extension that belong to no running call."""

    def __init__(self, runs: Runs) -> None:
        self.skipped = 0
        self._runs = runs
        self._takers: list[tuple[tuple[type, ...], Listener]] = []

    def register(self, methods: Registry) -> None:
        """Adds a handler for each of them."""
        for name in {*READERS, *COMMAND_INVOKE.events, *PROVIDER_STREAM.events}:
            methods.on(name)(self._handler(name))

    def _handler(self, name: str) -> Callable[[Raw], None]:
        def take(params: Raw) -> None:
            if not self._runs.take_trailing(name, params) and self._takers and name in READERS:
                self._hand_out(READERS[name], params)

        return take

    def _hand_out(self, reader: EventReader[Any], raw: Raw) -> None:
        try:
            event = reader.decode(raw)
        except UNDECODABLE:
            self.skipped += 1
            return
        for kinds, listener in self._takers:
            if isinstance(event, kinds):
                listener.function(*((event,) if listener.arity else ()))

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for what is told of these classes.

        Raises:
            TypeError: nothing of such a class is ever told, or the function is `async def`.
        """
        for kind in kinds:
            if kind not in KINDS:
                known = ", ".join(sorted(known.__name__ for known in KINDS))
                raise TypeError(f"an extension never tells a `{kind.__name__}` outside of a call; it tells: {known}")

        def register(function: Callable[[K], Any]) -> Callable[[K], Any]:
            listener = Listener(function)
            if listener.is_async:
                raise TypeError(f"{listener.function!r} is `async def`: what is told is taken by plain functions")
            self._takers.append((kinds, listener))
            return function

        return register
