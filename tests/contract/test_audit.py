"""The audit chain: each record has the hash of the one before, and any change is detected."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, strategies as st

from becket.contract.audit import (
    CHAIN_START,
    AuditEvent,
    AuditLink,
    AuditRecord,
    CallDecided,
    CallsCounted,
    ConsentRefused,
    FileRotated,
    FilesChanged,
    GrantChanged,
    ProcessStarted,
    ProviderCalled,
    ProviderOutcome,
    encode_record,
    parse_record,
)
from becket.errors import BadMessage

EVENTS: list[AuditEvent] = [
    ProcessStarted("notes", ("python3", "notes.py"), "native", ("memory.read",), "embedded"),
    GrantChanged("notes", "memory.write", True, "operator"),
    CallDecided("notes", "memory.append", "memory.write", False, "it is not granted", ("chat",)),
    CallsCounted("notes", "config.get", None, 12, 5),
    ProviderCalled("notes", "local", "small", False, ProviderOutcome.OK),
    FilesChanged("notes", "0" * 64, "f" * 64),
    ConsentRefused("notes", "answer", "f" * 64, ("memory.read",), ("PATH",)),
    ConsentRefused("notes", "operator", withdrawn=True),
    FileRotated("audit-1.jsonl"),
]


def written(events: list[AuditEvent]) -> list[bytes]:
    lines: list[bytes] = []
    link = CHAIN_START
    for time_ms, event in enumerate(events):
        line, link = encode_record(event, link, time_ms)
        lines.append(line)
    return lines


def read(lines: list[bytes], link: AuditLink = CHAIN_START) -> list[AuditRecord]:
    records: list[AuditRecord] = []
    for line in lines:
        record, link = parse_record(line, link)
        records.append(record)
    return records


def test_written_records_are_read_again() -> None:
    records = read(written(EVENTS))

    assert [record.event for record in records] == EVENTS
    assert [record.seq for record in records] == [*range(1, 10)]
    assert [record.time_ms for record in records] == [*range(9)]


def test_each_record_is_one_line_and_names_the_digest_of_the_one_before() -> None:
    lines = written(EVENTS)

    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    for before, line in pairwise(lines):
        assert msgspec.json.decode(line)["prev"] == hashlib.sha256(before[:-1]).hexdigest()
    assert msgspec.json.decode(lines[0])["prev"] == "0" * 64


def test_a_chain_continues_in_a_new_file() -> None:
    first = written(EVENTS[:3])
    _, link = parse_record(first[-1], AuditLink(2, hashlib.sha256(first[1][:-1]).hexdigest()))
    line, _ = encode_record(FileRotated("audit-1.jsonl"), link, 9)

    (record,) = read([line], link)

    assert record.seq == 4


@given(st.data())
def test_any_changed_byte_is_detected_in_the_next_record_at_the_latest(data: st.DataObject) -> None:
    lines = written(EVENTS)
    number = data.draw(st.integers(0, len(lines) - 2))
    place = data.draw(st.integers(0, len(lines[number]) - 2))
    changed = bytearray(lines[number])
    changed[place] ^= data.draw(st.integers(1, 255))
    lines[number] = bytes(changed)

    with pytest.raises(BadMessage):
        read(lines)


@pytest.mark.parametrize("number", range(1, 6))
def test_a_missing_line_is_detected(number: int) -> None:
    lines = written(EVENTS)
    del lines[number]

    with pytest.raises(BadMessage) as caught:
        read(lines)
    assert caught.value.pointer == "/seq"


def test_swapped_lines_are_detected() -> None:
    lines = written(EVENTS)
    lines[2], lines[3] = lines[3], lines[2]

    with pytest.raises(BadMessage):
        read(lines)


def test_a_record_of_another_chain_is_detected() -> None:
    lines = written(EVENTS)
    lines[3] = written([EVENTS[0], *EVENTS[:3]])[3]

    with pytest.raises(BadMessage) as caught:
        read(lines)
    assert caught.value.pointer == "/prev"


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b'{"seq":1}', b'{"seq":1,"time_ms":0,"prev":"x","event":{"kind":"rotate","previous":"a"}}'],
)
def test_an_invalid_record_is_refused(line: bytes) -> None:
    with pytest.raises(BadMessage):
        parse_record(line, CHAIN_START)
