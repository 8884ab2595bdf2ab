"""Types with their own conversion."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.conversion.custom_type import CustomType, get_to_json, unwrap_type
from becket.conversion.decode import get_params_decoder, get_result_decoder
from becket.errors import BadValue, InvalidParams


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


COLOUR: CustomType[Colour] = CustomType(Colour, from_json=read, to_json=write)
MAYBE: CustomType[Any] = CustomType(Colour | None, from_json=read_maybe, to_json=write)


def test_a_custom_type_is_shown_as_its_class() -> None:
    assert (unwrap_type(COLOUR), unwrap_type(int), unwrap_type(None)) == (Colour, int, None)
    assert repr(COLOUR) == "Colour"


def test_only_a_custom_type_has_a_function_that_writes_it() -> None:
    writer = get_to_json(COLOUR)

    assert writer is not None
    assert writer(Colour(3)) == {"h": 3}
    assert get_to_json(Colour) is None


def test_params_are_decoded_by_a_custom_type() -> None:
    assert get_params_decoder(COLOUR)(Raw(b'{"h":7}')).hue == 7


def test_an_invalid_value_is_refused_with_all_its_problems() -> None:
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(COLOUR)(Raw(b'{"x":7}'))
    assert caught.value.problems == (("/h", "is missing"),)


def test_absent_params_are_an_empty_object_or_none() -> None:
    assert get_params_decoder(MAYBE)(None) is None
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(COLOUR)(None)
    assert caught.value.problems == (("/h", "is missing"),)


def test_results_are_decoded_by_a_custom_type() -> None:
    assert get_result_decoder(COLOUR)(Raw(b'{"h":9}')).hue == 9
    with pytest.raises(msgspec.ValidationError, match="is no colour"):
        get_result_decoder(COLOUR)(Raw(b"[]"))
