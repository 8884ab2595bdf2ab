"""Arguments of authors and hosts are validated before anything is sent."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from becket.contract.argument_checks import check_list, check_non_negative_int, check_str, check_strs


def test_only_a_str_is_text() -> None:
    check_str("", "a label")
    with pytest.raises(TypeError, match="a label must be str, got int"):
        check_str(5, "a label")


@pytest.mark.parametrize("value", [None, 0, 7, 2**60])
def test_a_count_is_a_whole_number_or_absent(value: int | None) -> None:
    check_non_negative_int(value, "a total")


@pytest.mark.parametrize(("value", "kind"), [(2.5, TypeError), ("3", TypeError), (True, TypeError), (-1, ValueError)])
def test_other_values_are_not_a_count(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="a total must"):
        check_non_negative_int(value, "a total")


def test_several_texts_are_a_list_and_never_one_text() -> None:
    assert check_strs(["a", "b"], "tags") == check_strs(iter("ab"), "tags") == ("a", "b")
    with pytest.raises(TypeError, match="tags must be a list of str, got the str 'ab'"):
        check_strs("ab", "tags")


@pytest.mark.parametrize("value", ["notes", b"notes", PurePath("notes")], ids=["str", "bytes", "path"])
def test_a_single_name_is_not_a_list_of_names(value: object) -> None:
    with pytest.raises(TypeError, match=f"^`only` must be a list of ids, got {type(value).__name__}$"):
        check_list(value, "only", "ids")


@pytest.mark.parametrize("value", [["notes"], (), {"notes"}, {"notes": 1}, None], ids=str)
def test_lists_and_other_collections_are_lists_of_names(value: object) -> None:
    check_list(value, "only", "ids")
