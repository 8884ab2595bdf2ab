"""How the exit of a child is noticed, and the errors of its callers."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.peer.children import QUICK, ready_child

from becket import ConnectionLost, DisconnectReason, Peer, PeerCrashed
from becket.testing import ProcessWatch, child

pytestmark = [pytest.mark.loops, pytest.mark.process]


async def crash_of(command: list[str], method: str = "x", params: object = None, **options: Any) -> PeerCrashed:
    """Returns how a call to this child ends, which must be by a crash."""
    with anyio.fail_after(60):
        async with Peer.connect_process(command, **options) as peer:
            with pytest.raises(PeerCrashed) as caught:
                await peer.call(method, params)
    return caught.value


# -- the exit cause


@pytest.mark.parametrize("code", [0, 1, 3, 255])
async def test_the_error_has_the_exit_code_of_a_child_that_ends_before_its_first_message(code: int) -> None:
    crash = await crash_of(child("exits", code))

    assert (crash.exit_code, crash.signal, crash.reason) == (code, None, DisconnectReason.PROCESS_EXIT)


async def test_the_tail_of_stderr_is_in_the_error() -> None:
    crash = await crash_of(child("fails"))

    assert crash.exit_code == 1
    assert crash.stderr_tail.startswith("Traceback (most recent call last):")
    assert "No module named 'notes_of_the_day'" in str(crash)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM"])
async def test_the_signal_that_ended_a_child_is_named(name: str) -> None:
    crash = await crash_of(child("dies_when_called", name))

    assert (crash.signal, crash.exit_code) == (name, -signal.Signals[name])


async def test_a_signal_that_leaves_a_core_dump_is_named_too(tmp_path: Path) -> None:
    dumps = (
        "import os, resource, signal;"
        "most = resource.getrlimit(resource.RLIMIT_CORE)[1]; resource.setrlimit(resource.RLIMIT_CORE, (most, most));"
        "os.read(0, 1); os.kill(os.getpid(), signal.SIGSEGV)"
    )
    crash = await crash_of([sys.executable, "-I", "-S", "-c", dumps], cwd=tmp_path)

    assert (crash.signal, crash.exit_code) == ("SIGSEGV", -signal.SIGSEGV)


async def test_the_process_of_a_peer_has_its_exit_cause() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("exits", 9)) as peer:
            lost = await peer.wait_closed()

    assert isinstance(lost, PeerCrashed)
    assert peer.process is not None
    assert (peer.process.has_exited, peer.process.exit_code, peer.process.signal) == (True, 9, None)


# -- pending calls


async def test_every_call_in_flight_settles_with_the_reason_and_an_error_of_its_own() -> None:
    crashes: list[PeerCrashed] = []

    async def call(peer: Peer, number: int) -> None:
        with pytest.raises(PeerCrashed) as caught:
            await peer.call("x", [number])
        crashes.append(caught.value)

    with anyio.fail_after(60):
        async with ready_child("never_answers") as (peer, _), anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(call, peer, number)
            await anyio.wait_all_tasks_blocked()
            assert peer.process is not None
            peer.process.kill()

    assert [crash.signal for crash in crashes] == ["SIGKILL"] * 10
    assert len({id(crash) for crash in crashes}) == 10


async def test_a_call_after_the_end_is_refused_with_the_same_reason() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("exits", 3)) as peer:
            await peer.wait_closed()
            for ask in (peer.call, peer.notify):
                with pytest.raises(PeerCrashed) as caught:
                    await ask("x")
                assert caught.value.exit_code == 3


async def test_a_response_that_came_whole_is_delivered_although_the_child_died_at_once() -> None:
    answers_and_dies = (
        "import sys, os; sys.stdin.buffer.readline();"
        'body = b\'{"jsonrpc":"2.0","id":1,"result":"whole"}\';'
        'os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body)); os._exit(1)'
    )
    with anyio.fail_after(60):
        async with Peer.connect_process(["/usr/bin/env", "python3", "-I", "-S", "-c", answers_and_dies]) as peer:
            assert await peer.call("x") == "whole"
            assert isinstance(await peer.wait_closed(), PeerCrashed)


async def test_half_a_frame_before_the_exit_is_reported_and_the_frame_before_it_arrives() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("dies_in_mid_frame")) as peer:
            assert await peer.call("x") == "whole"
            with pytest.raises(PeerCrashed) as caught:
                await peer.call("x")

    assert caught.value.exit_code == 3
    assert "truncated" in caught.value.detail


@pytest.mark.parametrize("size", [100_000, 3_000_000])
async def test_a_child_that_dies_while_it_is_written_to_is_a_crash_and_no_broken_pipe(size: int) -> None:
    crash = await crash_of(child("dies_while_it_is_written_to"), params=["x" * size])

    assert crash.exit_code == 5


async def test_text_on_stdout_before_the_exit_is_a_violation_and_not_a_crash() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("prints_to_stdout", "hello: world")) as peer:
            with pytest.raises(ConnectionLost) as caught:
                await peer.call("x")

    assert caught.value.reason is DisconnectReason.REMOTE_VIOLATION


# -- grandchildren


async def test_an_exit_is_noticed_although_a_grandchild_holds_the_pipes() -> None:
    with anyio.fail_after(60):
        async with ready_child("leaves_a_grandchild_with_its_pipes") as (peer, output):
            with ProcessWatch(output["family"][0]) as grandchild:
                with pytest.raises(PeerCrashed) as caught:
                    await peer.call("x")
                assert caught.value.exit_code == 7
                await peer.aclose()
                await grandchild.gone()


async def test_a_grandchild_that_holds_the_pipes_does_not_delay_the_failure_of_a_call() -> None:
    patient = QUICK.but(drain_grace=3600)
    with anyio.fail_after(60):
        async with ready_child("leaves_a_grandchild_with_its_pipes", limits=patient) as (peer, _):
            with pytest.raises(PeerCrashed) as caught:
                await peer.call("x")

    assert caught.value.exit_code == 7


@pytest.mark.parametrize("size", [1, 60_000])
async def test_a_response_sent_before_the_exit_is_delivered_although_a_grandchild_holds_the_pipe(size: int) -> None:
    with anyio.fail_after(60):
        async with ready_child("responds_and_leaves_a_grandchild", size) as (peer, _):
            assert await peer.call("x") == "x" * size
            assert isinstance(await peer.wait_closed(), PeerCrashed)


async def test_an_exit_is_noticed_although_a_grandchild_floods_the_pipes() -> None:
    families: list[ProcessWatch] = []
    with anyio.fail_after(60):
        async with Peer.connect_process(child("leaves_a_grandchild_that_floods"), limits=QUICK) as peer:
            peer.on("tick")(lambda _: None)

            @peer.on("ready")
            def take(params: dict[str, Any]) -> None:
                families.append(ProcessWatch(params["family"][0]))

            with pytest.raises(PeerCrashed) as caught:
                await peer.call("x")
            assert caught.value.exit_code == 7
        for grandchild in families:
            with grandchild:
                await grandchild.gone()
    assert families


async def test_output_of_a_child_before_its_exit_is_read_although_reading_was_paused() -> None:
    limits = QUICK.but(stream_events=4000)  # it pauses at a thousand, and the pipe holds some hundreds more
    seen: list[int] = []

    async def consume(peer: Peer) -> None:
        async with peer.stream("x", events={"tick": Any}, pause_connection=True) as run:
            assert peer.process is not None
            with ProcessWatch(peer.process.pid) as process:
                await process.gone()
            async for event in run:
                seen.append(event["n"])

    with anyio.fail_after(60):
        async with Peer.connect_process(child("dies_in_mid_stream", 1400), limits=limits) as peer:
            with pytest.raises(PeerCrashed):
                await consume(peer)

    assert seen == list(range(1400))
