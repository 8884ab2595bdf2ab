"""The audit log on disk: written and counted events, rotation, and the detection of changes."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from becket.contract.audit import (
    CHAIN_START,
    AuditEvent,
    CallDecided,
    CallsCounted,
    FileRotated,
    GrantChanged,
    ProcessStarted,
    ProviderCalled,
    ProviderOutcome,
    encode_record,
)
from becket.host import audit_log
from becket.host.audit_log import AuditFile, AuditLog, AuditMode, AuditProblem, read_audit, verify_audit

GRANT = GrantChanged("notes", "memory.read", True, "operator")
START = ProcessStarted("notes", ("./notes",), "native", (), "embedded")
PROVIDER_CALL = ProviderCalled("notes", "local", "small", False, ProviderOutcome.OK)


def call(method: str = "config.get", *, allowed: bool = True, extension: str = "notes") -> CallDecided:
    return CallDecided(extension, method, None, allowed, "it needs none" if allowed else "it is not granted")


# -- what is written


class Written:
    """A log in memory, with a clock that a test sets."""

    def __init__(self, mode: AuditMode = AuditMode.USUAL) -> None:
        self.now = 1_000
        self.events: list[tuple[int, AuditEvent]] = []
        self.log = AuditLog(lambda event, at: self.events.append((at, event)), now=lambda: self.now, mode=mode)


def test_denials_grants_starts_and_calls_of_providers_have_a_record_each() -> None:
    written = Written()
    events: list[AuditEvent] = [START, GRANT, PROVIDER_CALL, call(allowed=False), call(allowed=False)]

    for event in events:
        written.log(event)

    assert written.events == [(1_000, event) for event in events]


def test_allowed_calls_are_counted_for_a_minute() -> None:
    written = Written()
    written.log(call())
    written.now = 2_000
    written.log(call("memory.query"))
    written.log(call(extension="chat"))
    written.now = 60_999
    written.log(call())
    assert written.events == []

    written.now = 61_000
    written.log(call())

    assert written.events == [
        (61_000, CallsCounted("notes", "config.get", None, 2, 1_000)),
        (61_000, CallsCounted("notes", "memory.query", None, 1, 2_000)),
        (61_000, CallsCounted("chat", "config.get", None, 1, 2_000)),
    ]


def test_counted_events_are_written_before_an_event_a_minute_later() -> None:
    written = Written()
    written.log(call())
    written.now = 90_000

    written.log(GRANT)

    assert [type(event) for _, event in written.events] == [CallsCounted, GrantChanged]


def test_counted_events_are_written_on_flush() -> None:
    written = Written()
    written.log(call())

    written.log.flush()
    written.log.flush()

    assert written.events == [(1_000, CallsCounted("notes", "config.get", None, 1, 1_000))]


def test_a_clock_that_goes_back_ends_the_minute() -> None:
    written = Written()
    written.log(call())
    written.now = 500

    written.log(call())

    assert written.events == [(500, CallsCounted("notes", "config.get", None, 1, 1_000))]


def test_in_full_every_call_has_a_record() -> None:
    written = Written(AuditMode.FULL)

    for _ in range(200):
        written.log(call(allowed=False))
    written.log(call())
    written.log.flush()

    assert [event for _, event in written.events] == [call(allowed=False)] * 200 + [call()]


def test_endless_denied_requests_do_not_fill_the_disk() -> None:
    written = Written()

    for _ in range(100_000):
        written.log(call(allowed=False))
    written.log(call("other", allowed=False))
    written.log.flush()

    events = [event for _, event in written.events]
    assert events[:100] == [call(allowed=False)] * 100
    assert events[100] == call("other", allowed=False)
    (last,) = events[101:]
    assert isinstance(last, CallDecided)
    assert last.because == "it is not granted (the last of 99900 more)"


def test_a_hundred_denials_are_all_written_and_not_counted_again() -> None:
    written = Written()

    for _ in range(100):
        written.log(call(allowed=False))
    written.log.flush()

    assert [event for _, event in written.events] == [call(allowed=False)] * 100


def test_calls_that_name_no_parent_while_another_is_served_have_a_record_each_up_to_a_number() -> None:
    written = Written()
    parentless = replace(call(), handling=("chat",))

    for _ in range(150):
        written.log(parentless)
        written.log(call(allowed=False))
    written.log.flush()

    events = [event for _, event in written.events]
    assert events.count(parentless) == events.count(call(allowed=False)) == 100
    assert sorted(event.because for event in events[200:] if isinstance(event, CallDecided)) == [
        "it is not granted (the last of 50 more)",
        "it needs none (the last of 50 more)",
    ]


def test_the_number_of_counted_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_COUNTED_KEYS", 10)
    written = Written()

    for number in range(10):
        written.log(call(f"m{number}"))
    assert written.events == []
    written.log(call("denied", allowed=False))

    assert [type(event) for _, event in written.events] == [CallDecided] + [CallsCounted] * 10


def test_threads_may_record_at_once() -> None:
    written = Written()
    threads = [Thread(target=lambda: [written.log(call()) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    written.log.flush()

    assert written.events == [(1_000, CallsCounted("notes", "config.get", None, 2_000, 1_000))]


# -- where it is written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def write(path: Path, *events: AuditEvent, rotate_at: int = 1 << 20) -> None:
    with AuditFile(path, rotate_at=rotate_at) as file:
        for event in events:
            file.write(event, 7)


def events_in(path: Path) -> list[AuditEvent]:
    return [record.event for record in read_audit(path)]


def test_written_records_are_read_and_verified(path: Path) -> None:
    write(path, START, GRANT)
    write(path, PROVIDER_CALL)

    assert events_in(path) == [START, GRANT, PROVIDER_CALL]
    assert verify_audit(path) == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_link_of_a_file_has_the_position_of_the_chain(path: Path) -> None:
    with AuditFile(path) as file:
        assert file.link == CHAIN_START
        file.write(GRANT, 7)
        first = file.link

    with AuditFile(path) as file:
        assert file.link == first
        assert first.seq == 1


def test_a_closed_file_takes_no_records(path: Path) -> None:
    file = AuditFile(path)
    file.close()
    file.close()

    with pytest.raises(ValueError):
        file.write(GRANT, 7)


def test_a_log_writes_to_a_file(path: Path) -> None:
    with AuditFile(path) as file:
        log = AuditLog(file.write, now=lambda: 9)
        log(GRANT)
        log(call())
        log.flush()

    assert events_in(path) == [GRANT, CallsCounted("notes", "config.get", None, 1, 9)]


def test_two_processes_may_write_to_one_file(path: Path) -> None:
    """Two open files stand for two processes: the lock is between them too."""
    with AuditFile(path, rotate_at=1_000) as host, AuditFile(path, rotate_at=1_000) as operator:
        for _ in range(20):
            host.write(START, 7)
            operator.write(GRANT, 7)
            operator.write(GRANT, 7)

    events = [event for event in events_in(path) if not isinstance(event, FileRotated)]
    assert events == [START, GRANT, GRANT] * 20
    assert verify_audit(path) == []
    assert len(list(path.parent.iterdir())) > 3


@pytest.mark.process
def test_written_records_survive_a_kill(path: Path) -> None:
    code = (
        "import sys; from becket.host.audit_log import AuditFile; from becket.contract.audit import GrantChanged\n"
        "file = AuditFile(sys.argv[1], rotate_at=2000)\n"
        "while True:\n"
        "    file.write(GrantChanged('notes', 'memory.read', True, 'x' * 99), 7)\n"
        "    print(file.link.seq, flush=True)\n"
    )
    acknowledged = 0
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        with child, child.stdout:
            for _ in range(50):
                acknowledged = int(child.stdout.readline())
            child.kill()
            for line in child.stdout:
                acknowledged = int(line) if line.endswith(b"\n") else acknowledged

    assert [found for found in verify_audit(path) if not found.is_torn_end] == []
    with AuditFile(path) as file:
        assert file.link.seq >= acknowledged
    assert verify_audit(path) == []


# -- rotation


def test_a_full_file_is_rotated_and_the_chain_continues(path: Path) -> None:
    events: list[AuditEvent] = [GrantChanged("notes", "memory.read", True, str(number)) for number in range(40)]

    write(path, *events, rotate_at=1_000)

    names = sorted(file.name for file in path.parent.glob("*.jsonl"))
    assert len(names) > 3
    assert names[-1] == "audit.jsonl"
    assert all(file.stat().st_size < 1_300 for file in path.parent.iterdir())
    assert [event for event in events_in(path) if not isinstance(event, FileRotated)] == events
    assert [event.previous for event in events_in(path) if isinstance(event, FileRotated)] == names[:-1]
    assert verify_audit(path) == []


@pytest.mark.parametrize(("more", "count"), [(0, 2), (1, 1)])
def test_a_file_is_full_when_it_has_as_many_bytes_as_it_may(path: Path, more: int, count: int) -> None:
    write(path, START)

    write(path, GRANT, rotate_at=path.stat().st_size + more)

    assert len(list(path.parent.glob("*.jsonl"))) == count


def test_files_are_rotated_at_64_mebibytes() -> None:
    assert audit_log.ROTATE_AT == 64 * 2**20


def test_a_crash_between_two_files_loses_nothing(path: Path) -> None:
    write(path, START, GRANT)
    path.rename(path.with_name("audit-000000000002.jsonl"))
    assert events_in(path) == [START, GRANT]
    assert verify_audit(path) == []

    write(path)  # opened and closed: the position of the chain is preserved
    write(path, PROVIDER_CALL)

    assert events_in(path) == [START, GRANT, FileRotated("audit-000000000002.jsonl"), PROVIDER_CALL]
    assert verify_audit(path) == []


def test_other_files_beside_it_are_not_parts_of_it(path: Path) -> None:
    for name in ("audit-old.jsonl", "audit-1.txt", "audit-.jsonl", "other-7.jsonl", "audit-\u0663.jsonl"):
        path.with_name(name).write_text("nothing", encoding="utf-8")

    write(path, GRANT)

    assert events_in(path) == [GRANT]
    assert verify_audit(path) == []


def test_nothing_is_ever_written_over(path: Path) -> None:
    target = path.with_name("audit-000000000002.jsonl")
    target.write_text("precious", encoding="utf-8")

    write(path, START, GRANT, PROVIDER_CALL, rotate_at=200)

    assert target.read_text(encoding="utf-8") == "precious"
    assert [event for event in events_in(path) if not isinstance(event, FileRotated)][-1] == PROVIDER_CALL


# -- crashes and full disks


def test_wherever_a_crash_cut_the_last_line_the_whole_ones_stay_and_the_chain_continues(tmp_path: Path) -> None:
    write(tmp_path / "whole.jsonl", START, GRANT)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(len(whole)):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])

        write(path, PROVIDER_CALL)

        kept = (cut >= first - 1) + (cut >= len(whole) - 1)
        assert events_in(path) == [*[START, GRANT][:kept], PROVIDER_CALL]
        assert verify_audit(path) == []


def test_a_torn_end_is_reported_until_the_next_start(path: Path) -> None:
    write(path, START, GRANT)
    with path.open("ab") as file:
        file.write(b'{"seq":3,"time')

    assert verify_audit(path) == [AuditProblem(str(path), 3, "the line is unfinished", True)]
    write(path)
    assert verify_audit(path) == []


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_full_disk_leaves_no_half_of_a_record(path: Path, room: int) -> None:
    with AuditFile(path) as file:
        file.write(START, 7)
        size = path.stat().st_size
        with files_of_at_most(size + room), pytest.raises(OSError) as caught:
            file.write(GRANT, 7)
        assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
        assert path.stat().st_size == size

        file.write(PROVIDER_CALL, 7)

    assert events_in(path) == [START, PROVIDER_CALL]
    assert verify_audit(path) == []


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        AuditFile(tmp_path / "none" / "audit.jsonl")
    with pytest.raises(FileNotFoundError):
        verify_audit(tmp_path / "audit.jsonl")


def test_a_folder_that_vanishes_is_reported_and_one_that_comes_back_is_used(tmp_path: Path) -> None:
    path = tmp_path / "data" / "audit.jsonl"
    path.parent.mkdir()
    with AuditFile(path) as file:
        file.write(START, 7)
        shutil.rmtree(path.parent)
        with pytest.raises(FileNotFoundError):
            file.write(GRANT, 7)

        path.parent.mkdir()
        file.write(PROVIDER_CALL, 7)

    assert events_in(path) == [PROVIDER_CALL]


@pytest.mark.parametrize("rotate_at", [200, 1_000])
def test_a_file_that_is_deleted_while_a_host_writes_to_it_is_detected(path: Path, rotate_at: int) -> None:
    with AuditFile(path, rotate_at=rotate_at) as file:
        for event in (START, GRANT):
            file.write(event, 7)
        path.unlink()

        file.write(PROVIDER_CALL, 7)

    (found,) = verify_audit(path)
    assert (found.path, found.line) == (str(path), 1)


# -- what was destroyed


def destroy(path: Path, *numbers: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number] = b"x" * (len(lines[number]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("destroyed", "shown"),
    [
        pytest.param([1], [2, 3], id="in-the-middle"),  # the third holds what the second was
        pytest.param([2], [3, 4], id="the-last"),
        pytest.param([0, 1, 2], [1, 2, 3, 4], id="all"),
    ],
)
def test_destroyed_lines_are_reported_and_the_chain_continues_after_them(
    path: Path, destroyed: list[int], shown: list[int]
) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    destroy(path, *destroyed)

    write(path, GRANT, PROVIDER_CALL)

    assert [found.line for found in verify_audit(path)] == shown
    assert not any(found.is_torn_end for found in verify_audit(path))
    assert events_in(path)[-2:] == [GRANT, PROVIDER_CALL]


def test_the_last_record_is_found_after_a_long_destroyed_part(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "TAIL_BYTES", 100)
    write(path, START, *[GRANT] * 9)
    destroy(path, *range(5, 10))

    with AuditFile(path) as file:
        assert file.link.seq == 10


@settings(max_examples=50)
@given(data=st.data())
def test_any_change_of_any_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    write(path, *[START, GRANT, PROVIDER_CALL] * 4, rotate_at=600)
    files = sorted(path.parent.iterdir())
    file = data.draw(st.sampled_from(files))
    text = bytearray(file.read_bytes())
    text[data.draw(st.integers(0, len(text) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(bytes(text))

    assert verify_audit(path) != []


def test_a_missing_file_is_detected(path: Path) -> None:
    write(path, *[START, GRANT, PROVIDER_CALL] * 8, rotate_at=600)
    files = sorted(path.parent.glob("*.jsonl"))
    files[1].unlink()

    (found,) = verify_audit(path)

    assert (found.path, found.line) == (str(files[2]), 1)
    assert files[1].name in found.problem
    assert events_in(path)[-1] == PROVIDER_CALL


@pytest.mark.parametrize("previous", ["../audit.jsonl", "/etc/passwd", "audit.jsonl"])
def test_a_file_continues_only_from_one_beside_it(path: Path, previous: str) -> None:
    path.write_bytes(encode_record(FileRotated(previous), CHAIN_START, 7)[0])

    found, no_anchor = verify_audit(path)

    assert (found.path, found.line) == (str(path), 1)
    assert previous in found.problem
    assert no_anchor.path == f"{path}.anchor"


def test_an_empty_audit_is_in_order(path: Path) -> None:
    write(path)

    assert verify_audit(path) == []
    assert events_in(path) == []


def test_problems_are_reported_up_to_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_PROBLEMS", 3)
    path.write_bytes(b"nonsense\n" * 50)

    assert [found.line for found in verify_audit(path)] == [1, 2, 3, 0]


# -- the anchor


def anchor_of(path: Path) -> Path:
    return path.with_name("audit.jsonl.anchor")


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def missing_in(path: Path) -> list[tuple[int, int] | None]:
    return [found.missing for found in verify_audit(path)]


def test_a_change_of_the_last_line_is_found_now_and_later(path: Path) -> None:
    write(path, START, GRANT)
    path.write_bytes(path.read_bytes().replace(b"memory.read", b"audio.input"))

    (found,) = verify_audit(path)
    assert "record 2" in found.problem

    write(path, PROVIDER_CALL)  # a new record does not hide it
    assert [found.line for found in verify_audit(path)] == [3]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_truncation_is_found_with_the_missing_records_now_and_later(path: Path, cut: int) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    path.write_bytes(b"".join(lines_of(path)[:-cut]))

    assert missing_in(path) == [(4 - cut, 3)]

    write(path, GRANT)
    assert missing_in(path) == [(4 - cut, 3)]
    with AuditFile(path) as file:
        assert file.link.seq == 4


def test_a_cut_within_a_line_is_found(path: Path) -> None:
    write(path, START, GRANT)
    path.write_bytes(path.read_bytes()[:-5])

    torn, found = verify_audit(path)

    assert (torn.is_torn_end, found.missing) == (True, (2, 2))


def test_a_cut_while_a_host_writes_is_found(path: Path) -> None:
    with AuditFile(path) as file:
        for event in (START, GRANT, PROVIDER_CALL):
            file.write(event, 7)
        os.truncate(path, len(lines_of(path)[0]))
        file.write(GRANT, 7)

    assert missing_in(path) == [(2, 3)]


def test_an_end_that_was_written_anew_is_found_now_and_later(path: Path) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    first, anchor = lines_of(path)[0], anchor_of(path).read_bytes()
    path.write_bytes(first)
    anchor_of(path).unlink()
    write(path, PROVIDER_CALL, PROVIDER_CALL, PROVIDER_CALL, PROVIDER_CALL)  # as an attacker would
    anchor_of(path).write_bytes(anchor)

    (found,) = verify_audit(path)
    assert "record 3" in found.problem

    write(path, GRANT)
    assert [found.line for found in verify_audit(path)] == [6]


def test_an_anchor_behind_is_what_a_kill_leaves_and_no_fault(path: Path) -> None:
    write(path, START)
    behind = anchor_of(path).read_bytes()
    write(path, GRANT)
    anchor_of(path).write_bytes(behind)
    assert verify_audit(path) == []

    write(path)  # the next start brings it up to date

    os.truncate(path, len(lines_of(path)[0]))
    assert missing_in(path) == [(2, 2)]


def test_an_anchor_behind_a_rotation_is_valid_and_one_behind_another_end_is_not(path: Path) -> None:
    write(path, START, GRANT)
    behind = anchor_of(path).read_bytes()
    write(path, PROVIDER_CALL, rotate_at=200)
    assert len(list(path.parent.glob("*.jsonl"))) == 2
    anchor_of(path).write_bytes(behind)
    assert verify_audit(path) == []

    anchor_of(path).write_bytes(behind[:21] + b"0" * 64 + b"\n")
    (found,) = verify_audit(path)
    assert "record 2" in found.problem


def test_a_cut_over_several_files_is_found(path: Path) -> None:
    write(path, *[START, GRANT, PROVIDER_CALL] * 4, rotate_at=600)
    last = sorted(path.parent.glob("audit-*.jsonl"))[-1]
    ends = int(last.stem.removeprefix("audit-"))
    with AuditFile(path) as file:
        written = file.link.seq

    path.unlink()
    assert missing_in(path) == [(ends + 1, written)]

    write(path, GRANT)
    assert missing_in(path) == [(ends + 1, written)]


def test_an_audit_that_was_deleted_whole_is_reported(path: Path) -> None:
    write(path, START, GRANT)
    path.unlink()

    assert missing_in(path) == [(1, 2)]

    write(path, GRANT)
    assert missing_in(path) == [(1, 2)]


def test_missing_first_files_of_a_chain_are_detected_by_number(path: Path) -> None:
    write(path, *[START, GRANT, PROVIDER_CALL] * 4, rotate_at=600)
    oldest, second, *_ = sorted(path.parent.glob("audit-*.jsonl"))
    oldest.unlink()
    second.unlink()

    assert missing_in(path) == [(1, int(second.stem.removeprefix("audit-")))]


def test_a_missing_anchor_is_reported_and_replaced(path: Path) -> None:
    write(path, START, GRANT)
    anchor_of(path).unlink()

    (found,) = verify_audit(path)
    assert found.path == str(anchor_of(path))

    write(path)
    assert verify_audit(path) == []


def test_records_are_written_where_the_anchor_cannot_be(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    anchor_of(path).mkdir()

    write(path, START, GRANT)

    assert events_in(path) == [START, GRANT]
    assert [found.path for found in verify_audit(path)] == [str(anchor_of(path))]
    assert sum("anchor" in record.getMessage() for record in caplog.records) == 1


def test_a_full_disk_does_not_stop_the_anchor(path: Path) -> None:
    with AuditFile(path) as file:
        file.write(START, 7)
        with files_of_at_most(anchor_of(path).stat().st_size), pytest.raises(OSError):
            file.write(GRANT, 7)
        assert verify_audit(path) == []


def test_a_rotated_audit_is_whole_before_its_new_file_has_a_record(path: Path) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    path.rename(path.with_name("audit-000000000003.jsonl"))
    path.touch()
    assert verify_audit(path) == []
    assert events_in(path) == [START, GRANT, PROVIDER_CALL]


def test_a_torn_first_record_after_a_rotation_is_the_only_problem(path: Path) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    path.rename(path.with_name("audit-000000000003.jsonl"))
    path.write_bytes(b'{"seq":4,')
    assert [(found.path, found.is_torn_end) for found in verify_audit(path)] == [(str(path), True)]


def test_a_record_cut_off_a_rotated_file_is_missing_before_the_new_one_has_a_record(path: Path) -> None:
    write(path, START, GRANT, PROVIDER_CALL)
    path.rename(rotated := path.with_name("audit-000000000003.jsonl"))
    rotated.write_bytes(b"".join(rotated.read_bytes().splitlines(keepends=True)[:2]))
    path.touch()
    assert [found.missing for found in verify_audit(path)] == [(3, 3)]


def test_an_audit_may_be_verified_while_a_host_writes_and_rotates_it(path: Path) -> None:
    write(path, START)
    is_over = Event()

    def keep_writing() -> None:
        with AuditFile(path, rotate_at=20_000) as file:
            while not is_over.is_set():
                file.write(GRANT, 7)

    thread = Thread(target=keep_writing)
    thread.start()
    try:
        problems = [found for _ in range(10) for found in verify_audit(path) if not found.is_torn_end]
    finally:
        is_over.set()
        thread.join()
    assert problems == []
    assert verify_audit(path) == []


def test_only_the_user_can_read_the_audit_log(path: Path) -> None:
    before = os.umask(0)
    try:
        write(path, GRANT)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o077 == 0
    assert anchor_of(path).stat().st_mode & 0o077 == 0
