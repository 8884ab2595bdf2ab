"""The shipped children: each can be named, is explained, starts, and is gone when its peer is closed."""

from __future__ import annotations

import anyio
import pytest

from becket import Limits, Peer
from becket.testing import CHILDREN, ProcessWatch, child

HASTY = Limits(stdin_grace=0.01, term_grace=0.01, flush_grace=0.01, drain_grace=0.01)
ARGUMENTS = {"writes_to_stderr": ["00"], "writes_to_stdout": ["00"]}


def test_a_child_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(LookupError, match="there are"):
        child("no_such_child")


@pytest.mark.parametrize("name", CHILDREN)
def test_every_child_has_a_description_of_one_line(name: str) -> None:
    assert CHILDREN[name].endswith(".")
    assert "\n" not in CHILDREN[name]


@pytest.mark.process
@pytest.mark.parametrize("name", CHILDREN)
async def test_every_child_starts_and_is_gone_when_its_peer_is_closed(name: str) -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child(name, *ARGUMENTS.get(name, [])), limits=HASTY) as peer:
            assert peer.process is not None
            watch = ProcessWatch(peer.process.pid)

    with watch:
        assert not watch.is_alive


@pytest.mark.process
@pytest.mark.loops
async def test_a_watch_waits_until_its_process_has_ended() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("exits_when_called")) as peer:
            assert peer.process is not None
            with ProcessWatch(peer.process.pid) as watch:
                assert watch.is_alive
                await peer.notify("nothing")
                peer.process.kill()
                await watch.gone()
                assert not watch.is_alive
