"""Maps nexo hooks to contract hooks, and back.

nexo has four hooks: before and after a message, before and after a tool call; `after_message` is the contract's
`on_message_complete`. Differences:

- An abort before a message or a tool call becomes `Block`. An abort in an `after_*` hook is ignored with a warning, as
  in nexo.
- An override of `arguments` becomes `Modify`, one of `result` becomes `Replace`. An override of `text`, and the
  `transformed_body` of the decision `transform`, become `Inject`: the model sees them after the user's text, which an
  extension cannot change. Other members of an override and `do_not_reply_again` are lost.
- `Inject` becomes an override of `text`, appended to the original text. `Confirm` becomes an abort, because nexo has no
  prompt. `Modify` and `Replace` are sent in full.
- `agent_id`, `source`, `text_in`, `duration_ms` and `error` are members of `data` in the contract's event. After a tool
  call the event has no input, and its result is the text for the model.
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
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import NotSupported

__all__ = ["decode_hook", "decode_hook_result", "encode_hook", "encode_hook_result", "to_hook_kinds", "to_hook_names"]

HOOK_PREFIX = "hooks/"
HOOK_KINDS = {method.name.removeprefix(HOOK_PREFIX): kind for kind, method in HOOK_METHODS.items()}
DEFAULT_BLOCK_REASON = "blocked by a hook"
BLOCK_DECISION, TRANSFORM_DECISION = "block", "transform"


def to_hook_kinds(names: tuple[str, ...]) -> tuple[tuple[HookKind, ...], tuple[str, ...]]:
    """Returns the hook kinds of these names, without duplicates, and the unknown names."""
    kinds = tuple(dict.fromkeys(HOOK_KINDS[name] for name in names if name in HOOK_KINDS))
    return kinds, tuple(name for name in names if name not in HOOK_KINDS)


def to_hook_names(kinds: tuple[HookKind, ...]) -> tuple[str, ...]:
    """Returns the nexo names of hook kinds, without those that nexo does not have."""
    return tuple(name for name, kind in HOOK_KINDS.items() if kind in kinds)


# -- host


def encode_hook(event: HookEvent, state: LinkState) -> WireRequest:
    """Returns the request for an event.

    Raises:
        NotSupported: nexo has no such hook.
    """
    if event.kind not in HOOK_METHODS:
        raise NotSupported(f"the hook `{event.kind}`", "the dialect `nexo` does not have it")
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


def decode_hook_result(result: NexoHookResult | None, wire_request: WireRequest, state: LinkState) -> HookResult:
    """Returns a result as one of the contract; the host checks whether the hook allows it."""
    if result is None:
        return Continue()
    if result.abort or result.decision == BLOCK_DECISION:
        return Block(result.reason or DEFAULT_BLOCK_REASON)
    if result.decision == TRANSFORM_DECISION and result.transformed_body is not None:
        return Inject(result.transformed_body)
    override: dict[str, Any] = result.override if is_object(result.override) else {}
    match wire_request.params:
        case BeforeToolCall() if "arguments" in override:
            arguments = override["arguments"]
            # The hook meant to change the input, so the tool must not run with the original one.
            return Modify(arguments) if is_object(arguments) else Block(MALFORMED_MODIFY)
        case BeforeMessage() if isinstance(override.get("text"), str):
            return Inject(override["text"])
        case AfterToolCall() if "result" in override:
            return Replace(format_tool_result(override["result"]))
        case _:
            return Continue()


# -- extension


def decode_hook(wire_request: WireRequest, state: LinkState) -> HookEvent:
    """Returns the event of a request."""
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
    """Returns the nexo result for a result of the contract."""
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
