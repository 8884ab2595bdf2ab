"""Events of one kind that follow each other are read in a shorter way, which comes to the same as the usual one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from tests.jsonrpc.links import frame, link, notification, read, request
from tests.jsonrpc.test_fast_path import texts

from becket.jsonrpc.codec import CHECK_EVERY
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.messages import NotificationMessage
from becket.jsonrpc.notification_runs import BulkHandler

decode: Callable[[Raw | bytes], Any] = msgspec.json.Decoder().decode
SEEN = 2 * CHECK_EVERY  # events after which the rest of a chunk is a run, whatever stood before it
PARAMS = [
    "{}",
    "[]",
    '{"n":1}',
    "[[1],[2]]",
    "null",
    "1",
    '"x"',
    '{"a":1},"params":{"b":2}',
    '{"n":1}, "id":7',
    "{",
    "",
]
TALES = st.sampled_from(PARAMS).map(lambda params: '{"jsonrpc":"2.0","method":"tick","params":' + params + "}")
ODD = st.sampled_from(
    [
        '{"jsonrpc":"2.0","method":"tick","params":{"n":1}]',
        '{"jsonrpc":"2.0","method":"tick","params":{"n":1}',
        '{"jsonrpc":"2.0","method":"tick","params":{"n":1} }',
        '{"jsonrpc":"2.0","method":"tick","params":{"n":1}} ',
        '{"method":"tick","jsonrpc":"2.0","params":{"n":1}}',
        '{"jsonrpc":"2.0","method":"tick"}',
        '{"jsonrpc":"2.0","method":"tock","params":{"n":1}}',
    ]
)


class Heard:
    """Takes `tick`s, one by one; those that come in a run are counted."""

    def __init__(self, breaks_at: int = -1) -> None:
        self.events: list[object] = []
        self.in_runs = 0
        self.problems: list[tuple[bytes, str]] = []
        self._breaks_at = breaks_at

    def take(self, event: object) -> None:
        if len(self.events) == self._breaks_at:
            raise RuntimeError("no more")
        self.events.append(event)

    def take_in_run(self, event: object) -> None:
        self.in_runs += 1
        self.take(event)

    def put(self, params: Raw | None) -> None:
        try:
            self.take(None if params is None else decode(params))
        except (RuntimeError, msgspec.DecodeError) as error:
            self.fail(params or Raw(b""), error)

    def fail(self, params: Raw, error: Exception) -> None:
        self.problems.append((bytes(params), type(error).__name__))

    def listen(self, connection: Connection, *, in_runs: bool = True) -> None:
        connection.direct_handlers = {"tick": self.put}
        if in_runs:
            connection.bulk_handlers = {"tick": BulkHandler(decode, self.take_in_run, self.fail)}


def tick(number: int) -> dict[str, object]:
    return notification("tick", params={"n": number})


def ticks(count: int, first: int = 0) -> bytes:
    return frame(*map(tick, range(first, first + count)))


def numbers(heard: Heard) -> list[int]:
    return [event["n"] for event in heard.events if isinstance(event, dict)]


def test_events_that_follow_each_other_are_not_parsed_for_their_names() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)

    assert connection.receive(ticks(200)) == []
    assert numbers(heard) == list(range(200))
    assert heard.in_runs >= 200 - CHECK_EVERY


def test_programs_that_write_spaces_tell_in_runs_too() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)
    connection.receive(frame(*(json.dumps(tick(number)) for number in range(200))))

    assert numbers(heard) == list(range(200))
    assert heard.in_runs >= 200 - CHECK_EVERY


def test_events_in_a_form_of_their_own_go_the_usual_way() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)
    connection.receive(frame(*({"method": "tick", "jsonrpc": "2.0", "params": {"n": n}} for n in range(200))))

    assert numbers(heard) == list(range(200))
    assert heard.in_runs == 0


def test_a_run_goes_on_in_the_next_chunk() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)
    connection.receive(ticks(SEEN))
    before = heard.in_runs
    for number in range(10):
        connection.receive(ticks(1, SEEN + number))

    assert heard.in_runs == before + 10
    assert numbers(heard) == list(range(SEEN + 10))


def test_a_run_begins_with_an_event_that_came_in_two_pieces_too() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)
    first = ticks(1)
    for piece in (first[:40], first[40:], *(ticks(1, number) for number in range(1, 11))):
        connection.receive(piece)

    assert numbers(heard) == list(range(11))
    assert heard.in_runs == 10


def test_what_comes_between_two_events_is_taken_in_its_place() -> None:
    connection, heard = link(), Heard()
    heard.listen(connection)
    order: list[object] = []
    connection.handle_inline = lambda id, method, params: bool(order.append((id, len(heard.events)))) or True
    connection.receive(ticks(SEEN) + frame(request(7, params={})) + ticks(SEEN, SEEN))

    assert order == [(b"7", SEEN)]
    assert numbers(heard) == list(range(2 * SEEN))


def test_an_event_that_cannot_be_taken_ends_the_run_and_the_next_ones_go_their_way() -> None:
    connection, heard = link(), Heard(breaks_at=SEEN + 3)

    def give_up(params: Raw, error: Exception) -> None:
        heard.problems.append((bytes(params), str(error)))
        claimed.clear()
        listening.clear()

    claimed = connection.direct_handlers = {"tick": heard.put}
    listening = connection.bulk_handlers = {"tick": BulkHandler(decode, heard.take_in_run, give_up)}
    rest = connection.receive(ticks(SEEN + 20))

    assert numbers(heard) == list(range(SEEN + 3))
    assert heard.problems == [(b'{"n":%d}' % (SEEN + 3), "no more")]
    assert len(rest) == 16
    assert all(isinstance(event, NotificationMessage) for event in rest)


def test_events_are_for_whoever_listens_now() -> None:
    connection, first, second = link(), Heard(), Heard()
    first.listen(connection)
    connection.receive(ticks(SEEN))
    second.listen(connection)
    connection.receive(ticks(SEEN))
    connection.direct_handlers = connection.bulk_handlers = {}

    assert len(connection.receive(ticks(SEEN))) == SEEN
    assert (len(first.events), len(second.events)) == (SEEN, SEEN)


def test_a_large_event_in_a_run_is_looked_into_first() -> None:
    connection, heard = link(limits={"depth": 10}), Heard()
    heard.listen(connection)
    deep = '{"jsonrpc":"2.0","method":"tick","params":' + "[" * 50 + "]" * 50 + "}"
    connection.receive(ticks(SEEN) + frame(deep) + ticks(1, SEEN))

    assert numbers(heard) == list(range(SEEN + 1))
    assert [answer["error"]["message"] for answer in read(connection.data_to_send())] != []


def outcome(chunk: bytes, *, in_runs: bool) -> object:
    connection, heard = link(), Heard()
    heard.listen(connection, in_runs=in_runs)
    others: list[object] = []
    for event in connection.receive(chunk):
        if isinstance(event, NotificationMessage) and event.method == "tick":
            heard.put(event.params)  # whoever hands events out finds the same function
        else:
            others.append((type(event).__name__, getattr(event, "method", None), getattr(event, "id", None)))
    events = sorted(map(repr, heard.events))
    return (
        others,
        events,
        heard.problems,
        connection.data_to_send(),
        connection.stray_responses,
        len(connection.requests),
    )


@settings(max_examples=300)
@given(frames=st.lists(st.one_of(TALES, TALES, ODD, texts()), max_size=12))
def test_a_run_comes_to_the_same_as_the_usual_way(frames: list[str]) -> None:
    chunk = ticks(SEEN) + frame(*frames) + ticks(3)

    assert outcome(chunk, in_runs=True) == outcome(chunk, in_runs=False)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_same_in_chunks_of_any_size(size: int) -> None:
    data = ticks(SEEN) + frame(request(1, params={}), "{", tick(-1)) + ticks(SEEN)

    def taken(listening: Mapping[str, Any]) -> object:
        connection, heard = link(), Heard()
        heard.listen(connection)
        connection.bulk_handlers = listening if not listening else connection.bulk_handlers
        for at in range(0, len(data), size):
            connection.receive(data[at : at + size])
        return heard.events, connection.data_to_send()

    assert taken({}) == taken({"tick": None})
