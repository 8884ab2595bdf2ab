"""Valid JSON is accepted, invalid JSON is refused: as params, as a result, alone and within a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.jsonrpc.json_texts import ACCEPTED, REJECTED

from becket.conversion.decode import get_params_decoder, get_result_decoder
from becket.errors import JSON_ERRORS, Meaning, RpcError
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.messages import Batch, Invalid, Malformed, Message, Request, Success

CODEC = JsonCodec()


def request(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + b"}"


def success(result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"result":' + result + b"}"


def meaning_of(message: Message) -> Meaning | None:
    """Returns the error of a request, None if a handler gets its params."""
    if isinstance(message, Invalid):
        return message.meaning
    assert isinstance(message, Request)
    try:
        get_params_decoder(Any)(message.params)
    except RpcError as error:
        return error.meaning
    return None


def params_of(frame: bytes) -> Any:
    message = CODEC.decode(frame)
    return get_params_decoder(Any)(message.params) if isinstance(message, Request) else message


def result_of(frame: bytes) -> Any:
    """Returns a result, or the error in its place."""
    message = CODEC.decode(frame)
    if not isinstance(message, Success):
        return message
    try:
        return get_result_decoder(Any)(message.result)
    except JSON_ERRORS as error:
        return error


def test_there_are_enough_texts() -> None:
    assert len(ACCEPTED) >= 100
    assert len(REJECTED) >= 190


def test_valid_json_is_accepted_with_its_meaning() -> None:
    wanted = {name: repr(json.loads(text)) for name, text in ACCEPTED.items()}
    assert {name: repr(params_of(request(text))) for name, text in ACCEPTED.items()} == wanted
    assert {name: repr(result_of(success(text))) for name, text in ACCEPTED.items()} == wanted


def test_invalid_json_is_a_parse_error() -> None:
    meanings = {name: meaning_of(CODEC.decode(request(text))) for name, text in REJECTED.items()}
    assert {name: meaning for name, meaning in meanings.items() if meaning is not Meaning.PARSE_ERROR} == {}


def test_invalid_json_is_not_a_result() -> None:
    results = {name: result_of(success(text)) for name, text in REJECTED.items()}
    assert {name: result for name, result in results.items() if not isinstance(result, (Invalid, Exception))} == {}


def test_invalid_json_is_also_refused_within_a_batch() -> None:
    wrong: dict[str, object] = {}
    for name, text in REJECTED.items():
        batch = CODEC.decode(b"[" + request(text) + b"," + request(b"[]") + b"]")
        bad = batch.members[0] if isinstance(batch, Batch) else batch
        if meaning_of(bad) is not Meaning.PARSE_ERROR:
            wrong[name] = batch
    assert wrong == {}


def test_invalid_json_is_not_a_message() -> None:
    wrong: dict[str, object] = {}
    for name, text in REJECTED.items():
        message = CODEC.decode(text)
        members = message.members if isinstance(message, Batch) else [message]
        if not all(isinstance(member, Invalid) for member in members):
            wrong[name] = message
    assert wrong == {}


@pytest.mark.parametrize("text", [b"1e400", b"-1e400"])
def test_a_number_that_python_has_no_room_for_is_refused(text: bytes) -> None:
    assert meaning_of(CODEC.decode(request(b"[" + text + b"]"))) is Meaning.INVALID_PARAMS
    assert isinstance(result_of(success(text)), Exception)


@pytest.mark.parametrize("text", [b"9" * 129, b"9" * 4_301, b"9" * 5_000, b"-" + b"9" * 100_000])
def test_a_number_that_takes_long_to_read_is_refused(text: bytes) -> None:
    assert meaning_of(CODEC.decode(request(b"[" + text + b"]"))) is Meaning.TOO_LARGE
    assert isinstance(result_of(success(text)), Malformed)


@pytest.mark.parametrize("levels", [64, 100, 5_000, 100_000])
def test_deep_nesting_is_an_error(levels: int) -> None:
    assert meaning_of(CODEC.decode(request(b"[" * levels + b"]" * levels))) is Meaning.TOO_LARGE
