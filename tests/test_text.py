"""Truncation, quoting and escaping of text, and that each of these rules is defined once."""

from __future__ import annotations

import ast
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import becket
from becket._text import (
    escape,
    join_pointer,
    join_problems,
    quote,
    quote_path,
    truncate,
    truncate_bytes,
    truncate_counted,
    truncate_repr,
    unescape_pointer,
)

# -- truncation


@given(st.text(), st.integers(3, 50))
def test_a_truncated_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    shown = truncate(text, limit)

    assert len(shown) <= limit
    assert shown == text or shown == f"{text[: limit - 3]}..."


def test_a_text_at_the_limit_stays_whole() -> None:
    assert truncate("x" * 200) == "x" * 200
    assert truncate("x" * 201) == "x" * 197 + "..."
    assert truncate("abcdef", 4, "…") == "abc…"
    assert truncate_repr("ab" * 50, 6) == "'ab..."


@given(st.text(st.characters(exclude_categories=("Cs",))), st.integers(0, 50))
def test_truncated_bytes_never_end_in_half_a_character(text: str, size: int) -> None:
    shown = truncate_bytes(text, size)

    assert len(shown.encode()) <= size
    assert text.startswith(shown)


def test_a_text_that_is_truncated_with_a_count_ends_in_its_length() -> None:
    assert truncate_counted("abcd", 4) == "abcd"
    assert truncate_counted("abcde", 4) == "abcd... (5 characters)"


def test_quoted_bytes_end_in_dots_where_there_were_more() -> None:
    assert quote(b"a\xff") == "'a\\xff'"
    assert quote(b"x" * 65) == f"'{'x' * 64}'..."


# -- problems and pointers


def test_a_pointer_escapes_what_means_something_in_pointers() -> None:
    assert join_pointer("/a", "b/c~d") == "/a/b~1c~0d"


@given(st.text("ab/~01"))
def test_an_unescaped_part_of_a_pointer_is_the_name_again(name: str) -> None:
    assert unescape_pointer(join_pointer("", name)[1:]) == name


def test_of_many_problems_the_first_are_shown_and_the_others_counted() -> None:
    assert join_problems([("", "is empty"), ("/a", "is no\nint")]) == "/: is empty; /a: is no\\nint"
    assert join_problems([("/a", "is odd")] * 25).endswith("; and 5 more")


# -- escapes


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain text, \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82", "plain text, é 中 🙂"),
        (b"a\tb", "a\tb"),
        (b"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        (b"\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07"),
        (b"\x1b]8;;http://evil\x1b\\click", "\\x1b]8;;http://evil\\x1b\\click"),
        (b"\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        (b"\x1bP1$r\x1b\\", "\\x1bP1$r\\x1b\\"),
        (b"\xc2\x9b31m", "\\x9b31m"),
        (b"\x9b31m", "\\x9b31m"),
        (b"password\x08\x08\x08", "password\\x08\\x08\\x08"),
        (b"\x00\x7f", "\\x00\\x7f"),
        ("\u202egnp.exe".encode(), "\\u202egnp.exe"),
        ("\u2066hidden\u2069".encode(), "\\u2066hidden\\u2069"),
        ("zero\u200bwidth\u200d\ufeff".encode(), "zero\\u200bwidth\\u200d\\ufeff"),
        ("line\u2028separator\u2029\x85".encode(), "line\\u2028separator\\u2029\\x85"),
        (b"\xff\xfe broken \xc3", "\\xff\\xfe broken \\xc3"),
        (b"\xed\xa0\x80 surrogate", "\\xed\\xa0\\x80 surrogate"),
        (b"\xf4\x90\x80\x80 beyond", "\\xf4\\x90\\x80\\x80 beyond"),
        ("\U000e0041 tag".encode(), "\\U000e0041 tag"),
        ("filler\u3164\u115f\u1160\uffa0".encode(), "filler\\u3164\\u115f\\u1160\\uffa0"),
        ("vs\ufe0f\U000e0100\u034f\u17b4\u180e".encode(), "vs\\ufe0f\\U000e0100\\u034f\\u17b4\\u180e"),
    ],
)
def test_control_and_format_characters_are_escaped(raw: bytes, shown: str) -> None:
    assert escape(raw) == shown


HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.binary())
def test_no_bytes_at_all_become_a_control_character(raw: bytes) -> None:
    shown = escape(raw)

    assert [char for char in shown if unicodedata.category(char) in HIDDEN and char != "\t"] == []


@given(st.text(st.characters()))
def test_no_text_at_all_becomes_a_control_character(text: str) -> None:
    shown = escape(text)

    assert shown.encode().decode() == shown
    assert [char for char in shown if unicodedata.category(char) in HIDDEN and char != "\t"] == []


@given(st.binary())
def test_a_line_never_becomes_two(raw: bytes) -> None:
    assert len(escape(raw).splitlines()) <= 1


# -- paths


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a/é ü", "/a/é ü"),
        ("/a\n/b", "/a\\n/b"),
        ("/\x1b[2J", "/\\x1b[2J"),
        (os.fsdecode(b"/a\xff"), "/a\\xff"),
        ("/a\u202eb", "/a\\u202eb"),
        (Path("/a"), "/a"),
    ],
)
def test_a_path_is_shown_as_one_escaped_line(path: str | Path, shown: str) -> None:
    assert quote_path(path) == shown


@given(st.text())
def test_any_path_can_be_printed_and_sent(path: str) -> None:
    assert quote_path(path).isprintable()
    assert quote_path(path).encode().decode() == quote_path(path)


@given(st.binary())
def test_any_bytes_in_a_name_can_be_printed_and_sent(name: bytes) -> None:
    assert quote_path(os.fsdecode(name)).isprintable()


# -- one home


HOMES = {
    "truncate": "_text.py",
    "truncate_counted": "_text.py",
    "truncate_repr": "_text.py",
    "truncate_bytes": "_text.py",
    "quote": "_text.py",
    "quote_path": "_text.py",
    "escape": "_text.py",
    "escape_character": "_text.py",
    "is_printable": "_text.py",
    "join_problems": "_text.py",
    "join_pointer": "_text.py",
    "escape_pointer": "_text.py",
    "unescape_pointer": "_text.py",
    "peer_logger": "_loggers.py",
    "host_logger": "_loggers.py",
    "JSON_ERRORS": "errors.py",
}


@pytest.mark.parametrize("name", HOMES)
def test_a_shared_rule_has_one_definition(name: str) -> None:
    folder = Path(becket.__file__).parent
    found = [
        str(file.relative_to(folder))
        for file in folder.rglob("*.py")
        if name in (text := file.read_text(encoding="utf-8")) and name in defined_names(text)
    ]

    assert found == [HOMES[name]]


def defined_names(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names
