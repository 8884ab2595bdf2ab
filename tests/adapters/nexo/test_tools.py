"""Tools in nexo: how they are called, and the session data beside their arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from becket.adapters.nexo import NEXO, NexoExtra, NexoManifest, build_session_meta, get_session_meta
from becket.adapters.nexo.messages import TOOLS_CALL, NexoToolCallParams
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import InvalidParams, NotSupported

assert NEXO.load_mapping is not None
MAPPING = NEXO.load_mapping()
CALLS = MAPPING.methods[TOOL_CALL.name]
CURIOUS = LinkState("weather", extra=NexoExtra(agent_id="ana", manifest=NexoManifest(passthrough=True)))
OTHERS = [LinkState("weather"), LinkState("weather", extra=NexoExtra(agent_id="ana"))]


def sealed(input: dict[str, Any], meta: dict[str, Any] | None, state: LinkState) -> dict[str, Any]:
    """Returns the arguments as they are sent."""
    assert MAPPING.add_call_metadata is not None
    return MAPPING.add_call_metadata(ToolCall("get", input), meta, state).input


def test_a_call_is_sent_with_its_name_and_arguments() -> None:
    request = CALLS.encode_request(ToolCall("get", {"city": "Bogotá"}), LinkState("weather"))

    assert request.method.name == "tools/call"
    assert msgspec.to_builtins(request.params) == {"name": "get", "arguments": {"city": "Bogotá"}}


def test_a_result_is_any_json() -> None:
    request = CALLS.encode_request(ToolCall("get", {}), LinkState("weather"))

    assert CALLS.decode_result({"temperature": 17}, request, LinkState("weather")) == {"temperature": 17}
    assert CALLS.encode_result([1, None], request, LinkState("weather")) == [1, None]


@pytest.mark.parametrize(
    ("arguments", "input"),
    [({"city": "Bogotá"}, {"city": "Bogotá"}), (None, {}), ({"_meta": {"agent_id": "a"}, "city": "x"}, {"city": "x"})],
)
def test_an_extension_gets_only_the_arguments(arguments: Any, input: dict[str, Any]) -> None:
    received = CALLS.decode_request(WireRequest(TOOLS_CALL, NexoToolCallParams("get", arguments)), LinkState("weather"))

    assert received == ToolCall("get", input)


def test_arguments_that_are_not_an_object_are_refused() -> None:
    with pytest.raises(InvalidParams) as caught:
        CALLS.decode_request(WireRequest(TOOLS_CALL, NexoToolCallParams("get", ["x"])), LinkState("weather"))

    assert caught.value.problems[0][0] == "/arguments"


def test_tools_are_called_under_one_name() -> None:
    assert [method.name for method in CALLS.wire_methods(LinkState("weather"))] == ["tools/call"]


def test_the_rest_of_the_contract_is_not_supported() -> None:
    for method in ("provider.complete", "command.invoke", "memory.append", "config.get", "info.get"):
        with pytest.raises(NotSupported):
            MAPPING.get_method(method)


# -- session data


def test_the_session_members_come_first_and_cannot_be_forged() -> None:
    arguments = sealed({"city": "x", "_meta": {"agent_id": "mallory"}}, build_session_meta("ana", "s-1"), CURIOUS)

    assert msgspec.json.encode(arguments) == b'{"_meta":{"agent_id":"ana","session_id":"s-1"},"city":"x"}'


def test_without_a_session_the_host_itself_is_sent() -> None:
    assert sealed({"_meta": {"agent_id": "mallory"}}, None, CURIOUS) == {
        "_meta": {"agent_id": "ana", "session_id": None}
    }


@pytest.mark.parametrize("state", OTHERS)
def test_an_extension_that_did_not_request_it_gets_no_session(state: LinkState) -> None:
    assert sealed({"city": "x"}, build_session_meta("ana"), state) == {"city": "x"}


def test_a_known_channel_is_sent_as_a_binding() -> None:
    meta = build_session_meta("a", "u", channel="whatsapp", account_id="p")

    assert meta == {
        "agent_id": "a",
        "session_id": "u",
        "nexo": {
            "binding": {
                "agent_id": "a",
                "session_id": "u",
                "channel": "whatsapp",
                "account_id": "p",
                "binding_id": "whatsapp:p",
            }
        },
    }
    assert build_session_meta("a", channel="telegram")["nexo"]["binding"]["binding_id"] == "telegram"


@pytest.mark.parametrize(
    ("params", "meta"),
    [
        (NexoToolCallParams("get", {"_meta": {"agent_id": "a"}}), {"agent_id": "a"}),
        (NexoToolCallParams("get", {"_meta": "a"}), {}),
        (NexoToolCallParams("get", {}), {}),
        (NexoToolCallParams("get", [1]), {}),
        (None, {}),
    ],
)
def test_a_tool_can_read_the_session_that_its_host_sends(params: Any, meta: dict[str, Any]) -> None:
    assert get_session_meta(SimpleNamespace(wire_request=WireRequest(TOOLS_CALL, params))) == meta


def test_other_hosts_send_no_session() -> None:
    assert get_session_meta(object()) == {}
