"""Progress reports are assigned to their calls and decoded."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest
from lsprotocol import types
from msgspec import Raw

from becket.adapters import lsp
from becket.adapters.lsp.progress import add_tokens, decode_work_done

CONTEXT = types.ReferenceContext(include_declaration=True)
PLACE = (types.TextDocumentIdentifier("file:///a.py"), types.Position(1, 1))
REFERENCES = lsp.TEXT_DOCUMENT_REFERENCES.events["$/progress"]
HOVER = lsp.TEXT_DOCUMENT_HOVER.events["$/progress"]


def raw(token: object, value: object) -> Raw:
    return Raw(msgspec.json.encode({"token": token, "value": value}))


def test_params_get_the_tokens_that_they_can_have() -> None:
    params = add_tokens(types.ReferenceParams(CONTEXT, *PLACE), count(7))

    assert (params.work_done_token, params.partial_result_token) == ("becket-7", "becket-8")
    assert add_tokens(types.HoverParams(*PLACE), count(1)).work_done_token == "becket-1"


def test_tokens_of_their_own_stay() -> None:
    params = types.ReferenceParams(CONTEXT, *PLACE, work_done_token="mine", partial_result_token=5)

    assert add_tokens(params, count(1)) is params


def test_params_without_a_token_member_are_unchanged() -> None:
    resolved = types.CodeLens(types.Range(types.Position(0, 0), types.Position(0, 0)))

    assert add_tokens(resolved, count(1)) is resolved
    assert add_tokens(None, count(1)) is None


def test_a_report_belongs_to_the_call_with_its_token() -> None:
    assert REFERENCES.belongs is not None
    params: Any = {"workDoneToken": "a", "partialResultToken": 1}

    assert [REFERENCES.belongs(raw(token, {}), params) for token in ("a", 1, "b", "1")] == [True, True, False, False]
    assert not REFERENCES.belongs(raw("a", {}), {})


def test_reports_become_their_classes() -> None:
    begun = HOVER.decode(raw("a", {"kind": "begin", "title": "Index", "percentage": 5}))

    assert begun == types.WorkDoneProgressBegin("Index", percentage=5)
    assert HOVER.decode(raw("a", {"kind": "report", "message": "x"})) == types.WorkDoneProgressReport(message="x")
    assert HOVER.decode(raw("a", {"kind": "end"})) == types.WorkDoneProgressEnd()


def test_anything_else_is_a_part_of_the_result() -> None:
    place = {"uri": "file:///a.py", "range": {"start": {"line": 1, "character": 1}, "end": {"line": 1, "character": 1}}}

    part = REFERENCES.decode(raw("a", [place]))

    assert isinstance(part, lsp.PartialResult)
    assert [one.uri for one in part.value] == ["file:///a.py"]


@pytest.mark.parametrize("value", [{"kind": "begin"}, {"kind": ["x"]}, [], 5, None])
def test_an_invalid_report_is_skipped_where_results_come_whole(value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        HOVER.decode(raw("a", value))


@pytest.mark.parametrize("value", [None, [], {"kind": "full"}, {"kind": 1}, "begin"])
def test_work_of_the_server_is_reported_by_kind(value: object) -> None:
    assert decode_work_done(value) is None
