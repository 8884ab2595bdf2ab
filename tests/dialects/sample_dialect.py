"""`sketched`: a small dialect of the tests' own, with each form that a dialect can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from becket.contract.commands import CommandInvoke, Text
from becket.contract.handshake import Capabilities, Initialize, Initialized
from becket.contract.hooks import Block, Continue, HookEvent, HookKind
from becket.contract.log import LogLevel, LogRecord
from becket.contract.memory import Append, Appended
from becket.contract.tools import Tool, ToolCall
from becket.dialects import Dialect
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping
from becket.errors import HandshakeFailed, Meaning, RemoteError, RpcError
from becket.framing.json_lines import JsonLines
from becket.methods.descriptors import Method
from becket.methods.streams import EventReader, Stream

HELLO: Method[Any, Any] = Method("hello", Any, Any)
BYE: Method[Any, Any] = Method("bye", Any, Any)
RUN: Method[Any, Any] = Method("run", Any, Any)
STOP: Method[Any, Any] = Method("stop", Any, Any)
KEEP: Method[Any, Any] = Method("keep", Any, Any)
GUARD: Method[Any, Any] = Method("guard", Any, Any)


class Delta(Struct):
    run: int
    text: str = ""
    ended: bool = False
    failed: str = ""


def read_delta(raw: Raw) -> Text:
    part = msgspec.json.decode(raw, type=Delta)
    return Ended(part.failed) if part.ended else Text(part.text)  # type: ignore[return-value]


class Ended(Struct, frozen=True):
    problem: str


class Gathered:
    def __init__(self, params: Any) -> None:
        self._run = params["run"]
        self._text = ""
        self._problem = ""

    def on_response(self, response: Raw) -> None:
        if msgspec.json.decode(response) != {"run": self._run}:
            raise ValueError("another run")

    def on_event(self, event: object) -> bool:
        if isinstance(event, Ended):
            self._problem = event.problem
            return True
        assert isinstance(event, Text)
        self._text += event.content
        return False

    def result(self) -> str:
        if self._problem:
            raise RpcError(-1, self._problem)
        return self._text


START: Stream[Any, Any, Text] = Stream(
    "start",
    Any,
    Any,
    events={
        "piece": EventReader(read_delta, (Text,), lambda raw, params: msgspec.json.decode(raw)["run"] == params["run"])
    },
    gather=Gathered,
    cancel=lambda params, reason: (STOP, {"run": params["run"], "why": str(reason)}),
)


def shake_hands(context: HandshakeContext) -> ClientHandshake:
    response = msgspec.json.decode((yield WireRequest(HELLO, {"you": context.extension})))
    yield WireNotification("thanks")
    try:
        yield WireRequest(Method("extras", Any, Any))
    except RemoteError:
        notes: tuple[str, ...] = ("it has no extras",)
    else:
        notes = ()
    if response.get("me") != context.extension:
        raise HandshakeFailed(context.extension, f"it takes itself for {response.get('me')}")
    tools = tuple(Tool(name, name, {"type": "object"}) for name in response["tools"])
    hooks = tuple(HookKind(name) for name in response["hooks"])
    return HandshakeResult(capabilities=Capabilities(tools), hooks=hooks, extra=response["version"], warnings=notes)


def read_hello(params: Any, state: LinkState) -> Initialize:
    if params["you"] != state.extension:
        raise RpcError(Meaning.INCOMPATIBLE, "somebody else is meant")
    return Initialize(extension_protocol_version=1, plugin_id=params["you"], plugin_root=None, config={})


def reply(initialized: Initialized, state: LinkState) -> Any:
    names = [tool.name for tool in initialized.capabilities.tools]
    return {"me": state.extension, "tools": names, "hooks": list(state.hooks), "version": state.version}


def encode_start(invoke: CommandInvoke, state: LinkState) -> WireRequest:
    return WireRequest(START, {"run": next(state.sequence), "what": invoke.command, "with": list(invoke.args)})


def end_start(
    result: Any, error: RpcError | None, request: WireRequest, state: LinkState
) -> Iterator[WireNotification]:
    yield WireNotification(
        "piece", Delta(request.params["run"], ended=True, failed="" if error is None else error.message)
    )


def encode_started(event: Any, request: WireRequest, state: LinkState) -> WireNotification | None:
    return WireNotification("piece", Delta(request.params["run"], event.content)) if isinstance(event, Text) else None


def load_mapping_of_sketch() -> ContractMapping:
    return ContractMapping(
        dialect="sketched",
        client_handshake=shake_hands,
        server_handshake=ServerHandshake(
            initialize_method=HELLO,
            decode_params=read_hello,
            encode_result=reply,
            handlers={"count": lambda params, state: len(state.capabilities.tools), "beat": lambda params, state: "on"},
            allowed_before_initialize=frozenset({"beat"}),
            shutdown_result="see you",
        ),
        methods={
            "tool.call": MethodMapping(
                encode_request=lambda call, state: WireRequest(RUN, [call.name, call.input]),
                decode_result=lambda response, request, state: response["out"],
                wire_methods=lambda state: [RUN],
                decode_request=lambda request, state: ToolCall(request.params[0], request.params[1]),
                encode_result=lambda result, request, state: {"out": result},
                encode_failure=lambda error, request, state: {"out": f"failed: {error.message}"},
                encode_progress=lambda value, request, state: WireNotification("still", value),
            ),
            "command.invoke": MethodMapping(
                encode_request=encode_start,
                wire_methods=lambda state: [START],
                decode_request=lambda request, state: CommandInvoke(
                    request.params["what"], tuple(request.params["with"]), "r"
                ),
                encode_event=encode_started,
                encode_ack=lambda request, state: {"run": request.params["run"]},
                encode_end_events=end_start,
                cancel_method=STOP,
                correlation_key=lambda params: params["run"],
            ),
            "hook.handle": MethodMapping(
                encode_request=lambda event, state: WireRequest(GUARD, {"tool": event.tool_name}),
                decode_result=lambda response, request, state: Block(response) if response else Continue(),
                wire_methods=lambda state: [GUARD],
                decode_request=lambda request, state: HookEvent(
                    HookKind.BEFORE_TOOL_CALL, tool_name=request.params["tool"]
                ),
                encode_result=lambda result, request, state: result.reason if isinstance(result, Block) else None,
            ),
            "memory.append": MethodMapping(
                encode_request=lambda append, state: WireRequest(KEEP, [append.content]),
                decode_result=lambda response, request, state: Appended(True, response),
                wire_methods=lambda state: [KEEP],
                decode_request=lambda request, state: Append(state.extension, request.params[0]),
                encode_result=lambda appended, request, state: appended.timestamp_ms,
            ),
        },
        notifications={
            "$/log": NotificationMapping(
                wire_name="note",
                encode=lambda record, state: (
                    None if record.level is LogLevel.DEBUG else WireNotification("note", [record.message])
                ),
                decode=lambda params, state: LogRecord(LogLevel.INFO, state.extension, params[0]),
            )
        },
        encode_shutdown=lambda state: WireRequest(BYE, [state.shutdown_reason]),
        add_call_metadata=lambda call, meta, state: (
            ToolCall(call.name, {**call.input, "meta": dict(meta)}) if meta else call
        ),
    )


SKETCHED = Dialect(
    name="sketched",
    framing=JsonLines,
    load_mapping=load_mapping_of_sketch,
    matches_first_frame=lambda frame, framing: b'"hello"' in frame,
)
