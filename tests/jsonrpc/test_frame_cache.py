"""Cached prefixes of notifications are bounded and correct."""

from __future__ import annotations

import pytest

from becket.errors import LocalProtocolError
from becket.framing import ContentLength
from becket.jsonrpc.calls import InboundRequest
from becket.jsonrpc.codec import END, JsonCodec
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.frame_cache import MAX_CACHED_METHODS, MAX_CACHED_SIZES, FramePrefixes, NotificationPrefixes
from becket.limits import Limits


def connect(frame: int = 1_000_000) -> Connection:
    limits = Limits(frame=frame)
    return Connection(ContentLength(limits), JsonCodec(limits), limits=limits)


def expected(method: str, params: bytes) -> bytes:
    body = b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def test_a_notification_is_the_same_the_first_time_and_later() -> None:
    connection = connect()
    for params in (b"{}", b'{"a":1}', b"[1]", b"{}"):
        for method in ("tick", "tock"):
            assert connection.encode_notification(method, params) == expected(method, params)
            assert connection.encode_notification(method, params) == expected(method, params)


def test_more_methods_and_sizes_than_the_cache_holds_are_encoded_correctly() -> None:
    connection = connect()
    for size in range(2 * MAX_CACHED_SIZES):
        params = b'{"a":"%b"}' % (b"x" * size)
        connection.encode_notification("tick", params)
        assert connection.encode_notification("tick", params) == expected("tick", params)
    for number in range(2 * MAX_CACHED_METHODS):
        connection.encode_notification(f"m{number}", b"{}")
        assert connection.encode_notification(f"m{number}", b"{}") == expected(f"m{number}", b"{}")


def test_the_number_of_cached_prefixes_is_bounded() -> None:
    beginnings = {f"m{number}": b"start" for number in range(1_000)}
    prefixes = NotificationPrefixes(lambda size: b"%d" % size, beginnings)
    sizes = FramePrefixes(lambda size: b"%d" % size, b"start")
    most_methods = most_sizes = 0
    for number in range(1_000):
        expected = b"%d" % (len(b"start") + number) + b"start"
        assert prefixes[f"m{number}"][number] == sizes[number] == expected
        most_methods, most_sizes = max(most_methods, len(prefixes)), max(most_sizes, len(sizes))
    assert (most_methods, most_sizes) == (MAX_CACHED_METHODS, MAX_CACHED_SIZES)


def test_a_framing_that_must_see_the_whole_body_has_no_prefix() -> None:
    prefixes = FramePrefixes(lambda _: None, b"start")
    with pytest.raises(KeyError, match="17"):
        prefixes[17]
    assert prefixes == {}


def test_a_notification_that_is_too_large_is_refused_each_time() -> None:
    connection = connect(frame=100)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match="frame too large"):
            connection.encode_notification("tick", b'{"a":"%b"}' % (b"x" * 100))
    assert connection.encode_notification("tick", b"{}") == expected("tick", b"{}")


def test_the_events_of_a_request_begin_with_its_cached_prefix() -> None:
    connection = connect()
    (served,) = connection.receive(ContentLength().encode(b'{"jsonrpc":"2.0","id":1,"method":"m"}'))
    assert isinstance(served, InboundRequest)
    connection.encode_notification("tick", None)
    connection.cache_event_prefixes(served, "tick", b'{"parent":1,')
    rest = b'"n":2}'
    assert served.event_prefixes["tick"][len(rest) + len(END)] + rest + END == expected("tick", b'{"parent":1,"n":2}')
