"""The parser reports the problem of a frame, and keeps no more of the frame than it needs."""

from __future__ import annotations

import sys

import pytest

from becket.errors import Meaning
from becket.jsonrpc.limit_checks import LimitChecker
from becket.jsonrpc.messages import Failure, Invalid, Malformed, NotificationMessage, SingleMessage
from becket.jsonrpc.parser import BatchMembers, MessageParser
from becket.limits import Limits

DEEP = "[" * 99 + "]" * 99
UNREADABLE_ID = "the id is not a string, number or null, or is too long"


def parse(frame: str | bytes, **changes: int) -> SingleMessage | BatchMembers:
    limits = Limits().but(**changes)
    return MessageParser(limits, LimitChecker(limits)).parse(frame.encode() if isinstance(frame, str) else frame)


# -- problems, which the other peer or the caller reads


@pytest.mark.parametrize("frame", ["", "nul", "5 x", '{"id"', '{"id":1}}', "[1,", "[1]]", '"text', b"\xff"])
def test_a_frame_that_is_not_json_is_rejected_with_the_error_of_the_decoder(frame: str | bytes) -> None:
    message = parse(frame)
    assert isinstance(message, Invalid)
    assert (message.id, message.meaning) == (b"null", Meaning.PARSE_ERROR)
    assert message.problem.startswith("not JSON: ")
    assert len(message.problem) > len("not JSON: ")


@pytest.mark.parametrize(
    ("frame", "id", "problem"),
    [
        ("5", b"null", "neither an object nor a batch"),
        ('"text"', b"null", "neither an object nor a batch"),
        ("1e999", b"null", "neither an object nor a batch"),
        ("[]", b"null", "an empty batch"),
        ("{}", b"null", "neither a request nor a response"),
        ('{"jsonrpc":"2.0","ID":1}', b"null", "neither a request nor a response"),
        ('{"jsonrpc":"2.0","id":[]}', b"null", UNREADABLE_ID),
        ('{"jsonrpc":"2.0","id":[],"method":"m"}', b"null", UNREADABLE_ID),
        ('{"id":1,"method":"m"}', b"1", 'the member "jsonrpc" is not "2.0"'),
        ('{"jsonrpc":"2.0","id":1,"method":"m","result":1}', b"1", "both a request and a response"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","error":{}}', b"1", "both a request and a response"),
        ('{"jsonrpc":"2.0","id":1,"method":""}', b"1", "the method is not a valid name"),
        ('{"jsonrpc":"2.0","method":5}', b"null", "the method is not a valid name"),
    ],
)
def test_an_invalid_request_is_rejected_under_its_id_with_the_problem(frame: str, id: bytes, problem: str) -> None:
    assert parse(frame) == Invalid(id, Meaning.INVALID_REQUEST, problem)


@pytest.mark.parametrize(
    ("frame", "id", "problem", "is_response"),
    [
        ('{"jsonrpc":"2.0","result":1}', b"null", "a response without a readable id", True),
        ('{"jsonrpc":"2.0","error":null}', b"null", "a response without a readable id", True),
        ('{"jsonrpc":"2.0","result":1,"error":{"code":1}}', b"null", "a response without a readable id", True),
        ('{"jsonrpc":"2.0","id":[],"error":{"code":1}}', b"null", "a response without a readable id", True),
        ('{"id":1,"result":1}', b"1", 'the member "jsonrpc" is not "2.0"', True),
        ('{"id":1}', b"1", 'the member "jsonrpc" is not "2.0"', False),
        ('{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1}}', b"1", "both result and error", True),
        ('{"jsonrpc":"2.0","id":1,"error":null}', b"1", "neither method, result nor error", True),
        ('{"jsonrpc":"2.0","id":1}', b"1", "neither method, result nor error", False),
    ],
)
def test_the_problem_of_a_malformed_response_is_named(frame: str, id: bytes, problem: str, is_response: bool) -> None:
    assert parse(frame) == Malformed(id, problem, is_response=is_response)


def test_a_limit_that_a_message_exceeds_is_named_with_its_value() -> None:
    members = ",".join(f'"{number}":1' for number in range(65))
    assert parse(f"{{{members}}}") == Invalid(b"null", Meaning.TOO_LARGE, "65 members, the limit is 64")
    assert parse("[1,2,3]", batch=2) == Invalid(b"null", Meaning.TOO_LARGE, "a batch of 3, the limit is 2")


@pytest.mark.parametrize(
    "member", ['"method":"m","result"', '"method":"m","error"', '"method":"m","params"', '"other"']
)
def test_a_message_that_is_too_deep_is_rejected_unless_it_is_a_response(member: str) -> None:
    frame = f'{{"jsonrpc":"2.0","id":1,{member}:{DEEP}}}'
    assert parse(frame) == Invalid(b"1", Meaning.TOO_LARGE, "nested deeper than 64")


@pytest.mark.parametrize("member", ['"result"', '"error"'])
def test_a_response_that_is_too_deep_is_malformed(member: str) -> None:
    assert parse(f'{{"jsonrpc":"2.0","id":1,{member}:{DEEP}}}') == Malformed(b"1", "nested deeper than 64")


def test_a_frame_too_short_for_the_deepest_message_is_not_json_rather_than_too_deep() -> None:
    short, long = parse("[" * 8, depth=5), parse("[" * 9, depth=5)
    assert isinstance(short, Invalid)
    assert isinstance(long, Invalid)
    assert (short.meaning, long.meaning) == (Meaning.PARSE_ERROR, Meaning.TOO_LARGE)


# -- what is kept


def test_the_data_of_an_error_is_whole_up_to_its_limit_and_cut_beyond_it() -> None:
    frame = '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":["é"]}}'
    assert parse(frame, error_data=6) == Failure(b"1", 1, "no", ["é"])
    assert parse(frame, error_data=5) == Failure(b"1", 1, "no", '["é"...')


def test_a_character_that_is_cut_in_the_middle_is_replaced() -> None:
    frame = '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":["é"]}}'
    assert parse(frame, error_data=3) == Failure(b"1", 1, "no", '["\ufffd...')


@pytest.mark.parametrize(("beside", "is_kept"), [(100, True), (4_096, True), (4_097, False), (9_000, False)])
def test_a_frame_is_kept_for_its_params_only_if_it_has_little_beside_them(beside: int, is_kept: bool) -> None:
    params = b'["%b"]' % (b"p" * 5_000)
    start = b'{"jsonrpc":"2.0","method":"m","params":%b,"other":"' % params
    frame = start.ljust(beside + len(params) - 2, b"x") + b'"}'
    references = sys.getrefcount(frame)
    message = parse(frame)
    assert isinstance(message, NotificationMessage)
    assert message.params is not None
    assert len(frame) - len(message.params) == beside
    assert sys.getrefcount(frame) == references + is_kept
