"""The limits of a frame are checked on its bytes: exactly, for any bytes, and with little work for ordinary frames."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw
from msgspec.json import decode
from tests.jsonrpc.call_counts import count_calls

from becket.jsonrpc.limit_checks import MAX_SLOW_NUMBERS, LimitChecker, find_duplicate, strip_escapes
from becket.limits import Limits


def find_problem(frame: bytes, **limits: int) -> str | None:
    return LimitChecker(Limits().but(**limits)).find_problem(frame)


# -- digits


@pytest.mark.parametrize("digits", [*range(1, 10), 127, 128])
def test_a_number_that_is_too_long_is_found_at_any_position(digits: int) -> None:
    wrong, right = b"7" * (digits + 1), b"7" * digits
    for before in range(2 * digits + 2):
        for after in (b"", b" " * digits * 3):  # below twice the digits and above
            start = b" " * before
            assert find_problem(start + wrong + after, digits=digits) == f"a number of more than {digits} digits"
            assert find_problem(start + right + after, digits=digits) is None


def test_a_frame_that_is_a_number_alone_is_checked_as_well() -> None:
    for size in (129, 256, 257, 1_000):
        assert find_problem(b"7" * size) == "a number of more than 128 digits"


@pytest.mark.parametrize("digits", [0, 1, 128])
def test_a_frame_without_digits_has_no_number_that_is_too_long(digits: int) -> None:
    for size in range(2, 300):
        assert find_problem(b'"' + b"a" * (size - 2) + b'"', digits=digits) is None


def test_a_frame_in_which_all_numbers_are_short_is_not_split() -> None:
    """A number of at most half the digits is excluded by a few bytes of the frame, wherever it begins."""
    without = count_calls(find_problem, b" " * 400)
    for before in range(130):
        assert count_calls(find_problem, (b" " * before + b"7" * 64).ljust(400)) == without


# -- values


@pytest.mark.parametrize("limit", [1, 5, 10, 100, 1_000, 10_000])
def test_values_of_few_bytes_are_counted_in_frames_of_any_size(limit: int) -> None:
    right, wrong = (b"[" + b",".join([b"[]"] * count) + b"]" for count in (limit // 2, limit // 2 + 1))
    assert find_problem(right, nodes=limit) is None
    assert find_problem(wrong, nodes=limit) == f"more than {limit} values"


@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'["",', b"]"), (b'[",[{",[', b"]]")]
)
def test_each_container_and_each_comma_is_a_value(opening: bytes, closing: bytes) -> None:
    outside = opening.replace(b",[{", b"")
    each = outside.count(b"[") + outside.count(b"{") + outside.count(b",")
    limit = 12 * each
    for count, problem in ((12, None), (13, f"more than {limit} values")):
        frame = opening * count + b"1" + closing * count
        assert find_problem(frame, nodes=limit) == problem
        assert find_problem(frame.replace(b"1", b'"%b"' % (b"," * 100)), nodes=limit) == problem


def test_as_many_strings_as_so_many_members_have_are_allowed() -> None:
    members = {f"key {n}": "a,b" for n in range(50)}
    frame = json.dumps(members, separators=(",", ":")).encode()
    assert find_problem(frame, nodes=50) is None
    assert find_problem(frame, nodes=49) == "more than 49 values"


def test_more_strings_than_so_many_values_have_are_too_many_even_without_commas() -> None:
    assert find_problem(b'"[,,,{"' + b'""' * 9, nodes=5) is None
    assert find_problem(b'"[,,,,{"' + b'""' * 10, nodes=5) == "more than 5 values"


def test_exactly_the_allowed_number_of_slow_numbers_passes() -> None:
    slow = b"5e-324," * MAX_SLOW_NUMBERS
    assert find_problem(b"[" + slow + b"-1]") is None
    assert find_problem(b"[" + slow + b"5e-324]") == f"more than {MAX_SLOW_NUMBERS} numbers close to zero"


# -- levels


def test_strings_are_cut_out_only_if_some_contain_brackets() -> None:
    plain = b"[" + b'{"a":"b"},' * 100 + b"1]"
    bracketed = plain.replace(b"b", b"[")
    assert [find_problem(plain), find_problem(bracketed)] == [None, None]
    assert count_calls(find_problem, plain) < count_calls(find_problem, bracketed)


# -- bytes that are not JSON


@pytest.mark.parametrize(
    ("frame", "limits"),
    [
        (b"]" * 20, {"depth": 4}),
        (b"}" * 20, {"depth": 4, "nodes": 5}),
        (b"[[{{", {"depth": 4}),
        (b"[[{{" + b" " * 20, {"depth": 4, "nodes": 5}),
        (b"[," + b'""' * 20, {"nodes": 2}),
        (b'",,,"' + b'"' * 7, {"nodes": 2}),
        (b"-" * MAX_SLOW_NUMBERS + b'""' * 30, {"nodes": 10}),
    ],
)
def test_bytes_that_reach_no_limit_are_left_to_the_parser(frame: bytes, limits: dict[str, int]) -> None:
    """It calls them invalid JSON; too large would be wrong."""
    assert find_problem(frame, **limits) is None


# -- frames that need no check


@pytest.mark.parametrize("depth", [1, 2, 5, 20, 51, 64])
@pytest.mark.parametrize("digits", [1, 4, 128])
def test_objects_that_nest_too_deep_are_found_in_as_few_bytes_as_they_take(depth: int, digits: int) -> None:
    wrong, right = (b'{"":' * levels + b"{}" + b"}" * levels for levels in (depth, depth - 1))
    assert find_problem(wrong, depth=depth, digits=digits) == f"nested deeper than {depth}"
    assert find_problem(right, depth=depth, digits=digits) is None


@pytest.mark.parametrize("size", range(130, 257))
def test_arrays_that_nest_too_deep_are_found_in_small_frames(size: int) -> None:
    wrong, right = (b"[" * levels + b" " * (size - 2 * levels) + b"]" * levels for levels in (65, 64))
    assert find_problem(wrong) == "nested deeper than 64"
    assert find_problem(right) is None


@pytest.mark.parametrize(("depth", "digits", "size"), [(64, 128, 126), (65, 128, 128), (9, 128, 16), (64, 20, 20)])
def test_frames_too_small_for_any_problem_need_no_check(depth: int, digits: int, size: int) -> None:
    assert LimitChecker(Limits(depth=depth, digits=digits)).safe_bytes == size


# -- duplicate members


def duplicate_in(frame: bytes) -> str | None:
    return find_duplicate(frame, decode(frame, type=dict[str, Raw]))


@pytest.mark.parametrize(
    "frame",
    [
        b'{"id":1,"id":1}',
        b'{"id":1,"id":2,"method":"m","method":"n"}',
        b'{"id": 1, "id": 2, "id": 3}',
        b'{"id": 1, "method": "m", "id": 1, "method": "m"}',
    ],
)
def test_a_duplicate_is_found_if_no_member_occurs_once(frame: bytes) -> None:
    assert duplicate_in(frame) == "id"


COMPACT = b'{"id":1,"method":"m","params":{"id":1,"method":"m"}}'
SPACED = b'{"id": 1, "method": "m", "params": {"id": 1, "method": "m"}}'
DISTINCT = b'{"id": 1, "method": "m", "params": {"a": 1, "b": "m"}}'


def test_members_are_walked_only_if_white_space_and_names_further_in_leave_a_doubt() -> None:
    assert [duplicate_in(frame) for frame in (COMPACT, DISTINCT, SPACED)] == [None] * 3
    compact, distinct, spaced = (count_calls(duplicate_in, frame) for frame in (COMPACT, DISTINCT, SPACED))
    assert compact < distinct < spaced


# -- escapes


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (rb'"a"', b'"a"'),
        (rb'"a\"b"', b'"ab"'),
        (rb'"a\\","b"', b'"a","b"'),
        (rb'"a\\\"b\\\\"', b'"ab"'),
        (rb'"\n\u0041"', rb'"\n\u0041"'),
    ],
)
def test_only_escaped_quotes_and_backslashes_are_removed(text: bytes, plain: bytes) -> None:
    assert strip_escapes(text) == plain
    assert strip_escapes(bytearray(text)) == plain
