"""The behaviour of msgspec that the fast path relies on."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw, Struct


class WithInt(Struct):
    id: int


class WithRaw(Struct):
    value: Raw


@pytest.mark.parametrize("number", [b"1.0", b"1e3", b"1E3", b"1.5", b"true", b'"1"', b"null"])
def test_an_integer_is_written_as_one(number: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"id":%b}' % number, type=WithInt)


@pytest.mark.parametrize("number", [b"01", b"+1", b"1.", b".5", b"0x1", b"1_000"])
def test_an_invalid_json_number_is_refused(number: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(b'{"id":%b}' % number, type=WithInt)


@pytest.mark.parametrize("text", [b"1", b'"a"', b"[1, 2]", b'{"a" : 1}', b"null"])
@pytest.mark.parametrize("space", [b"", b" ", b"\t\r\n "])
def test_a_raw_value_has_no_white_space_around_it(text: bytes, space: bytes) -> None:
    frame = b'{"value":%b%b%b}' % (space, text, space)
    assert bytes(msgspec.json.decode(frame, type=WithRaw).value) == text
    assert bytes(msgspec.json.decode(frame, type=dict[str, Raw])["value"]) == text
    assert bytes(msgspec.json.decode(b"[%b%b%b]" % (space, text, space), type=list[Raw])[0]) == text


def test_of_two_members_of_one_name_the_last_counts() -> None:
    assert msgspec.json.decode(b'{"id":1,"id":2}', type=WithInt).id == 2
    assert msgspec.json.decode(b'{"id":1,"id":2}') == {"id": 2}
