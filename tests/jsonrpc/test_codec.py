"""One frame decodes to one message, whatever its bytes; one message encodes to one valid frame."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import uuid
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Raw, Struct

from becket.errors import LocalProtocolError, Meaning
from becket.jsonrpc.codec import MAX_CACHED_METHODS, JsonCodec, normalize_id
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import Batch, Failure, Invalid, Malformed, Message, NotificationMessage, Request, Success
from becket.limits import Limits

if TYPE_CHECKING:
    from collections import OrderedDict

CODEC = JsonCodec()


def decode(frame: str | bytes, **limits: int) -> Message:
    codec = JsonCodec(Limits().but(**limits)) if limits else CODEC
    return codec.decode(frame.encode() if isinstance(frame, str) else frame)


def request(params: str) -> str:
    return '{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + "}"


def success(result: str) -> str:
    return '{"jsonrpc":"2.0","id":1,"result":' + result + "}"


def array_of(element: str, count: int) -> str:
    return "[" + ",".join([element] * count) + "]"


NULL = "null as it was sent"  # distinguishes JSON's null from an absent member


def show(message: Any) -> Any:
    """Returns a message as plain values that can be compared; params and results as what their JSON means."""
    if isinstance(message, Batch):
        return [show(member) for member in message.members]
    return (type(message), *(show_field(getattr(message, name)) for name in message.__struct_fields__))


def show_field(field: Any) -> Any:
    if not isinstance(field, Raw):
        return field
    return NULL if bytes(field) == b"null" else msgspec.json.decode(field)


def meaning_of(frame: str | bytes, **limits: int) -> tuple[bytes, Meaning]:
    message = decode(frame, **limits)
    assert isinstance(message, Invalid), message
    return message.id, message.meaning


PARSE_ERROR = (b"null", Meaning.PARSE_ERROR)
INVALID = (b"null", Meaning.INVALID_REQUEST)


# -- the five kinds of message


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"m"}', (Request, b"1", "m", None)),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{}}', (Request, b"1", "m", {})),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', (Request, b"1", "m", [1])),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":null}', (Request, b"1", "m", None)),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":true}', (Request, b"1", "m", True)),
        ('{"jsonrpc":"2.0","id":null,"method":"m"}', (Request, b"null", "m", None)),
        ('{"jsonrpc":"2.0","method":"m"}', (NotificationMessage, "m", None)),
        ('{"jsonrpc":"2.0","method":"m","params":{"a":1}}', (NotificationMessage, "m", {"a": 1})),
        ('{"jsonrpc":"2.0","method":"m","params":null}', (NotificationMessage, "m", None)),
        ('{"jsonrpc":"2.0","id":1,"result":null}', (Success, b"1", NULL)),
        ('{"jsonrpc":"2.0","id":1,"result":{"id":2}}', (Success, b"1", {"id": 2})),
        ('{"jsonrpc":"2.0","id":1,"result":1,"error":null}', (Success, b"1", 1)),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', (Failure, b"1", -1, "no", None)),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":""}}', (Failure, b"null", 0, "", None)),
        ('{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":[1]}}', (Failure, b"null", 1, "m", [1])),
    ],
)
def test_the_members_of_a_message_determine_its_kind(frame: str, message: Any) -> None:
    assert show(decode(frame)) == message


def test_a_frame_may_be_a_bytearray() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}'
    assert show(CODEC.decode(bytearray(frame))) == show(CODEC.decode(frame))
    assert show(CODEC.decode(bytearray(b" " + frame))) == show(CODEC.decode(frame))


# -- the fast path and the parser

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
IDS = st.integers(0, 2**40) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES | st.none()
PARAMS = st.lists(VALUES, max_size=3) | st.dictionaries(NAMES, VALUES, max_size=3) | st.none()
ERRORS = st.fixed_dictionaries({"code": st.integers(-40_000, 40_000), "message": NAMES}, optional={"data": VALUES})
KINDS: list[dict[str, st.SearchStrategy[Any]]] = [
    {"id": IDS, "method": NAMES, "params": PARAMS},
    {"id": IDS, "method": NAMES},
    {"method": NAMES, "params": PARAMS},
    {"id": IDS, "result": VALUES},
    {"id": IDS, "error": ERRORS},
]
SPACE = st.text(" \t\r\n", max_size=2)


@st.composite
def written_messages(draw: Callable[..., Any]) -> tuple[bytes, bytes]:
    """Draws one message twice: in our own form, and as another program might write it."""
    members = {"jsonrpc": "2.0", **{name: draw(value) for name, value in draw(st.sampled_from(KINDS)).items()}}
    unknown = draw(st.dictionaries(NAMES.filter(lambda name: name not in KNOWN), VALUES, max_size=2))
    escape = draw(st.booleans())
    ours = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    pairs = [
        draw(SPACE).join(["", json.dumps(name), ":", json.dumps(value, ensure_ascii=escape), ""])
        for name, value in draw(st.permutations([*members.items(), *unknown.items()]))
    ]
    theirs = draw(SPACE) + "{" + ",".join(pairs) + "}" + draw(SPACE)
    return ours.encode(), theirs.encode()


KNOWN = {"jsonrpc", "id", "method", "params", "result", "error"}


@given(written=written_messages())
def test_order_white_space_escapes_and_unknown_members_change_nothing(written: tuple[bytes, bytes]) -> None:
    ours, theirs = (show(decode(text)) for text in written)
    # The text of an id is preserved, so two forms of one id differ in text and have the same key.
    ours, theirs = (
        tuple(normalize_id(field) if isinstance(field, bytes) else field for field in one) for one in (ours, theirs)
    )
    assert theirs == ours


@given(written=written_messages())
def test_every_valid_message_is_decoded(written: tuple[bytes, bytes]) -> None:
    assert isinstance(decode(written[1]), Request | NotificationMessage | Success | Failure)


@given(frame=st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0123456789truefalsn. jsonrpcidmethod', max_size=60))
def test_any_bytes_decode_to_a_message(frame: bytes | str) -> None:
    assert isinstance(decode(frame), Message)


@pytest.mark.parametrize("text", ['"2\\u002e0"', '"\\u0032.0"'])
def test_the_version_may_be_written_with_escapes(text: str) -> None:
    assert isinstance(decode(f'{{"jsonrpc":{text},"id":1,"method":"m"}}'), Request)


# -- duplicate members


@pytest.mark.parametrize(
    ("frame", "response_id"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}', b"1"),
        ('{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2},"params":{"id":2}}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{}}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":[1]}', b"null"),
        ('{"jsonrpc":"2.0","id":12345678,"id":1,"method":"m","params":{"a":1}}', b"null"),
        ('{"jsonrpc":"2.0","method":"m","id":1,"params":{},"id":1}', b"null"),
        ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "m", "params": {}}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"id":2,"result":5}', b"null"),
        ('{"jsonrpc":"2.0","id":12,"id":1,"method":"m"}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"id":12,"method":"m"}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","\\u0069d":1}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","\\u006dethod":"m"}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"result":1,"result":1}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","\\"x":[1],"\\"x":[1]}', b"1"),
        (' { "jsonrpc" : "2.0" , "id" : 1 , "method" : "m" , "method" : "m" } ', b"1"),
    ],
)
def test_a_duplicate_member_is_refused(frame: str, response_id: bytes) -> None:
    assert meaning_of(frame) == (response_id, Meaning.INVALID_REQUEST)


@pytest.mark.parametrize(
    "frame",
    [
        '{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":1,"method":"m","jsonrpc":"2.0"}}',
        '{"jsonrpc":"2.0", "id":1,"method":"m","params":{"id":1,"method":"m","jsonrpc":"2.0"}}',
        '{"jsonrpc":"2.0", "id":1,"method":"method","params":["id","\\"id\\":1,"]}',
        '{"jsonrpc":"2.0", "id":1,"method":"m","x":{"x":{"x":1}},"params":{"x":"\\\\","y":"\\"x\\""}}',
        '{"jsonrpc":"2.0", "id":1,"method":"m","params":{"a":1,"a":2}}',
    ],
)
def test_members_of_the_same_name_further_in_are_not_confused_with_it(frame: str) -> None:
    assert isinstance(decode(frame), Request)


def test_a_long_duplicate_name_is_not_sent_back_whole() -> None:
    message = decode('{"jsonrpc":"2.0","id":1,"method":"m",' + ",".join([f'"{"x" * 5_000}":1'] * 2) + "}")
    assert isinstance(message, Invalid)
    assert len(message.problem) < 200


def test_a_message_of_too_many_members_is_refused_before_each_is_checked() -> None:
    many = ",".join(f'"m{n}":{n}' for n in range(62))
    assert isinstance(decode('{"jsonrpc":"2.0","method":"m",' + many + "}"), NotificationMessage)
    assert meaning_of('{"jsonrpc":"2.0","id":1,"method":"m",' + many + "}") == (b"null", Meaning.TOO_LARGE)


@pytest.mark.parametrize("separator", [",", ", "])  # the second is not decoded by the fast path
def test_values_are_counted_in_short_frames_too(separator: str) -> None:
    def of_values(count: int) -> str:
        return request("[" + separator.join(["1"] * count) + "]")

    assert isinstance(decode(of_values(6), nodes=10), Request)  # with an array, and the members of the envelope
    assert meaning_of(of_values(7), nodes=10)[1] is Meaning.TOO_LARGE


def test_negative_ids_are_accepted() -> None:
    message = decode('{"jsonrpc":"2.0","id":-5,"method":"m","params":{}}')
    assert isinstance(message, Request)
    assert message.id == b"-5"


# -- what is no JSON


@pytest.mark.parametrize(
    "frame",
    [
        b"", b" ", b"{", b"}", b"[", b"]", b"{]", b"nul", b"hello", b"1x", b"1e400x", b'"abc', b'"a" "b"', b"[1] x",
        b"{} x", b"{}{}", b'{"a":1}}', b"[1,]", b"[,1]", b'{"a":1,}', b"{a:1}", b"{'a':1}", b'{"a"}', b'{"a":}',
        b"[NaN]", b"NaN", b"[Infinity]", b"[-Infinity]", b"[01]", b"[1.]", b"[.5]", b"[+1]", b"[0x10]", b"[1e]",
        b'["\\x"]', b'["\\ud800"]', b'["\\udc00\\ud800"]', b'["\n"]', b'["\x00"]', b"\xef\xbb\xbf{}", b"// note\n{}",
        b"[1\x0c]", b"[1\xa0]", b"\xff", b'{"jsonrpc":"2.0","method":"m"}\x00', b'{"\xff":1}',
        '{"jsonrpc":"2.0","method":"m"}'.encode("utf-16"), '{"jsonrpc":"2.0","method":"m"}'.encode("utf-16-le"),
        '{"jsonrpc":"2.0","method":"m"}'.encode("utf-32"), b'{"jsonrpc":"2.0","id":01,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1 2]}', b'[{"jsonrpc":"2.0","method":"m"},',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\\ud800"]}',
    ],
)  # fmt: skip
def test_invalid_json_is_a_parse_error_under_the_null_id(frame: bytes) -> None:
    assert meaning_of(frame) == PARSE_ERROR


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_a_hundred_thousand_levels_are_refused_and_nothing_overflows(text: bytes) -> None:
    assert meaning_of(text) == (b"null", Meaning.TOO_LARGE)
    inside = b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + text + b"}"
    assert meaning_of(inside)[1] is Meaning.TOO_LARGE


# -- what is JSON and no message


@pytest.mark.parametrize("frame", ["1", "1.5", '"abc"', "null", "true", " false ", "-0", "1e300", "1e400"])
def test_a_scalar_is_not_a_request(frame: str) -> None:
    assert meaning_of(frame) == INVALID


@pytest.mark.parametrize(
    ("frame", "response_id"),
    [
        ("{}", b"null"),
        ('{"jsonrpc":"2.0"}', b"null"),
        ('{"foo":"boo"}', b"null"),
        ('{"jsonrpc":"2.0","params":[1]}', b"null"),
        ('{"id":1,"method":"m"}', b"1"),
        ('{"method":"m"}', b"null"),
        ('{"jsonrpc":"1.0","id":1,"method":"m"}', b"1"),
        ('{"jsonrpc":2.0,"id":1,"method":"m"}', b"1"),
        ('{"jsonrpc":"2.00","id":"a","method":"m"}', b'"a"'),
        ('{"jsonrpc":null,"id":1,"method":"m"}', b"1"),
        ('{"jsonrpc":"' + "2" * 99 + '","id":1,"method":"m"}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":1}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":null}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":["m"]}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":""}', b"1"),
        ('{"jsonrpc":"2.0","method":1,"params":"bar"}', b"null"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","result":1}', b"1"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":""}}', b"1"),
    ],
)
def test_an_invalid_request_is_rejected_under_its_id(frame: str, response_id: bytes) -> None:
    assert meaning_of(frame) == (response_id, Meaning.INVALID_REQUEST)


def test_a_method_that_is_not_utf_8_is_not_a_name() -> None:
    assert meaning_of(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}') == (b"1", Meaning.INVALID_REQUEST)


def test_a_method_may_have_so_many_bytes_and_no_more() -> None:
    for params in ("", ',"params":[1,2]'):
        requested, received = (
            '{"jsonrpc":"2.0","id":1,"method":"%s"' + params + "}",
            '{"jsonrpc":"2.0","method":"%s"' + params + "}",
        )
        assert isinstance(decode(requested % ("m" * 1024)), Request)
        assert isinstance(decode(requested % ("m" * 20), method_bytes=20), Request)
        assert isinstance(decode(received % ("m" * 20), method_bytes=20), NotificationMessage)
        assert meaning_of(requested % ("m" * 21), method_bytes=20) == (b"1", Meaning.INVALID_REQUEST)
        assert meaning_of(requested % ("m" * 10_000)) == (b"1", Meaning.INVALID_REQUEST)
        assert meaning_of(received % ("m" * 21), method_bytes=20) == INVALID
    assert meaning_of('{"jsonrpc":"2.0","method":"%s"}' % ("é" * 600)) == INVALID


# -- ids


@pytest.mark.parametrize(
    "id",
    [
        "0", "1", "-1", "-0", "007"[2:], "1.0", "1.5", "-2.5e-3", "1e2", "1E+2", "2147483648", "9" * 40, "null",
        '""', '"1"', '"a b"', '"\\u0041"', '"\\n\\"\\\\"', '"é"', '"😀"', '"\\ud83d\\ude00"', '"' + "x" * 256 + '"',
        '"c56a4180-65aa-42ec-a945-5fd21dec0538"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("space", ["", " "])
def test_an_id_is_preserved_as_written(id: str, space: str) -> None:
    message = decode(f'{{"jsonrpc":"2.0","id":{space}{id},"method":"m"}}')
    assert show(message) == (Request, id.encode(), "m", None)


@pytest.mark.parametrize(
    "id",
    [
        "true",
        "false",
        "{}",
        "[]",
        '{"id":1}',
        "[1]",
        "1e400",
        "-1e999",
        f'"{"x" * 257}"',
        f'"{"x" * 9_999}"',
    ],
)
def test_other_ids_are_refused_under_the_null_id(id: str) -> None:
    assert meaning_of(f'{{"jsonrpc":"2.0","id":{id},"method":"m"}}') == INVALID
    assert meaning_of(f'{{"jsonrpc":"2.0","id":{id}}}') == INVALID


def test_an_id_that_is_not_utf_8_is_refused() -> None:
    assert meaning_of(b'{"jsonrpc":"2.0","id":"\xff","method":"m"}') == INVALID


def test_the_length_of_ids_is_a_limit_of_the_link() -> None:
    for params in ("", ',"params":[1,2]'):
        frame = '{"jsonrpc":"2.0","id":%s,"method":"m"' + params + "}"
        assert isinstance(decode(frame % '"abcd"', id_bytes=4), Request)
        assert isinstance(decode(frame % "1234", id_bytes=4), Request)
        assert meaning_of(frame % '"abcde"', id_bytes=4) == INVALID
        assert meaning_of(frame % "12345", id_bytes=4) == INVALID
    deep = f'{{"jsonrpc":"2.0","id":12345,"method":"m","params":{"[" * 99}{"]" * 99}}}'
    assert meaning_of(deep) == (b"12345", Meaning.TOO_LARGE)
    assert meaning_of(deep, id_bytes=4) == (b"null", Meaning.TOO_LARGE)


def test_one_string_is_one_key_however_it_is_written() -> None:
    assert normalize_id(b'"\\u0041"') == normalize_id(b'"A"')
    assert normalize_id(b'"\\u00e9\\/"') == normalize_id('"é\\/"'.encode()) == normalize_id('"é/"'.encode())


def test_ids_of_different_types_have_different_keys() -> None:
    assert len({normalize_id(id) for id in (b"1", b"1.0", b'"1"', b"true", b"null", b"10e-1")}) == 6


# -- malformed responses


@pytest.mark.parametrize(
    ("frame", "id", "is_response"),
    [
        ('{"jsonrpc":"2.0","id":1}', b"1", False),
        ('{"id":1}', b"1", False),
        ('{"jsonrpc":"2.0","id":"a","params":[]}', b'"a"', False),
        ('{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":null}', b"1", True),
        ('{"id":1,"result":1}', b"1", True),
        ('{"jsonrpc":"1.0","id":1,"result":1}', b"1", True),
        ('{"jsonrpc":"1.0","id":1,"error":{"code":1,"message":""}}', b"1", True),
        ('{"jsonrpc":"2.0","result":1}', b"null", True),
        ('{"jsonrpc":"2.0","error":null}', b"null", True),
        ('{"jsonrpc":"2.0","error":5}', b"null", True),
        ('{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":""}}', b"null", True),
        ('{"jsonrpc":"2.0","id":true, "result":1}', b"null", True),
        ('{"jsonrpc":"2.0","id":1,"error":[]}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":"no"}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":"-1","message":"no"}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"no"}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":null}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1,"data":1e400}}', b"1", True),
        ('{"jsonrpc":"2.0","id":1,"result":' + "[" * 99 + "]" * 99 + "}", b"1", True),
        ('{"jsonrpc":"2.0","id":1,"error":' + "[" * 99 + "]" * 99 + "}", b"1", True),
        ('{"jsonrpc":"2.0","id":{},"result":' + "[" * 99 + "]" * 99 + "}", b"null", True),
    ],
)
def test_the_caller_of_a_malformed_response_gets_an_error(frame: str, id: bytes, is_response: bool) -> None:
    message = decode(frame)
    assert isinstance(message, Malformed)
    assert (message.id, message.is_response) == (id, is_response)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ('{"code":0,"message":"zero"}', (0, "zero", None)),
        ('{"code":-32601}', (-32601, "", None)),
        ('{"code":1,"message":null}', (1, "", None)),
        ('{"code":1,"message":5}', (1, "", None)),
        ('{"code":1,"message":{"text":"no"}}', (1, "", None)),
        ('{"code":1,"message":"no","data":null}', (1, "no", None)),
        ('{"code":1,"message":"no","data":{"a":[1]}}', (1, "no", {"a": [1]})),
        ('{"code":1,"message":"no","extra":1}', (1, "no", None)),
        ('{"code":99999999999999999999,"message":"big"}', (99999999999999999999, "big", None)),
    ],
)
def test_a_malformed_error_object_is_decoded_as_far_as_possible(error: str, failure: Any) -> None:
    assert show(decode(f'{{"jsonrpc":"2.0","id":1,"error":{error}}}')) == (Failure, b"1", *failure)


def test_huge_details_of_an_error_are_cut() -> None:
    error = f'{{"code":1,"message":"{"é" * 50_000}","data":["{"é" * 50_000}"]}}'
    message = decode(f'{{"jsonrpc":"2.0","id":1,"error":{error}}}', error_data=1000)
    assert isinstance(message, Failure)
    assert isinstance(message.data, str)
    assert message.data.startswith('["éé')
    assert len(message.data) <= 1003
    assert len(message.message) == 1000


# -- batches


def test_a_batch_preserves_the_order_and_the_valid_members() -> None:
    request, note = '{"jsonrpc":"2.0","id":1,"method":"a"}', '{"jsonrpc":"2.0","method":"b"}'
    batch = decode(f'[{request},1,{note},{{"foo":1}},[],{{"jsonrpc":"2.0","id":2,"result":3}}]')
    assert isinstance(batch, Batch)
    assert [type(member) for member in batch.members] == [
        Request,
        Invalid,
        NotificationMessage,
        Invalid,
        Invalid,
        Success,
    ]


def test_white_space_in_a_batch_changes_nothing() -> None:
    text = ' [ {"jsonrpc":"2.0","id":1,"method":"a"} ,\n 1 ] '
    assert show(decode(text)) == show(decode(text.replace(" ", "").replace("\n", "")))


@pytest.mark.parametrize("member", ["1", "null", '"a"', "[]", '[{"jsonrpc":"2.0","method":"m"}]', "{}"])
def test_a_member_that_is_not_a_message_is_one_invalid_request(member: str) -> None:
    message = decode(f"[{member}]")
    assert isinstance(message, Batch)
    assert [(one.id, one.meaning) for one in message.members if isinstance(one, Invalid)] == [INVALID]


def test_an_empty_batch_is_an_invalid_request() -> None:
    assert meaning_of("[]") == INVALID
    assert meaning_of(" [ ] ") == INVALID


def test_a_batch_has_a_limit() -> None:
    text = "[" + ",".join(['{"jsonrpc":"2.0","method":"m"}'] * 5) + "]"
    assert isinstance(decode(text, batch=5), Batch)
    assert meaning_of(text, batch=4) == (b"null", Meaning.TOO_LARGE)
    assert meaning_of("[" + "1," * 20_000 + "1]") == (b"null", Meaning.TOO_LARGE)


def test_a_batch_that_is_not_json_is_one_parse_error() -> None:
    assert meaning_of('[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc"]') == PARSE_ERROR


# -- depth and number of values


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("[", "]"),
        ('{"a":', "}"),
        ('[{"a":', "}]"),
        ('{"a":[', "]}"),
        ('["[",', "]"),
        ('["]",', "]"),
        ('["\\"]",', "] "),
    ],
)
def test_a_message_may_have_so_many_levels_and_no_more(opening: str, closing: str) -> None:
    step = 2 if opening in ('[{"a":', '{"a":[') else 1
    inner = "1" if opening.endswith((":", ",")) else ""
    for depth in (5, 7, 9, 65):
        levels = (depth - 1) // step  # the message itself is one
        assert isinstance(decode(request(opening * levels + inner + closing * levels), depth=depth), Request)
        deeper = request(opening * (levels + 1) + inner + closing * (levels + 1))
        assert meaning_of(deeper, depth=depth) == (b"1", Meaning.TOO_LARGE)


def test_depth_counts_in_results_errors_ids_unknown_members_and_batches() -> None:
    deep = "[" * 8 + "]" * 8
    assert isinstance(decode(success(deep), depth=8), Malformed)
    assert isinstance(decode(success("1").replace('"result":1', f'"error":{deep}'), depth=8), Malformed)
    assert meaning_of(request("[]").replace('"id":1', f'"id":{deep}'), depth=8) == (b"null", Meaning.TOO_LARGE)
    assert meaning_of(request(f'[],"x":{deep}'), depth=8) == (b"1", Meaning.TOO_LARGE)
    assert meaning_of(f"[{request(deep)}]", depth=8) == (b"null", Meaning.TOO_LARGE)


def test_brackets_in_strings_are_not_levels() -> None:
    text = json.dumps(["[" * 500, ']}"[{\\' * 100, {"[[[[": "\\"}])
    frame = request(text)
    assert show(decode(frame, depth=4)) == (Request, b"1", "m", json.loads(text))


def test_many_sibling_containers_are_not_deep() -> None:
    frame = success(array_of('{"a":[]}', 500))
    assert isinstance(decode(frame, depth=4), Success)


@pytest.mark.parametrize("unit", ["1", '"a"', "{}", "[]", '{"a":{}}', "[[],[]]", '"",""', '"[,{"', "-1.5e10"])
def test_a_message_may_have_so_many_values_and_no_more(unit: str) -> None:
    assert meaning_of(request(array_of(unit, 1_001)), nodes=1_000) == (b"1", Meaning.TOO_LARGE)
    assert isinstance(decode(request(array_of(unit, 150)), nodes=1_000), Request)


def test_a_mebibyte_of_empty_objects_is_refused_unparsed() -> None:
    frame = request(array_of("{}", 350_000))
    assert meaning_of(frame) == (b"1", Meaning.TOO_LARGE)


def test_a_large_object_within_the_limits_is_accepted() -> None:
    frame = request(json.dumps({f"key{n}": n for n in range(40_000)}))
    assert isinstance(decode(frame), Request)


def test_commas_and_quotes_in_a_long_string_are_not_values() -> None:
    text = json.dumps([',"[{' * 100_000])
    assert isinstance(decode(request(text)), Request)


def test_a_long_string_is_preserved_whole() -> None:
    value = '\u0000\u2028é😀\\"/' * 100_000
    frame = success(json.dumps(value))
    assert show(decode(frame)) == (Success, b"1", value)


@pytest.mark.parametrize(
    ("number", "count"),
    [
        ("5e-324", 5_000),
        ("1.5E-300", 5_000),
        ("1.5e-0310", 5_000),
        (f"2.{'2250738585072011' * 7}e-308", 5_000),
    ],
)
def test_thousands_of_numbers_that_are_slow_to_read_are_refused(number: str, count: int) -> None:
    assert meaning_of(request(array_of(number, count))) == (b"1", Meaning.TOO_LARGE)
    assert isinstance(decode(request(array_of(number, count // 10))), Request)
    assert isinstance(decode(request(json.dumps([array_of(number, count)]))), Request)


@pytest.mark.parametrize("form", ["[%s]", "[-%s]", "[0.%s]", "[1e%s]", '{"a":[1,%s,2]}', '["",%s]'])
@pytest.mark.parametrize("before", range(0, 130, 13))
def test_a_number_may_have_so_many_digits_and_no_more(form: str, before: int) -> None:
    """At any position of the frame."""
    params = json.dumps([" " * before])[:-1] + "," + form
    assert meaning_of(request(params % ("7" * 129) + "]")) == (b"1", Meaning.TOO_LARGE)
    assert isinstance(decode(request(params % ("7" * 128) + "]")), Request)


@pytest.mark.parametrize("digits", [1, 2, 3, 20, 1_000])
def test_the_digits_of_a_number_are_a_limit_of_the_link(digits: int) -> None:
    assert meaning_of(request(f"[{'7' * (digits + 1)}]"), digits=digits) == (b"1", Meaning.TOO_LARGE)
    assert isinstance(decode(request(f"[{'7' * digits}]"), digits=digits), Request)


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("sign", ["", "-"])
def test_the_digits_of_an_id_are_limited_whatever_the_params(sign: str, space: str) -> None:
    form = '{"jsonrpc":"2.0",%s"id":%s,"method":"m","params":[1]}'
    assert isinstance(decode(form % (space, sign + "7" * 128)), Request)
    for digits in (129, 150, 200):
        assert meaning_of(form % (space, sign + "7" * digits))[1] is Meaning.TOO_LARGE


@pytest.mark.parametrize("digits", [4_000, 5_000, 1_000_000])
def test_a_number_of_thousands_of_digits_is_refused_unread_wherever_it_comes(digits: int) -> None:
    number = "9" * digits
    problem = "a number of more than 128 digits"
    assert decode(f'{{"jsonrpc":"2.0","id":{number},"method":"m"}}') == Invalid(b"null", Meaning.TOO_LARGE, problem)
    assert decode(f'{{"jsonrpc":"2.0","method":"m","params":[{number}]}}') == Invalid(
        b"null", Meaning.TOO_LARGE, problem
    )
    assert decode(success(number)) == Malformed(b"1", problem)
    assert decode(f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{number},"message":"x"}}}}') == Malformed(b"1", problem)
    assert decode(f'[{{"jsonrpc":"2.0","id":1,"result":{number}}}]') == Invalid(b"null", Meaning.TOO_LARGE, problem)


def test_digits_in_a_string_are_not_a_number() -> None:
    assert isinstance(decode(request(json.dumps(["9" * 100_000, "\\", '"', "7" * 500, 1]))), Request)


def test_thousands_of_ordinary_numbers_are_accepted() -> None:
    numbers = [n * 1.1e-5 for n in range(15_000)] + [-n * 12345678901234567 for n in range(15_000)]
    frame = request(json.dumps(numbers, separators=(",", ":")))
    assert show(decode(frame)) == (Request, b"1", "m", numbers)


# -- values that have JSON, and those that have none


class Tick(Struct):
    n: int
    label: str | None = None
    tags: list[str] = []


class Reading(Struct):
    value: float
    note: str | None = None


class Postponed(Struct):
    """Has an annotation that only a type checker can resolve."""

    members: OrderedDict[str, float]
    note: str | None = None


@dataclasses.dataclass
class Person:
    name: str
    age: float | None = None


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        ("null", b'"null"'),
        ({"a": None, "b": [1.5, "null"]}, b'{"a":null,"b":[1.5,"null"]}'),
        ([2**70, None, -(2**70)], b"[1180591620717411303424,null,-1180591620717411303424]"),
        ((1, None), b"[1,null]"),
        (Tick(1), b'{"n":1,"label":null,"tags":[]}'),
        (Reading(1.5), b'{"value":1.5,"note":null}'),
        (Postponed({"a": 1.5}), b'{"members":{"a":1.5},"note":null}'),  # type: ignore[arg-type]
        (Person("a"), b'{"name":"a","age":null}'),
        (Raw(b'{"a": null}'), b'{"a": null}'),
        ({"a": Raw(b"[null]"), "b": None}, b'{"a":[null],"b":null}'),
        ([3414159360, None], b"[3414159360,null]"),  # its bytes look like an infinity
        ([{"a": 3414159360, "b": 1.5}, ("c", None)], b'[{"a":3414159360,"b":1.5},["c",null]]'),
        ("\x7fé😀\u2028", '"\x7fé😀\u2028"'.encode()),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        ([Decimal("1.50"), None], b'["1.50",null]'),
        ([datetime(2020, 1, 2), None], b'["2020-01-02T00:00:00",null]'),
        ({1: None, 2.5: 1}, b'{"1":null,"2.5":1}'),
        (b"abc", b'"YWJj"'),
    ],
)
def test_a_value_becomes_compact_json(value: object, text: bytes) -> None:
    assert encode_json(value) == text


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        [math.nan],
        (1, math.inf),
        {"a": {"b": [None, math.nan]}},
        {"a": frozenset({math.inf})},
        [2**70, math.nan],
        {"raw": Raw(b"null"), "b": math.nan},
        Reading(math.nan),
        [Reading(math.inf, "null")],
        Postponed({"a": math.nan}),  # type: ignore[arg-type]
        Person("a", math.nan),
        [3414159360, math.nan],
        object(),
        [object()],
        {"a": object},
        1j,
        {(1, 2): 3},
        {None: 1},
        iter([1]),
        range(3),
        CIRCLE,
        {"a": CIRCLE},
        "\ud800",
        {"\udc00": 1},
        ["a", {"b": "\ud800"}],
    ],
)
def test_a_value_without_json_is_refused(value: object) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode_json(value)
    assert type(value).__name__ in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_type_is_inspected_once_and_judged_the_same_each_time() -> None:
    for _ in range(2):
        with pytest.raises(LocalProtocolError):
            encode_json(Reading(math.nan))
        assert encode_json(Tick(1, "null")) == b'{"n":1,"label":"null","tags":[]}'


@given(value=VALUES)
def test_encoded_messages_decode_to_the_same(value: object) -> None:
    assert msgspec.json.decode(encode_json(value)) == value


# -- what is sent


def test_encoded_messages_have_exactly_these_bytes() -> None:
    assert CODEC.encode_request(b"1", "m", None) == b'{"jsonrpc":"2.0","id":1,"method":"m"}'
    assert CODEC.encode_request(b"1", "m", b"[1]") == b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}'
    assert CODEC.encode_notification("m", None) == b'{"jsonrpc":"2.0","method":"m"}'
    assert CODEC.encode_notification("m", b"{}") == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert CODEC.encode_success(b'"a"', b"null") == b'{"jsonrpc":"2.0","id":"a","result":null}'
    assert CODEC.encode_failure(b"1", -1, "no", None) == b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'
    failure = b'{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":"","data":[1]}}'
    assert CODEC.encode_failure(b"null", 0, "", [1]) == failure
    assert CODEC.encode_batch([b"{}", b"{}"]) == b"[{},{}]"


@pytest.mark.parametrize("method", ["m", 'quote"d', "é/😀", "\x00", "line\nend"])
@pytest.mark.parametrize("params", [None, b"[]", b'{"a":[1]}'])
def test_encoded_messages_are_read_the_same_by_the_json_module(method: str, params: bytes | None) -> None:
    value = None if params is None else json.loads(params)
    assert show(decode(CODEC.encode_request(b"5", method, params))) == (Request, b"5", method, value)
    assert show(decode(CODEC.encode_notification(method, params))) == (NotificationMessage, method, value)


@pytest.mark.parametrize("params", [b"null", b"1", b'"a"', b"true", b""])
def test_params_that_are_neither_an_object_nor_an_array_are_not_sent(params: bytes) -> None:
    problem = f"^the params of m are neither an object nor an array: {re.escape(repr(params)[1:])}$"
    with pytest.raises(LocalProtocolError, match=problem):
        CODEC.encode_request(b"1", "m", params)
    with pytest.raises(LocalProtocolError, match=problem):
        CODEC.encode_notification("m", params)


def test_a_method_without_a_name_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError, match=r"^a method without a name$"):
        CODEC.encode_request(b"1", "", b"[]")
    with pytest.raises(LocalProtocolError, match=r"^a method without a name$"):
        CODEC.encode_notification("", None)


def test_a_method_without_json_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        CODEC.encode_request(b"1", "\ud800", None)


def test_thousands_of_different_methods_are_sent_without_growing_the_cache() -> None:
    codec = JsonCodec()
    for n in range(3_000):
        assert codec.encode_notification(f"m{n}", None) == b'{"jsonrpc":"2.0","method":"m%d"}' % n
        assert len(codec.method_fragments) == len(codec.notification_prefixes) <= MAX_CACHED_METHODS
