"""Defines what the runner needs of an extension and of its connection to the host.

Types only: imported for type checking alone, at no cost at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import ClassVar, Protocol

from becket.contract.handshake import DeclaredCapability
from becket.dialects import Dialect
from becket.extension.runtime_async import AsyncioWorkers, TrioWorkers
from becket.extension.session import ExtensionDefinition
from becket.framing.framing import FramingFactory
from becket.peer.blocking_peer import BlockingPeer
from becket.peer.peer import Peer
from becket.peer.protocols import Transport

__all__ = ["AsyncServing", "BlockingServing", "RunnableExtension"]


class AsyncServing(AbstractAsyncContextManager[Peer, None], Protocol):
    """A connection to the host on an event loop, as long as the block runs."""

    @property
    def workers(self) -> AsyncioWorkers | TrioWorkers: ...

    @property
    def refusal_reason(self) -> str | None: ...

    async def stop(self) -> None: ...


class BlockingServing(AbstractContextManager[BlockingPeer, None], Protocol):
    """The same without an event loop."""

    @property
    def refusal_reason(self) -> str | None: ...

    def stop(self) -> None: ...


class RunnableExtension(Protocol):
    """An `ExtensionServer`, as far as the runner uses it."""

    id: str
    version: str
    capabilities: Sequence[DeclaredCapability]
    __becket__: ClassVar[ExtensionDefinition]

    def over(
        self, transport: Transport, *, dialect: Dialect, framing: FramingFactory | None, on_stopping: Callable[[], None]
    ) -> AsyncServing: ...

    def blocking_over(
        self, transport: Transport, *, dialect: Dialect, framing: FramingFactory | None, on_stopping: Callable[[], None]
    ) -> BlockingServing: ...
