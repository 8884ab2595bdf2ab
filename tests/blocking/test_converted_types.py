"""Values of types with a conversion of their own, without an event loop."""

from __future__ import annotations

from typing import Any

from tests.blocking.pairs import blocking_pair

from becket.blocking import BlockingContext
from becket.conversion.custom_type import CustomType
from becket.jsonrpc.json_values import decode_json
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream


class Colour:
    def __init__(self, hue: int) -> None:
        self.hue = hue


def read(value: Any) -> Colour:
    return Colour(value["h"])


def write(colour: Colour) -> object:
    return {"h": colour.hue}


COLOUR: Any = CustomType(Colour, from_json=read, to_json=write)
MIX: Method[Colour, Colour] = Method("mix", COLOUR, COLOUR)
SHOWN: Notification[Colour] = Notification("shown", COLOUR)
PAINT: Stream[Colour, Colour, int] = Stream(
    "paint", COLOUR, COLOUR, events={"stroke": EventReader(lambda raw: decode_json(raw)["h"])}
)


def test_params_and_results_are_converted_at_both_ends() -> None:
    with blocking_pair() as (left, right):
        hues: list[int] = []

        @right.handle(MIX)
        def mix(params: Colour, ctx: BlockingContext) -> Colour:
            ctx.notify(SHOWN, Colour(params.hue + 2))
            return Colour(params.hue + 1)

        @right.handle(PAINT)
        def paint(params: Colour, ctx: BlockingContext) -> Colour:
            ctx.notify("stroke", {"h": params.hue})
            return params

        @right.on(SHOWN)
        def shown(params: Colour) -> None:
            hues.append(params.hue)

        @left.on(SHOWN)
        def shown_here(params: Colour) -> None:
            hues.append(params.hue)

        left.notify(SHOWN, Colour(1))
        assert left.call(MIX, Colour(2)).hue == 3
        with left.stream(PAINT, Colour(5)) as run:
            assert list(run) == [5]
            assert run.result().hue == 5
        assert hues == [1, 4]
