"""JSON becomes the types of lsprotocol, and nothing else becomes them."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types

from becket.adapters import lsp
from becket.adapters.lsp.conversion import convert, unstructure
from becket.errors import BadValue

PLACE = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 3, "character": 1}}


def test_params_become_their_class_and_back() -> None:
    params = convert(PLACE, types.HoverParams)

    assert params == types.HoverParams(types.TextDocumentIdentifier("file:///a.py"), types.Position(3, 1))
    assert unstructure(params) == PLACE


def test_unknown_members_are_ignored() -> None:
    assert convert({**PLACE, "later": 1}, types.HoverParams).position.line == 3


@pytest.mark.parametrize(
    ("position", "problem"),
    [
        ({"line": "3", "character": 1}, ("/position/line", "is no int")),
        ({"line": True, "character": 1}, ("/position/line", "is no int")),
        ({"line": 1.5, "character": 1}, ("/position/line", "is no int")),
        ({"line": None, "character": 1}, ("/position/line", "is no int")),
        ({"character": 1}, ("/position/line", "is missing")),
    ],
)
def test_nothing_is_coerced(position: Any, problem: tuple[str, str]) -> None:
    with pytest.raises(BadValue) as caught:
        convert({**PLACE, "position": position}, types.HoverParams)
    assert problem in caught.value.problems


def test_null_is_not_text() -> None:
    with pytest.raises(BadValue) as caught:
        convert({"textDocument": {"uri": None}, "position": PLACE["position"]}, types.HoverParams)
    assert caught.value.problems == (("/textDocument/uri", "is no str"),)


def test_a_number_may_be_written_as_languages_with_one_kind_of_number_write_it() -> None:
    assert convert({"line": 3.0, "character": 1}, types.Position) == types.Position(3, 1)


def test_a_colour_may_be_whole() -> None:
    assert convert({"red": 1, "green": 0.5, "blue": 0, "alpha": 1}, types.Color).red == 1


@pytest.mark.parametrize("value", [None, 5, [], "x"])
def test_params_that_are_not_an_object_are_refused(value: Any) -> None:
    with pytest.raises(BadValue) as caught:
        convert(value, types.HoverParams)
    assert caught.value.problems == (("", "is no object"),)


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(BadValue) as caught:
        convert({"textDocument": {}, "position": {"line": "x", "character": "y"}}, types.HoverParams)
    assert [pointer for pointer, _ in caught.value.problems] == [
        "/textDocument/uri",
        "/position/line",
        "/position/character",
    ]


def test_enums_are_held_to_their_values() -> None:
    assert convert({"kind": "markdown", "value": "x"}, types.MarkupContent).kind is types.MarkupKind.Markdown
    with pytest.raises(BadValue):
        convert({"kind": "html", "value": "x"}, types.MarkupContent)


def test_the_members_of_a_union_value_select_its_class() -> None:
    read: Any = lsp.TEXT_DOCUMENT_COMPLETION.result.from_json

    assert isinstance(read({"isIncomplete": False, "items": []}), types.CompletionList)
    assert [item.label for item in read([{"label": "a"}])] == ["a"]
    assert read(None) is None
    with pytest.raises(BadValue):
        read(5)


def test_a_code_action_with_a_command_is_not_a_command() -> None:
    read: Any = lsp.TEXT_DOCUMENT_CODE_ACTION.result.from_json
    command = {"title": "Fix", "command": "fix.all"}

    action, bare = read([{"title": "Fix it", "command": command}, command])

    assert isinstance(action, types.CodeAction)
    assert action.command == types.Command(title="Fix", command="fix.all")
    assert bare == types.Command(title="Fix", command="fix.all")
    assert read(None) is None


LOCATION = {"uri": "file:///a", "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}}


@pytest.mark.parametrize("order", [1, -1])
def test_symbols_with_and_without_ranges_may_stand_in_one_list(order: int) -> None:
    read: Any = lsp.WORKSPACE_SYMBOL.result.from_json
    symbols = [
        {"name": "a", "kind": 12, "location": LOCATION},
        {"name": "b", "kind": 12, "location": {"uri": "file:///b"}},
    ][::order]

    found = read(symbols)

    assert [type(symbol) for symbol in found] == [types.WorkspaceSymbol] * 2
    assert {symbol.name: type(symbol.location) for symbol in found} == {
        "a": types.Location,
        "b": types.LocationUriOnly,
    }
    assert [type(symbol) for symbol in read([symbols[0 if order == 1 else 1]])] == [types.SymbolInformation]
    assert (read([]), read(None)) == ([], None)


@pytest.mark.parametrize("notebook", [{"notebookType": "x"}, {"scheme": "x"}, {"pattern": "x"}, "x"])
def test_notebook_selectors_of_a_server_are_read(notebook: object) -> None:
    chosen = convert({"notebook": notebook, "cells": [{"language": "python"}]}, types.NotebookDocumentFilterWithCells)

    assert unstructure(chosen.notebook) == notebook


def test_a_notebook_selector_without_a_kind_is_refused() -> None:
    with pytest.raises(BadValue):
        convert({"notebook": {"other": 1}, "cells": []}, types.NotebookDocumentFilterWithCells)


def test_any_value_is_ignored_where_none_is_expected() -> None:
    read: Any = lsp.SHUTDOWN.result.from_json

    assert [read(value) for value in (None, {}, True)] == [None, None, None]
