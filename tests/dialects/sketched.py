"""`sketched`: a small dialect of the tests' own, with each form that a dialect can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from becket.contract.commands import Invoke, Text
from becket.contract.handshake import Capabilities, Initialize, Initialized
from becket.contract.hooks import Block, Continue, HookEvent, HookKind
from becket.contract.log import LogLevel, LogRecord
from becket.contract.memory import Append, Appended
from becket.contract.tools import Tool, ToolCall
from becket.dialects import Dialect
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.speech import Speech, TalePhrase
from becket.errors import HandshakeFailed, Meaning, RemoteError, RpcError
from becket.methods.descriptors import Method
from becket.methods.streams import EventReader, Stream
from becket.wire.json_lines import JsonLines

HELLO: Method[Any, Any] = Method("hello", Any, Any)
BYE: Method[Any, Any] = Method("bye", Any, Any)
RUN: Method[Any, Any] = Method("run", Any, Any)
STOP: Method[Any, Any] = Method("stop", Any, Any)
KEEP: Method[Any, Any] = Method("keep", Any, Any)
GUARD: Method[Any, Any] = Method("guard", Any, Any)


class Piece(Struct):
    run: int
    text: str = ""
    ended: bool = False
    failed: str = ""


def read_piece(raw: Raw) -> Text:
    piece = msgspec.json.decode(raw, type=Piece)
    return Ended(piece.failed) if piece.ended else Text(piece.text)  # type: ignore[return-value]


class Ended(Struct, frozen=True):
    problem: str


class Gathered:
    def __init__(self, params: Any) -> None:
        self._run = params["run"]
        self._text = ""
        self._problem = ""

    def acknowledge(self, answer: Raw) -> None:
        if msgspec.json.decode(answer) != {"run": self._run}:
            raise ValueError("another run")

    def take(self, event: object) -> bool:
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
        "piece": EventReader(read_piece, (Text,), lambda raw, params: msgspec.json.decode(raw)["run"] == params["run"])
    },
    gather=Gathered,
    cancel=lambda params, reason: (STOP, {"run": params["run"], "why": str(reason)}),
)


def greet(introduction: Introduction) -> Greeting:
    answer = msgspec.json.decode((yield Saying(HELLO, {"you": introduction.extension})))
    yield Tale("thanks")
    try:
        yield Saying(Method("extras", Any, Any))
    except RemoteError:
        notes: tuple[str, ...] = ("it has no extras",)
    else:
        notes = ()
    if answer.get("me") != introduction.extension:
        raise HandshakeFailed(introduction.extension, f"it takes itself for {answer.get('me')}")
    tools = tuple(Tool(name, name, {"type": "object"}) for name in answer["tools"])
    hooks = tuple(HookKind(name) for name in answer["hooks"])
    return Greeted(declared=Capabilities(tools), hooks=hooks, particulars=answer["version"], notes=notes)


def read_hello(params: Any, scene: Scene) -> Initialize:
    if params["you"] != scene.extension:
        raise RpcError(Meaning.INCOMPATIBLE, "somebody else is meant")
    return Initialize(extension_protocol_version=1, plugin_id=params["you"], plugin_root=None, config={})


def reply(initialized: Initialized, scene: Scene) -> Any:
    names = [tool.name for tool in initialized.capabilities.tools]
    return {"me": scene.extension, "tools": names, "hooks": list(scene.hooks), "version": scene.version}


def say_start(invoke: Invoke, scene: Scene) -> Saying:
    return Saying(START, {"run": next(scene.numbers), "what": invoke.command, "with": list(invoke.args)})


def end_start(result: Any, error: RpcError | None, saying: Saying, scene: Scene) -> Iterator[Tale]:
    yield Tale("piece", Piece(saying.params["run"], ended=True, failed="" if error is None else error.message))


def tell_start(event: Any, saying: Saying, scene: Scene) -> Tale | None:
    return Tale("piece", Piece(saying.params["run"], event.content)) if isinstance(event, Text) else None


def speak() -> Speech:
    return Speech(
        dialect="sketched",
        greet=greet,
        welcome=Welcome(
            opening=HELLO,
            read=read_hello,
            reply=reply,
            queries={"count": lambda params, scene: len(scene.declared.tools), "beat": lambda params, scene: "on"},
            always=frozenset({"beat"}),
            farewell="see you",
        ),
        phrases={
            "tool.call": Phrase(
                say=lambda call, scene: Saying(RUN, [call.name, call.input]),
                read=lambda answer, saying, scene: answer["out"],
                heard_as=lambda scene: [RUN],
                hear=lambda saying, scene: ToolCall(saying.params[0], saying.params[1]),
                answer=lambda result, saying, scene: {"out": result},
                fail=lambda error, saying, scene: {"out": f"failed: {error.message}"},
                progress=lambda value, saying, scene: Tale("still", value),
            ),
            "command.invoke": Phrase(
                say=say_start,
                heard_as=lambda scene: [START],
                hear=lambda saying, scene: Invoke(saying.params["what"], tuple(saying.params["with"]), "r"),
                tell=tell_start,
                acknowledge=lambda saying, scene: {"run": saying.params["run"]},
                end=end_start,
                cancelled_as=STOP,
                key_of=lambda params: params["run"],
            ),
            "hook.handle": Phrase(
                say=lambda event, scene: Saying(GUARD, {"tool": event.tool_name}),
                read=lambda answer, saying, scene: Block(answer) if answer else Continue(),
                heard_as=lambda scene: [GUARD],
                hear=lambda saying, scene: HookEvent(HookKind.BEFORE_TOOL_CALL, tool_name=saying.params["tool"]),
                answer=lambda result, saying, scene: result.reason if isinstance(result, Block) else None,
            ),
            "memory.append": Phrase(
                say=lambda append, scene: Saying(KEEP, [append.content]),
                read=lambda answer, saying, scene: Appended(True, answer),
                heard_as=lambda scene: [KEEP],
                hear=lambda saying, scene: Append(scene.extension, saying.params[0]),
                answer=lambda appended, saying, scene: appended.timestamp_ms,
            ),
        },
        tales={
            "$/log": TalePhrase(
                heard_as="note",
                tell=lambda record, scene: None if record.level is LogLevel.DEBUG else Tale("note", [record.message]),
                hear=lambda params, scene: LogRecord(LogLevel.INFO, scene.extension, params[0]),
            )
        },
        goodbye=lambda scene: Saying(BYE, [scene.farewell]),
        seal=lambda call, meta, scene: ToolCall(call.name, {**call.input, "meta": dict(meta)}) if meta else call,
    )


SKETCHED = Dialect(
    name="sketched", framing=JsonLines, contract=speak, recognises=lambda frame, framing: b'"hello"' in frame
)
