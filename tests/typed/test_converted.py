"""Types that come with a conversion of their own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.errors import BadValue, InvalidParams
from becket.typed.converted import Converted, type_of, writer_of
from becket.typed.decoding import decoder_for, result_decoder


class Colour:
    """A class that neither msgspec nor cattrs can build."""

    def __init__(self, hue: int) -> None:
        self.hue = hue


def read(value: Any) -> Colour:
    if not isinstance(value, dict) or "h" not in value:
        raise BadValue("Colour", [("/h", "is missing")] if isinstance(value, dict) else [("", "is no colour")])
    return Colour(value["h"])


def read_maybe(value: Any) -> Colour | None:
    return None if value is None else read(value)


def write(colour: Colour) -> object:
    return {"h": colour.hue}


COLOUR: Converted[Colour] = Converted(Colour, read=read, write=write)
MAYBE: Converted[Any] = Converted(Colour | None, read=read_maybe, write=write)


def test_it_stands_for_its_type() -> None:
    assert (type_of(COLOUR), type_of(int), type_of(None)) == (Colour, int, None)
    assert repr(COLOUR) == "Colour"


def test_only_such_a_type_has_a_way_of_writing() -> None:
    writer = writer_of(COLOUR)

    assert writer is not None
    assert writer(Colour(3)) == {"h": 3}
    assert writer_of(Colour) is None


def test_params_are_read_by_it() -> None:
    assert decoder_for(COLOUR)(Raw(b'{"h":7}')).hue == 7


def test_what_does_not_fit_is_refused_with_all_its_problems() -> None:
    with pytest.raises(InvalidParams) as caught:
        decoder_for(COLOUR)(Raw(b'{"x":7}'))
    assert caught.value.problems == (("/h", "is missing"),)


def test_absent_params_are_an_empty_object_or_none() -> None:
    assert decoder_for(MAYBE)(None) is None
    with pytest.raises(InvalidParams) as caught:
        decoder_for(COLOUR)(None)
    assert caught.value.problems == (("/h", "is missing"),)


def test_results_are_read_by_it() -> None:
    assert result_decoder(COLOUR)(Raw(b'{"h":9}')).hue == 9
    with pytest.raises(msgspec.ValidationError, match="is no colour"):
        result_decoder(COLOUR)(Raw(b"[]"))
