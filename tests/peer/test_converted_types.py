"""Values of types with their own conversion are converted in both directions of a link."""

from __future__ import annotations

from typing import Any

import pytest

from becket import Context, Registry
from becket.conversion.custom_type import CustomType
from becket.errors import BadReply, BadValue, RemoteError
from becket.jsonrpc.json_values import decode_json
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream
from becket.testing import memory_pair


class Colour:
    def __init__(self, hue: int) -> None:
        self.hue = hue


def read(value: Any) -> Colour:
    if not isinstance(value, dict) or not isinstance(value.get("h"), int):
        raise BadValue("Colour", [("/h", "is no number")])
    return Colour(value["h"])


def write(colour: Colour) -> object:
    return {"h": colour.hue}


COLOUR: Any = CustomType(Colour, from_json=read, to_json=write)
MIX: Method[Colour, Colour] = Method("mix", COLOUR, COLOUR)
MIX_LATER: Method[Colour, Colour] = Method("mix later", COLOUR, COLOUR)
SHOWN: Notification[Colour] = Notification("shown", COLOUR)


def is_same(raw: Any, params: Any) -> bool:
    return bool(decode_json(raw) == params)


PAINT: Stream[Colour, Colour, int] = Stream(
    "paint",
    COLOUR,
    COLOUR,
    events={"stroke": EventReader(lambda raw: decode_json(raw)["h"], belongs=is_same)},
)


pytestmark = pytest.mark.loops


async def test_params_and_results_are_converted_at_both_ends() -> None:
    async with memory_pair() as (left, right):

        @right.handle(MIX)
        def mix(params: Colour) -> Colour:
            return Colour(params.hue + 1)

        @right.handle(MIX_LATER)
        async def mix_later(params: Colour) -> Colour:
            return Colour(params.hue + 2)

        assert (await left.call(MIX, Colour(1))).hue == 2
        assert (await left.call(MIX_LATER, Colour(1))).hue == 3
        assert await left.call("mix", {"h": 5}) == {"h": 6}


async def test_invalid_values_are_rejected_with_their_problems_and_fail_a_call() -> None:
    async with memory_pair() as (left, right):

        @right.handle(MIX)
        def mix(params: Colour) -> Colour:
            raise AssertionError

        @right.handle("mix later")
        def mix_later(_: Any) -> str:
            return "grey"

        with pytest.raises(RemoteError, match="/h: is no number"):
            await left.call("mix", {"h": "red"})
        with pytest.raises(BadReply, match="/h: is no number"):
            await left.call(MIX_LATER, Colour(1))


async def test_a_result_that_cannot_be_written_is_an_internal_error() -> None:
    async with memory_pair() as (left, right):

        @right.handle(MIX)
        async def mix(params: Colour) -> Colour:
            return "grey"  # type: ignore[return-value]

        with pytest.raises(RemoteError) as caught:
            await left.call(MIX, Colour(1))
        assert caught.value.code == -32603


async def test_notifications_are_converted() -> None:
    async with memory_pair() as (left, right):
        hues: list[int] = []

        @right.on(SHOWN)
        def shown(params: Colour) -> None:
            hues.append(params.hue)

        @right.handle("ask back")
        async def ask_back(_: Any, ctx: Context) -> None:
            await ctx.notify(SHOWN, Colour(4))

        @left.on(SHOWN)
        def shown_here(params: Colour) -> None:
            hues.append(params.hue)

        await left.notify(SHOWN, Colour(2))
        left.notify_nowait(SHOWN, Colour(3))
        await left.call("ask back")
        assert hues == [2, 3, 4]


async def test_the_encoded_params_select_the_events_of_a_stream() -> None:
    async with memory_pair() as (left, right):

        @right.handle(PAINT)
        async def paint(params: Colour, ctx: Context) -> Colour:
            for hue in (params.hue, params.hue + 1, params.hue):
                await ctx.notify("stroke", {"h": hue})
            return params

        async with left.stream(PAINT, Colour(7)) as run:
            assert [event async for event in run] == [7, 7]
            assert (await run.result()).hue == 7


def test_a_handler_names_the_type_itself() -> None:
    with pytest.raises(TypeError, match="takes `int`, but 'mix' has params of type `Colour`"):

        @Registry().handle(MIX)
        def mix(params: int) -> Colour: ...
