"""Content-Length framing: writing, reading, and the messages of refusals."""

from __future__ import annotations

import tracemalloc

import pytest

from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.framing import ContentLength, Frame, SkippedFrame
from becket.limits import DEFAULT_LIMITS, Limits
from becket.testing import check_framing

GOOD = b"Content-Length: 2\r\n\r\n{}"


def read(*chunks: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[list[Frame | SkippedFrame], BadFrame | None]:
    """Returns the frames and the error of a strict reader that is fed these chunks."""
    framing = ContentLength(limits)
    return [frame for chunk in chunks for frame in framing.feed(chunk)], framing.error


def refused(data: bytes, limits: Limits = DEFAULT_LIMITS) -> BadFrame:
    """Returns the error for this input, after checking that it is the same when the input comes byte by byte."""
    found, error = read(data, limits=limits)
    assert found == []
    assert error is not None
    _, same = read(*(data[at : at + 1] for at in range(len(data))), limits=limits)
    assert same is not None
    assert (type(same), same.problem) == (type(error), error.problem)
    return error


def test_content_length_passes_check_framing() -> None:
    check_framing(ContentLength)


def test_the_only_header_written_is_the_length() -> None:
    assert ContentLength().encode(b'{"a":1}') == b'Content-Length: 7\r\n\r\n{"a":1}'


def test_the_length_counts_bytes_not_characters() -> None:
    assert ContentLength().encode('"é"'.encode()) == b'Content-Length: 4\r\n\r\n"\xc3\xa9"'


def test_an_empty_body_is_an_empty_frame() -> None:
    framing = ContentLength()
    assert framing.feed(framing.encode(b"")) == [b""]
    assert framing.frames == 1


def test_a_body_above_the_limit_is_not_written() -> None:
    framing = ContentLength(Limits(frame=10))
    assert framing.encode(b"x" * 10).endswith(b"x" * 10)
    with pytest.raises(LocalProtocolError) as caught:
        framing.encode(b"x" * 11)
    assert "11" in str(caught.value)
    assert "10" in str(caught.value)


def test_frames_of_many_sizes_are_written_and_read_with_a_small_header_cache() -> None:
    framing = ContentLength()
    bodies = [b"x" * size for size in range(1_000)]
    assert framing.feed(b"".join(framing.encode(body) for body in bodies)) == bodies


def test_headers_of_two_widths_may_alternate() -> None:
    framing = ContentLength()
    bodies = [b"x" * size for size in (99, 100, 99, 99, 100, 1_000, 9, 100, 99)] * 20
    assert framing.feed(b"".join(framing.encode(body) for body in bodies)) == bodies


@pytest.mark.parametrize("size", [10, 42, 105, 106, 233, 489, 1_000, 1_001, 4_072])  # most fill 16 KiB whole
@pytest.mark.parametrize("run", [3, 4, 5, 16_384, 32_768, 65_536])  # frames, or bytes of them
def test_a_frame_of_another_size_behind_a_run_of_equal_ones_is_read(size: int, run: int) -> None:
    framing = ContentLength()
    equal = b"x" * size
    whole = framing.encode(equal)
    bodies = [equal] * (run if run < 10 else run // len(whole))
    bodies += [b"another", *[equal] * 10, b"", *[equal] * 5, b"y" * size, b"the last"]
    assert framing.feed(whole) == [equal]
    assert framing.feed(b"".join(map(framing.encode, bodies))) == bodies
    assert framing.pending == 0


@pytest.mark.parametrize("size", [0, 5, 9])
def test_a_known_shorter_header_at_the_end_of_a_chunk_is_read_as_what_it_is(size: int) -> None:
    framing = ContentLength()
    short, long = framing.encode(b"x" * size), framing.encode(b"y" * 123)
    assert len(framing.feed(short + long)) == 2  # both widths are cached now, the longer one came last
    header, body = short[: len(short) - size], short[len(short) - size :]
    assert framing.feed(long + header) + framing.feed(body + short) == [b"y" * 123, body, body]
    assert framing.error is None


def test_a_known_header_does_not_end_an_unfinished_one_by_accident() -> None:
    framing = ContentLength()
    assert framing.feed(GOOD) == [b"{}"]
    framing.feed(b"X-Trace: 1\r\n")
    assert framing.feed(GOOD) == [b"{}"]
    assert framing.pending == 0
    framing.feed(b"Content-Length: 1")
    assert framing.feed(GOOD) == []
    assert framing.error is not None
    assert framing.error.found == "'1Content-Length: 2'"


def test_the_header_cache_is_bounded() -> None:
    framing = ContentLength()
    other = b"".join(b"content-length: %d\r\n\r\n%b" % (size, b"x" * size) for size in range(0, 8_000, 2))
    tracemalloc.start()
    try:
        for size in range(1, 8_000, 2):
            framing.feed(framing.encode(b"x" * size))
        framing.feed(other)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert framing.frames == 8_000
    assert kept < 128 * 1024


# -- headers that are accepted


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH: 2\r\n\r\n",
        b"Content-Length:2\r\n\r\n",
        b"Content-Length: \t 2 \t\r\n\r\n",
        b"Content-Length: 0000000002\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Type: application/json;charset=UTF-8\r\nContent-Length: 2\r\n\r\n",
        b'Content-Type: application/json; charset="utf-8"\r\nContent-Length: 2\r\n\r\n',
        b'Content-Type: application/json; Charset = "Utf8"; q=1\r\nContent-Length: 2\r\n\r\n',
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n",
        b"X-Trace: a b:c\r\nContent-Length: 2\r\n\r\n",
        b"X-Empty:\r\nContent-Length: 2\r\nX-After: \xc3\xa9\r\n\r\n",
        b"X-Long: " + b"x" * 200 + b"\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_a_well_formed_header_is_read_however_it_is_written(header: bytes) -> None:
    framing = ContentLength()
    assert framing.feed((header + b"{}") * 3) == [b"{}"] * 3
    whole = (header + b"[]") * 2
    assert [frame for at in range(len(whole)) for frame in framing.feed(whole[at : at + 1])] == [b"[]", b"[]"]
    assert framing.error is None
    assert framing.frames == 5


def test_sixteen_header_lines_are_read_and_seventeen_are_not() -> None:
    lines = b"".join(b"X-%d: y\r\n" % number for number in range(15))
    assert read((lines + GOOD) * 2) == ([b"{}", b"{}"], None)
    error = refused(b"X-More: y\r\n" + lines + GOOD)
    assert "16" in error.problem


def test_a_header_is_read_up_to_its_limit_and_refused_beyond_it() -> None:
    start, end = b"X: ", b"\r\nContent-Length: 2\r\n\r\n"
    fill = DEFAULT_LIMITS.header - len(start) - len(end)
    assert read(start + b"x" * fill + end + b"{}") == ([b"{}"], None)
    error = refused(start + b"x" * (fill + 1) + end + b"{}")
    assert isinstance(error, FrameTooLarge)
    assert (error.what, error.limit) == ("header", DEFAULT_LIMITS.header)


def test_a_header_limit_below_the_usual_header_holds_in_every_chunking() -> None:
    assert isinstance(refused(GOOD, limits=Limits(header=20)), FrameTooLarge)
    assert read(GOOD, limits=Limits(header=21)) == ([b"{}"], None)


# -- lengths


@pytest.mark.parametrize(
    "value",
    [
        b"-5",
        b"+5",
        b"5_0",
        b"12abc",
        "\u0665".encode(),
        b"1e3",
        b"0x10",
        b"5 0",
        b"5,5",
        b"0" * 10 + b"2",
        b'"5"',
    ],
)
def test_a_length_that_is_not_up_to_ten_digits_is_refused_and_quoted(value: bytes) -> None:
    error = refused(b"Content-Length: " + value + b"\r\n\r\n")
    assert error.problem == "Content-Length is not a number"
    assert error.found.startswith(repr(value[:64])[1:])


@pytest.mark.parametrize(("digits", "shown"), [(b"1" * 11, "1" * 11 + " bytes"), (b"1" * 4_000, "2**64 bytes or more")])
def test_a_length_of_too_many_digits_is_reported_as_too_large(digits: bytes, shown: str) -> None:
    error = refused(b"Content-Length: " + digits + b"\r\n\r\n")
    assert isinstance(error, FrameTooLarge)
    assert (error.what, error.size, error.limit) == ("frame", int(digits), DEFAULT_LIMITS.frame)
    assert shown in str(error)


def test_an_empty_length_is_refused() -> None:
    assert refused(b"Content-Length: \r\n\r\n").problem == "Content-Length is not a number"


def test_a_length_of_five_thousand_digits_ends_at_the_header_limit() -> None:
    error = refused(b"Content-Length: " + b"1" * 5_000 + b"\r\n\r\n")
    assert isinstance(error, FrameTooLarge)
    assert error.what == "header"


@pytest.mark.parametrize(
    "more", [b"Content-Length: 2", b"Content-Length: 3", b"content-length: 2", b"X: y\r\nCONTENT-LENGTH: 2"]
)
def test_a_second_length_is_refused_even_if_it_is_equal(more: bytes) -> None:
    assert refused(b"Content-Length: 2\r\n" + more + b"\r\n\r\n{}").problem == "Content-Length given twice"


def test_a_length_above_the_limit_is_refused_before_the_header_is_over() -> None:
    error = refused(b"Content-Length: 4294967296\r\n")
    assert isinstance(error, FrameTooLarge)
    assert (error.size, error.limit) == (4_294_967_296, DEFAULT_LIMITS.frame)


@pytest.mark.parametrize("name", [b"Content-Length: ", b"content-length:"])
def test_a_length_at_the_limit_is_read_and_one_above_it_is_not(name: bytes) -> None:
    limits = Limits(frame=10)
    assert read(name + b"10\r\n\r\n" + b"x" * 10, limits=limits) == ([b"x" * 10], None)
    assert isinstance(refused(name + b"11\r\n\r\n", limits), FrameTooLarge)


def test_a_blank_line_before_a_header_is_shown_and_the_length_before_it_suspected() -> None:
    error = refused(b"\r\nContent-Length: 2\r\n\r\n{}")
    assert error.found
    assert "length" in error.hint


def test_a_header_line_that_ends_or_begins_wrongly_is_shown_with_what_would_be_right() -> None:
    bare = refused(b"Content-Length: 2\n\n{}")
    assert (bare.found, bare.hint) == ("'Content-Length: 2'", "a header line ends with CRLF")
    folded = refused(b"Content-Type: a/b;\r\n charset=utf-8\r\n\r\n")
    assert (folded.found, folded.hint) == ("' charset=utf-8\\r'", "a header stands on one line")


def test_a_line_that_ends_with_the_name_of_a_header_is_reported_as_text_on_stdout() -> None:
    error = refused(b"ReadyContent-Length: 2: 3\r\n\r\n{}")
    assert (error.problem, error.found) == ("something wrote to stdout", "'ReadyContent-Length: 2: 3'")


def test_a_header_without_a_length_is_refused() -> None:
    error = refused(b"X-Trace: 1\r\nX-Other: 2\r\n\r\n{}")
    assert error.problem == "header without Content-Length"
    assert error.found == "'X-Trace: 1'"


# -- charset


@pytest.mark.parametrize(
    "value", [b"utf-16", b"latin-1", b'"utf-16"', b"", b'"utf-8', b"utf-8; charset=utf-16", b"utf-8x", b'"utf-8"x']
)
def test_a_charset_other_than_utf_8_is_refused(value: bytes) -> None:
    error = refused(b"Content-Length: 2\r\nContent-Type: application/json; charset=" + value + b"\r\n\r\n{}")
    assert error.problem == "charset other than UTF-8"


# -- bad headers, each with its own message

ODDITIES = {
    "bare LF": (b"Content-Length: 2\n\n{}", "bare LF in a header"),
    "bare LF in a type": (b"Content-Type: a/b\nContent-Length: 2\r\n\r\n{}", "bare LF in a header"),
    "bare CR": (b"Content-Length: 2\r\r{}", "bare CR in a header"),
    "bare CR as blank line": (b"Content-Length: 2\r\n\r{}", "bare CR in a header"),
    "CRLF LF": (b"Content-Length: 2\r\n\n{}", "bare LF instead of a header's blank line"),
    "NUL in a value": (b"Content-Length: 2\0\r\n\r\n{}", "NUL in a header"),
    "NUL in a name": (b"Content\0-Length: 2\r\n\r\n{}", "NUL in a header"),
    "NUL first": (b"\0\0\0\2{}", "NUL in a header"),
    "folding": (b"Content-Length: 2\r\n 0\r\n\r\n{}", "folded header line"),
    "folding with a tab": (b"Content-Type: a/b;\r\n\tcharset=utf-8\r\n", "folded header line"),
    "blank name": (b": 2\r\n\r\n{}", "header without a name"),
    "byte order mark": (b"\xef\xbb\xbfContent-Length: 2\r\n\r\n{}", "byte order mark before a header"),
    "control character": (b"Content-Length: 2\x1b[0m\r\n\r\n{}", "control character in a header"),
    "space before the colon": (b"Content-Length : 2\r\n\r\n{}", "header name without its colon"),
    "name alone": (b"Content-Length\r\n\r\n{}", "header name without its colon"),
    "line end first": (b"\nContent-Length: 2\r\n\r\n{}", "line end outside a frame"),
    "blank line first": (b"\r\nContent-Length: 2\r\n\r\n{}", "line end outside a frame"),
    "text": (b"Starting server\n", "something wrote to stdout"),
    "text with CRLF": (b"Ready\r\n\r\n", "something wrote to stdout"),
    "text like a header": (b"INFO: ready\nContent-Length: 2\r\n\r\n{}", "something wrote to stdout"),
    "indented text": (b"  Starting\n", "something wrote to stdout"),
    "text that is not ASCII": ("été\n".encode(), "something wrote to stdout"),
    "text like a byte order mark": ("\uff01\n".encode(), "something wrote to stdout"),
    "progress bar": (b"Done: 10%\rDone: 20%\r", "something wrote to stdout"),
    "text without line end": (b"Loading...Content-Length: 2\r\n\r\n{}", "something wrote to stdout"),
    "colours": (b"INFO:\x1b[0m ready\r\n", "something wrote to stdout"),
}


@pytest.mark.parametrize(("data", "problem"), ODDITIES.values(), ids=ODDITIES.keys())
def test_each_kind_of_bad_header_has_its_own_message(data: bytes, problem: str) -> None:
    found, error = read(data)
    assert found == []
    assert error is not None
    assert error.problem == problem
    assert error.found


WHOLE = {
    "too many lines": (b"A: 1\r\n" * 17, "more than 16 header lines: 'A: 1'"),
    "charset": (b"Content-Type: a; charset=latin-1\r\n", "charset other than UTF-8: 'a; charset=latin-1'"),
    "no number": (b"Content-Length: x5\r\n", "Content-Length is not a number: 'x5' (1 to 10 digits)"),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length given twice: '6'"),
    "blank line first": (
        b"\r\nContent-Length: 2\r\n",
        r"line end outside a frame: '\r\n' (is the line end behind a body left out of its length?)",
    ),
    "no length": (b"A: 1\r\n\r\n", "header without Content-Length: 'A: 1'"),
    "NUL": (b"Content-Length: 2\0\r\n", r"NUL in a header: 'Content-Length: 2\x00\r'"),
    "no colon": (b"Content-Length 2\r\n", r"header name without its colon: 'Content-Length 2\r'"),
    "bare CR": (
        b"Content-Length: 2\rX",
        r"bare CR in a header: 'Content-Length: 2\rX' (a header line ends with CRLF)",
    ),
    "bare LF": (
        b"Content-Length: 2\n",
        "bare LF in a header: 'Content-Length: 2' (a header line ends with CRLF)",
    ),
    "bare LF as blank line": (
        b"Content-Length: 2\r\n\n",
        r"bare LF instead of a header's blank line: '\n' (a header ends with CRLF CRLF)",
    ),
    "control character": (b"Content-Length: \x012\r\n", r"control character in a header: 'Content-Length: \x012\r'"),
    "no name": (b": 5\r\n", r"header without a name: ': 5\r'"),
    "byte order mark": (
        b"\xef\xbb\xbfContent-Length: 2\r\n",
        r"byte order mark before a header: '\xef\xbb\xbfContent-Length: 2\r'",
    ),
    "JSON": (b"{}\n", "something wrote to stdout: '{}' (does the other peer use JSON Lines?)"),
    "text": (b"hello\n", "something wrote to stdout: 'hello' (stdout belongs to the protocol: print to stderr)"),
}


@pytest.mark.parametrize(("data", "text"), WHOLE.values(), ids=WHOLE.keys())
def test_the_error_of_a_bad_header_shows_what_was_found_and_what_to_do(data: bytes, text: str) -> None:
    found, error = read(data)
    assert found == []
    assert str(error) == text


@pytest.mark.parametrize("data", [b"A: 1\r\n\r\n", b"hello\n"])
def test_after_a_frame_the_hint_suspects_its_length_or_a_second_writer(data: bytes) -> None:
    _, error = read(GOOD + data)
    assert error is not None
    assert error.hint == (
        "the last length did not fit its body, or two writers share one pipe: send frames whole, from one place"
    )


def test_white_space_other_than_spaces_and_tabs_is_part_of_a_value() -> None:
    assert refused(b"Content-Length: \x0b5\r\n").problem == "control character in a header"
    assert refused(b"Content-Type: a; charset=Xutf-8X\r\n").problem == "charset other than UTF-8"
    assert refused(b"Content-Length: X5X\r\n").problem == "Content-Length is not a number"


def test_a_block_without_a_length_shows_its_own_line_and_not_one_of_the_block_before() -> None:
    _, error = read(b"X-First: 1\r\n" + GOOD + b"X-Second: 2\r\n\r\n")
    assert error is not None
    assert error.found == "'X-Second: 2'"


@pytest.mark.parametrize("name", sorted(ODDITIES.keys() - {"text like a byte order mark"}))
def test_a_bad_header_has_the_same_message_when_it_comes_byte_by_byte(name: str) -> None:
    data, problem = ODDITIES[name]
    assert refused(data).problem == problem


@pytest.mark.parametrize(
    ("data", "quoted"),
    [
        (b"npm WARN deprecated\nmore\n", "'npm WARN deprecated'"),
        (b"Loading...Content-Length: 2\r\n\r\n{}", "'Loading...Content-Length: 2'"),
        (b"INFO: ready\n", "'INFO: ready'"),
    ],
)
def test_stray_text_is_quoted_with_a_hint_to_print_to_stderr(data: bytes, quoted: str) -> None:
    error = refused(data)
    assert error.found == quoted
    assert "stderr" in error.hint


@pytest.mark.parametrize("data", [b'{"jsonrpc":"2.0"}\n', b"[]\n"])
def test_json_without_a_header_makes_the_hint_suggest_json_lines(data: bytes) -> None:
    error = refused(data)
    assert error.problem == "something wrote to stdout"
    assert "JSON Lines" in error.hint


def test_a_line_end_outside_a_frame_has_a_hint_about_the_length() -> None:
    framing = ContentLength()
    assert framing.feed(GOOD + b"\n" + GOOD) == [b"{}"]
    assert framing.error is not None
    assert framing.error.problem == "line end outside a frame"
    assert framing.error.found == repr("\n")
    assert "length" in framing.error.hint


@pytest.mark.parametrize(
    "data",
    [
        GOOD[:21] + GOOD + b"{}",  # the second header begins where the first body should
        GOOD[:10] + GOOD + GOOD[10:] + GOOD,
        GOOD + b"{}" + GOOD,
        GOOD + b"warning: low memory\n" + GOOD,
    ],
)
def test_interleaved_frames_of_two_writers_end_with_a_hint(data: bytes) -> None:
    framing = ContentLength()
    framing.feed(data)
    assert framing.error is not None
    assert framing.error.hint


def test_interleaved_frames_name_two_writers_as_the_likely_cause() -> None:
    framing = ContentLength()
    assert framing.feed(GOOD[:21] + GOOD) == [b"Co"]
    assert framing.error is not None
    assert framing.error.problem == "header without Content-Length"
    assert "two writers" in framing.error.hint


# -- floods and truncation


def test_a_header_without_an_end_is_refused_at_the_limit() -> None:
    framing = ContentLength()
    for _ in range(DEFAULT_LIMITS.header // 64):
        assert framing.feed(b"A" * 64) == []
        assert framing.error is None
    framing.feed(b"A")
    assert isinstance(framing.error, FrameTooLarge)
    assert framing.error.what == "header"


def test_headers_without_an_end_are_refused_at_the_limit_of_lines() -> None:
    framing = ContentLength()
    for number in range(DEFAULT_LIMITS.header_lines):
        framing.feed(b"X-%d: y\r\n" % number)
        assert framing.error is None
    framing.feed(b"X-More: y\r\n")
    assert framing.error is not None
    assert str(DEFAULT_LIMITS.header_lines) in framing.error.problem


def test_no_body_bytes_are_stored_when_the_announced_size_was_refused() -> None:
    framing = ContentLength()
    framing.feed(b"Content-Length: 4294967296\r\n\r\n")
    for _ in range(10):
        assert framing.feed(b"x" * 65_536) == []
    assert framing.pending < DEFAULT_LIMITS.header


def test_frames_before_an_error_are_delivered_and_none_after_it() -> None:
    framing = ContentLength()
    assert framing.feed(GOOD + GOOD + b"oops\n" + GOOD) == [b"{}", b"{}"]
    first = framing.error
    assert first is not None
    assert framing.feed(GOOD) == []
    assert framing.error is first
    assert framing.end() is first
    assert framing.frames == 2


@pytest.mark.parametrize("cut", [1, 10, 20])
def test_input_that_ends_in_a_header_is_truncated(cut: int) -> None:
    framing = ContentLength()
    assert framing.feed(GOOD + GOOD[:cut]) == [b"{}"]
    error = framing.end()
    assert error is not None
    assert "truncated header" in error.problem
    assert str(cut) in error.problem


def test_the_error_for_input_that_ends_in_a_body_has_the_number_of_missing_bytes() -> None:
    framing = ContentLength()
    assert framing.feed(GOOD + b'Content-Length: 12\r\n\r\n{"a":"\xc3') == [b"{}"]
    error = framing.end()
    assert error is not None
    assert "truncated body" in error.problem
    assert "5 of 12" in error.problem


def test_input_that_ends_between_frames_is_complete() -> None:
    framing = ContentLength()
    assert framing.end() is None
    framing.feed(GOOD)
    assert framing.end() is None


def test_pending_and_frames_show_whether_a_new_frame_has_begun() -> None:
    framing = ContentLength()
    seen: list[tuple[int, int]] = []
    for chunk in (b"Con", b"tent-Length: 4\r\n", b"\r\n", b"ab", b"cd", GOOD[:5], GOOD[5:] + GOOD[:22]):
        framing.feed(chunk)
        seen.append((framing.frames, framing.pending))
    assert seen == [(0, 3), (0, 19), (0, 21), (0, 23), (1, 0), (1, 5), (2, 22)]


def test_a_body_that_spans_chunks_is_handed_over_for_good() -> None:
    framing = ContentLength()
    framing.feed(b"Content-Length: 4\r\n\r\nab")
    (frame,) = framing.feed(b"cd" + GOOD[:-1])
    assert isinstance(frame, bytearray)
    framing.feed(b"}")
    assert frame == b"abcd"
