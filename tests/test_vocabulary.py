"""Names use the words of the field: modules, classes, functions and methods hold none of the words that they replaced.

The list has whole words, one row for each idea; a name is split at underscores and capital letters.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import becket

REPLACED = {
    "host, extension": "household guest",
    "message": "piece tale telling tells told",
    "send, call, notify, respond, reject": "say says said saying tell ask asks asked asking answer answers answered",
    "receive, handle": "hear hears heard hearing taker takers",
    "subscription, event handler": "claim claims claimed listening",
    "parser, fast path": "careful",
    "wire format": "spelling spelled",
    "mapping, adapter": "speech phrase phrases scene words voice spoken",
    "handshake": "greet greeting greets welcome introduction goodbye farewell",
    "host defaults": "habits habit surroundings",
    "consent, prompt, approval": "doorkeeper admitting admission agreed agree yes",
    "supervision policy, intent, exit cause": "care wish wishes wished ending",
    "data directory, persistence": "kept keeping",
    "blocking runtime, async runtime": "face faces",
    "extra": "particulars",
    "truncate": "shorten",
    "the noun": "whoever nobody somebody anybody given",
    "protocols": "roles",
}
WORDS = {word: idea for idea, words in REPLACED.items() for word in words.split()}

EXCEPTIONS = {
    "collect_usage_pieces": "overrides a method of click",
    "read_answer": "what a person types at a prompt",
    "answer_for": "what a person answers to a prompt",
    "is_yes": "what a person answers to a prompt",
    "ask": "the callback of `Host(ask=...)`",
    "agree": "what a person answers to a prompt",
    "split_words": "the words of a command line",
    "match_short_words": "the words of a text",
    "never_answers": "a program of the test kit, which users start by its name",
    "asks_without_reading": "a program of the test kit, which users start by its name",
    "answers_twice": "a program of the test kit, which users start by its name",
    "ticks_after_the_answer": "a program of the test kit, which users start by its name",
}
FOLDER = Path(becket.__file__).parent


def split_name(name: str) -> list[str]:
    """Returns the words of a name: `to_HTTPRequest` has three."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)]


def public_names(source: str) -> Iterator[tuple[str, int]]:
    """Yields classes, and functions and methods without an underscore, each with its line."""
    for node in definitions(source):
        if not node.name.startswith("_"):
            yield node.name, node.lineno


@cache
def definitions(source: str) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]


def problems_of(name: str) -> list[str]:
    """Returns a line for each replaced word in a name that is no exception."""
    if name in EXCEPTIONS:
        return []
    return [f"{name}: `{word}` is now: {WORDS[word]}" for word in split_name(name) if word in WORDS]


def files() -> list[Path]:
    return sorted(FOLDER.rglob("*.py"))


def test_modules_are_named_with_the_words_of_the_field() -> None:
    names = {part for file in files() for part in file.relative_to(FOLDER).with_suffix("").parts}

    assert [problem for name in sorted(names) for problem in problems_of(name)] == []


def test_classes_and_functions_are_named_with_the_words_of_the_field() -> None:
    problems = [
        f"{file.relative_to(FOLDER)}:{line}: {problem}"
        for file in files()
        for name, line in public_names(file.read_text(encoding="utf-8"))
        for problem in problems_of(name)
    ]

    assert problems == []


def test_every_exception_is_a_name_that_exists() -> None:
    names = {name for file in files() for name, _ in public_names(file.read_text(encoding="utf-8"))}

    assert EXCEPTIONS.keys() - names == set()


def test_no_class_name_occurs_twice() -> None:
    names = Counter(
        node.name
        for file in files()
        for node in definitions(file.read_text(encoding="utf-8"))
        if isinstance(node, ast.ClassDef)
    )

    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("to_HTTPRequest", ["to", "http", "request"]),
        ("McpClientInfo", ["mcp", "client", "info"]),
        ("_asyncio_fast", ["asyncio", "fast"]),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: list[str]) -> None:
    assert split_name(name) == words


@pytest.mark.parametrize("name", ["HouseholdSet", "say_hello", "told", "SCENE"])
def test_the_check_finds_replaced_words(name: str) -> None:
    assert problems_of(name)


@pytest.mark.parametrize("name", ["answering_machine", "essay", "wordsmith", "Surface"])
def test_the_check_looks_at_whole_words(name: str) -> None:
    assert problems_of(name) == []
