"""Streams of commands and completions, and notifications outside of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Raw

from becket._loggers import host_logger
from becket.contract.commands import COMMAND_INVOKE
from becket.contract.providers import PROVIDER_STREAM
from becket.contract.settings import SETTINGS_EDITOR_CLOSE, SETTINGS_EDITOR_COMMITTED, SETTINGS_EDITOR_RENDER
from becket.contract.tasks import TASK_READERS
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT
from becket.conversion.decode import get_result_decoder
from becket.errors import JSON_ERRORS
from becket.host.serving.streams import ExtensionStreams
from becket.methods.registry import Registry
from becket.methods.streams import EventReader
from becket.peer.context import BaseContext
from becket.peer.event_routing import EventHandler

__all__ = ["ExtensionNotifications"]

K = TypeVar("K")

READERS: Final[Mapping[str, EventReader[Any]]] = MappingProxyType(
    {
        **TASK_READERS,
        **{
            told.name: EventReader(get_result_decoder(told.params), (told.params,))
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
EVENT_TYPES: Final = frozenset(kind for reader in READERS.values() for kind in reader.types)


class ExtensionNotifications:
    """The notifications of one extension: all of those that functions may subscribe to, and the late ones of runs."""

    def __init__(self, runs: ExtensionStreams) -> None:
        self.skipped = 0
        self._runs = runs
        self._handlers: list[tuple[tuple[type, ...], EventHandler]] = []

    def register(self, methods: Registry) -> None:
        """Adds a handler for each of them. Those without functions are handled only where no running call receives
        them: a stream of such events stays on the fast path."""
        for name in {*READERS, *COMMAND_INVOKE.events, *PROVIDER_STREAM.events}:
            methods.on(name, unless_streamed=name not in READERS)(self._handler(name))

    def _handler(self, name: str) -> Callable[[Raw, BaseContext], None]:
        def take(params: Raw, ctx: BaseContext) -> None:
            if not ctx.is_streamed:
                self._runs.accept_trailing(name, params)
            if self._handlers and name in READERS:
                self._dispatch(READERS[name], params)

        return take

    def _dispatch(self, reader: EventReader[Any], raw: Raw) -> None:
        try:
            event = reader.decode(raw)
        except JSON_ERRORS:
            self.skipped += 1
            return
        for kinds, listener in tuple(self._handlers):
            if isinstance(event, kinds):
                try:
                    listener.function(*((event,) if listener.arity else ()))
                except Exception:  # the others receive it all the same
                    host_logger().exception("a function for `%s` failed", type(event).__name__)

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for notifications of these classes.

        Raises:
            TypeError: there are no notifications of such a class, or the function is `async def`.
        """
        for kind in kinds:
            if kind not in EVENT_TYPES:
                known = ", ".join(sorted(known.__name__ for known in EVENT_TYPES))
                raise TypeError(f"an extension sends no `{kind.__name__}` to functions of `on`, only: {known}")

        def register(function: Callable[[K], Any]) -> Callable[[K], Any]:
            listener = EventHandler(function)
            if listener.is_async:
                raise TypeError(f"{listener.function!r} is `async def`: what is told is taken by plain functions")
            self._handlers.append((kinds, listener))
            return function

        return register
