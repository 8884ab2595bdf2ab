"""Descriptors name a method once and carry all that is known about it."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_overloads, get_type_hints

import msgspec
import pytest
from msgspec import Raw, Struct

from becket.methods.decorators import HandlerDecorator, NotificationHandlerDecorator, SyncHandlerDecorator
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import CancelReason, EventReader, Stream


class Add(Struct):
    a: int


class Sum(Struct):
    total: int


class Tick(Struct):
    n: int


read_tick = msgspec.json.Decoder(Tick).decode


def test_a_method_carries_what_it_was_made_with() -> None:
    add = Method(
        "add",
        Add,
        Sum,
        requires="own.permission",
        timeout=2.5,
        direction="to-extension",
        summary="Adds.",
    )
    assert (add.name, add.params, add.result) == ("add", Add, Sum)
    assert (add.requires, add.timeout) == ("own.permission", 2.5)
    assert (add.direction, add.summary) == ("to-extension", "Adds.")


def test_a_method_has_no_permission_and_no_timeout_by_default() -> None:
    add = Method("add", Add, Sum)
    assert (add.requires, add.timeout, add.direction, add.summary) == (None, None, "to-host", "")


def test_no_params_and_no_result_may_be_written_either_way() -> None:
    for none in (None, NoneType):
        assert (Method("m", none, none).params, Method("m", none, none).result) == (None, None)
        assert Notification("n", none).params is None


def test_a_notification_carries_what_it_was_made_with() -> None:
    tick = Notification("tick", Tick, requires="own.ticks", direction="to-extension", summary="Ticks.")
    assert (tick.name, tick.params, tick.requires) == ("tick", Tick, "own.ticks")
    assert (tick.direction, tick.summary) == ("to-extension", "Ticks.")
    assert Notification("tick", Tick).direction == "to-host"


def test_a_stream_is_a_method_with_events() -> None:
    ticks = Stream("ticks", Add, Sum, events={"tick": EventReader(read_tick, (Tick,))}, idle_timeout=5)
    assert isinstance(ticks, Method)
    assert ticks.events["tick"].decode(Raw(b'{"n":1}')) == Tick(1)
    assert (ticks.timeout, ticks.idle_timeout) == (None, 5)
    assert ticks.direction == "to-extension"


def test_a_stream_that_ends_with_an_event_carries_what_gathers_and_what_cancels_it() -> None:
    class Gathered:
        def __init__(self, params: Add) -> None:
            self.total = params.a

        def on_response(self, response: Raw, /) -> None: ...

        def on_event(self, event: Tick, /) -> bool:
            return True

        def result(self) -> Sum:
            return Sum(self.total)

    def cancel(params: Add, reason: CancelReason) -> tuple[Method[Any, Any], object]:
        return Method("stop", Add, None), params

    ticks = Stream("ticks", Add, Sum, events={"tick": EventReader(read_tick)}, gather=Gathered, cancel=cancel)
    assert (ticks.gather, ticks.cancel) == (Gathered, cancel)
    plain = Stream("ticks", Add, Sum, events={})
    assert (plain.gather, plain.cancel) == (None, None)


def test_a_reason_for_cancelling_is_its_text_on_the_wire() -> None:
    reasons = ["left before its end", "timed out", "its events could not be taken"]
    assert msgspec.json.decode(msgspec.json.encode(list(CancelReason))) == reasons


def test_the_events_of_a_stream_are_its_own() -> None:
    events = {"tick": EventReader(read_tick)}
    ticks = Stream("ticks", Add, Sum, events=events)
    events.clear()
    assert list(ticks.events) == ["tick"]
    with pytest.raises(TypeError):
        ticks.events["tock"] = EventReader(read_tick)  # type: ignore[index]


def test_a_reader_takes_every_event_unless_given_a_predicate() -> None:
    assert EventReader(read_tick).belongs is None

    def belongs(raw: Raw, params: Add) -> bool:
        return read_tick(raw).n == params.a

    reader = EventReader(read_tick, belongs=belongs)
    assert reader.belongs is not None
    assert [reader.belongs(Raw(b'{"n":1}'), Add(number)) for number in (1, 2)] == [True, False]


@pytest.mark.parametrize("name", ["", "rpc.", "rpc.discover"])
def test_a_name_that_json_rpc_reserves_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="reserved"):
        Method(name, Add, Sum)
    with pytest.raises(ValueError, match="reserved"):
        Notification(name, Tick)
    with pytest.raises(ValueError, match="reserved"):
        Stream(name, Add, Sum, events={})
    with pytest.raises(ValueError, match="reserved"):
        Stream("ticks", Add, Sum, events={name: EventReader(read_tick)})


def test_a_permission_has_a_name() -> None:
    with pytest.raises(ValueError, match="'add' cannot require"):
        Method("add", Add, Sum, requires="")
    with pytest.raises(ValueError, match="'tick' cannot require"):
        Notification("tick", Tick, requires="")


@pytest.mark.parametrize(
    ("descriptor", "shown"),
    [
        (Method("add", Add, Sum), "<Method add(Add) -> Sum>"),
        (Method("stop", None, None), "<Method stop() -> None>"),
        (Method("add", list[int], Any, requires="own"), "<Method add(list[int]) -> Any, needs own>"),
        (Method("find", Add | list[int], Sum | None), "<Method find(Add | list[int]) -> Sum | None>"),
        (Notification("tick", Tick), "<Notification tick(Tick)>"),
        (Notification("over", None, requires="own"), "<Notification over(), needs own>"),
        (Stream("ticks", Add, Sum, events={}, requires="own"), "<Stream ticks(Add) -> Sum, needs own>"),
        (EventReader(read_tick, (Tick, Sum)), "<EventReader of Tick | Sum>"),
        (EventReader(read_tick), "<EventReader of decode>"),
    ],
)
def test_a_descriptor_shows_what_it_is(descriptor: object, shown: str) -> None:
    assert repr(descriptor) == shown


# -- types for type checkers


@pytest.mark.parametrize(
    ("decorator", "forms"), [(HandlerDecorator, 6), (SyncHandlerDecorator, 3), (NotificationHandlerDecorator, 3)]
)
def test_a_decorator_takes_each_form_of_a_handler(decorator: type, forms: int) -> None:
    def call() -> None: ...

    call.__module__, call.__qualname__ = decorator.__module__, f"{decorator.__qualname__}.__call__"
    overloads = get_overloads(call)
    taken = [get_args(get_type_hints(one)["function"])[0] for one in overloads]

    assert len(overloads) == forms
    assert {len(arguments) for arguments in taken} == {0, 1, 2}
