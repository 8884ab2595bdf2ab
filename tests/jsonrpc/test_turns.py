"""A turn ends between two frames: after a number of them, or when its time is over; none is lost."""

from __future__ import annotations

from operator import length_hint

import pytest
from tests.jsonrpc.links import Waiter, append_json

from becket.jsonrpc.calls import OutboundCall
from becket.jsonrpc.codec import CHECK_EVERY, SLOW, JsonCodec, MessageCollector

EVENT = '{"jsonrpc":"2.0","method":"tick","params":{"n":%d}}'
NOTIFICATION = '{"jsonrpc":"2.0","method":"m","params":[%d]}'
REQUEST = '{"jsonrpc":"2.0","id":%d,"method":"m","params":[]}'
RESPONSE = '{"jsonrpc":"2.0","id":%d,"result":[]}'
STRAY = '{"jsonrpc":"2.0","id":-1%d,"result":[]}'
DEEP = '{"jsonrpc":"2.0","id":%d,"result":' + "[" * 100 + "]" * 100 + "}"
BROKEN = '{"jsonrpc":%d'

COUNT = 2 * CHECK_EVERY + 8  # frames


def make_frames(form: str) -> list[bytes]:
    return [(form % number).encode() for number in range(COUNT)]


def build_inbox() -> MessageCollector:
    """Returns the inbox of a link with a pending call for each response, and a subscription."""
    inbox = MessageCollector()
    inbox.calls = {number: OutboundCall("m", Waiter(), number=number, id=b"%d" % number) for number in range(COUNT)}
    inbox.direct_handlers.add("tick", b"", append_json(inbox.messages))
    return inbox


@pytest.mark.parametrize("form", [EVENT, NOTIFICATION, REQUEST, RESPONSE, STRAY, DEEP, BROKEN])
def test_the_end_of_a_turn_is_considered_after_so_many_frames_of_any_kind(form: str) -> None:
    codec, inbox = JsonCodec(), build_inbox()
    inbox.clock = lambda: 5.0
    inbox.began = inbox.until = 5.0  # in its last moment a turn is not over
    inbox.should_yield = lambda: True
    frames = iter(make_frames(form))
    left: list[int] = []
    while not codec.decode_frames(frames, inbox):
        left.append(length_hint(frames))
    assert left == [COUNT - CHECK_EVERY, COUNT - 2 * CHECK_EVERY]
    assert len(inbox.messages) == len(inbox.calls)  # only responses have settled their calls


@pytest.mark.parametrize("form", [NOTIFICATION, REQUEST, BROKEN])
def test_a_turn_whose_time_is_over_ends_after_the_message_that_took_it(form: str) -> None:
    codec, inbox = JsonCodec(), build_inbox()
    inbox.clock = lambda: 6.0
    inbox.began, inbox.until = 6.0, 5.0
    inbox.should_yield = lambda: True
    frames = iter(make_frames(form))
    ended = [codec.decode_frames(frames, inbox) for _ in range(COUNT)]
    assert ended == [False] * (COUNT - 1) + [True]
    assert len(inbox.messages) == COUNT


@pytest.mark.parametrize("form", [NOTIFICATION, REQUEST, BROKEN])
def test_a_turn_goes_on_after_its_time_if_the_link_does_not_yield(form: str) -> None:
    inbox = build_inbox()
    inbox.clock = lambda: 6.0
    inbox.began, inbox.until = 6.0, 5.0
    assert JsonCodec().decode_frames(iter(make_frames(form)), inbox)
    assert len(inbox.messages) == COUNT


@pytest.mark.parametrize(
    ("seconds", "count"),
    [(0.0, CHECK_EVERY), (SLOW, CHECK_EVERY), (SLOW * CHECK_EVERY, 1), (1.0, 1)],
)
def test_after_slow_messages_the_end_of_a_turn_is_considered_after_each(seconds: float, count: int) -> None:
    codec, inbox = JsonCodec(), build_inbox()
    now = seconds
    inbox.clock = lambda: now
    inbox.should_yield = lambda: True
    frames = iter(make_frames(EVENT))
    handled: list[int] = []
    for _ in range(2):
        before = length_hint(frames)
        assert not codec.decode_frames(frames, inbox)
        handled.append(before - length_hint(frames))
    assert handled == [CHECK_EVERY, count]


def test_messages_that_are_quick_again_are_handled_together_again() -> None:
    codec, inbox = JsonCodec(), build_inbox()
    times = iter([1.0, 0.0])
    inbox.clock = lambda: next(times, 0.0)
    inbox.should_yield = lambda: True
    frames = iter(make_frames(EVENT))
    left: list[int] = []
    while not codec.decode_frames(frames, inbox):
        left.append(length_hint(frames))
    assert left == [COUNT - CHECK_EVERY, COUNT - CHECK_EVERY - 1, COUNT - 2 * CHECK_EVERY - 1]


@pytest.mark.parametrize("count", [0, 1, CHECK_EVERY])
def test_a_turn_that_ends_with_the_last_frame_leaves_nothing(count: int) -> None:
    inbox = build_inbox()
    inbox.should_yield = lambda: True
    assert JsonCodec().decode_frames(iter(make_frames(EVENT)[:count]), inbox)
