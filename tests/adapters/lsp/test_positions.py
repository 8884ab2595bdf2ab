"""Positions and changes are counted as LSP counts them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from lsprotocol.types import (
    AnnotatedTextEdit,
    Position,
    PositionEncodingKind,
    Range,
    SnippetTextEdit,
    StringValue,
    TextEdit,
)

from becket.adapters.lsp.positions import LineIndex, apply_edits, compute_change

ENCODINGS = list(PositionEncodingKind)
texts = st.text(st.sampled_from("ab\n\r\u00e4\u20ac\U0001d4b3\U0001f600\u2028\u0085"), max_size=40)


@pytest.mark.parametrize(
    ("encoding", "character"),
    [(PositionEncodingKind.Utf8, 7), (PositionEncodingKind.Utf16, 4), (PositionEncodingKind.Utf32, 3)],
)
def test_a_character_is_counted_in_the_negotiated_encoding(encoding: PositionEncodingKind, character: int) -> None:
    text = LineIndex("x\n\u00e4\U0001d4b3bc", encoding)

    assert text.position(5) == Position(1, character)
    assert text.offset(Position(1, character)) == 5


def test_utf_16_is_the_default_encoding() -> None:
    assert LineIndex("\U0001d4b3b").position(1) == Position(0, 2)


@pytest.mark.parametrize(("content", "starts"), [("a\r\nb\rc\nd", [0, 3, 5, 7]), ("a\u2028b\u0085c\fd", [0])])
def test_only_lf_crlf_and_cr_end_a_line(content: str, starts: list[int]) -> None:
    text = LineIndex(content)

    assert [text.offset(Position(line, 0)) for line in range(len(starts))] == starts
    assert text.offset(Position(len(starts), 0)) == len(content)


def test_a_position_behind_the_end_of_its_line_is_that_end() -> None:
    text = LineIndex("ab\r\ncd")

    assert text.offset(Position(0, 99)) == 2
    assert text.offset(Position(1, 99)) == 6
    assert text.position(99) == Position(1, 2)


def test_a_position_inside_a_character_is_the_start_of_that_character() -> None:
    assert LineIndex("\U0001d4b3b").offset(Position(0, 1)) == 0


@given(texts, st.sampled_from(ENCODINGS), st.data())
def test_positions_and_indexes_are_equivalent(
    content: str, encoding: PositionEncodingKind, data: st.DataObject
) -> None:
    text = LineIndex(content, encoding)
    offset = data.draw(st.integers(0, len(content)))
    if content[offset - 1 : offset + 1] != "\r\n":  # of which no position names the middle
        assert text.offset(text.position(offset)) == offset


@given(texts, texts, st.sampled_from(ENCODINGS))
def test_the_change_between_two_texts_turns_one_into_the_other(
    old: str, new: str, encoding: PositionEncodingKind
) -> None:
    change = compute_change(old, new, encoding)

    assert apply_edits(old, [TextEdit(change.range, change.text)], encoding) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\r\nb", "a\rb"),
        ("a\rb", "a\r\nb"),
        ("a\r\nb", "a\nb"),
        ("a\nb", "a\r\nb"),
        ("a\r\n", "a\r"),
        ("\r\n\r\n", "\r\n"),
        ("x\r\ny", "x\ry\ny"),
    ],
)
def test_a_change_never_begins_or_ends_between_the_characters_of_a_line_end(old: str, new: str) -> None:
    change = compute_change(old, new)

    assert apply_edits(old, [TextEdit(change.range, change.text)]) == new


def test_a_change_is_as_short_as_possible() -> None:
    change = compute_change("one two three", "one 2 three")

    assert (change.range, change.text) == (Range(Position(0, 4), Position(0, 7)), "2")


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> TextEdit:
    return TextEdit(Range(Position(*start), Position(*end)), text)


def test_edits_refer_to_the_original_text() -> None:
    edits = [
        edit((1, 0), (1, 1), "X"),
        edit((0, 0), (0, 1), "longer"),
        edit((0, 1), (0, 1), "!"),
        edit((0, 1), (0, 1), "?"),
    ]

    assert apply_edits("a\nb", edits) == "longer!?\nX"


def test_insertions_at_one_position_stay_in_the_given_order() -> None:
    assert apply_edits("x", [edit((0, 0), (0, 0), "b"), edit((0, 0), (0, 0), "a")]) == "bax"


def test_an_insertion_comes_before_a_replacement_that_begins_at_its_position() -> None:
    assert apply_edits("xyz", [edit((0, 1), (0, 2), "Y"), edit((0, 1), (0, 1), "-")]) == "x-Yz"


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abc", [edit((0, 0), (0, 2), ""), edit((0, 1), (0, 3), "")])


def test_snippets_and_annotated_edits_are_edits() -> None:
    place = Range(Position(0, 0), Position(0, 0))

    assert apply_edits("x", [AnnotatedTextEdit("id", place, "a")]) == "ax"
    assert apply_edits("x", [SnippetTextEdit(place, StringValue("$0"))]) == "$0x"


def test_a_range_is_cut_out() -> None:
    text = LineIndex("one\ntwo")

    assert text.slice(text.range(2, 5)) == "e\nt"
