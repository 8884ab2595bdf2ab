"""TOML files are read as tomllib reads them; hostile input never reaches tomllib."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from becket.conversion.files.toml import MAX_DEPTH, MAX_KEY_PARTS, load_toml, parse_toml
from becket.errors import BadFile, Problem

KIB = 1024
LARGEST = 64 * KIB


def problems_of(text: str | bytes) -> list[Problem]:
    with pytest.raises(BadFile) as caught:
        parse_toml(text.encode() if isinstance(text, str) else text, "x.toml")
    assert caught.value.path == "x.toml"
    return list(caught.value.problems)


# -- reading


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[notes]\nallow = ["memory.read"]\n', encoding="utf-8")

    assert load_toml(tmp_path / "a.toml") == {"notes": {"allow": ["memory.read"]}}


def test_a_file_beyond_its_limit_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"#" * 10_000_000)

    with pytest.raises(BadFile) as caught:
        load_toml(tmp_path / "a.toml")
    assert caught.value.problems == (("", "is larger than 65536 bytes"),)


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[a]\n[a]", b"a = \xff", 'a = "', "a = " + "9" * 5000])
def test_invalid_toml_is_refused(text: str | bytes) -> None:
    [(pointer, message)] = problems_of(text)

    assert pointer == ""
    assert message.startswith("is not TOML: ")


def test_a_syntax_error_is_reported_with_its_line() -> None:
    assert "line 3" in problems_of("a = 1\nb = 2\nc = \n")[0][1]


# -- what tomllib must not see


@pytest.mark.parametrize("key", [".".join("a" * 32_000), ".".join(['"."'] * 16_000), " . ".join("a" * 16_000)])
@pytest.mark.parametrize("form", ["{}=1", "b = 1\n[{}]", "[[{}]]", "a = [{{{} = 1}}]"])
def test_a_key_of_many_parts_is_refused_before_it_costs_time(key: str, form: str) -> None:
    assert "a key of more than 16 parts" in problems_of(form.format(key))[0][1]


def test_a_refusal_names_the_line() -> None:
    assert problems_of("a = 1\n\n" + ".".join("b" * 17) + " = 1") == [("", "line 3: a key of more than 16 parts")]


def test_as_many_parts_as_are_allowed_are_read() -> None:
    value: Any = 1
    for _ in range(MAX_KEY_PARTS):
        value = {"a": value}

    assert parse_toml((".".join("a" * MAX_KEY_PARTS) + " = 1").encode(), "x") == value


@pytest.mark.parametrize("opening", ["[", "{a=", "[{b.c="])
def test_brackets_within_brackets_are_refused_before_they_end_the_stack(opening: str) -> None:
    assert "brackets within each other" in problems_of("a = " + opening * (LARGEST // 8))[0][1]


def test_as_many_brackets_as_are_allowed_are_read() -> None:
    depth = MAX_DEPTH - 1  # the file itself is a level
    text = "a = " + "[" * depth + "]" * depth

    assert parse_toml(text.encode(), "x") == tomllib.loads(text)


def test_brackets_and_dots_together_make_no_deep_value() -> None:
    text = "a = " + ("{" + ".".join("b" * MAX_KEY_PARTS) + " = ") * 60 + "1" + "}" * 60

    [(_, message)] = problems_of(text)
    assert message == "lies deeper than 64 levels"


@pytest.mark.parametrize(
    "text",
    [
        'a = "[[[[[[........................"',
        "a = '''\n" + "[" * 100 + "." * 100 + "\n'''",
        'a = """\n' + "{" * 100 + '\\"""' + "." * 100 + '\n"""',
        "# " + "." * 100 + "[" * 100,
        'a = """x""" # """' + "." * 20,
        "a = ''''x''''' # " + "." * 20,
        '"' + "." * 20 + '" = 1',
        "a = [" + "1.5, " * 100 + "]",
        "a = [" + "[], " * 100 + "]",
        "\n".join(f"a.b{number} = 1.5" for number in range(100)),
        "[a.b.c.d.e.f.g.h.i.j]\n" * 1 + "k.l.m.n.o.p.q.r = 1",
        r'a = "\"......................"',
        r"a = '\' # ......................",
    ],
)
def test_dots_and_brackets_count_only_where_they_nest(text: str) -> None:
    assert parse_toml(text.encode(), "x") == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        'a = """' + '\\"""' * 16_000,
        "a = '''" + "''x" * 20_000,
        'a = "' + "x" * 60_000,
        '"""' * 21_000,
        "a = 1" + "_1" * 30_000,
        "a = [" * 60 + "1," * 30_000,
        "a = " + "[" * 60 + "#\n" * 32_000,
        "\n".join(f"[a{number}." + ".".join("b" * 14) + "]" for number in range(1_500)),
        "[" + "x" * 30_000 + "]\n" + "\n".join(f"a{number} = inf" for number in range(3_000)),
        "[[a]]\n[[a.b]]\n" * 4_500,
        "a = 0x" + "f" * 60_000,
        "a = {" + ",".join(f"b.c{number} = 1" for number in range(4_500)) + "}",
    ],
)
@pytest.mark.timeout(5)  # each takes a fraction of a second; what is quadratic takes minutes
def test_no_file_of_the_largest_size_takes_long(text: str) -> None:
    assert len(text) <= LARGEST
    output = ""
    try:
        parse_toml(text.encode(), "x")
    except BadFile as error:
        output = str(error)
    assert len(output) < 32 * KIB


# -- what JSON has no form for


def test_all_values_that_json_cannot_encode_are_reported() -> None:
    assert problems_of("a = inf\n[b]\nc = [1, nan]\nd = -9_223_372_036_854_775_809\ne = 9_223_372_036_854_775_807") == [
        ("/a", "is no finite number"),
        ("/b/c/1", "is no finite number"),
        ("/b/d", "is larger than 64 bits"),
    ]


def test_the_number_of_reported_problems_is_bounded() -> None:
    assert len(problems_of("\n".join(f"a{number} = inf" for number in range(1_000)))) == 50


# -- beside tomllib

SCRAPS = st.sampled_from(
    [
        *["a", "b", '"c"', "'d'", '""', "1", "1.5", "true", "inf", "nan", "1979-05-27", "\\", '\\"', "\t", "\r"],
        *["=", " = ", ".", ",", "\n", "\n\n", "[", "]", "[[", "]]", "{", "}", "#", '"', "'", '"""', "'''", " "],
        *["a = 1\n", "[a]\n", "[[a.b]]\n", 'a = "x.y"\n', "a = [1, 2]\n", "# c [ \" '\n", 'a = """\n'],
    ]
)
TEXTS = st.one_of(st.lists(SCRAPS, max_size=30).map("".join), st.text(max_size=30))


@given(TEXTS)
@settings(max_examples=500)
def test_the_same_files_are_accepted_and_refused_as_by_tomllib(text: str) -> None:
    try:
        expected: object = tomllib.loads(text)
    except ValueError:
        expected = None
    try:
        found: object = parse_toml(text.encode(), "x")
    except UnicodeEncodeError:
        return
    except BadFile:
        assert expected is None or has_odd_number(expected) or text.count(".") >= MAX_KEY_PARTS
    else:
        assert found == expected


def has_odd_number(value: Any) -> bool:
    match value:
        case dict():
            return any(map(has_odd_number, value.values()))
        case list():
            return any(map(has_odd_number, value))
        case float():
            return not math.isfinite(value)
        case _:
            return False


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        parse_toml(data, "x")
    except BadFile:
        pass
