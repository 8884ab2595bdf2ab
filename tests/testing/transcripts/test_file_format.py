"""Transcripts: files round-trip to the byte, and a recorder records all traffic."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from becket.errors import BadFile
from becket.limits import Limits
from becket.testing.transcripts.file_format import (
    FRAMINGS,
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    Transcript,
    TranscriptEntry,
    encode_entry,
    encode_head,
    load_transcript,
    parse_transcript,
)
from becket.testing.transcripts.recorder import TranscriptRecorder

CALL = b'{"jsonrpc":"2.0","id":1,"method":"add","params":[1,2]}'
RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":3}'
HEAD = encode_head("content-length")

bodies = st.one_of(
    st.binary(),
    st.text().map(str.encode),
    st.sampled_from(
        [CALL, b"[]", b"{}", b"{} ", b' {"a":1}', b'{"a":"\\ud800"}', b'{"a":\n1}', b'{"a":\r1}', b"[" * 501]
    ),
    st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda value: repr(value).encode()),
)
ends = st.sampled_from(LinkEnd)
times = st.floats(0, 1e6).map(lambda at: round(at, 6))
entries = st.one_of(
    st.builds(FrameSent, times, ends, bodies),
    st.builds(StrayBytes, times, ends, bodies),
    st.builds(EndClosed, times, ends),
    st.builds(ChildExited, times, st.integers(-64, 255)),
)


def read(*lines: bytes) -> Transcript:
    return parse_transcript([HEAD, *lines])


# -- the file


@given(st.lists(entries))
def test_recorded_messages_are_read_as_they_were_written(sent: list[TranscriptEntry]) -> None:
    lines = [encode_entry(entry) for entry in sent]

    assert read(*lines).entries == tuple(sent)
    assert all(line.count(b"\n") == 1 for line in lines)


def test_a_message_is_recorded_as_json() -> None:
    assert encode_entry(FrameSent(0.5, LinkEnd.CHILD, CALL)) == b'{"at":0.5,"to":"child","frame":' + CALL + b"}\n"


@pytest.mark.parametrize(
    ("body", "member"),
    [
        (b'{"a":\n1}', b'"text"'),
        (b'{"a":1} ', b'"text"'),
        (b"hello", b'"text"'),
        (b"", b'"text"'),
        (b'{"a":1', b'"text"'),
        (b"{]", b'"text"'),
        (b"\xff", b'"base64"'),
        (b"[" * 501 + b"]" * 501, b'"text"'),
    ],
)
def test_a_line_that_is_not_json_is_recorded_otherwise(body: bytes, member: bytes) -> None:
    assert member in encode_entry(FrameSent(0.0, LinkEnd.HOST, body))


def test_the_head_has_the_framing_and_the_program() -> None:
    head = encode_head("json-lines", ["notes", "-v"], dialect="native", started_ms=17)

    assert parse_transcript([head]) == Transcript((), "json-lines", ("notes", "-v"), "native", 17)


def test_a_head_needs_a_framing_that_exists() -> None:
    with pytest.raises(ValueError, match="smoke-signals"):
        encode_head("smoke-signals")


@pytest.mark.parametrize("name", FRAMINGS)
def test_a_transcript_opens_a_framing_like_the_one_of_its_link(name: str) -> None:
    framing = parse_transcript([encode_head(name)]).open_framing()

    assert framing.feed(framing.encode(CALL)) == [CALL]


def test_a_transcript_is_replayed_with_the_timeouts_that_it_was_recorded_with() -> None:
    framing = parse_transcript([encode_head("content-length")]).open_framing()

    assert framing.feed(b"Content-Length: %d\n\n" % len(CALL) + CALL) == [CALL]


def test_by_hand_a_time_may_be_left_out_and_blank_lines_may_stand_between() -> None:
    assert read(b"\n", b'{"to":"child","frame":{"a":1}}\n', b"  \n").entries == (
        FrameSent(0.0, LinkEnd.CHILD, b'{"a":1}'),
    )


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        pytest.param([], "empty", id="nothing"),
        pytest.param([b"hello\n"], "first line", id="another-file"),
        pytest.param([b'{"jsonrpc":"2.0"}\n'], "first line", id="other-json-lines"),
        pytest.param([b'"\xff"\n'], "first line", id="no-text"),
        pytest.param([b'{"transcript":2}\n'], "version 2", id="later-version"),
        pytest.param([b'{"transcript":1,"framing":"x"}\n'], "unknown framing: x", id="unknown-framing"),
        pytest.param([HEAD, b"\n", b'{"to":"child"}\n'], "line 3", id="says-nothing"),
        pytest.param([HEAD, b'{"frame":{}}\n'], "line 2", id="to-nobody"),
        pytest.param([HEAD, b'{"to":"me","frame":{}}\n'], "line 2", id="to-somebody-else"),
        pytest.param([HEAD, b'{"to":"host","frame":{},"text":"a"}\n'], "line 2", id="two-bodies"),
        pytest.param([HEAD, b'{"to":"host","base64":"?"}\n'], "line 2", id="no-base64"),
        pytest.param([HEAD, b'{"to":"host","text":"\xff"}\n'], "line 2", id="no-utf-8"),
    ],
)
def test_an_invalid_transcript_is_refused_with_its_line(lines: list[bytes], where: str) -> None:
    with pytest.raises(BadFile, match=where) as caught:
        parse_transcript(lines, "talk.jsonl")

    assert caught.value.path == "talk.jsonl"


def test_of_a_file_whose_writer_was_killed_all_but_the_torn_line_is_read() -> None:
    found = read(encode_entry(ChildExited(1.0, 0)), b'{"at":1,"to":"chi')

    assert found.entries == (ChildExited(1.0, 0),)
    assert found.is_truncated


def test_a_transcript_is_loaded_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(HEAD + encode_entry(EndClosed(2.0, LinkEnd.HOST)))

    assert load_transcript(path).entries == (EndClosed(2.0, LinkEnd.HOST),)


# -- the recorder


def framed(body: bytes, framing: str = "content-length") -> bytes:
    return FRAMINGS[framing](Limits()).encode(body)


def recorded(*chunks: tuple[LinkEnd, bytes], limits: Limits | None = None) -> tuple[TranscriptEntry, ...]:
    recorder = TranscriptRecorder(["child"], limits=limits or Limits())
    lines = [recorder.feed(float(at), to, chunk) for at, (to, chunk) in enumerate(chunks)]
    return parse_transcript(b"".join([*lines, recorder.end(99.0, 0)]).splitlines(keepends=True)).entries[:-1]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_recorder_finds_out_how_a_link_is_framed(framing: str) -> None:
    recorder = TranscriptRecorder()
    lines = recorder.feed(0.0, LinkEnd.CHILD, framed(CALL, framing)) + recorder.feed(
        1.0, LinkEnd.HOST, framed(RESPONSE, framing)
    )

    assert recorder.framing == framing
    assert parse_transcript(lines.splitlines(keepends=True)) == Transcript(
        (FrameSent(0.0, LinkEnd.CHILD, CALL), FrameSent(1.0, LinkEnd.HOST, RESPONSE)), framing
    )


def test_headers_are_read_as_leniently_as_any_host_does() -> None:
    found = recorded(
        (LinkEnd.CHILD, framed(CALL)),
        (LinkEnd.HOST, b"Content-Length: 3\ncontent-length:%d\n\n" % len(RESPONSE) + RESPONSE),
    )

    assert found[1] == FrameSent(1.0, LinkEnd.HOST, RESPONSE)


@given(st.integers(1, 30))
def test_a_frame_is_recorded_when_its_last_byte_has_come(size: int) -> None:
    data = framed(CALL) + framed(RESPONSE)
    chunks = [(LinkEnd.CHILD, data[start : start + size]) for start in range(0, len(data), size)]
    bodies = [(entry.at, entry.body) for entry in recorded(*chunks) if isinstance(entry, FrameSent)]

    first, last = (len(framed(CALL)) - 1) // size, len(chunks) - 1
    assert bodies == [(first, CALL), (last, RESPONSE)]


@pytest.mark.parametrize("framing", ["content-length", "json-lines"])
def test_output_before_the_first_frame_is_recorded_as_stray(framing: str) -> None:
    found = recorded(
        (LinkEnd.HOST, b"starting\n"), (LinkEnd.CHILD, framed(CALL, framing)), (LinkEnd.HOST, framed(RESPONSE, framing))
    )

    assert [type(entry) for entry in found] == [StrayBytes, FrameSent, FrameSent]
    assert found[0].at == 0.0
    assert b"starting" in (found[0].data if isinstance(found[0], StrayBytes) else b"")


def test_bytes_that_stay_ambiguous_are_read_in_the_usual_framing() -> None:
    recorder = TranscriptRecorder()
    recorder.feed(0.0, LinkEnd.HOST, b"noise\n" * 20_000)

    assert recorder.framing == "content-length"


def test_after_a_frame_that_breaks_the_rules_the_bytes_are_recorded_raw() -> None:
    found = recorded((LinkEnd.CHILD, framed(CALL) + b"Content-Length: minus one\r\n\r\n"), (LinkEnd.CHILD, b"more"))

    assert found[0] == FrameSent(0.0, LinkEnd.CHILD, CALL)
    assert isinstance(found[1], StrayBytes)
    assert found[2] == StrayBytes(1.0, LinkEnd.CHILD, b"more")


def test_a_frame_that_is_too_large_is_recorded_as_such() -> None:
    long_line = b'{"a":"' + b"x" * 2_000 + b'"}\n'
    found = recorded((LinkEnd.HOST, CALL + b"\n"), (LinkEnd.HOST, long_line + CALL + b"\n"), limits=Limits(frame=1_024))

    assert [type(entry) for entry in found] == [FrameSent, StrayBytes, FrameSent]


@pytest.mark.parametrize("framing", ["content-length", "json-lines", "length-prefixed"])
def test_frames_behind_those_above_the_limit_are_recorded(framing: str) -> None:
    large = b'{"jsonrpc":"2.0","method":"m","params":["' + b"x" * 2_000 + b'"]}'
    wire = framed(CALL, framing) + 2 * framed(large, framing) + framed(CALL, framing)
    found = recorded((LinkEnd.HOST, wire), limits=Limits(frame=1_024))

    assert [type(entry) for entry in found] == [FrameSent, StrayBytes, StrayBytes, FrameSent]


def test_an_end_within_a_frame_is_recorded() -> None:
    recorder = TranscriptRecorder()
    recorder.feed(0.0, LinkEnd.HOST, framed(CALL)[:-1])
    left = parse_transcript([HEAD, *recorder.close(1.0, LinkEnd.HOST).splitlines(keepends=True)]).entries

    assert [type(entry) for entry in left] == [StrayBytes, EndClosed]


def test_a_child_without_messages_leaves_a_transcript() -> None:
    recorder = TranscriptRecorder(["true"])
    lines = recorder.close(0.1, LinkEnd.HOST) + recorder.end(0.2, -9)

    assert parse_transcript(lines.splitlines(keepends=True)).entries == (
        EndClosed(0.1, LinkEnd.HOST),
        ChildExited(0.2, -9),
    )


# -- what is written by hand


def test_a_transcript_names_the_replaceable_peers_and_the_given_settings() -> None:
    head = b'{"transcript":1,"framing":"json-lines","ours":["host"],"given":{"id":"demo","grants":[]}}\n'

    transcript = parse_transcript([head])

    assert transcript.ours == (LinkEnd.HOST,)
    assert transcript.given == {"id": "demo", "grants": []}
    assert parse_transcript([encode_head("json-lines")]).ours == (LinkEnd.HOST, LinkEnd.CHILD)


@pytest.mark.parametrize("body", [b'{"id":1}', b"text", b"\xff"])
def test_the_meaning_of_a_request_is_recorded(body: bytes) -> None:
    entry = FrameSent(0.0, LinkEnd.CHILD, body, b'{"result":[1]}')

    assert parse_transcript([encode_head("json-lines"), encode_entry(entry)]).entries == (entry,)


@pytest.mark.parametrize(
    ("framing", "frame", "dialect"),
    [
        ("json-lines", '{"id":0,"method":"initialize","params":{}}', "morphir"),
        ("json-lines", '{"jsonrpc":"2.0","id":1,"method":"extension/initialize","params":{}}', "roder"),
        ("length-prefixed", "\x08\x01", "cigen"),
        ("content-length", '{"jsonrpc":"2.0","id":1,"method":"add","params":[]}', "native"),
    ],
)
def test_the_first_message_of_the_host_determines_the_dialect(framing: str, frame: str, dialect: str) -> None:
    sent = [
        encode_entry(FrameSent(0.0, LinkEnd.HOST, b"{}")),
        encode_entry(FrameSent(0.0, LinkEnd.CHILD, frame.encode())),
    ]

    assert parse_transcript([encode_head(framing), *sent]).detect_dialect().name == dialect


def test_a_named_dialect_overrides_detection() -> None:
    assert parse_transcript([encode_head("json-lines", dialect="nexo")]).detect_dialect().name == "nexo"
    assert parse_transcript([encode_head("json-lines")]).detect_dialect().name == "native"
    with pytest.raises(ValueError, match="klingon"):
        parse_transcript([encode_head("json-lines", dialect="klingon")]).detect_dialect()
