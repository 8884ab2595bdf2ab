"""Starts the children of `becket.testing` for the tests of this folder, and waits until they are ready."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from becket import Limits, Peer
from becket.testing import child

QUICK = Limits(stdin_grace=0.05, term_grace=0.05, flush_grace=0.05)
"""Short waits for children that will not end; the others never meet them."""


@asynccontextmanager
async def ready_child(
    name: str, *arguments: object, limits: Limits = QUICK, **options: Any
) -> AsyncGenerator[tuple[Peer, dict[str, Any]], None]:
    """Yields a peer of this child and the child's first notification about itself."""
    output: dict[str, Any] = {}
    is_ready = anyio.Event()
    async with Peer.connect_process(child(name, *arguments), limits=limits, **options) as peer:

        @peer.on("ready")
        def take(params: Any) -> None:
            output.update(params)
            is_ready.set()

        with anyio.fail_after(60):
            await is_ready.wait()
        yield peer, output
