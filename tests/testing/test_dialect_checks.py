"""A dialect is held against recorded conversations from both sides, and what differs is told to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.dialects.sketched import SKETCHED

from becket.dialects import NATIVE
from becket.testing import check_dialect
from becket.testing.transcripts import Transcript, parse_transcript

pytestmark = pytest.mark.loops

HOST, CHILD = "host", "child"


def conversation(*lines: dict[str, Any], **head: Any) -> Transcript:
    """Returns a transcript of these lines."""
    first = {"transcript": 1, "framing": "content-length", **head}
    return parse_transcript(msgspec.json.encode(line) + b"\n" for line in (first, *lines))


def to_child(*, means: Any = None, **frame: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"to": CHILD, "frame": {"jsonrpc": "2.0", **frame}}
    return line if means is None else {**line, "means": means}


def to_host(**frame: Any) -> dict[str, Any]:
    return {"to": HOST, "frame": {"jsonrpc": "2.0", **frame}}


# -- our own dialect

FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log"]
TOOL = {"name": "echo", "description": "Echoes.", "input_schema": {"type": "object"}}
MODEL = {"id": "small", "capabilities": {"streaming": True}}
PROVIDER = {"id": "local", "display_name": "Local", "description": "A model.", "models": [MODEL]}


def shake_hands(declared: dict[str, Any], features: list[str], offered: list[str] = FEATURES) -> list[dict[str, Any]]:
    params = {
        "synaps_version": "0.1.0",
        "extension_protocol_version": 1,
        "plugin_id": "notes",
        "plugin_root": "/notes",
        "config": {"a": "b"},
        "host": {"name": "other", "version": "7"},
        "features": offered,
    }
    result = {"protocol_version": 1, "capabilities": declared, **({"features": features} if features else {})}
    lines = [to_child(id=1, method="initialize", params=params), to_host(id=1, result=result)]
    if declared:
        lines.append(to_child(id=2, method="info.get", **meta(5000, features)))
        lines.append(to_host(id=2, result={"build": {"backend": "cpu"}}))
    return lines


def meta(timeout: int, features: list[str] = FEATURES, **params: Any) -> dict[str, Any]:
    """Returns params as they travel with what belongs to the link."""
    members = {"_meta": {"becket": {"timeout_ms": timeout}}, **params} if features else params
    return {"params": members} if members else {}


def say_goodbye(id: int) -> list[dict[str, Any]]:
    return [
        to_child(id=id, method="shutdown", **meta(500)),
        to_host(id=id, result=None),
        {"to": CHILD, "closed": True},
        {"to": HOST, "closed": True},
        {"exit": 0},
    ]


TOOLS = conversation(
    *shake_hands({"tools": [TOOL]}, FEATURES),
    to_child(id=3, method="tool.call", **meta(60000, name="echo", input={"x": 1}), means={"result": "hi"}),
    to_host(id=1, method="memory.append", **meta(60000, namespace="notes", content="x")),
    to_child(id=1, result={"ok": True, "timestamp_ms": 5, "id": 1}),
    to_host(id=2, method="memory.query", **meta(60000, namespace="notes")),
    to_child(
        id=2, result={"records": [{"namespace": "notes", "timestamp_ms": 5, "content": "x", "tags": [], "id": 1}]}
    ),
    to_host(id=3, method="config.get", **meta(60000, key="a")),
    to_child(id=3, result={"value": None, "revision": 0}),
    to_host(id=4, method="of.the.host", **meta(60000, any=[1])),
    to_child(id=4, result={"own": True}),
    to_host(id=5, method="of.nobody", **meta(60000)),
    to_child(id=5, error={"code": -32601, "message": "unknown method: of.nobody"}),
    to_host(id=3, result="hi"),
    to_child(
        id=4,
        method="tool.call",
        **meta(60000, name="echo", input={}),
        means={"error": {"kind": "RemoteError", "message": "no", "code": 7, "data": None, "meaning": None}},
    ),
    to_host(id=4, error={"code": 7, "message": "no"}),
    to_child(id=5, method="own.method", **meta(60000, any=1), means={"result": {"some": [1.5]}}),
    to_host(id=5, result={"some": [1.5]}),
    to_child(id=6, method="none.such", **meta(60000, any=1), means={"error": "unknown method: none.such"}),
    to_host(id=6, error={"code": -32601, "message": "unknown method: none.such"}),
    to_host(method="widget.dismiss", params={"id": "w"}),
    to_host(method="own.news", params={"any": 1}),
    to_child(method="own.order", params={"any": 2}),
    *say_goodbye(7),
)


async def test_a_conversation_in_our_own_dialect_is_held_from_both_sides() -> None:
    await check_dialect("native", [TOOLS])


def ask_model(id: int, method: str, **more: Any) -> dict[str, Any]:
    request = {
        "provider_id": "local",
        "model_id": "small",
        "model": "notes:local:small",
        "messages": [{"role": "user", "content": "hi"}],
        "system_prompt": None,
        "tools": [],
        "temperature": None,
        "max_tokens": None,
        "thinking_budget": 0,
    }
    return to_child(id=id, method=method, params=request, **more)


def piece(**event: Any) -> dict[str, Any]:
    return to_host(method="provider.stream.event", params=event)


def output(**event: Any) -> dict[str, Any]:
    return to_host(method="command.output", params={"request_id": "run-1", "event": event})


STREAMS = [
    ask_model(3, "provider.complete", means={"result": {"content": [{"type": "text", "text": "hi"}]}}),
    to_host(id=3, result={"content": [{"type": "text", "text": "hi"}]}),
    ask_model(4, "provider.stream", means={"result": {"content": []}}),
    piece(type="text", delta="a"),
    piece(type="thinking", delta="b"),
    piece(type="tool_use", id="t", name="n", input={"x": 1}),
    piece(type="usage", tokens=3),
    piece(type="error", message="odd"),
    piece(type="done"),
    to_host(id=4, result={"content": []}),
    to_child(
        id=5, method="command.invoke", params={"command": "make", "args": ["all"], "request_id": "run-1"}, means={}
    ),
    output(kind="text", content="a"),
    output(kind="system", content="b"),
    output(kind="error", content="c"),
    output(kind="table", headers=["h"], rows=[["r"]]),
    to_host(method="task.start", params={"id": "run-1/1", "label": "l", "kind": "download"}),
    to_host(method="task.update", params={"id": "run-1/1", "current": 1, "total": 2}),
    to_host(method="task.log", params={"id": "run-1/1", "line": "x"}),
    to_host(method="task.done", params={"id": "run-1/1"}),
    to_host(method="task.start", params={"id": "run-1/2", "label": "l", "kind": "generic"}),
    to_host(method="task.done", params={"id": "run-1/2", "error": "no"}),
    output(kind="done"),
    to_host(id=5, result={"made": 1}),
    to_child(
        id=6,
        method="hook.handle",
        params={
            "kind": "before_tool_call",
            "tool_name": "t",
            "tool_runtime_name": None,
            "tool_input": {},
            "tool_output": None,
            "message": None,
            "session_id": None,
            "transcript": None,
            "data": None,
        },
        means={"result": {"action": "block", "reason": "r"}},
    ),
    to_host(id=6, result={"action": "block", "reason": "r"}),
    to_child(id=7, method="settings.editor.open", params={"category": "c", "field": "f"}),
    to_host(id=7, result={"any": 1}),
    to_child(id=8, method="settings.editor.key", params={"category": "c", "field": "f", "key": "k"}),
    to_host(id=8, result=None),
    to_child(id=9, method="settings.editor.commit", params={"category": "c", "field": "f", "value": 1}),
    to_host(id=9, result=None),
    to_child(id=10, method="sidecar.spawn_args"),
    to_host(id=10, result={"args": ["-v"]}),
]


@pytest.mark.parametrize(("ours", "offered"), [("host", FEATURES), ("child", [])])
async def test_streams_and_all_other_words_of_the_contract_are_held(ours: str, offered: list[str]) -> None:
    opening = shake_hands({"providers": [PROVIDER]}, [], offered)

    await check_dialect(NATIVE, [conversation(*opening, *STREAMS, ours=[ours])])


# -- a dialect with words of its own


def sketched(*lines: dict[str, Any], **head: Any) -> Transcript:
    return conversation(*lines, framing="json-lines", **{"given": {"id": "demo"}, **head})


GREETING = [
    to_child(id=1, method="hello", params={"you": "demo"}),
    to_host(id=1, result={"me": "demo", "tools": ["shout"], "hooks": ["before_tool_call"], "version": ""}),
    to_child(method="thanks"),
    to_child(id=2, method="extras"),
    to_host(id=2, error={"code": -32601, "message": "unknown method: extras"}),
]

SKETCH = sketched(
    *GREETING,
    to_child(id=3, method="run", params=["shout", {"x": 1}], means={"result": "X"}),
    to_host(id=1, method="keep", params=["kept"]),
    to_child(id=1, result=5),
    to_host(id=3, result={"out": "X"}),
    to_child(id=4, method="start", params={"run": 1, "what": "make", "with": ["all"]}, means={"result": "ab"}),
    to_host(id=4, result={"run": 1}),
    to_host(method="piece", params={"run": 1, "text": "a", "ended": False, "failed": ""}),
    to_host(method="note", params=["said in between"]),
    to_host(method="piece", params={"run": 1, "text": "b", "ended": False, "failed": ""}),
    to_host(method="piece", params={"run": 1, "text": "", "ended": True, "failed": ""}),
    to_child(id=5, method="start", params={"run": 2, "what": "make", "with": []}, means={"error": "no"}),
    to_host(id=5, result={"run": 2}),
    to_host(method="piece", params={"run": 2, "text": "", "ended": True, "failed": "no"}),
    to_child(id=6, method="guard", params={"tool": "rm"}, means={"result": {"action": "block", "reason": "no"}}),
    to_host(id=6, result="no"),
    to_child(id=7, method="guard", params={"tool": "ls"}, means={"result": {"action": "continue"}}),
    to_host(id=7, result=None),
    to_child(id=8, method="count"),
    to_host(id=8, result=1),
    to_child(id=9, method="bye", params=[""]),
    to_host(id=9, result="see you"),
)


async def test_a_dialect_with_words_of_its_own_is_held_from_both_sides(tmp_path: Path) -> None:
    await check_dialect(SKETCHED, [SKETCH])
