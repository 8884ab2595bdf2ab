"""Maps nexo hooks to contract hooks, and back.

There are four: before and after a message, before and after a tool call; `after_message` is the contract's
`on_message_complete`. What one side says and the other has no word for:

- A nexo extension that aborts before a message or a tool call gives `Block`. An abort after something has happened is
  ignored with a warning, as that system does itself.
- An override of `arguments` gives `Modify`, one of `result` gives `Replace`. An override of `text`, and the
  `transformed_body` of a decision to `transform`, give `Inject`: a model sees them beside the words of the user, which
  no extension can change. Other members of an override are lost, as is `do_not_reply_again`.
- `Inject` becomes an override of `text`, behind the text that came. `Confirm` becomes an abort, since nobody can be
  asked. Of a `Modify` all reaches the host, of a `Replace` too.
- `agent_id`, `source`, `text_in`, `duration_ms` and `error` stand in the `data` of the contract's event, under these
  names. After a tool call its input is not told, and its result is the text that a model reads.
"""

from __future__ import annotations

from typing import Any, assert_never

from becket.adapters.nexo.manifest import NexoExtra
from becket.adapters.nexo.messages import (
    HOOK_METHODS,
    AfterMessage,
    AfterToolCall,
    BeforeMessage,
    BeforeToolCall,
    NexoHookResult,
)
from becket.contract.hooks import (
    MALFORMED_MODIFY,
    Block,
    Confirm,
    Continue,
    HookEvent,
    HookKind,
    HookResult,
    Inject,
    Modify,
    Replace,
)
from becket.contract.json_narrowing import is_object
from becket.contract.tools import format_tool_result
from becket.dialects.mapping import LinkState, WireRequest
from becket.errors import NotSupported

__all__ = ["decode_hook", "decode_hook_result", "encode_hook", "encode_hook_result", "to_hook_kinds", "to_hook_names"]

HOOK_PREFIX = "hooks/"
HOOK_KINDS = {method.name.removeprefix(HOOK_PREFIX): kind for kind, method in HOOK_METHODS.items()}
DEFAULT_BLOCK_REASON = "blocked by a hook"
BLOCK_DECISION, TRANSFORM_DECISION = "block", "transform"


def to_hook_kinds(names: tuple[str, ...]) -> tuple[tuple[HookKind, ...], tuple[str, ...]]:
    """Returns the kinds that hooks of these names are, each once, and the names that are none."""
    kinds = tuple(dict.fromkeys(HOOK_KINDS[name] for name in names if name in HOOK_KINDS))
    return kinds, tuple(name for name in names if name not in HOOK_KINDS)


def to_hook_names(kinds: tuple[HookKind, ...]) -> tuple[str, ...]:
    """Returns the names of those hooks of the contract that there is a word for."""
    return tuple(name for name, kind in HOOK_KINDS.items() if kind in kinds)


# -- the host asks


def encode_hook(event: HookEvent, state: LinkState) -> WireRequest:
    """Returns the request that asks about an event.

    Raises:
        NotSupported: there is no such hook.
    """
    if event.kind not in HOOK_METHODS:
        raise NotSupported(f"the hook `{event.kind}`", "the dialect `nexo` has no word for it")
    return WireRequest(HOOK_METHODS[event.kind], build_hook_params(event, state))


def build_hook_params(
    event: HookEvent, state: LinkState
) -> BeforeMessage | AfterMessage | BeforeToolCall | AfterToolCall:
    data: dict[str, Any] = event.data if is_object(event.data) else {}
    agent = data.get("agent_id")
    if not isinstance(agent, str):
        agent = state.extra.agent_id if isinstance(state.extra, NexoExtra) else ""
    session, tool = event.session_id, event.tool_name or ""
    match event.kind:
        case HookKind.BEFORE_MESSAGE:
            return BeforeMessage(agent, session, event.message or "", data.get("source"))
        case HookKind.BEFORE_TOOL_CALL:
            return BeforeToolCall(agent, session, tool, event.tool_input)
        case HookKind.AFTER_TOOL_CALL:
            return AfterToolCall(agent, session, tool, data.get("duration_ms"), event.tool_output, data.get("error"))
        case _:
            text_in = data.get("text_in")
            return AfterMessage(agent, session, text_in if isinstance(text_in, str) else "", event.message or "")


def decode_hook_result(answer: NexoHookResult | None, wire_request: WireRequest, state: LinkState) -> HookResult:
    """Returns what an answer comes to in the contract; whether the kind allows it is the host's to see."""
    if answer is None:
        return Continue()
    if answer.abort or answer.decision == BLOCK_DECISION:
        return Block(answer.reason or DEFAULT_BLOCK_REASON)
    if answer.decision == TRANSFORM_DECISION and answer.transformed_body is not None:
        return Inject(answer.transformed_body)
    override: dict[str, Any] = answer.override if is_object(answer.override) else {}
    match wire_request.params:
        case BeforeToolCall() if "arguments" in override:
            arguments = override["arguments"]
            # Whoever wanted to change the input of a tool did not want it to run as it was.
            return Modify(arguments) if is_object(arguments) else Block(MALFORMED_MODIFY)
        case BeforeMessage() if isinstance(override.get("text"), str):
            return Inject(override["text"])
        case AfterToolCall() if "result" in override:
            return Replace(format_tool_result(override["result"]))
        case _:
            return Continue()


# -- the extension is asked


def decode_hook(wire_request: WireRequest, state: LinkState) -> HookEvent:
    """Returns the event that a request of the host tells of."""
    event: BeforeMessage | AfterMessage | BeforeToolCall | AfterToolCall = wire_request.params
    match event:
        case BeforeMessage(agent, session, text, source):
            data = {"agent_id": agent, "source": source}
            return HookEvent(HookKind.BEFORE_MESSAGE, message=text, session_id=session, data=data)
        case AfterMessage(agent, session, text_in, text_out):
            data = {"agent_id": agent, "text_in": text_in}
            return HookEvent(HookKind.ON_MESSAGE_COMPLETE, message=text_out, session_id=session, data=data)
        case BeforeToolCall(agent, session, tool, arguments):
            data = {"agent_id": agent}
            return HookEvent(HookKind.BEFORE_TOOL_CALL, tool, tool, arguments, session_id=session, data=data)
        case AfterToolCall(agent, session, tool, duration, result, error):
            data = {"agent_id": agent, "duration_ms": duration, "error": error}
            output = format_tool_result(result if error is None else error)
            return HookEvent(HookKind.AFTER_TOOL_CALL, tool, tool, None, output, session_id=session, data=data)
        case _:
            assert_never(event)


def encode_hook_result(result: HookResult, wire_request: WireRequest, state: LinkState) -> dict[str, Any]:
    """Returns the answer that says to the host what the extension has decided."""
    match result:
        case Continue():
            return {"abort": False}
        case Block(reason) | Confirm(reason):
            return {"abort": True, "reason": reason}
        case Modify(input):
            return {"abort": False, "override": {"arguments": input}}
        case Replace(output):
            return {"abort": False, "override": {"result": output}}
        case Inject(content):
            text = wire_request.params.text if isinstance(wire_request.params, BeforeMessage) else ""
            return {"abort": False, "override": {"text": f"{text}\n\n{content}" if text else content}}
        case _:
            assert_never(result)
