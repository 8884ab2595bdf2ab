"""Fixtures for pytest: `pytest_plugins = ["becket.testing.fixtures"]` in the top `conftest.py`.

Async tests that use one of them need no mark: they run on anyio's pytest plugin. Projects that do not name this
module load nothing. All names begin with `becket_`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Unpack

import pytest

from becket.extension.server import ExtensionServer
from becket.host.extension import Extension
from becket.host.starting.connect import ExtensionOptions, connect_extension
from becket.peer.peer import Peer
from becket.stores.in_memory import InMemoryStore
from becket.testing.pairs import connected, memory_pair

__all__ = ["Connect", "Start", "becket_connect", "becket_pair", "becket_start", "becket_store"]


class Connect:
    """Connects extensions to a host in this program, without a process; the value of `becket_connect`."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def __call__(
        self, server: ExtensionServer, *, id: str | None = None, **options: Unpack[ExtensionOptions]
    ) -> Extension:
        """Returns the host's handle on an extension, after the handshake. It is closed at the end of the test.

        The options are those of `connect_extension`: `grants`, `config`, `store` and the others.

        Raises:
            HandshakeFailed: the extension does not start, or its declarations violate the contract.
        """
        extension, _ = await self._stack.enter_async_context(connected(server, id=id, **options))
        return extension


class Start:
    """Starts extensions as processes; the value of `becket_start`."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def __call__(self, command: Sequence[str | os.PathLike[str]], **options: Any) -> Extension:
        """Returns the host's handle on an extension started by this command. It is closed at the end of the test.

        The options are those of `connect_extension`.

        Raises:
            StartFailed, HandshakeFailed: why it does not run.
        """
        return await self._stack.enter_async_context(connect_extension(command, **options))


# anyio's plugin runs every test that depends on `anyio_backend`, even indirectly.


@pytest.fixture
async def becket_connect(anyio_backend: Any) -> AsyncGenerator[Connect, None]:
    """Connects extensions in memory: `notes = await becket_connect(Notes(), grants=["tools.register"])`."""
    async with AsyncExitStack() as stack:
        yield Connect(stack)


@pytest.fixture
async def becket_start(anyio_backend: Any) -> AsyncGenerator[Start, None]:
    """Starts extensions as processes: `notes = await becket_start(["python3", "notes.py"])`."""
    async with AsyncExitStack() as stack:
        yield Start(stack)


@pytest.fixture
async def becket_pair(anyio_backend: Any) -> AsyncGenerator[tuple[Peer, Peer], None]:
    """Two peers connected in memory: `left, right = becket_pair`."""
    async with memory_pair() as pair:
        yield pair


@pytest.fixture
def becket_store() -> InMemoryStore:
    """A store in memory, to share between extensions (`store=`), or to inspect."""
    return InMemoryStore()
