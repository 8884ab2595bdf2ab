"""The envelope schema and the codec accept the same messages, but for a few known deviations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from becket.json_schema.files import load_schema
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.messages import Batch, Failure, NotificationMessage, Request, Success

Json = Any

SCHEMA = load_schema("envelope")
KINDS = {"request": Request, "notification": NotificationMessage, "success": Success, "failure": Failure}
VALIDATORS = {
    name: Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}) for name in (*KINDS, "batch")
}

MEMBERS: dict[str, list[Json]] = {
    "jsonrpc": ["2.0", "2.0", "2.0", "1.0", 2.0, None],
    "id": [1, -1, 1.5, "a", "", None, True, [], {}],
    "method": ["m", "$/m", "", 1, None],
    "params": [{}, {"a": 1}, [], None, 1, "text", True],
    "result": [None, 1, {}],
    "error": [
        {"code": 1, "message": "m"},
        {"code": -32000, "message": "", "data": [1]},
        {"code": 1, "message": "m", "more": 1},
        {"code": 1},
        {"code": 1, "message": 5},
        {"code": 1.5, "message": "m"},
        {"message": "m"},
        "text",
        None,
    ],
    "more": [1],
}
MESSAGES = st.fixed_dictionaries({}, optional={name: st.sampled_from(some) for name, some in MEMBERS.items()})
ENVELOPES = st.one_of(MESSAGES, st.lists(st.one_of(MESSAGES, st.sampled_from([1, [], None])), max_size=3), st.none())


def kind_by_schema(value: Json) -> str | None:
    found = [name for name, validator in VALIDATORS.items() if validator.is_valid(value)]
    assert len(found) <= 1
    return found[0] if found else None


def kind_by_codec(value: Json) -> str | None:
    message = JsonCodec().decode(msgspec.json.encode(value))
    if isinstance(message, Batch):
        return "batch" if all(isinstance(member, tuple(KINDS.values())) for member in message.members) else None
    return next((name for name, kind in KINDS.items() if isinstance(message, kind)), None)


def mended(value: Json) -> Json:
    """Returns a message without the deviations that are accepted."""
    if isinstance(value, list):
        return [mended(member) for member in value]
    if not isinstance(value, dict):
        return value
    members = dict(value)
    if "method" in members:
        if members.get("params", {}) is None:
            del members["params"]  # null for none
        elif not isinstance(members.get("params", {}), dict | list):
            members["params"] = {}  # refused by the decoder of params, as invalid params
        return members
    members.pop("params", None)
    if "result" in members and members.get("error", {}) is None:
        del members["error"]  # as in JSON-RPC 1.0
    if isinstance(error := members.get("error"), dict):
        message = error.get("message")
        members["error"] = {**error, "message": message if isinstance(message, str) else ""}
        if "result" not in members:
            members.setdefault("id", None)  # they do not name their request
    return members


@given(ENVELOPES)
@settings(max_examples=400)
def test_messages_that_the_schema_accepts_decode_to_that_kind(value: Json) -> None:
    kind = kind_by_schema(value)

    assert kind is None or kind_by_codec(value) == kind


@given(ENVELOPES)
@settings(max_examples=400)
def test_the_parser_accepts_what_the_schema_accepts_and_known_deviations(value: Json) -> None:
    assert kind_by_codec(value) == kind_by_schema(mended(value))


IDS = st.sampled_from([b"1", b'"a"', b"null", b"1.5"])
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
PARAMS = st.sampled_from([None, b"{}", b'{"a":1}', b"[1]"])


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_encoded_messages_are_valid_by_the_schema(kind: str, data: st.DataObject) -> None:
    codec = JsonCodec()
    id, text = data.draw(IDS), data.draw(TEXTS)
    written = {
        "request": lambda: codec.encode_request(id, text, data.draw(PARAMS)),
        "notification": lambda: codec.encode_notification(text, data.draw(PARAMS)),
        "success": lambda: codec.encode_success(id, data.draw(st.sampled_from([b"null", b'{"a":1}', b"1"]))),
        "failure": lambda: codec.encode_failure(id, -32000, text, data.draw(st.sampled_from([None, {"a": 1}]))),
    }[kind]()

    assert kind_by_schema(msgspec.json.decode(written)) == kind
    assert kind_by_schema(msgspec.json.decode(codec.encode_batch([written, written]))) == "batch"
