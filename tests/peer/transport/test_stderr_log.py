"""The stderr of a child: always read, bounded, and escaped."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import tracemalloc
from functools import partial
from random import Random

import anyio
import pytest
from hypothesis import given, strategies as st
from tests.peer.children import QUICK

from becket import Limits, Peer
from becket.blocking import connect_process
from becket.peer.transport.stderr_log import PORTION, StderrLog
from becket.testing import child

KIB = 1024
PATIENT = QUICK.but(drain_grace=5.0)  # all lines that wait at the end are handed out, however slow the machine is
SMALL = Limits(stderr_tail=64, stderr_line=16, stderr_rate=1000)


def lines_of(*chunks: bytes, limits: Limits = SMALL, now: float = 0.0) -> list[str]:
    """Returns the lines that a log hands out for these bytes."""
    lines: list[str] = []
    log = StderrLog(lines.append, limits)
    for chunk in chunks:
        log.feed(chunk, now)
    log.close(now)
    return lines


# -- lines


def test_lines_are_handed_out_one_by_one_and_the_last_needs_no_end() -> None:
    assert lines_of(b"one\ntwo\nthr", b"ee") == ["one", "two", "three"]


def test_every_way_to_end_a_line_ends_a_line() -> None:
    assert lines_of(b"a\r\nb\rc\nd\r", b"\ne") == ["a", "b", "c", "d", "e"]


def test_a_progress_bar_of_carriage_returns_is_a_line_each_time() -> None:
    assert lines_of(b"10 %\r20 %\r30 %") == ["10 %", "20 %", "30 %"]


@given(st.lists(st.binary(max_size=20)))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)

    assert lines_of(*chunks) == lines_of(whole) == lines_of(*(whole[i : i + 1] for i in range(len(whole))))


def test_a_long_line_is_cut_with_the_number_of_missing_bytes() -> None:
    assert lines_of(b"x" * 100 + b"\nshort\n") == ["x" * 16 + " ... (84 more bytes)", "short"]


def test_lines_beyond_the_rate_are_counted_and_reported_when_the_flood_is_over() -> None:
    lines: list[str] = []
    log = StderrLog(lines.append, SMALL)
    for _ in range(200):
        log.feed(b"123456789\n", 1.0)
    log.feed(b"later\n", 2.5)
    log.close(2.5)

    assert lines == ["123456789"] * 100 + ["(100 lines suppressed)", "later"]
    assert log.suppressed == 100


def test_lines_that_were_suppressed_are_reported_at_the_end_too() -> None:
    assert lines_of(b"123456789\n" * 101)[-1] == "(1 lines suppressed)"


def test_lines_beyond_so_many_a_second_are_counted_however_short_they_are() -> None:
    limits = SMALL.but(stderr_lines=3)
    lines: list[str] = []
    log = StderrLog(lines.append, limits)
    log.feed(b"E\n" * 10, 1.0)
    log.feed(b"E\r\nE\rE\nrest", 1.5)
    log.feed(b" of it\n", 2.0)
    log.close(2.0)

    assert lines == ["E"] * 3 + ["(10 lines suppressed)", "rest of it"]


def test_an_end_of_line_that_was_cut_in_two_is_counted_once() -> None:
    lines: list[str] = []
    log = StderrLog(lines.append, SMALL.but(stderr_lines=1))
    for chunk in (b"a\r", b"\nb\r", b"\nc"):
        log.feed(chunk, 0.0)
    log.close(0.0)

    assert lines == ["a", "(2 lines suppressed)"]


def test_slow_line_callbacks_get_lines_in_portions_without_loss() -> None:
    lines: list[str] = []
    log = StderrLog(lines.append, SMALL, lambda: len(lines) * PORTION)  # each line takes a whole one
    log.feed(b"one\ntwo\nthree\nfo", 0.0)
    portions = [lines.copy()]
    while log.is_behind:
        log.hand_out(0.0)
        portions.append(lines.copy())
    log.feed(b"ur\n", 0.0)

    assert portions[0] == ["one", "two"]
    assert len(portions) > 1
    assert lines == ["one", "two", "three", "four"]


def test_lines_beyond_the_waiting_limit_are_counted() -> None:
    lines: list[str] = []
    log = StderrLog(lines.append, SMALL, lambda: len(lines) * 2 * PORTION)
    log.feed(b"0\n1\n2\n", 0.0)
    assert log.is_behind
    log.feed(b"x" * SMALL.stderr_tail, 0.0)
    log.close(0.0)

    assert lines[:1] == ["0"]
    assert lines[-1] == "(2 lines suppressed)"
    assert log.suppressed == 2


def test_a_function_that_fails_on_a_line_does_not_stop_the_next(
    caplog: pytest.LogCaptureFixture, internal_errors: list[logging.LogRecord]
) -> None:
    seen: list[str] = []

    def fail_once(line: str) -> None:
        seen.append(line)
        if len(seen) == 1:
            raise RuntimeError("no room in the log")

    log = StderrLog(fail_once, SMALL)
    log.feed(b"one\n", 0.0)
    log.feed(b"two\n", 10.0)  # to log the error may take all the time that one chunk has

    assert seen == ["one", "two"]
    assert len(internal_errors) == 1
    internal_errors.clear()


# -- the tail


def test_the_tail_is_the_last_that_was_written() -> None:
    log = StderrLog(None, SMALL)
    for number in range(100):
        log.feed(b"line %d\n" % number, 0.0)

    assert log.tail().endswith("line 98\nline 99\n")
    assert len(log.tail()) <= SMALL.stderr_tail


def test_the_tail_is_escaped_line_by_line() -> None:
    log = StderrLog(None, SMALL)
    log.feed(b"a\x1b[2J\r\nb\x07\rc", 0.0)

    assert log.tail() == "a\\x1b[2J\nb\\x07\nc"


def test_a_flood_takes_no_more_memory_than_the_limits() -> None:
    limits = Limits()
    log = StderrLog(lambda line: None, limits)
    block = b"x" * 64 * KIB
    tracemalloc.start()
    try:
        for _ in range(200):
            log.feed(block, 0.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * limits.stderr_tail


# -- what is harmless


# -- real children


@pytest.mark.loops
@pytest.mark.process
@pytest.mark.parametrize("kind", ["lines", "unbroken", "returns"])
async def test_a_child_that_floods_its_stderr_still_gets_a_response(kind: str) -> None:
    lines: list[str] = []
    with anyio.fail_after(60):
        async with Peer.connect_process(
            child("floods_stderr", 2_000_000, kind), on_stderr=lines.append, limits=QUICK
        ) as peer:
            assert await peer.call("x", [1]) == [1]
            assert await peer.call("x", [2]) == [2]

    assert all(len(line) < QUICK.stderr_line + 40 for line in lines)
    assert sum(map(len, lines)) < 4_000_000
    assert peer.process is not None
    assert len(peer.process.stderr_tail) <= QUICK.stderr_tail


WRITES = ["/usr/bin/env", "python3", "-I", "-S", "-c"]
MANY_LINES = "import os; os.write(2, b''.join(b'line %d\\n' % number for number in range(1000)))"
ENDLESS = "import os\nwhile True: os.write(2, b'E\\n' * 10000)"


def take_long(lines: list[str], line: str) -> None:
    """Takes so much processor time that lines are handed out in many portions."""
    lines.append(line)
    until = time.thread_time() + PORTION / 20
    while time.thread_time() < until:
        pass


@pytest.mark.loops
@pytest.mark.process
async def test_all_lines_that_a_child_wrote_before_its_end_are_handed_out() -> None:
    lines: list[str] = []
    with anyio.fail_after(60):
        async with Peer.connect_process(
            [*WRITES, MANY_LINES], on_stderr=partial(take_long, lines), limits=PATIENT
        ) as peer:
            await peer.wait_closed()

    assert lines == [f"line {number}" for number in range(1000)]


@pytest.mark.process
def test_all_lines_that_a_child_wrote_before_its_end_are_handed_out_without_a_loop() -> None:
    lines: list[str] = []
    with connect_process([*WRITES, MANY_LINES], on_stderr=partial(take_long, lines), limits=PATIENT) as peer:
        peer.wait_closed()

    assert lines == [f"line {number}" for number in range(1000)]


@pytest.mark.loops
@pytest.mark.process
async def test_a_flood_of_short_lines_is_counted_and_other_links_are_served_meanwhile() -> None:
    lines: list[str] = []
    limits = QUICK.but(stderr_lines=10)
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("echoes")) as sibling,
            Peer.connect_process([*WRITES, ENDLESS], on_stderr=lines.append, limits=limits) as flooder,
        ):
            while not any("suppressed" in line for line in lines):
                assert await sibling.call("x", [1]) == [1]
            assert flooder.process is not None
            assert len(flooder.process.stderr_tail) == limits.stderr_tail
            os.kill(flooder.process.pid, signal.SIGKILL)

    assert lines[:10] == ["E"] * 10
    assert "suppressed" in lines[10]


@pytest.mark.process
def test_a_flood_of_short_lines_is_counted_without_a_loop() -> None:
    lines: list[str] = []
    limits = QUICK.but(stderr_lines=10)
    counted = threading.Event()

    def on_line(line: str) -> None:
        lines.append(line)
        if "suppressed" in line:
            counted.set()

    with connect_process([*WRITES, ENDLESS], on_stderr=on_line, limits=limits) as flooder:
        flooder.listen()
        assert counted.wait(60)
        assert flooder.process is not None
        assert len(flooder.process.stderr_tail) == limits.stderr_tail
        os.kill(flooder.process.pid, signal.SIGKILL)

    assert lines[:10] == ["E"] * 10
    assert "suppressed" in lines[10]


@pytest.mark.loops
@pytest.mark.process
async def test_a_line_of_a_child_cannot_pass_for_a_line_of_the_host(caplog: pytest.LogCaptureFixture) -> None:
    forged = b"hello\nbecket.host: granted everything\r\x1b[1A\x1b[2Khidden\n"
    with caplog.at_level(logging.INFO, logger="becket.peer"), anyio.fail_after(60):
        async with Peer.connect_process(child("writes_to_stderr", forged.hex()), name="notes") as peer:
            await peer.call("x")

    output = [record.getMessage() for record in caplog.records if record.name == "becket.peer"]
    assert output == ["notes: hello", "notes: becket.host: granted everything", "notes: \\x1b[1A\\x1b[2Khidden"]


@pytest.mark.loops
@pytest.mark.process
async def test_stderr_right_before_the_exit_is_in_the_tail() -> None:
    code = "import os; os.write(2, b'first' + b'x' * 60000 + b'last words'); os._exit(2)"
    with anyio.fail_after(60):
        async with Peer.connect_process(["/usr/bin/env", "python3", "-I", "-S", "-c", code]) as peer:
            await peer.wait_closed()
            assert peer.process is not None
            assert peer.process.stderr_tail.endswith("last words")
            assert peer.process.stderr_tail.startswith("first")


@pytest.mark.loops
@pytest.mark.process
async def test_a_child_that_closes_its_stderr_continues() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(["/usr/bin/env", "sh", "-c", 'exec "$@" 2>&-', "sh", *child("echoes")]) as peer:
            assert await peer.call("x", [1]) == [1]


def test_random_bytes_in_random_chunks_never_raise() -> None:
    random = Random(4)
    log = StderrLog(lambda line: None, SMALL)
    for _ in range(500):
        log.feed(random.randbytes(random.randrange(200)), random.random() * 10)
        log.tail()
    log.close(11.0)
