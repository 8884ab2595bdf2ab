"""Common mistakes of users raise clear errors at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket import Peer, Registry, RemoteError, StartFailed
from becket.blocking import connect_process
from becket.errors import LocalProtocolError
from becket.testing import child, memory_pair, memory_transports

pytestmark = pytest.mark.loops


# -- a stream that was not opened


async def iterate(run: Any) -> None:
    async for _ in run:
        pass


@pytest.mark.parametrize(
    "use", [iterate, lambda run: iterate(run.batches()), lambda run: run.result()], ids=["iterate", "batches", "result"]
)
async def test_using_a_stream_that_was_not_opened_raises_instead_of_hanging(use: Callable[[Any], Any]) -> None:
    async with memory_pair() as (left, right):
        right.handle("count")(lambda params: 3)
        run = left.stream("count")
        with anyio.fail_after(60), pytest.raises(LocalProtocolError, match="async with"):
            await use(run)


@pytest.mark.process
@pytest.mark.parametrize("use", [list, lambda run: run.result()], ids=["iterate", "result"])
def test_using_a_blocking_stream_that_was_not_opened_raises_instead_of_hanging(use: Callable[[Any], object]) -> None:
    with connect_process(child("echoes")) as peer:
        run = peer.stream("count")
        with pytest.raises(LocalProtocolError, match="with"):
            use(run)


# -- a link that the other peer breaks


async def test_a_link_that_breaks_without_a_pending_call_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = memory_transports()
    with anyio.fail_after(60):
        async with Peer.over(ours) as peer:
            theirs.write(b'{"jsonrpc":"2.0","id":1,"method":"add"}\n')
            await peer.wait_closed()
    assert "JSON Lines" in caplog.text


# -- names


@pytest.mark.parametrize("register", ["handle", "on"])
def test_a_decorator_without_its_name_is_a_type_error_that_shows_how(register: str) -> None:
    with pytest.raises(TypeError, match=rf'@{register}\("name"\)'):
        getattr(Registry(), register)(lambda params: 1)


@pytest.mark.parametrize("method", [None, 3])
async def test_a_method_that_is_not_str_is_a_type_error(method: Any) -> None:
    async with memory_pair() as (left, _):
        with pytest.raises(TypeError, match="must be a name or a `Method`"):
            await left.call(method)


async def test_an_empty_method_is_refused_before_anything_is_sent() -> None:
    async with memory_pair() as (left, _):
        with anyio.fail_after(60), pytest.raises(LocalProtocolError, match="without a name"):
            await left.call("")


async def test_the_error_for_a_program_in_the_current_folder_shows_how_to_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StartFailed, match="with its whole path"):
        await Peer.connect_process([Path("./tool")])  # pathlib takes the "./" off


# -- text of the other peer


def test_the_text_of_a_remote_error_is_one_escaped_line() -> None:
    error = RemoteError(method="m", code=5, message="\x1b[2Jgone\nERROR forged \u202e")
    assert error.message == "\x1b[2Jgone\nERROR forged \u202e"
    assert str(error).isprintable()


# -- invalid timeouts

NAN = float("nan")


async def open_stream(peer: Peer, **options: float) -> None:
    async with peer.stream("count", **options):
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda peer: peer.call("count", timeout=NAN),
        lambda peer: open_stream(peer, timeout=NAN),
        lambda peer: open_stream(peer, idle_timeout=NAN),
    ],
    ids=["call", "stream", "idle"],
)
async def test_a_timeout_that_is_not_a_number_is_refused_before_anything_is_sent(use: Callable[[Peer], Any]) -> None:
    requested: list[Any] = []
    async with memory_pair() as (left, right):
        right.handle("count")(lambda params: requested.append(params))
        with pytest.raises(ValueError, match="nan"):
            await use(left)
        await left.call("count", [1])
    assert requested == [[1]]


@pytest.mark.process
def test_a_blocking_call_refuses_a_timeout_that_is_not_a_number() -> None:
    with connect_process(child("echoes")) as peer, pytest.raises(ValueError, match="nan"):
        peer.call("echo", timeout=float("nan"))
