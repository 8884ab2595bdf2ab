"""A message above the frame limit is scanned in chunks: its id is that of its top-level object, or none."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from becket.framing.framing import Outline
from becket.jsonrpc.oversize import GROUPS, Groups, MessageScanner, remove_escapes
from becket.limits import Limits

LIMITS = Limits(id_bytes=32)


def scan(message: bytes, size: int = 7) -> Outline | None:
    """Returns what is found in a message that comes in chunks of this size."""
    scanner = MessageScanner(LIMITS)
    for start in range(0, len(message), size):
        scanner.feed(message[start : start + size])
    return scanner.end()


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    ("message", "id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":[1,2,{"id":6}]}', b"5"),
        (b'{"jsonrpc":"2.0","result":{"id":6,"x":{"id":7}},"id":5}', b"5"),
        (b'{"error":{"code":1,"message":"no"},"id":"a\\"b"}', b'"a\\"b"'),
        (b'{"result":"\\"id\\":9, {\\"id\\":9}\\\\","id":5}', b"5"),
        (b'{"result":["]}\\\\\\"}","\\\\"],"id":5}', b"5"),
        (b' {\t"result" : true , "id"\r\n: -1.5e3 } \r', b"-1.5e3"),
        (b'{"result":[],"\\u0069d":5}', b"5"),
        (b'{"result":[],"' + b"long name " * 50 + b'":"x","id":5}', b"5"),
        (b'{"id":5}', b"5"),
        (b'{"result":1,"id":' + b"9" * 32 + b"}", b"9" * 32),
        (b'{"result":1,"id":"' + b"9" * 32 + b'"}', b'"' + b"9" * 32 + b'"'),
        (b"{" + b",".join(b'"%d":[]' % number for number in range(63)) + b',"id":5}', b"5"),
    ],
)
def test_the_id_of_a_response_is_found_anywhere_at_the_top_level(message: bytes, id: bytes, size: int) -> None:
    assert scan(message, size) == Outline(id, is_response=True)


@pytest.mark.parametrize(
    ("message", "id"),
    [
        (b'{"id":5,"method":"a","params":{"result":1}}', b"5"),
        (b'{"params":{"id":6},"method":"a","id":5}', b"5"),
        (b'{"params":{"id":6},"\\u006dethod":"a"}', None),
        (b'{"\\u006d\\u0065\\u0074\\u0068\\u006f\\u0064":"a"}', None),
    ],
)
def test_a_message_with_a_method_is_not_a_response(message: bytes, id: bytes | None) -> None:
    assert scan(message) == Outline(id, is_response=False)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"text",
        b'"id"',
        b'[{"id":5,"result":1}]',
        b'{"result":{"id":5}}',
        b'{"result":1,"id":null}',
        b'{"result":1,"id":true}',
        b'{"result":1,"id":{"id":5}}',
        b'{"result":1,"id":[5]}',
        b'{"result":1,"id":1x}',
        b'{"result":1,"id":"\xff"}',
        b'{"result":1,"id":' + b"9" * 33 + b"}",
        b'{"result":1,"id":"' + b"9" * 33 + b'"}',
        b'{"id":5,"result":1,"id":6}',
        b'{"id":5,"result":1}}',
        b'{"id":5,"result":1}{"id":6}',
        b'{"id":5,"result":[1}',
        b'{"id":5,"result":"x',
        b'{"id":5,"result":1',
        b'{"id":5,"result":1,}',
        b'{"id":5 "result":1}',
        b'{"id" 5,"result":1}',
        b'{"id":,"result":1}',
        b'{"id":5,"result":}',
        b'{"id":5,"result":,"error":1}',
        b'{"id":5,"result":]}',
        b'{"id":5,"result"::1}',
        b'{"result":"x"y,"id":5}',
        b'{"result"x:1,"id":5}',
        b'{"\xff":1,"id":5}',
        b'{"method":"a","id":{"id":5}}',
        b'{"method":"a","id":[5]}',
        b"{}",
        b"{id:5}",
        b'{"id":5}\\',
        b"{" + b",".join(b'"%d":[]' % number for number in range(65)) + b',"id":5}',
    ],
)
def test_the_id_is_not_guessed_where_there_is_no_single_message_or_id(message: bytes) -> None:
    assert scan(message) is None


@pytest.mark.parametrize(
    "beginning",
    [
        b"[",
        b"text",
        b"{}",
        b'{"id":{',
        b'{"id":[',
        b'{"id":}',
        b'{"id" 5',
        b'{"id":5,}',
        b'{"id":5}}',
        b'{"id":5,"id":',
        b'{"\xff":',
        b"{" + b",".join(b'"%d":[]' % number for number in range(65)) + b",",
    ],
)
def test_a_frame_that_cannot_be_a_message_is_unreadable_before_its_end(beginning: bytes) -> None:
    scanner = MessageScanner(LIMITS)
    scanner.feed(beginning)
    assert scanner.is_readable is False


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "method", "result"]) | st.text(), inner),
    max_leaves=20,
)
ids = st.integers() | st.text(max_size=5)
messages = st.dictionaries(
    st.sampled_from(["jsonrpc", "result", "error", "params", "method"]) | st.text(max_size=9), values, max_size=6
)


@given(messages, ids, st.integers(0, 6), st.booleans(), st.integers(1, 40))
def test_a_message_is_found_to_be_what_a_whole_parser_finds(
    members: dict[str, Any], id: int | str, place: int, is_ascii: bool, size: int
) -> None:
    pairs = [(name, value) for name, value in members.items() if name != "id"]
    pairs.insert(place, ("id", id))
    scanner = MessageScanner(Limits())
    message = json.dumps(dict(pairs), ensure_ascii=is_ascii).encode(errors="replace")
    for start in range(0, len(message), size):
        scanner.feed(message[start : start + size])
    found = scanner.end()
    assert found is not None
    assert found.id is not None
    assert json.loads(found.id) == id
    assert found.is_response is ("method" not in members)


def test_a_response_far_above_the_limit_is_read_in_chunks_that_are_not_stored() -> None:
    scanner = MessageScanner(LIMITS)
    scanner.feed(b'{"jsonrpc":"2.0","result":[')
    for _ in range(100):
        scanner.feed(b'{"id":1,"text":"\\"[{","more":[[],{}]},' * 1_000)
        assert scanner.is_readable
    scanner.feed(b'0],"id":5}')
    assert scanner.end() == Outline(b"5", is_response=True)


# -- windows below the top level


@pytest.mark.parametrize(
    ("window", "rest"),
    [
        (b'["a", {}]', b'["a", {}]'),
        (b'"a\\"b"', b'"ab"'),
        (b'"a\\\\"', b'"a"'),
        (b'"a\\\\\\"b"', b'"ab"'),
        (b'"a\\n"', b'"a\\n"'),
    ],
)
def test_a_window_without_escapes_has_only_the_quotes_of_its_strings(window: bytes, rest: bytes) -> None:
    assert remove_escapes(window) == rest


@pytest.mark.parametrize(
    ("brackets", "lowest", "change"),
    [
        (b"[[[[[[[[", 1, 8),
        (b"]]]]]]]]", -8, -8),
        (b"]]][[[[[", -3, 2),
        (b"[[[[[]]]", 1, 2),
        (b"[]]]][[]", -3, -2),
    ],
)
def test_a_group_of_brackets_has_a_lowest_depth_and_a_change_of_it(brackets: bytes, lowest: int, change: int) -> None:
    groups = Groups()
    group = int.from_bytes(brackets, sys.byteorder)
    assert [groups[group], groups[group]] == [(lowest, change)] * 2  # calculated, then cached


def test_the_cache_of_groups_stays_small_whatever_the_brackets() -> None:
    scanner = MessageScanner(LIMITS)
    scanner.feed(b'{"result":[[[')
    for number in range(1_000):
        text = "".join("[]{}"[number >> shift & 3] for shift in range(0, 10, 2))
        scanner.feed(b"[" * 40 + text.encode() * 8)
    assert scanner.is_readable
    assert len(GROUPS) <= 256
