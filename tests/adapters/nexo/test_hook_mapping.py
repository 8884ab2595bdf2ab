"""Hooks mapped between nexo and the contract; hooks without a mapping are not supported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.adapters.nexo import NEXO, NexoExtra
from becket.adapters.nexo.hook_mapping import to_hook_kinds, to_hook_names
from becket.adapters.nexo.messages import HOOK_METHODS, NexoHookResult
from becket.contract.hooks import (
    HOOK_HANDLE,
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
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import NotSupported

assert NEXO.load_mapping is not None
HOOKS = NEXO.load_mapping().methods[HOOK_HANDLE.name]
STATE = LinkState("weather", extra=NexoExtra(agent_id="ana"))

BEFORE_TOOL = HookEvent.before_tool_call("bash", {"command": "ls"})
AFTER_TOOL = HookEvent.after_tool_call("bash", {"command": "ls"}, "a.txt")
BEFORE_MESSAGE = HookEvent.before_message("hello")
AFTER_MESSAGE = HookEvent.on_message_complete("hi there", content_block_count=1, has_tool_use=False)


def as_json(value: Any) -> Any:
    return msgspec.to_builtins(value)


def decode_hook(kind: HookKind, params: dict[str, Any]) -> tuple[WireRequest, HookEvent]:
    """Returns a request of a host, and the event that an extension receives."""
    method = HOOK_METHODS[kind]
    request = WireRequest(method, msgspec.convert(params, method.params))
    event: HookEvent = HOOKS.decode_request(request, STATE)
    return request, event


# -- requests of a host


@pytest.mark.parametrize(
    ("event", "method", "params"),
    [
        (
            BEFORE_MESSAGE,
            "hooks/before_message",
            {"agent_id": "ana", "session_id": None, "text": "hello", "source": None},
        ),
        (
            AFTER_MESSAGE,
            "hooks/after_message",
            {"agent_id": "ana", "session_id": None, "text_in": "", "text_out": "hi there"},
        ),
        (
            BEFORE_TOOL,
            "hooks/before_tool_call",
            {"agent_id": "ana", "session_id": None, "tool_name": "bash", "arguments": {"command": "ls"}},
        ),
        (
            AFTER_TOOL,
            "hooks/after_tool_call",
            {
                "agent_id": "ana",
                "session_id": None,
                "tool_name": "bash",
                "duration_ms": None,
                "result": "a.txt",
                "error": None,
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_event_has_its_method_and_its_members(event: HookEvent, method: str, params: dict[str, Any]) -> None:
    request = HOOKS.encode_request(event, STATE)

    assert request.method.name == method
    assert as_json(request.params) == params


def test_values_that_the_contract_lacks_are_taken_from_the_data_of_an_event() -> None:
    data = {"agent_id": "carlos", "source": "telegram", "text_in": "hello", "duration_ms": 12, "error": "gone"}
    message = HookEvent(HookKind.BEFORE_MESSAGE, message="hello", session_id="s-1", data=data)
    responded = HookEvent(HookKind.ON_MESSAGE_COMPLETE, message="hi", session_id="s-1", data=data)
    ran = HookEvent(HookKind.AFTER_TOOL_CALL, "bash", "bash", session_id="s-1", data=data)

    output = [as_json(HOOKS.encode_request(event, STATE).params) for event in (message, responded, ran)]

    assert [one["agent_id"] for one in output] == ["carlos"] * 3
    assert [one["session_id"] for one in output] == ["s-1"] * 3
    assert output[0]["source"] == "telegram"
    assert output[1]["text_in"] == "hello"
    assert (output[2]["duration_ms"], output[2]["error"]) == (12, "gone")


def test_a_link_without_session_data_has_no_agent() -> None:
    assert HOOKS.encode_request(BEFORE_MESSAGE, LinkState("weather")).params.agent_id == ""


@pytest.mark.parametrize("kind", [HookKind.ON_COMPACTION, HookKind.ON_SESSION_START, HookKind.ON_SESSION_END])
def test_hooks_that_nexo_lacks_are_not_supported(kind: HookKind) -> None:
    with pytest.raises(NotSupported) as caught:
        HOOKS.encode_request(HookEvent(kind), STATE)

    assert "nexo" in caught.value.because


@pytest.mark.parametrize(
    ("event", "response", "result"),
    [
        pytest.param(BEFORE_TOOL, None, Continue(), id="null"),
        pytest.param(BEFORE_TOOL, NexoHookResult(), Continue(), id="nothing"),
        pytest.param(BEFORE_TOOL, NexoHookResult(abort=True, reason="no"), Block("no"), id="abort"),
        pytest.param(BEFORE_TOOL, NexoHookResult(decision="block", reason="no"), Block("no"), id="a decision to block"),
        pytest.param(BEFORE_TOOL, NexoHookResult(abort=True), Block("blocked by a hook"), id="abort without a reason"),
        pytest.param(BEFORE_MESSAGE, NexoHookResult(abort=True, reason="no"), Block("no"), id="abort before a message"),
        pytest.param(
            BEFORE_TOOL,
            NexoHookResult(abort=True, reason="no", override={"arguments": {}}),
            Block("no"),
            id="abort discards an override",
        ),
        pytest.param(
            BEFORE_TOOL, NexoHookResult(override={"arguments": {"a": 1}}), Modify({"a": 1}), id="other arguments"
        ),
        pytest.param(
            BEFORE_TOOL,
            NexoHookResult(override={"arguments": "ls"}),
            Block("Extension returned malformed modify result"),
            id="arguments that are no object",
        ),
        pytest.param(BEFORE_TOOL, NexoHookResult(override={"tool_name": "sh"}), Continue(), id="another tool"),
        pytest.param(BEFORE_TOOL, NexoHookResult(override="x"), Continue(), id="an override that is no object"),
        pytest.param(BEFORE_TOOL, NexoHookResult(decision="allow"), Continue(), id="a decision to allow"),
        pytest.param(BEFORE_TOOL, NexoHookResult(do_not_reply_again=True), Continue(), id="what is lost"),
        pytest.param(BEFORE_MESSAGE, NexoHookResult(override={"text": "HELLO"}), Inject("HELLO"), id="another text"),
        pytest.param(BEFORE_MESSAGE, NexoHookResult(override={"text": 1}), Continue(), id="a text that is none"),
        pytest.param(
            BEFORE_MESSAGE, NexoHookResult(decision="transform", transformed_body="hey"), Inject("hey"), id="a new body"
        ),
        pytest.param(BEFORE_MESSAGE, NexoHookResult(decision="transform"), Continue(), id="no new body"),
        pytest.param(AFTER_TOOL, NexoHookResult(override={"result": "b.txt"}), Replace("b.txt"), id="another result"),
        pytest.param(AFTER_TOOL, NexoHookResult(override={"result": [1]}), Replace("[1]"), id="a result of any kind"),
        pytest.param(AFTER_MESSAGE, NexoHookResult(override={"text_out": "x"}), Continue(), id="too late"),
    ],
)
def test_responses_are_mapped_to_the_contract(
    event: HookEvent, response: NexoHookResult | None, result: HookResult
) -> None:
    assert HOOKS.decode_result(response, HOOKS.encode_request(event, STATE), STATE) == result


# -- requests to an extension


def test_an_extension_gets_events_of_the_contract() -> None:
    before = {"agent_id": "ana", "session_id": "s", "text": "hello", "source": "whatsapp"}
    after = {"agent_id": "ana", "session_id": "s", "text_in": "hello", "text_out": "hi"}
    calling = {"agent_id": "ana", "session_id": "s", "tool_name": "bash", "arguments": {"a": 1}}
    called = {"agent_id": "ana", "session_id": "s", "tool_name": "bash", "duration_ms": 3, "result": {"content": "x"}}
    failed = {"agent_id": "ana", "session_id": "s", "tool_name": "bash", "duration_ms": 3, "error": "gone"}

    _, message = decode_hook(HookKind.BEFORE_MESSAGE, before)
    _, responded = decode_hook(HookKind.ON_MESSAGE_COMPLETE, after)
    _, call = decode_hook(HookKind.BEFORE_TOOL_CALL, calling)
    _, result = decode_hook(HookKind.AFTER_TOOL_CALL, called)
    _, error = decode_hook(HookKind.AFTER_TOOL_CALL, failed)

    assert message == HookEvent(
        HookKind.BEFORE_MESSAGE, message="hello", session_id="s", data={"agent_id": "ana", "source": "whatsapp"}
    )
    assert responded == HookEvent(
        HookKind.ON_MESSAGE_COMPLETE, message="hi", session_id="s", data={"agent_id": "ana", "text_in": "hello"}
    )
    assert call == HookEvent(
        HookKind.BEFORE_TOOL_CALL, "bash", "bash", {"a": 1}, session_id="s", data={"agent_id": "ana"}
    )
    assert result.tool_output == "x"
    assert (error.tool_output, error.data["error"]) == ("gone", "gone")


@pytest.mark.parametrize(
    ("kind", "result", "response"),
    [
        (HookKind.BEFORE_TOOL_CALL, Continue(), {"abort": False}),
        (HookKind.BEFORE_TOOL_CALL, Block("no"), {"abort": True, "reason": "no"}),
        (HookKind.BEFORE_TOOL_CALL, Confirm("sure?"), {"abort": True, "reason": "sure?"}),
        (HookKind.BEFORE_TOOL_CALL, Modify({"a": 1}), {"abort": False, "override": {"arguments": {"a": 1}}}),
        (HookKind.AFTER_TOOL_CALL, Replace("x"), {"abort": False, "override": {"result": "x"}}),
        (HookKind.BEFORE_MESSAGE, Inject("it rains"), {"abort": False, "override": {"text": "hi\n\nit rains"}}),
        (HookKind.BEFORE_TOOL_CALL, Inject("it rains"), {"abort": False, "override": {"text": "it rains"}}),
    ],
)
def test_the_decision_of_an_extension_reaches_its_host(kind: HookKind, result: HookResult, response: Any) -> None:
    request, _ = decode_hook(kind, {"text": "hi"})

    assert as_json(HOOKS.encode_result(result, request, STATE)) == response


def test_an_extension_is_called_under_the_names_of_all_four_hooks() -> None:
    assert {method.name for method in HOOKS.wire_methods(STATE)} == {
        "hooks/before_message",
        "hooks/after_message",
        "hooks/before_tool_call",
        "hooks/after_tool_call",
    }


def test_hook_names_are_mapped_to_their_kinds() -> None:
    kinds, unknown = to_hook_kinds(("after_message", "before_tool_call", "on_sunrise", "after_message"))

    assert kinds == (HookKind.ON_MESSAGE_COMPLETE, HookKind.BEFORE_TOOL_CALL)
    assert unknown == ("on_sunrise",)
    assert to_hook_names((HookKind.ON_MESSAGE_COMPLETE, HookKind.ON_COMPACTION)) == ("after_message",)
