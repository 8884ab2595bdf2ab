"""The handshake: the wire form, and every rule for the declarations of an extension."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, ValidationError

from becket.contract.handshake import (
    INITIALIZE,
    SHUTDOWN,
    Capabilities,
    DeclaredCapability,
    HostInfo,
    Initialize,
    Initialized,
)
from becket.contract.handshake_checks import decode_initialized, find_handshake_problems, find_shape_problems
from becket.contract.hooks import HookKind, HookMatch, HookSubscription
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.contract.providers import Model, Provider
from becket.contract.tools import Tool
from becket.errors import Problem
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

ALL = Grants.of(PERMISSIONS)
LONG = "x" * 65


def decode_response(value: Any) -> Initialized:
    return decode_initialized(Raw(msgspec.json.encode(value)))


def problems_of(
    *, tools: Any = (), providers: Any = (), capabilities: Any = (), grants: Grants = ALL, config: Any = None
) -> list[Problem]:
    declared = {"tools": tools, "providers": providers, "capabilities": capabilities}
    initialized = decode_response({"protocol_version": 1, "capabilities": declared})
    return find_handshake_problems("demo", initialized, grants=grants, config=config or {})


def a_tool(**members: Any) -> dict[str, Any]:
    return {"name": "echo", "description": "d", "input_schema": {}} | members


def a_provider(**members: Any) -> dict[str, Any]:
    return {"id": "local", "display_name": "Local", "description": "d", "models": [{"id": "small"}]} | members


# -- the wire form


def test_the_first_request_is_that_of_a_synaps_host() -> None:
    params = Initialize(
        extension_protocol_version=1,
        plugin_id="demo",
        plugin_root=None,
        config={"endpoint": "http://127.0.0.1:1"},
        synaps_version="0.1.0",
    )

    assert msgspec.json.encode(params) == (
        b'{"synaps_version":"0.1.0","extension_protocol_version":1,"plugin_id":"demo","plugin_root":null,'
        b'"config":{"endpoint":"http://127.0.0.1:1"}}'
    )


def test_a_native_host_sends_its_identity_and_capabilities() -> None:
    params = Initialize(
        extension_protocol_version=1,
        plugin_id="demo",
        plugin_root="/demo",
        config={},
        host=HostInfo("desk", "2.1.0"),
        features=("cancel",),
    )
    wire = (
        b'{"extension_protocol_version":1,"plugin_id":"demo","plugin_root":"/demo","config":{},'
        b'"host":{"name":"desk","version":"2.1.0"},"features":["cancel"]}'
    )

    assert msgspec.json.encode(params) == wire
    assert msgspec.json.decode(wire, type=Initialize) == params


def test_an_extension_declares_as_in_the_contract() -> None:
    declared = Capabilities(
        (Tool("echo", "d", {"type": "object"}),),
        (Provider(id="local", display_name="Local", description="d", models=(Model("small"),)),),
        (DeclaredCapability("ocr", "Tess", ("audio.input",), {"any": 1}),),
    )
    wire = (
        b'{"protocol_version":1,"capabilities":{'
        b'"tools":[{"name":"echo","description":"d","input_schema":{"type":"object"}}],'
        b'"providers":[{"id":"local","display_name":"Local","description":"d",'
        b'"models":[{"id":"small","capabilities":{"streaming":false,"tool_use":false}}]}],'
        b'"capabilities":[{"kind":"ocr","name":"Tess","permissions":["audio.input"],"params":{"any":1}}]},'
        b'"features":["ping"]}'
    )

    assert msgspec.json.encode(Initialized(1, declared, ("ping",))) == wire
    assert decode_initialized(Raw(wire)) == Initialized(1, declared, ("ping",))


def test_a_response_may_describe_the_extension_at_once() -> None:
    wire = b'{"protocol_version":1,"info":{"build":{"backend":"cpu"}}}'
    received = Initialized(1, info=ExtensionInfo(BuildInfo("cpu")))

    assert msgspec.json.encode(received) == wire
    assert decode_initialized(Raw(wire)) == received


@pytest.mark.parametrize(
    "value",
    [
        {"protocol_version": 1},
        {"protocol_version": 1, "capabilities": []},
        {"protocol_version": 1, "capabilities": {}},
        {"protocol_version": 1, "capabilities": {"hooks": True, "commands": ["x"]}, "other": 1},
        {"protocol_version": 1, "features": {"of": "somebody else"}},
        {"protocol_version": 1, "features": ["ping", 7]},
        {"protocol_version": 1, "features": None},
        {"protocol_version": 1, "info": "of somebody else"},
        {"protocol_version": 1, "info": {"build": 5}},
    ],
)
def test_a_response_that_declares_nothing_has_many_forms(value: Any) -> None:
    assert decode_response(value) == Initialized(1)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"protocol_version": "1"},
        {"protocol_version": -1},
        {"protocol_version": 1, "capabilities": None},
        {"protocol_version": 1, "capabilities": ["tools"]},
        {"protocol_version": 1, "capabilities": {"tools": None}},
        {"protocol_version": 1, "capabilities": {"tools": [{"name": "echo"}]}},
    ],
)
def test_a_response_of_another_shape_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        decode_response(value)


def test_all_problems_of_the_shape_are_reported_with_pointers() -> None:
    value = {"protocol_version": "1", "capabilities": {"tools": [{"name": 7}], "providers": 1}}
    problems = find_shape_problems("demo", Raw(msgspec.json.encode(value)))

    assert {pointer for pointer, _ in problems} == {
        "/protocol_version",
        "/capabilities/tools/0/name",
        "/capabilities/tools/0/description",
        "/capabilities/tools/0/input_schema",
        "/capabilities/providers",
    }
    assert all(text.startswith("Invalid initialize response from extension 'demo': ") for _, text in problems)


def test_a_shape_that_can_be_read_has_no_problems() -> None:
    assert find_shape_problems("demo", Raw(b'{"protocol_version":2,"capabilities":[]}')) == []


@pytest.mark.parametrize("raw", [b"{", b'{"protocol_version":1,"features":["\xff"]}'])
def test_invalid_json_has_one_problem(raw: bytes) -> None:
    assert len(find_shape_problems("demo", Raw(raw))) == 1


def test_the_requests_have_the_names_and_times_of_the_contract() -> None:
    assert (INITIALIZE.name, INITIALIZE.timeout) == ("initialize", 10.0)
    assert (SHUTDOWN.name, SHUTDOWN.timeout, SHUTDOWN.params) == ("shutdown", 0.5, None)


# -- the rules


def test_a_sound_declaration_has_no_problems() -> None:
    schema = {"type": "object", "required": ["endpoint"]}
    provider = a_provider(id=" local ", models=[{"id": "a"}, {"id": "b"}], config_schema=schema)

    assert problems_of() == []
    assert (
        problems_of(
            tools=[a_tool(), a_tool(name="echo.2")],
            providers=[provider, a_provider(id="other", config_schema=None)],
            capabilities=[{"kind": "ocr", "name": "Tess", "permissions": ["audio.input", "audio.output"]}],
            config={"endpoint": ""},
        )
        == []
    )


@pytest.mark.parametrize("version", [0, 2, 4294967295])
def test_another_version_is_refused_before_anything_else_is_checked(version: int) -> None:
    initialized = decode_response({"protocol_version": version, "capabilities": {"tools": [a_tool(name="")]}})

    assert find_handshake_problems("demo", initialized, grants=ALL, config={}) == [
        (
            "/protocol_version",
            f"initialize returned unsupported protocol_version {version} (supported: 1)",
        )
    ]


@pytest.mark.parametrize(
    ("tool", "member", "text"),
    [
        (a_tool(name=" "), "name", "registered a tool with an empty tool name"),
        (a_tool(name="a:b"), "name", "registered tool 'a:b' with invalid tool name: ':' is reserved"),
        (
            a_tool(name=LONG),
            "name",
            f"registered tool '{LONG}' with invalid tool name: must be at most 64 chars (got 65)",
        ),
        (a_tool(name="a b"), "name", "registered tool 'a b' with invalid tool name: must not contain whitespace"),
        (
            a_tool(name="a\x1b"),
            "name",
            "registered tool 'a\x1b' with invalid tool name: contains control character U+001B",
        ),
        (a_tool(description=" \n"), "description", "registered tool 'echo' with an empty description"),
        (
            a_tool(input_schema=[]),
            "input_schema",
            "registered tool 'echo' with invalid input_schema: input_schema must be a JSON object",
        ),
        (
            a_tool(output_schema=[]),
            "output_schema",
            "registered tool 'echo' with invalid output_schema: output_schema must be a JSON object or null",
        ),
    ],
)
def test_tools_that_break_a_rule_are_reported(tool: dict[str, Any], member: str, text: str) -> None:
    assert problems_of(tools=[tool]) == [(f"/capabilities/tools/0/{member}", text)]


def test_two_tools_of_one_name_are_reported() -> None:
    assert problems_of(tools=[a_tool(), a_tool(name=" echo "), a_tool(name="other")]) == [
        ("/capabilities/tools/1/name", "registered duplicate tool name 'echo'")
    ]


def test_all_problems_are_reported_together_in_the_order_of_the_contract() -> None:
    problems = problems_of(
        tools=[a_tool(name="", description="", input_schema=1)],
        providers=[a_provider(id="Local", display_name="", description="", models=[], config_schema=1)],
        capabilities=[{"kind": "", "name": "", "permissions": ["x"]}],
        grants=Grants(),
    )

    assert [pointer.removeprefix("/capabilities") for pointer, _ in problems] == [
        "/tools/0/name",
        "/tools/0/description",
        "/tools/0/input_schema",
        "/providers/0/id",
        "/providers/0/display_name",
        "/providers/0/description",
        "/providers/0/models",
        "/providers/0/config_schema",
        "/tools",
        "/providers",
        "/capabilities/0/kind",
        "/capabilities/0/name",
        "/capabilities/0/permissions/0",
    ]


@pytest.mark.parametrize(
    ("provider", "member", "text"),
    [
        (a_provider(id=""), "id", "registered provider with empty provider id"),
        (a_provider(id="Local"), "id", "registered provider 'Local' with invalid provider id"),
        (a_provider(id="a.b"), "id", "registered provider 'a.b' with invalid provider id"),
        (
            a_provider(id="a:b"),
            "id",
            "registered provider 'a:b' with invalid provider id: must not contain reserved character ':'",
        ),
        (
            a_provider(id="a b"),
            "id",
            "registered provider 'a b' with invalid provider id: must not contain whitespace",
        ),
        (
            a_provider(id="a\x07"),
            "id",
            "registered provider 'a\x07' with invalid provider id: must not contain control character U+0007",
        ),
        (
            a_provider(id=LONG),
            "id",
            f"registered provider '{LONG}' with invalid provider id: must be at most 64 chars (got 65)",
        ),
        (a_provider(display_name=" "), "display_name", "registered provider 'local' with empty display_name"),
        (a_provider(description=""), "description", "registered provider 'local' with empty description"),
        (a_provider(models=[]), "models", "registered provider 'local' must declare at least one model"),
        (a_provider(models=[{"id": " "}]), "models/0/id", "registered provider 'local' with empty model id"),
        (
            a_provider(models=[{"id": "a:b"}]),
            "models/0/id",
            "registered provider 'local' with invalid model id 'a:b': ':' is reserved",
        ),
        (
            a_provider(models=[{"id": "a"}, {"id": LONG}]),
            "models/1/id",
            f"registered provider 'local' with invalid model id '{LONG}': must be at most 64 chars (got 65)",
        ),
        (
            a_provider(models=[{"id": "a b"}]),
            "models/0/id",
            "registered provider 'local' with invalid model id 'a b': must not contain whitespace",
        ),
        (
            a_provider(models=[{"id": "a\x1b"}]),
            "models/0/id",
            "registered provider 'local' with invalid model id 'a\x1b': contains control character U+001B",
        ),
        (
            a_provider(models=[{"id": "a"}, {"id": " a"}]),
            "models/1/id",
            "registered provider 'local' with duplicate model id 'a'",
        ),
        (
            a_provider(config_schema=True),
            "config_schema",
            "registered provider 'local' with invalid config_schema: config_schema must be a JSON object",
        ),
        (
            a_provider(config_schema={"required": ["endpoint"]}),
            "config_schema/required/0",
            "provider 'local' missing required provider config 'endpoint'",
        ),
        (
            a_provider(config_schema={"required": [7]}),
            "config_schema/required/0",
            "provider 'local' config_schema.required must contain only strings",
        ),
    ],
)
def test_providers_that_break_a_rule_are_reported(provider: dict[str, Any], member: str, text: str) -> None:
    assert problems_of(providers=[provider]) == [(f"/capabilities/providers/0/{member}", text)]


def test_a_provider_that_is_declared_twice_is_reported() -> None:
    assert problems_of(providers=[a_provider(), a_provider()]) == [
        ("/capabilities/providers/1/id", "provider 'demo:local' is already registered")
    ]


def test_a_required_that_is_no_array_requires_nothing() -> None:
    assert problems_of(providers=[a_provider(config_schema={"required": "endpoint"})]) == []


def test_registering_needs_its_permission() -> None:
    assert problems_of(tools=[a_tool()], grants=Grants.of(PERMISSIONS, deny=["tools.register"])) == [
        ("/capabilities/tools", "registered tools but lacks permission 'tools.register'")
    ]
    assert problems_of(providers=[a_provider()], grants=Grants.of(["tools.register"])) == [
        ("/capabilities/providers", "registered providers but lacks permission 'providers.register'")
    ]
    assert problems_of(grants=Grants()) == []


@pytest.mark.parametrize(
    ("capability", "member", "text"),
    [
        ({"kind": " ", "name": "n"}, "kind", "capability ' ' invalid: capability 'kind' must be non-empty"),
        ({"kind": "k", "name": "\t"}, "name", "capability 'k' invalid: capability 'name' must be non-empty"),
        (
            {"kind": "k", "name": "n", "permissions": ["audio.input", "audio.telepathy"]},
            "permissions/1",
            "capability 'k' invalid: capability 'k' declares unknown permission 'audio.telepathy'",
        ),
        (
            {"kind": "k", "name": "n", "permissions": ["audio.output"]},
            "permissions/0",
            "capability 'k' invalid: capability 'k' requires permission 'audio.output' but it is not granted",
        ),
        (
            {"kind": "k", "name": "n", "permissions": ["tools.override"]},
            "permissions/0",
            "capability 'k' invalid: capability 'k' requires permission 'tools.override' but it is not granted",
        ),
    ],
)
def test_capabilities_that_break_a_rule_are_reported(capability: dict[str, Any], member: str, text: str) -> None:
    found = problems_of(capabilities=[capability], grants=Grants.of(["audio.input"]))

    assert found == [(f"/capabilities/capabilities/0/{member}", text)]


def hook_problems(hooks: Any, grants: Grants = ALL) -> list[Problem]:
    initialized = decode_response({"protocol_version": 1, "capabilities": {"hooks": hooks}})
    return find_handshake_problems("demo", initialized, grants=grants, config={})


@pytest.mark.parametrize("hooks", [True, False, None, {}, "before_tool_call", []])
def test_hooks_that_are_no_array_count_as_absent(hooks: Any) -> None:
    initialized = decode_response({"protocol_version": 1, "capabilities": {"hooks": hooks}})

    assert initialized.capabilities.hooks == ()
    assert hook_problems(hooks, Grants.of([])) == []


def test_announced_hooks_are_read_with_their_conditions() -> None:
    announced = [{"hook": "before_tool_call", "match": {"tool": "bash"}}, {"hook": "on_session_end"}]
    hooks = decode_response({"protocol_version": 1, "capabilities": {"hooks": announced}}).capabilities.hooks

    assert hooks == (
        HookSubscription(HookKind.BEFORE_TOOL_CALL, HookMatch("bash")),
        HookSubscription(HookKind.ON_SESSION_END),
    )
    assert msgspec.to_builtins(hooks) == tuple(announced)


def test_a_hook_without_its_permission_is_refused_and_the_permission_named() -> None:
    announced = [{"hook": "on_session_end"}, {"hook": "before_tool_call"}]
    ((pointer, text),) = hook_problems(announced, Grants.of(["session.lifecycle"]))

    assert pointer == "/capabilities/hooks/1"
    assert "'before_tool_call'" in text
    assert "'tools.intercept'" in text


@pytest.mark.parametrize(
    ("hook", "pointer"),
    [
        ({"hook": "on_usage"}, "/1/hook"),
        ({"hook": "before_tool_call", "match": {"tool": 5}}, "/1/match/tool"),
        ({"hook": "before_message", "match": {"tool": "bash"}}, "/1/match/tool"),
        ("before_tool_call", "/1"),
    ],
)
def test_a_hook_that_cannot_be_subscribed_is_refused_with_a_pointer(hook: Any, pointer: str) -> None:
    assert [where for where, _ in hook_problems([{"hook": "on_session_end"}, hook])] == [
        f"/capabilities/hooks{pointer}"
    ]


def test_more_hooks_than_the_limit_are_refused() -> None:
    assert hook_problems([{"hook": "on_session_end"}] * 64) == []
    assert [where for where, _ in hook_problems([{"hook": "on_session_end"}] * 65)] == ["/capabilities/hooks"]


def test_a_host_may_define_permissions_of_its_own() -> None:
    initialized = Initialized(1, Capabilities(capabilities=(DeclaredCapability("k", "n", ("lights.switch",)),)))
    known = PERMISSIONS | {"lights.switch"}
    granted = Grants.of(["lights.switch"], known=known)

    assert find_handshake_problems("demo", initialized, grants=granted, config={}, known=known) == []
    assert len(find_handshake_problems("demo", initialized, grants=granted, config={})) == 1
