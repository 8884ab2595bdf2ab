"""The fast path and the parser give the same result; a space, which selects the parser, changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from msgspec import Raw
from tests.jsonrpc.links import Waiter, append_json, call, link

from becket.framing import ContentLength
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.codec import MAX_DIRECT_HANDLERS, DirectHandlers, JsonCodec, MessageCollector
from becket.jsonrpc.limit_checks import LimitChecker
from becket.jsonrpc.messages import Failure, Message, NotificationMessage
from becket.jsonrpc.parser import MessageParser
from becket.limits import DEFAULT_LIMITS, Limits

NUMBERS = ["0", "1", "2", "9", "12", "-1", "123", "1234", "12345", "1e0", "1.0"]
IDS = [*NUMBERS, "null", "true", '"1"', '""', '"a"', "[]", "{}"]
METHODS = ['"tick"', '"m"', '"$/ping"', '"$/cancelRequest"', '""', '"é"', '"\\u006d"']
VALUES = [*IDS, "[1]", '{"a":1}', "[[]]", '"\\u0031"', '{"code":1,"message":"m"}', '"tick"', '"m"', '"2.0"']
MEMBERS = ["id", "method", "params", "result", "error", "x", "extra", "trace", "jsonrpc", "data", ""]


@st.composite
def texts(draw: Any) -> str:
    pairs = ['"jsonrpc":"2.0"']
    if draw(st.booleans()):
        pairs.append('"id":' + draw(st.sampled_from(IDS)))
    if draw(st.booleans()):
        pairs.append('"method":' + draw(st.sampled_from(METHODS)))
    for name in draw(st.lists(st.sampled_from(MEMBERS), max_size=3)):
        pairs.append(f'"{name}":' + draw(st.sampled_from(VALUES)))
    ordered = draw(st.permutations(pairs))
    if draw(st.booleans()):  # as `json.dumps` writes it
        return "{" + ", ".join(pair.replace('":', '": ', 1) for pair in ordered) + "}"
    if draw(st.booleans()):  # here and there
        spaces = st.sampled_from(["", "", " ", "  "])
        spread = (draw(spaces) + pair.replace('":', '":' + draw(spaces), 1) for pair in ordered)
        return "{" + ",".join(spread) + draw(spaces) + "}"
    return "{" + ",".join(ordered) + "}"


def outcome(text: str) -> tuple[object, ...]:
    connection = link(ping="$/ping")
    claimed: list[bytes] = []
    connection.direct_handlers.add("tick", b"", append_json(claimed))
    for _ in range(12):
        call(connection)
    shown: list[object] = []
    for event in connection.receive(ContentLength().encode(text.encode()), 0.0):
        match event:
            case OutboundCall():
                shown.append(
                    ("call", event.id, None if event.result is None else bytes(event.result), type(event.error))
                )
            case InboundRequest():
                shown.append(("request", event.id, event.method, None if event.params is None else bytes(event.params)))
            case NotificationMessage() if event.method == "tick":
                claimed.append(bytes(event.params or b""))  # the same function receives the events
            case NotificationMessage():
                shown.append(("told", event.method, None if event.params is None else bytes(event.params)))
            case Failure():
                shown.append(("failure", event.code))
            case _:
                shown.append(type(event))
    return (
        shown,
        claimed,
        connection.data_to_send().partition(b"\r\n\r\n")[2],
        connection.stray_responses,
        sorted(connection.calls),
        len(connection.requests),
    )


@settings(max_examples=500)
@given(text=texts())
def test_white_space_does_not_change_the_outcome(text: str) -> None:
    assert outcome(text) == outcome("{ " + text[1:])


@settings(max_examples=500)
@given(text=texts())
def test_a_member_of_a_batch_has_the_effect_that_it_has_alone(text: str) -> None:
    shown, claimed, sent, *rest = outcome(text)

    assert outcome(f"[{text}]") == (shown, claimed, sent and b"[" + sent + b"]", *rest)


@settings(max_examples=500)
@given(text=texts())
def test_the_fast_path_decodes_as_the_parser_does(text: str) -> None:
    """The fast path takes a frame whose members and punctuation have the length of the frame; the parser looks at each
    member. What one member hides from the other is a difference between the two."""
    limits = Limits()
    parser, codec = MessageParser(limits, LimitChecker(limits)), JsonCodec(limits)

    assert codec.decode(text.encode()) == parser.parse(text.encode())


MARK = '{"_meta":{"becket":{"parent":7}},'
PIECES = ['"n":1', '"n":', '"', "}", "}}", ",", "]", '"_meta":{}', '"id":1', '"params":{"n":2}', " ", "\\", "null"]


@settings(max_examples=500)
@example(mark="{", pieces=['"n":1', "}", " "])
@example(mark="{", pieces=['"n":1', "}", ",", '"id":1', "}"])
@example(mark=MARK, pieces=["}", "}"])
@example(mark=MARK, pieces=['"n":1', "}", " ", "}"])
@given(mark=st.sampled_from([MARK, "{"]), pieces=st.lists(st.sampled_from(PIECES), max_size=6))
def test_a_direct_handler_gets_what_the_parser_reads(mark: str, pieces: list[str]) -> None:
    """The codec takes all between a known beginning and the last brace for the params, if it is one JSON value. White
    space may follow that."""
    limits = Limits()
    text = '{"jsonrpc":"2.0","method":"tick","params":' + mark + "".join(pieces)
    seen: list[bytes] = []
    inbox = MessageCollector()
    inbox.direct_handlers.add("tick", MARK.encode() if mark == MARK else b"", append_json(seen))

    JsonCodec(limits).decode_frames(iter([text.encode()]), inbox)

    messages: list[Message] = [*inbox.messages]
    messages += [NotificationMessage("tick", Raw(mark.encode() + params[1:].rstrip())) for params in seen]
    assert messages == [MessageParser(limits, LimitChecker(limits)).parse(text.encode())]


# -- what the fast path decodes


class RecordingInbox(MessageCollector):
    """Collects the messages of the fast path, and beside them those of the parser."""

    def __init__(self) -> None:
        super().__init__()
        self.parsed: list[object] = []

    def on_message(self, message: object) -> None:
        self.parsed.append(message)


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> object:
    return MessageParser(limits, LimitChecker(limits)).parse(text.encode())


def deliver(inbox: MessageCollector, *texts: str, limits: Limits = DEFAULT_LIMITS, is_checked: bool = False) -> None:
    frames = iter([text.encode() for text in texts])
    assert JsonCodec(limits).decode_frames(frames, inbox, is_checked=is_checked)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}',
        '{"jsonrpc":"2.0","id":1234,"method":"tick","params":{"a":1}}',
        '{"jsonrpc": "2.0", "id": 12, "method": "tick", "params": {"a": 1}}',
        '{"jsonrpc":"2.0","method":"m","params":[1]}',
        '{"jsonrpc":"2.0","method":"tick","params":{"a":1}}',
        '{"jsonrpc": "2.0", "method": "tick", "params": {"a": 1}}',
    ],
)
def test_a_message_as_most_programs_write_it_needs_no_parser(text: str) -> None:
    inbox = RecordingInbox()
    deliver(inbox, text)
    assert (inbox.messages, inbox.parsed) == ([parse(text)], [])


@pytest.mark.parametrize(
    "form", ['{"jsonrpc":"2.0","id":%d,"result":%s}', '{"jsonrpc": "2.0", "id": %d, "result": %s}']
)
@pytest.mark.parametrize("id", [1, 12, 12345])
@pytest.mark.parametrize("result", ["1", "null", '{"a":1}'])
def test_a_response_as_most_programs_write_it_settles_its_call_without_the_parser(
    form: str, id: int, result: str
) -> None:
    inbox = RecordingInbox()
    pending = OutboundCall("m", Waiter(), number=id, id=b"%d" % id)
    inbox.calls = {id: pending}
    settled: list[OutboundCall] = []
    inbox.on_response = settled.append
    deliver(inbox, form % (id, result))
    assert (settled, inbox.calls, inbox.parsed) == ([pending], {}, [])
    assert bytes(pending.result or b"") == result.encode()


def test_a_method_of_as_many_bytes_as_are_allowed_needs_no_parser() -> None:
    inbox, limits = RecordingInbox(), Limits(method_bytes=60, id_bytes=60)
    longest = '{"jsonrpc":"2.0","method":"%s","params":[]}'
    deliver(inbox, longest % ("m" * 60), longest % ("m" * 61), limits=limits)
    assert inbox.messages == [parse(longest % ("m" * 60))]
    assert inbox.parsed == [parse(longest % ("m" * 61), limits)]


def test_a_request_is_measured_by_the_parser_if_all_before_its_params_exceeds_a_limit() -> None:
    inbox, limits = RecordingInbox(), Limits(method_bytes=60, id_bytes=60)
    form = '{"jsonrpc":"2.0","id":7,"method":"%s","params":[]}'
    short = "m" * (60 - len(form % "") + len("[]"))
    deliver(inbox, form % short, form % (short + "m"), limits=limits)
    assert inbox.messages == [parse(form % short)]
    assert inbox.parsed == [parse(form % (short + "m"), limits)]


@pytest.mark.parametrize("length", range(8))
def test_a_string_is_a_request_id_whatever_its_length(length: int) -> None:
    text = '{"jsonrpc":"2.0","id":"%s","method":"m","params":[1]}' % ("a" * length)
    assert JsonCodec().decode(text.encode()) == parse(text)


# -- what the limits exclude

DEEPEST = '{"jsonrpc":"2.0","method":"tick","params":{"a":' + "[" * 70 + "]" * 70 + "}}"


def test_frames_that_were_checked_against_the_limits_are_not_checked_again() -> None:
    unchecked, checked = RecordingInbox(), RecordingInbox()
    deliver(unchecked, DEEPEST)
    deliver(checked, DEEPEST, is_checked=True)
    assert (unchecked.messages, unchecked.parsed) == ([], [parse(DEEPEST)])
    assert (len(checked.messages), checked.parsed) == (1, [])


def event(size: int) -> str:
    """Returns an event whose params have this many bytes."""
    text = "x" * (size - len('{"n":""}'))
    return f'{{"jsonrpc":"2.0","method":"tick","params":{{"n":"{text}"}}}}'


@pytest.mark.parametrize("extra", [0, 1])
def test_an_event_that_could_exceed_a_limit_is_not_delivered_directly(extra: int) -> None:
    inbox = RecordingInbox()
    seen: list[bytes] = []
    inbox.direct_handlers.add("tick", b"", append_json(seen))
    deliver(inbox, event(LimitChecker(DEFAULT_LIMITS).safe_bytes + extra))
    assert (len(seen), len(inbox.messages)) == ((0, 1) if extra else (1, 0))


def test_an_event_of_a_batch_was_checked_with_it_and_is_delivered_directly() -> None:
    class WithBatches(RecordingInbox):
        def begin_batch(self) -> MessageCollector:
            return batch

    batch, seen = RecordingInbox(), list[bytes]()
    batch.direct_handlers.add("tick", b"", append_json(seen))
    deliver(WithBatches(), f"[{event(1_000)}]")
    assert (len(seen), batch.messages) == (1, [])


# -- direct handlers


def test_each_direct_handler_gets_the_events_of_its_method() -> None:
    inbox = RecordingInbox()
    ticks: list[bytes] = []
    tocks: list[bytes] = []
    inbox.direct_handlers.add("tick", b"", append_json(ticks))
    inbox.direct_handlers.add("tock", b"", append_json(tocks))
    form = '{"jsonrpc":"2.0","method":"%s","params":{"n":%d}}'
    deliver(inbox, *(form % (method, n) for n in range(3) for method in ("tick", "tock", "tack")))
    assert ticks == tocks == [b'{"n":%d}' % n for n in range(3)]
    assert (inbox.messages, inbox.parsed) == ([parse(form % ("tack", n)) for n in range(3)], [])


def test_a_direct_handler_gets_the_params_without_their_mark() -> None:
    inbox = RecordingInbox()
    marked: list[bytes] = []
    inbox.direct_handlers.add("tick", MARK.encode(), append_json(marked))
    form = '{"jsonrpc":"2.0","method":"tick","params":%s"n":1}}'
    deliver(inbox, form % MARK, form % "{", form % MARK.replace("7", "8"))
    assert marked == [b'{"n":1}']
    assert inbox.messages == [parse(form % "{"), parse(form % MARK.replace("7", "8"))]


def deliver_events(handlers: DirectHandlers, methods: str) -> str:
    """Returns which of these methods, a letter each, still have their events in the inbox."""
    inbox = RecordingInbox()
    inbox.direct_handlers = handlers
    deliver(inbox, *(f'{{"jsonrpc":"2.0","method":"{method}","params":{{"n":1}}}}' for method in methods))
    return "".join(message.method for message in inbox.messages)


def test_more_direct_handlers_than_there_is_room_for_are_not_added() -> None:
    handlers = DirectHandlers()
    seen: list[bytes] = []
    methods = "abcdefgh"
    for method in methods:
        handlers.add(method, b"", append_json(seen))
    assert deliver_events(handlers, methods) == methods[MAX_DIRECT_HANDLERS:]
    assert len(seen) == MAX_DIRECT_HANDLERS


def test_a_removed_direct_handler_gets_no_events_and_the_others_do() -> None:
    handlers = DirectHandlers()
    first, second, third = (append_json([]) for _ in range(3))
    for method, handler in (("a", first), ("b", second), ("c", third)):
        handlers.add(method, b"", handler)
    handlers.remove([third])
    assert deliver_events(handlers, "abc") == "c"
    handlers.remove([first])
    assert deliver_events(handlers, "abc") == "ac"
    handlers.remove([second])
    assert deliver_events(handlers, "abc") == "abc"
    handlers.add("a", b"", first)
    assert deliver_events(handlers, "abc") == "bc"
    handlers.clear()
    assert deliver_events(handlers, "abc") == "abc"
