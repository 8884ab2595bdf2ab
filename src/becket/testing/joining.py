"""In-memory pairs: two connected peers, or a host and an extension, in one process.

No process is started and nothing sleeps: what one side sends arrives at the other in the loop's next turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from becket.dialects import NATIVE
from becket.extension.server import ExtensionServer
from becket.host.extension import Extension
from becket.host.starting.connect import ExtensionOptions, connect_extension_over
from becket.testing.pairs import memory_transports

__all__ = ["connected"]

S = TypeVar("S", bound=ExtensionServer)


@asynccontextmanager
async def connected(
    server: S, *, id: str | None = None, **options: Unpack[ExtensionOptions]
) -> AsyncGenerator[tuple[Extension, S], None]:
    """Yields the host's handle on an extension, after the handshake, and the extension itself; then ends both.

    The options are those of `connect_extension`: `grants`, `config`, `store`, `audit` and the others. Both speak the
    `dialect` that is given. Functions of the extension that are plain run in threads, as they do in a program of their
    own.

    Raises:
        HandshakeFailed: the extension does not start, or declares what it must not.
    """
    ours, theirs = memory_transports()
    async with (
        server.over(theirs, dialect=options.get("dialect", NATIVE), limits=options.get("limits")),
        connect_extension_over(ours, id=server.id if id is None else id, **options) as extension,
    ):
        yield extension, server
