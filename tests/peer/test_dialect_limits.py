"""A peer has the limits of its dialect unless others are given."""

from __future__ import annotations

import pytest

from becket import Limits
from becket.blocking import BlockingPeer
from becket.errors import LocalProtocolError
from becket.testing import memory_pair
from becket.testing.pairs import memory_transports

MIB = 1024 * 1024


@pytest.mark.loops
@pytest.mark.parametrize(("dialect", "size"), [("mcp", 5 * MIB), ("lsp", 17 * MIB)])
async def test_a_peer_reads_and_writes_frames_as_large_as_its_dialect_allows(dialect: str, size: int) -> None:
    async with memory_pair(dialect=dialect) as (left, right):
        right.handle("measure")(lambda params: len(params["text"]))
        assert await left.call("measure", {"text": "x" * size}) == size


@pytest.mark.loops
async def test_given_limits_replace_those_of_the_dialect() -> None:
    async with memory_pair(dialect="mcp", limits=Limits(frame=1024)) as (left, _):
        with pytest.raises(LocalProtocolError):
            await left.call("measure", {"text": "x" * 1024})


def test_a_blocking_peer_writes_frames_as_large_as_its_dialect_allows() -> None:
    ours, _ = memory_transports()
    with BlockingPeer(ours, dialect="mcp") as peer, pytest.raises(LocalProtocolError, match=str(16 * MIB)):
        peer.notify("store", {"text": "x" * 16 * MIB})
