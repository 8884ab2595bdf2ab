"""`check_dialect` replays recorded conversations as host and as extension, and reports differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace
from tests.dialects.sample_dialect import HELLO, SKETCHED, load_mapping_of_sketch
from tests.peer.scripted import in_virtual_time

from becket.contract.handshake import Initialized
from becket.dialects import NATIVE, Dialect
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping
from becket.errors import RpcError
from becket.framing.content_length import ContentLength
from becket.framing.json_lines import JsonLines
from becket.framing.length_prefixed import LengthPrefixed
from becket.methods.streams import EventReader, Stream
from becket.peer.loops import asyncio_loop
from becket.testing import check_dialect
from becket.testing.transcripts import conformance
from becket.testing.transcripts.file_format import Transcript, parse_transcript

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

FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"]
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


def describe_at_once() -> list[dict[str, Any]]:
    """Returns a handshake in which an extension sends its info without a request."""
    hello, response, *_ = shake_hands({"tools": [TOOL]}, FEATURES)
    response["frame"]["result"]["info"] = {"build": {"backend": "cpu", "version": "2.0"}}
    return [hello, response]


def meta(timeout: int, features: list[str] = FEATURES, **params: Any) -> dict[str, Any]:
    """Returns params as they are sent, with the meta of the link."""
    mark = {"no_params": True} if "no_params" in features and not params else {}
    members = {"_meta": {"becket": {"timeout_ms": timeout, **mark}}, **params} if features else params
    return {"params": members} if members else {}


def shut_down(id: int) -> list[dict[str, Any]]:
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
    *shut_down(7),
)


async def test_a_conversation_in_our_own_dialect_is_held_from_both_peers() -> None:
    await check_dialect("native", [TOOLS])


async def test_the_time_that_a_busy_machine_takes_is_not_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()
    for module, name in ((asyncio_loop, "monotonic"), (trio, "current_time")):
        clock = getattr(module, name)
        monkeypatch.setattr(module, name, lambda clock=clock: clock() + 0.002 * next(looks))  # 2 ms between two checks

    await check_dialect("native", [TOOLS])


@pytest.mark.parametrize("recorded", [4999, 65000])
async def test_a_timeout_that_differs_by_more_than_the_elapsed_time_is_reported(recorded: int) -> None:
    hello, welcome, ask, *rest = shake_hands({"tools": [TOOL]}, FEATURES)
    ask["frame"]["params"]["_meta"]["becket"]["timeout_ms"] = recorded
    other = conversation(hello, welcome, ask, *rest, *shut_down(3))

    with pytest.raises(AssertionError, match=f'"timeout_ms":{recorded}'):
        await check_dialect("native", [other])


async def test_an_extension_that_describes_itself_at_once_passes_as_host_and_as_extension() -> None:
    call = to_child(id=2, method="tool.call", **meta(60000, name="echo", input={}), means={"result": "hi"})
    received = conversation(*describe_at_once(), call, to_host(id=2, result="hi"), *shut_down(3))

    await check_dialect("native", [received])


def call_model(id: int, method: str, **more: Any) -> dict[str, Any]:
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


def delta_event(**event: Any) -> dict[str, Any]:
    return to_host(method="provider.stream.event", params=event)


def output(**event: Any) -> dict[str, Any]:
    return to_host(method="command.output", params={"request_id": "run-1", "event": event})


STREAMS = [
    call_model(3, "provider.complete", means={"result": {"content": [{"type": "text", "text": "hi"}]}}),
    to_host(id=3, result={"content": [{"type": "text", "text": "hi"}]}),
    call_model(4, "provider.stream", means={"result": {"content": []}}),
    delta_event(type="text", delta="a"),
    delta_event(type="thinking", delta="b"),
    delta_event(type="tool_use", id="t", name="n", input={"x": 1}),
    delta_event(type="usage", tokens=3),
    delta_event(type="error", message="odd"),
    delta_event(type="done"),
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
    to_host(id=9, result=1),
    to_child(id=10, method="sidecar.spawn_args"),
    to_host(id=10, result={"args": ["-v"]}),
]


@pytest.mark.parametrize(("ours", "offered"), [("host", FEATURES), ("child", [])])
async def test_streams_and_all_other_methods_of_the_contract_are_checked(ours: str, offered: list[str]) -> None:
    opening = shake_hands({"providers": [PROVIDER]}, [], offered)

    await check_dialect(NATIVE, [conversation(*opening, *STREAMS, ours=[ours])])


# -- a dialect with its own methods


def sketched(*lines: dict[str, Any], **head: Any) -> Transcript:
    return conversation(*lines, framing="json-lines", **{"given": {"id": "demo"}, **head})


HANDSHAKE = [
    to_child(id=1, method="hello", params={"you": "demo"}),
    to_host(id=1, result={"me": "demo", "tools": ["shout"], "hooks": ["before_tool_call"], "version": ""}),
    to_child(method="thanks"),
    to_child(id=2, method="extras"),
    to_host(id=2, error={"code": -32601, "message": "unknown method: extras"}),
]

SKETCH = sketched(
    *HANDSHAKE,
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


async def test_a_dialect_with_its_own_methods_is_checked_as_host_and_as_extension(tmp_path: Path) -> None:
    await check_dialect(SKETCHED, [SKETCH])


# -- methods that only the dialect has, which it acknowledges at once and ends with an event


class Dug(msgspec.Struct):
    hole: int
    depth: int
    failed: str = ""


class GatheredHole:
    def __init__(self, params: Any) -> None:
        self._hole = params["hole"]
        self._last = Dug(0, 0)

    def on_response(self, response: msgspec.Raw) -> None:
        if msgspec.json.decode(response) != self._hole:
            raise ValueError("another hole")

    def on_event(self, event: Dug) -> bool:
        self._last = event
        return event.depth > 2 or bool(event.failed)

    def result(self) -> int:
        if self._last.failed:
            raise RpcError(7, f"digging of {self._hole} failed: {self._last.failed}")
        return self._last.depth


def is_of_hole(raw: msgspec.Raw, params: Any) -> bool:
    return bool(msgspec.json.decode(raw)["hole"] == params["hole"])


def end_digging(result: Any, error: RpcError | None, wire_request: WireRequest, _: object) -> list[WireNotification]:
    hole = wire_request.params["hole"]
    return [WireNotification("dug", Dug(hole, result) if error is None else Dug(hole, 0, error.message))]


DIG: Stream[Any, Any, Any] = Stream(
    "dig",
    Any,
    Any,
    events={"dug": EventReader(lambda raw: msgspec.json.decode(raw, type=Dug), (Dug,), is_of_hole)},
    gather=GatheredHole,
)
START_OF_ONES_OWN: Stream[Any, Any, Any] = Stream("start", Any, Any, events=DIG.events, gather=GatheredHole)


def own_method(method: Stream[Any, Any, Any]) -> MethodMapping:
    return MethodMapping(
        encode_request=lambda params, _: WireRequest(method, params),
        wire_methods=lambda _: [method],
        decode_request=lambda wire_request, _: wire_request.params,
        encode_ack=lambda wire_request, _: wire_request.params["hole"],
        encode_end_events=end_digging,
        correlation_key=lambda params: params["hole"],
    )


def load_hole_mapping() -> ContractMapping:
    mapping = load_mapping_of_sketch()
    own = {method.name: own_method(method) for method in (DIG, START_OF_ONES_OWN)}
    return replace(mapping, methods={**mapping.methods, **own})


DIGGING = replace(SKETCHED, load_mapping=load_hole_mapping)


def dug(hole: int, depth: Any, failed: str = "") -> dict[str, Any]:
    return to_host(method="dug", params={"hole": hole, "depth": depth, "failed": failed})


async def test_the_end_event_of_a_dialect_method_comes_after_its_acknowledgement() -> None:
    events = [{"hole": 1, "depth": 1, "failed": ""}, {"hole": 1, "depth": 3, "failed": ""}]
    lines = [
        to_child(id=3, method="dig", params={"hole": 1}, means={"result": 3, "events": events}),
        to_host(id=3, result=1),
        dug(1, 1),
        dug(1, 3),
        to_child(id=4, method="dig", params={"hole": 2}, means={"error": "digging of 2 failed: rock"}),
        to_host(id=4, result=2),
        dug(2, 0, "rock"),
    ]

    await check_dialect(DIGGING, [sketched(*HANDSHAKE, *lines)])
    early = sketched(*HANDSHAKE, lines[0], lines[2], lines[1], ours=["child"])
    assert "entry 7: it wrote" in await problems_of(DIGGING, early)


async def test_an_extension_may_send_an_event_of_a_dialect_method_that_no_reader_takes() -> None:
    lines = [
        to_child(id=3, method="dig", params={"hole": 1}, means={"result": 4}),
        to_host(id=3, result=1),
        dug(1, "deep"),
        dug(1, 4),
    ]

    await check_dialect(DIGGING, [sketched(*HANDSHAKE, *lines)])


async def test_a_method_of_the_contract_may_be_handled_as_the_dialect_has_it() -> None:
    lines = [
        to_child(id=3, method="start", params={"hole": 1}),
        to_host(id=3, result=1),
        dug(1, 1),
        dug(1, 5),
        to_child(id=4, method="start", params={"hole": 2}),
        to_host(id=4, result=2),
        dug(2, 0, "rock"),
    ]
    given = {"id": "demo", "handles": ["start", "never.asked"]}

    await check_dialect(DIGGING, [sketched(*HANDSHAKE, *lines, given=given, ours=["child"])])


async def test_a_notification_of_the_dialect_alone_is_handled_by_the_extension() -> None:
    taken: list[frozenset[str]] = []

    def reply(initialized: Initialized, state: LinkState) -> Any:
        taken.append(state.own_methods)
        return load_mapping_of_sketch().server_handshake.encode_result(initialized, state)

    dialect = replace(
        SKETCHED,
        load_mapping=lambda: replace(
            load_mapping_of_sketch(),
            server_handshake=replace(load_mapping_of_sketch().server_handshake, encode_result=reply),
        ),
    )
    news = to_child(method="news", params={"any": 1})
    given = {"id": "demo", "handles": ["never.asked"]}

    await check_dialect(dialect, [sketched(*HANDSHAKE, news, given=given, ours=["child"])])
    assert taken == [{"thanks", "news", "never.asked"}]


@pytest.mark.parametrize(
    "printed",
    [
        [to_host(id=3, result=99)],
        [to_host(id=3, result=1), dug(1, 0, "rock"), to_host(id=3, result=1)],
    ],
    ids=["acknowledges something else", "answers twice"],
)
async def test_a_response_that_no_extension_would_send_is_reported(
    printed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "MESSAGE_TIMEOUT", 2.0)  # the second response never comes
    called = to_child(id=3, method="dig", params={"hole": 1})

    problem = await problems_of(DIGGING, sketched(*HANDSHAKE, called, *printed, ours=["child"]))
    assert problem.startswith("transcript 1, our extension, entry ")


async def test_an_event_of_a_contract_method_that_no_reader_takes_is_reported() -> None:
    lines = [
        to_child(id=3, method="start", params={"run": 1, "what": "make", "with": []}),
        to_host(id=3, result={"run": 1}),
        to_host(method="piece", params={"run": 1, "text": 5}),
    ]

    problem = await problems_of(SKETCHED, sketched(*HANDSHAKE, *lines, ours=["child"]))
    assert "entry 8: our extension cannot send this" in problem


# -- other entries of a transcript


def opening(you: str = "demo", **more: Any) -> dict[str, Any]:
    return to_child(id=1, method="hello", params={"you": you}, **more)


async def problems_of(dialect: Dialect, transcript: Transcript, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        await check_dialect(dialect, [transcript], **options)
    return str(caught.value)


async def test_files_and_folders_of_transcripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    lines = [{"transcript": 1, "framing": "json-lines"}, opening("else")]
    for name in ("a.jsonl", "more/b.jsonl"):
        (tmp_path / name).write_bytes(b"\n".join(map(msgspec.json.encode, lines)))

    for given in (tmp_path, str(tmp_path / "a.jsonl"), [tmp_path / "more", tmp_path / "a.jsonl"]):
        with pytest.raises(AssertionError, match=r"a\.jsonl, our host, entry 1: it wrote"):
            await check_dialect(SKETCHED, given)
    for none in ([], tmp_path / "more" / "nothing.jsonl"):
        with pytest.raises((ValueError, OSError)):
            await check_dialect(SKETCHED, none)


async def test_the_given_settings_reach_the_handshake() -> None:
    def greet(context: HandshakeContext) -> ClientHandshake:
        received = [context.extra, context.host.name, context.root, context.config]
        yield WireRequest(HELLO, {"you": context.extension, "told": received})
        return HandshakeResult()

    dialect = replace(SKETCHED, load_mapping=lambda: replace(load_mapping_of_sketch(), client_handshake=greet))
    given = {"id": "demo", "extra": 20, "host": {"name": "h", "version": "1"}, "root": "/r", "config": {"a": 1}}
    frame = to_child(id=1, method="hello", params={"you": "demo", "told": [21, "h", "/r", {"a": 1}]})

    transcript = sketched(frame, given=given, ours=["host"])
    await check_dialect(dialect, [transcript], extra=lambda number: number + 1)


async def test_a_permission_that_is_not_given_is_denied() -> None:
    called = to_host(id=1, method="memory.append", params={"namespace": "notes", "content": "x"})
    denied = to_child(id=1, error={"code": 1003, "message": "x"})
    lines = [*shake_hands({}, []), called, denied]

    assert '"result"' in await problems_of(NATIVE, conversation(*lines, ours=["host"]))
    assert "memory.write" in await problems_of(NATIVE, conversation(*lines, ours=["host"], given={"grants": []}))


async def test_a_recorded_handshake_failure_is_reproduced() -> None:
    error = {"kind": "HandshakeFailed", "message": "it takes itself for else"}
    lines = [
        opening(means={"error": error}),
        to_host(id=1, result={"me": "else", "tools": [], "hooks": [], "version": ""}),
        to_child(method="thanks"),
        to_child(id=2, method="extras"),
        to_host(id=2, result=None),
        {"to": CHILD, "closed": True},
    ]

    await check_dialect(SKETCHED, [sketched(*lines, ours=["host"])])
    further = sketched(*lines[:-1], to_child(id=3, method="bye", params=[""]), ours=["host"])
    assert "the handshake has failed" in await problems_of(SKETCHED, further)


async def test_a_recorded_refusal_of_a_host_is_reproduced() -> None:
    refused = to_host(id=1, error={"code": 1008, "message": "somebody else is meant"})

    await check_dialect(SKETCHED, [sketched(opening("else"), refused, ours=["child"])])


async def test_bytes_between_the_frames_are_sent_as_they_were() -> None:
    stray = {"to": HOST, "stray": True, "text": "Hello!\n"}
    called = to_child(id=3, method="run", params=["shout", {}], means={"result": "X"})
    response = to_host(id=3, result={"out": "X"})
    tolerant = replace(SKETCHED, framing=partial(JsonLines, skip_stray=True))

    await check_dialect(tolerant, [sketched(*HANDSHAKE, stray, called, response, ours=["host"])])
    ours = sketched(*HANDSHAKE, {"to": CHILD, "stray": True, "text": "x"}, ours=["host"])
    assert "our end writes only messages" in await problems_of(SKETCHED, ours)


async def test_a_call_may_be_cancelled_by_a_request_of_its_own() -> None:
    lines = [
        *HANDSHAKE,
        to_child(id=3, method="start", params={"run": 1, "what": "make", "with": []}),
        to_host(id=3, result={"run": 1}),
        to_child(id=4, method="stop", params={"run": 1}),
        to_host(id=4, result={}),
        to_host(method="piece", params={"run": 1, "text": "", "ended": True, "failed": "cancelled"}),
    ]

    await check_dialect(SKETCHED, [sketched(*lines)])


async def test_a_host_that_closes_closes_for_the_extension() -> None:
    await check_dialect(SKETCHED, [sketched(*HANDSHAKE, {"to": CHILD, "closed": True}, {"to": HOST, "closed": True})])


# -- what differs


async def test_bytes_that_differ_are_reported_with_their_position() -> None:
    changed = [*HANDSHAKE[:1], to_host(id=1, result={**HANDSHAKE[1]["frame"]["result"], "hooks": []}), *HANDSHAKE[2:]]
    changed[2] = to_child(method="tanks")

    found = await problems_of(SKETCHED, sketched(*changed))

    assert "transcript 1, our host, entry 3: it wrote\n" in found
    assert """which differ from byte 28 on: 'hanks"}' instead of 'anks"}'""" in found


@in_virtual_time
def test_a_missing_message_is_reported(run: Callable[..., None]) -> None:
    missing = to_host(method="piece", params={"run": 9, "text": "", "ended": True, "failed": ""})
    response = to_host(id=8, result=1)

    async def main() -> None:
        assert "entry 6: it did not write" in await problems_of(
            SKETCHED, sketched(*HANDSHAKE, response, ours=["child"])
        )
        assert "not recorded" not in await problems_of(
            SKETCHED, sketched(*HANDSHAKE, response, missing, ours=["child"])
        )

    run(main)


async def test_a_message_beyond_the_recording_is_reported() -> None:
    found = await problems_of(SKETCHED, sketched(*HANDSHAKE[:-2], ours=["host"]))

    assert found == (
        'transcript 1, our host, at the end: it wrote {"jsonrpc":"2.0","id":2,"method":"extras"}, which is not recorded'
    )


async def test_another_framing_is_reported() -> None:
    dialect = replace(SKETCHED, framing=ContentLength)

    found = await problems_of(dialect, sketched(opening(), ours=["host"]))

    assert found.startswith("transcript 1, our host, entry 1: the frame is 'Content-Length: ")


async def test_frames_that_are_not_text_are_shown_as_bytes() -> None:
    dialect = replace(SKETCHED, framing=LengthPrefixed)
    transcript = conversation({"to": CHILD, "base64": "/wAB"}, framing="length-prefixed", ours=["host"])

    assert "ff 00 01" in await problems_of(dialect, transcript)


async def test_an_extension_never_writes_an_invalid_message() -> None:
    transcript = sketched(*HANDSHAKE, {"to": HOST, "frame": [1]}, ours=["child"])

    assert "our extension would not write it" in await problems_of(SKETCHED, transcript)


async def test_an_impossible_extension_is_reported() -> None:
    twice = {"me": "demo", "tools": ["shout", "shout"], "hooks": [], "version": ""}

    found = await problems_of(
        SKETCHED, sketched(HANDSHAKE[0], to_host(id=1, result=twice), *HANDSHAKE[2:], ours=["child"])
    )

    assert "our extension cannot be built like this one" in found


async def test_a_link_that_ends_too_early_is_reported() -> None:
    late = to_child(id=4, method="run", params=["shout", {}])
    lines = [*HANDSHAKE, {"to": CHILD, "closed": True}, late]

    assert "it has closed the link" in await problems_of(SKETCHED, sketched(*lines, ours=["host"]))


@pytest.mark.parametrize(
    ("meant", "problem"),
    [
        ({"result": "Y"}, 'came to "X", and not to "Y"'),
        ({"error": "no"}, 'came to "X", and not to an error'),
    ],
)
async def test_a_different_result_is_reported(meant: Any, problem: str) -> None:
    lines = [to_child(id=3, method="run", params=["shout", {}], means=meant), to_host(id=3, result={"out": "X"})]

    assert problem in await problems_of(SKETCHED, sketched(*HANDSHAKE, *lines, ours=["host"]))


@pytest.mark.parametrize(
    ("meant", "problem"),
    [
        ({"result": "Y"}, "failed: run: no (7)"),
        ({"error": "yes"}, 'failed with {"message":"no"}, and not with {"message":"yes"}'),
        ({"error": {"code": 8, "message": "no"}}, 'failed with {"code":7}'),
    ],
)
async def test_a_different_error_is_reported(meant: Any, problem: str) -> None:
    lines = [to_child(id=3, method="run", params=["shout", {}], means=meant), to_host(id=3, error=ERROR)]

    assert problem in await problems_of(SKETCHED, sketched(*HANDSHAKE, *lines, ours=["host"]))


ERROR = {"code": 7, "message": "no"}


async def test_expected_events_are_compared() -> None:
    def lines(events: list[Any]) -> list[dict[str, Any]]:
        meant = {"events": events}
        return [
            *HANDSHAKE,
            to_child(id=3, method="start", params={"run": 1, "what": "make", "with": []}, means=meant),
            to_host(method="piece", params={"run": 1, "text": "a", "ended": False, "failed": ""}),
            to_host(id=3, result={"run": 1}),
            to_host(method="piece", params={"run": 1, "text": "", "ended": True, "failed": ""}),
        ]

    came = {"content": "a", "kind": "text"}
    await check_dialect(SKETCHED, [sketched(*lines([came, {"problem": ""}]), ours=["host"])])
    assert "had the events" in await problems_of(SKETCHED, sketched(*lines([came]), ours=["host"]))


async def test_a_call_without_a_response_is_reported() -> None:
    called = to_child(id=3, method="run", params=["shout", {}], means={"result": "X"})

    assert "has come to nothing yet" in await problems_of(SKETCHED, sketched(*HANDSHAKE, called, ours=["host"]))
