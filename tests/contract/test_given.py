"""What authors and hosts give us is held against what can be said, before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from becket.contract.given import check_count, check_text, texts_of


def test_text_is_text() -> None:
    check_text("", "a label")
    with pytest.raises(TypeError, match="a label is text, and 5 is none"):
        check_text(5, "a label")


@pytest.mark.parametrize("value", [None, 0, 7, 2**60])
def test_a_count_is_a_whole_number_or_not_known(value: int | None) -> None:
    check_count(value, "a total")


@pytest.mark.parametrize(("value", "kind"), [(2.5, TypeError), ("3", TypeError), (True, TypeError), (-1, ValueError)])
def test_nothing_else_is_a_count(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="a total is"):
        check_count(value, "a total")


def test_several_texts_are_a_list_and_never_one_text() -> None:
    assert texts_of(["a", "b"], "tags") == texts_of(iter("ab"), "tags") == ("a", "b")
    with pytest.raises(TypeError, match="tags are a list of texts, and never one text such as 'ab'"):
        texts_of("ab", "tags")
