"""Tasks: the wire form, and lenient decoding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, ValidationError

from becket.contract.tasks import (
    TASK_READERS,
    TaskEnded,
    TaskEvent,
    TaskKind,
    TaskLogged,
    TaskStarted,
    TaskUpdated,
)


def read(method: str, params: Any) -> TaskEvent:
    return TASK_READERS[method].decode(Raw(params if isinstance(params, bytes) else msgspec.json.encode(params)))


@pytest.mark.parametrize(
    ("event", "params"),
    [
        (TaskStarted("dl", "D", TaskKind.DOWNLOAD), b'{"id":"dl","label":"D","kind":"download"}'),
        (TaskStarted("dl", "D"), b'{"id":"dl","label":"D","kind":"generic"}'),
        (TaskUpdated("dl", 50, 100, "m"), b'{"id":"dl","current":50,"total":100,"message":"m"}'),
        (TaskUpdated("dl", 0), b'{"id":"dl","current":0}'),
        (TaskLogged("r", "l"), b'{"id":"r","line":"l"}'),
        (TaskEnded("r"), b'{"id":"r"}'),
        (TaskEnded("r", "boom"), b'{"id":"r","error":"boom"}'),
    ],
)
def test_encoded_messages_decode_to_the_same(event: TaskEvent, params: bytes) -> None:
    (method,) = [method for method, reader in TASK_READERS.items() if type(event) in reader.types]

    assert msgspec.json.encode(event) == params
    assert read(method, params) == event


@pytest.mark.parametrize(
    ("method", "params", "event"),
    [
        ("task.start", {"id": "x", "label": "y"}, TaskStarted("x", "y", TaskKind.GENERIC)),
        ("task.start", {"id": "x", "label": "y", "kind": "other"}, TaskStarted("x", "y", TaskKind.GENERIC)),
        ("task.start", {"id": "x", "label": "y", "kind": "rebuild", "n": 1}, TaskStarted("x", "y", TaskKind.REBUILD)),
        ("task.start", {"id": "x", "label": "y", "kind": 7}, TaskStarted("x", "y", TaskKind.GENERIC)),
        ("task.start", {"id": "x", "label": "y", "kind": None}, TaskStarted("x", "y", TaskKind.GENERIC)),
        ("task.update", {"id": "x"}, TaskUpdated("x")),
        ("task.update", {"id": "x", "current": -1, "total": 1.5, "message": 7}, TaskUpdated("x")),
        ("task.update", {"id": "x", "current": True, "total": 9, "message": "m"}, TaskUpdated("x", None, 9, "m")),
        ("task.update", {"id": "x", "current": "5", "total": None, "message": None}, TaskUpdated("x")),
        ("task.update", {"id": "x", "current": 2**64 - 1, "total": 2**64}, TaskUpdated("x", 2**64 - 1)),
        ("task.done", {"id": "x", "error": ""}, TaskEnded("x")),
        ("task.done", {"id": "x", "error": None}, TaskEnded("x")),
    ],
)
def test_unusual_messages_are_decoded_as_in_the_contract(method: str, params: Any, event: TaskEvent) -> None:
    assert read(method, params) == event


@pytest.mark.parametrize(
    ("method", "params", "problem"),
    [
        ("task.start", [], "task.start params must be a JSON object"),
        ("task.start", {"label": "x"}, "task.start missing 'id'"),
        ("task.start", {"id": "", "label": "x"}, "task.start 'id' must be non-empty"),
        ("task.start", {"id": "x"}, "task.start missing 'label'"),
        ("task.start", {"id": "x", "label": "y", "kind": "alien"}, "task.start unknown kind 'alien'"),
        ("task.update", None, "task.update params must be a JSON object"),
        ("task.update", {"id": 7}, "task.update missing 'id'"),
        ("task.log", {"id": "x"}, "task.log missing 'line'"),
        ("task.log", {"id": "x", "line": 1}, "task.log missing 'line'"),
        ("task.done", {"id": None}, "task.done missing 'id'"),
        ("task.done", {"id": "x", "error": 1}, "task.done 'error' must be string or null, got 1"),
        ("task.done", {"id": "x", "error": {"a": []}}, "task.done 'error' must be string or null, got {\"a\":[]}"),
    ],
)
def test_malformed_messages_are_refused_with_the_reason(method: str, params: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(method, params)

    assert str(caught.value) == problem


@pytest.mark.parametrize("method", list(TASK_READERS))
def test_invalid_text_and_endless_json_are_refused(method: str) -> None:
    with pytest.raises(ValidationError, match="cannot be read"):
        read(method, b'{"id":"\xff"}')
    with pytest.raises(ValidationError, match="cannot be read"):
        read(method, b'{"id":"x","label":"","line":"","more":' + b"[" * 5000 + b"]" * 5000 + b"}")


def test_an_error_message_quotes_at_most_a_line_of_the_input() -> None:
    with pytest.raises(ValidationError) as caught:
        read("task.start", {"id": "x", "label": "y", "kind": "k" * 10_000})

    assert len(str(caught.value)) < 300
