"""Invalid frames of a child end the link with the reason, and the child; earlier messages are delivered."""

from __future__ import annotations

import functools
from typing import Any

import anyio
import pytest
from tests.peer.children import QUICK

from becket import ConnectionLost, DisconnectReason, Peer
from becket.errors import BadFrame, FrameTooLarge
from becket.framing import ContentLength, FramingFactory, JsonLines, LengthPrefixed
from becket.testing import ProcessWatch, child

pytestmark = [pytest.mark.loops, pytest.mark.process]

HELLO = b'{"jsonrpc":"2.0","method":"hello"}'


async def lost(before: bytes, bad: bytes, rest: bytes, framing: FramingFactory) -> ConnectionLost:
    """Returns how a link ends whose child sends hello and then this; the process must end, and hello arrive."""
    received: list[Any] = []
    command = child("writes_to_stdout", (before + bad).hex(), rest.hex())
    with anyio.fail_after(60):
        async with Peer.connect_process(command, limits=QUICK, framing=framing) as peer:
            peer.on("hello")(lambda params: received.append(params))
            assert peer.process is not None
            with ProcessWatch(peer.process.pid) as process:
                with pytest.raises(ConnectionLost) as caught:
                    await peer.call("anything")
                await process.gone()  # the peer was not closed

    assert len(received) == 1
    assert caught.value.reason is DisconnectReason.REMOTE_VIOLATION
    return caught.value


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"Content-Length: -5\r\n\r\n", "not a number"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "given twice"),
        (b"Content-Length: 2\n\n{}", "bare LF"),
        (b"Content-Length: 2\r\nContent-Type: text/plain; charset=utf-16\r\n\r\n{}", "charset"),
        (b"X-Other: 1\r\n\r\n{}", "without Content-Length"),
        (b"Traceback (most recent call last):\n", "something wrote to stdout"),
        (b"Content-Length: 40\r\n\r\n{Content-Length: 2\r\n\r\n{}" * 2, "two writers"),
    ],
    ids=["length", "two lengths", "line end", "charset", "no length", "text", "two writers"],
)
async def test_an_invalid_header_ends_the_link_and_the_child(bad: bytes, problem: str) -> None:
    error = (await lost(ContentLength().encode(HELLO), bad, b"", ContentLength)).__cause__
    assert isinstance(error, BadFrame)
    assert problem in str(error)


@pytest.mark.parametrize(
    ("framing", "bad", "rest", "what"),
    [
        (ContentLength, b"Content-Length: 4294967296\r\n\r\n", b"x", "frame"),
        (ContentLength, b"", b"A", "header"),
        (ContentLength, b"", b"X-Same: again\r\n", "header lines"),
        (functools.partial(ContentLength, skip_stray=True), b"", b"text\n", "outside frames"),
        (JsonLines, b"", b"x", "line"),
        (JsonLines, b"[", b"x" * 1_000, "line"),
        (LengthPrefixed, b"\xff\xff\xff\xff", b"x", "frame"),
    ],
    ids=["length", "header", "headers", "text", "line", "array", "prefix"],
)
async def test_input_without_an_end_ends_the_link_and_the_child(
    framing: FramingFactory, bad: bytes, rest: bytes, what: str
) -> None:
    error = (await lost(framing(QUICK).encode(HELLO), bad, rest, framing)).__cause__
    assert isinstance(error, BadFrame)
    assert isinstance(error, FrameTooLarge) == (what in ("frame", "header", "line"))
    assert what in str(error)
