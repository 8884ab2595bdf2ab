"""A sidecar is started, completes its handshake in either order, exchanges messages, and ends."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import anyio
import pytest

from becket.contract.sidecar import InsertMode, InsertText, SidecarFailed, SidecarHello, SidecarStatus
from becket.errors import (
    ConnectionLost,
    FrameTooLarge,
    HandshakeFailed,
    NotSent,
    PeerCrashed,
    StartFailed,
    VersionMismatch,
)
from becket.host.sidecar import MAX_EVENTS, Sidecar, SidecarConnector, connect_sidecar
from becket.limits import DEFAULT_LIMITS, Limits

pytestmark = [pytest.mark.loops, pytest.mark.process]

PATIENCE = 60.0

PRELUDE = """
import json, os, sys

def say(type, **members):
    print(json.dumps({"type": type, **members}), flush=True)

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def hello(version=2):
    say("hello", protocol_version=version, extension="scribe", capabilities=["dictation"])
"""


def start(program: str, *, timeout: float = PATIENCE, limits: Limits = DEFAULT_LIMITS) -> SidecarConnector:
    return connect_sidecar([sys.executable, "-c", PRELUDE + program], name="scribe", timeout=timeout, limits=limits)


async def take(sidecar: Sidecar, count: int) -> list[object]:
    with anyio.fail_after(PATIENCE):
        return [await anext(sidecar) for _ in range(count)]


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


ECHO = """
while (received := hear()) and received["type"] != "shutdown":
    say("status", state=received["type"], label=json.dumps(received))
"""


@pytest.mark.parametrize(
    "order",
    [
        "hello(); received = hear()",
        "received = hear(); hello()",
        "say('status', state='loading'); hello(); received = hear()",
    ],
    ids=["hello first", "init first", "something else first"],
)
async def test_hello_and_init_may_come_in_either_order(order: str) -> None:
    async with start(f"{order}\nsay('status', state='ready', label=json.dumps(received))\n{ECHO}") as sidecar:
        assert sidecar.hello == SidecarHello(2, "scribe", ("dictation",))
        event = SidecarStatus("")
        while event.state != "ready":
            (event,) = await take(sidecar, 1)
            assert isinstance(event, SidecarStatus)
        assert event.label == '{"type": "init", "config": {"protocol_version": 2}}'
        assert not event.is_active


async def test_triggers_are_sent_and_messages_arrive_as_events() -> None:
    program = """
hello(); hear()
press = hear()
say("insert_text", text=press["name"], mode="append")
say("levels", bars=[1, 2])
say("hello", protocol_version=2, extension="again")
print("a stray line", flush=True)
say("insert_text", text="all of it", mode="final")
say("error", message="no microphone")
say("error", message="")
say("status", state="stopped")
hear()
"""
    async with start(program) as sidecar:
        await sidecar.trigger("press", {"key": "F8"})
        assert await take(sidecar, 4) == [
            InsertText("press", InsertMode.APPEND),
            InsertText("all of it", InsertMode.FINAL),
            SidecarFailed("no microphone"),
            SidecarStatus("stopped"),
        ]
        assert (sidecar.ignored, sidecar.skipped) == (2, 2)


async def test_a_payload_is_sent_unchanged() -> None:
    async with start("hello(); hear()\n" + ECHO) as sidecar:
        await sidecar.trigger("press", {"a": [1, None]})
        await sidecar.trigger("release")
        first, second = await take(sidecar, 2)
        assert isinstance(first, SidecarStatus)
        assert isinstance(second, SidecarStatus)
        assert first.label == '{"type": "trigger", "name": "press", "payload": {"a": [1, null]}}'
        assert second.label == '{"type": "trigger", "name": "release"}'


async def test_other_hello_members_are_beside_the_version() -> None:
    program = PRELUDE + "hello()\nsay('status', state='ready', label=hear()['config']['language'])\nhear()"
    async with connect_sidecar([sys.executable, "-c", program], config={"language": "de"}) as sidecar:
        assert await take(sidecar, 1) == [SidecarStatus("ready", "de")]


async def test_closing_sends_shutdown_and_leaves_no_process(tmp_path: Path) -> None:
    note = tmp_path / "note"
    program = f"hello(); hear()\nopen({str(note)!r}, 'w').write(hear()['type'])\n"
    async with start(program) as sidecar:
        pid = sidecar.pid
        assert not sidecar.is_closed
        assert "running" in repr(sidecar)
    assert note.read_text(encoding="utf-8") == "shutdown"
    assert sidecar.is_closed
    assert not is_running(pid)
    await sidecar.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(sidecar)
    with pytest.raises(ConnectionLost):
        await sidecar.trigger("press")


async def test_a_sidecar_that_ignores_shutdown_is_killed() -> None:
    limits = DEFAULT_LIMITS.but(stdin_grace=0.01, term_grace=2.0)
    async with start("hello(); hear()\nimport time; time.sleep(60)", limits=limits) as sidecar:
        pid = sidecar.pid
    assert not is_running(pid)


async def test_the_exit_of_a_sidecar_ends_the_events() -> None:
    async with start("hello(); hear()\nsay('status', state='stopped')") as sidecar:
        with anyio.fail_after(PATIENCE):
            assert [event async for event in sidecar] == [SidecarStatus("stopped")]


async def test_a_crash_is_reported_after_the_events_before_it() -> None:
    program = "hello(); hear()\nsay('status', state='x')\nsys.stderr.write('out of ink'); sys.exit(3)"
    async with start(program) as sidecar:
        assert await take(sidecar, 1) == [SidecarStatus("x")]
        with pytest.raises(PeerCrashed) as crash:
            await take(sidecar, 1)
        assert crash.value.exit_code == 3
        assert "out of ink" in crash.value.stderr_tail


async def test_an_old_version_is_refused() -> None:
    with pytest.raises(VersionMismatch) as refused:
        async with start("hello(1); hear()"):
            pass
    assert (refused.value.given, refused.value.supported) == (1, 2)


async def test_a_newer_version_is_accepted() -> None:
    async with start("hello(3); hear()\nhear()") as sidecar:
        assert sidecar.hello.protocol_version == 3


async def test_no_hello_fails_the_start() -> None:
    with pytest.raises(HandshakeFailed) as failed:
        await start("hear()\nhear()", timeout=0.3)
    assert failed.value.extension == "scribe"


async def test_the_error_for_an_exit_before_the_hello_has_the_exit_code() -> None:
    with pytest.raises(StartFailed) as failed:
        await start("sys.stderr.write('no model'); sys.exit(2)")
    assert (failed.value.exit_code, failed.value.stderr_tail) == (2, "no model")


async def test_a_program_that_is_missing_cannot_be_started() -> None:
    with pytest.raises(StartFailed):
        await connect_sidecar(["/no/such/sidecar"])


async def test_a_line_without_an_end_ends_the_sidecar() -> None:
    limits = DEFAULT_LIMITS.but(frame=1024, skipped_frames=0)
    with pytest.raises(HandshakeFailed):
        await start("print('x' * 5000, flush=True)\nhear()\nhear()", limits=limits)


async def test_one_overlong_line_is_skipped() -> None:
    limits = DEFAULT_LIMITS.but(frame=1024, skipped_frames=1)
    program = "print('x' * 5000, flush=True)\nhello()\nhear()\nsay('status', state='y' * 5000)\nhear()"
    async with start(program, limits=limits) as sidecar:
        assert sidecar.skipped == 1
        with pytest.raises(ConnectionLost) as lost:
            await take(sidecar, 1)
        assert isinstance(lost.value.__cause__, FrameTooLarge)


async def test_events_beyond_the_queue_limit_are_not_read() -> None:
    count = 20 * MAX_EVENTS
    program = f"hello(); hear()\nfor number in range({count}): say('status', state=str(number))\nsay('done')\nhear()"
    async with start(program) as sidecar:
        await take(sidecar, 1)
        await anyio.wait_all_tasks_blocked()
        assert sidecar.ignored == 0
        rest = await take(sidecar, count - 1)
        assert rest[-1] == SidecarStatus(str(count - 1))


async def test_a_sidecar_that_does_not_read_gets_no_more_messages() -> None:
    limits = DEFAULT_LIMITS.but(send_queue=1000, stdin_grace=0.01)
    async with start("hello(); hear()\nimport time; time.sleep(60)", limits=limits) as sidecar:
        with pytest.raises(NotSent):
            await press_many_times(sidecar)


async def press_many_times(sidecar: Sidecar) -> None:
    for _ in range(100):
        await sidecar.trigger("press", "x" * 10_000)


async def test_a_flood_of_invalid_lines_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    program = "hello(); hear()\nfor _ in range(100): print('?')\nsay('status', state='ready')\nhear()"
    async with start(program) as sidecar:
        await take(sidecar, 1)
        assert sidecar.skipped == 100
    assert len(caplog.records) == 7


async def test_a_sidecar_gets_all_variables_of_this_program_only_if_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCRIBE_MODEL", "small")
    program = PRELUDE + "hello(); hear()\nsay('status', state=os.environ.get('SCRIBE_MODEL', 'none'))\nhear()"
    command = [sys.executable, "-c", program]
    async with connect_sidecar(command, inherit_env=True) as inheriting, connect_sidecar(command) as bare:
        assert await take(inheriting, 1) == [SidecarStatus("small")]
        assert await take(bare, 1) == [SidecarStatus("none")]
