"""The handshake of a host: requests, accepted responses, and the message of each refusal."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.host.stand_ins import ALL, ECHO, LOCAL, SOON, hosted, initialized, introduce, played
from tests.peer.scripted import Script, notification, refusal, request, response, settled

import becket
from becket import BecketError, Limits
from becket.contract.handshake import FEATURES, HostInfo
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.errors import (
    BadCapabilities,
    HandshakeFailed,
    NotDeclared,
    ReservedPermission,
    UnknownPermission,
    VersionMismatch,
)
from becket.host.starting.connect import connect_extension, connect_extension_over, derive_id
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

pytestmark = pytest.mark.loops

LONG = "x" * 65
HELD = [*ALL, "audio.input"]


@asynccontextmanager
async def connecting(**options: Any) -> AsyncGenerator[tuple[Script, list[BecketError]], None]:
    """Yields the test's end of a link on which a host begins a handshake, and the error that it fails with."""
    script = Script()
    failures: list[BecketError] = []

    async def connect() -> None:
        try:
            async with connect_extension_over(script, **({"id": "demo", "grants": HELD, "timeouts": SOON} | options)):
                pass
        except BecketError as error:
            failures.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect)
            yield script, failures


async def refused(result: object, **options: Any) -> BecketError:
    """Returns the error of the host when an extension sends this response."""
    async with connecting(**options) as (script, failures):
        script.send(response(await script.receive(), result))
    (error,) = failures
    assert script.is_closed
    return error


# -- what the host sends


async def test_the_host_sends_its_identity_as_the_contract_defines_it() -> None:
    async with connecting(config={"endpoint": "x"}, root="/demo") as (script, _):
        called = await script.receive()
        assert called["method"] == "initialize"
        assert called["params"] == {
            "synaps_version": "0.1.0",
            "extension_protocol_version": 1,
            "plugin_id": "demo",
            "plugin_root": "/demo",
            "config": {"endpoint": "x"},
            "host": {"name": "becket", "version": becket.__version__},
            "features": list(FEATURES),
        }
        script.send(response(called, initialized()))


async def test_a_host_may_have_a_name_of_its_own_and_an_extension_no_folder() -> None:
    async with connecting(host=HostInfo("desk", "2")) as (script, _):
        called = await script.receive()
        assert called["params"]["host"] == {"name": "desk", "version": "2"}
        assert called["params"]["plugin_root"] is None
        assert called["params"]["config"] == {}
        script.send(response(called, initialized()))


async def test_a_dialect_without_features_announces_none() -> None:
    async with connecting(dialect="plain") as (script, _):
        called = await script.receive()
        assert "features" not in called["params"]
        script.send(response(called, initialized()))


async def test_only_messages_of_the_contract_are_sent_before_the_response() -> None:
    async with connecting(limits=Limits(handshake=0.05)) as (script, failures):
        called = await script.receive()
        assert "_meta" not in called["params"]
    assert script.unread() == []  # no cancellation either, which an old extension does not support
    assert isinstance(failures[0], HandshakeFailed)


async def test_granted_methods_can_be_called_while_the_response_is_pending() -> None:
    async with connecting(grants=["memory.write"]) as (script, failures):
        called = await script.receive()
        script.send(
            request(1, "memory.append", {"namespace": "demo", "content": "x"}),
            request(2, "memory.query", {"namespace": "demo"}),
        )
        responses = {output["id"]: output for output in (await script.receive(), await script.receive())}
        assert responses[1]["result"]["ok"] is True
        assert responses[2]["error"]["message"] == "permission denied: memory.read required"
        script.send(response(called, initialized()))
    assert failures == []


# -- negotiated features


async def test_features_that_both_peers_have_announced_are_used() -> None:
    async with hosted(features=["ping", "cancel", "of tomorrow"]) as (notes, _):
        assert notes.features == {"ping", "cancel"}


async def test_an_extension_without_features_gets_nothing_beyond_the_contract() -> None:
    async with played() as (notes, script):
        assert notes.features == frozenset()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notes.call_tool, "echo", {"text": "x"})
            called = await script.receive()
            assert called["params"] == {"name": "echo", "input": {"text": "x"}}
            tasks.cancel_scope.cancel()
        assert script.unread() == []


@pytest.mark.parametrize("result", [{"protocol_version": 1}, {"protocol_version": 1, "capabilities": []}])
async def test_an_extension_that_declares_nothing_gets_no_further_requests(result: object) -> None:
    async with played(result, grants=()) as (notes, script):
        await settled()
        assert script.unread() == []
        assert (notes.tools, notes.providers, notes.capabilities) == ((), (), ())
        assert notes.about is None


@pytest.mark.parametrize(("sent", "own_id"), [("notes", ""), ("other", "other"), (None, "")])
async def test_an_extension_has_an_id_of_its_own_if_it_differs(sent: object, own_id: str) -> None:
    async with played({**initialized(features=["ping"]), "id": sent}) as (notes, _):
        assert (notes.id, notes.own_id) == ("notes", own_id)


async def test_the_declarations_are_available() -> None:
    seen = {"kind": "ocr", "name": "Tess", "permissions": ["audio.input"], "params": {"any": 1}}
    result = initialized(tools=[ECHO], providers=[LOCAL], capabilities=[seen], hooks=True)
    async with played(result, grants=HELD) as (notes, _):
        assert [tool.name for tool in notes.tools] == ["echo"]
        assert [model.id for provider in notes.providers for model in provider.models] == ["small"]
        assert [capability.params for capability in notes.capabilities] == [{"any": 1}]
        assert repr(notes) == "<Extension notes: ready, 1 tools, 1 providers>"
    assert "stopped" in repr(notes)


# -- info.get


@pytest.mark.parametrize(
    "declared", [{"tools": [ECHO]}, {"providers": [LOCAL]}, {"capabilities": [{"kind": "k", "name": "n"}]}]
)
async def test_info_is_requested_from_an_extension_with_declarations(declared: dict[str, Any]) -> None:
    async with connecting() as (script, failures):
        script.send(response(await script.receive(), initialized(**declared)))
        called = await script.receive()
        assert called["method"] == "info.get"
        assert "params" not in called
        script.send(response(called, {"build": {"backend": "cpu"}}))
    assert failures == []


async def test_the_info_of_an_extension_is_stored() -> None:
    script = Script()
    async with anyio.create_task_group() as tasks:

        async def notify() -> None:
            script.send(response(await script.receive(), initialized(tools=[ECHO])))
            script.send(response(await script.receive(), {"build": {"backend": "cpu"}}))

        tasks.start_soon(notify)
        async with connect_extension_over(script, id="demo", grants=ALL, timeouts=SOON) as extension:
            assert extension.about == ExtensionInfo(BuildInfo("cpu"))


async def test_info_in_the_handshake_is_not_requested_again() -> None:
    script = Script()
    info = {"build": {"backend": "cpu", "version": "1.0"}}
    async with anyio.create_task_group() as tasks:

        async def notify() -> None:
            script.send(
                response(await script.receive(), {**initialized(tools=[ECHO]), "features": ["cancel"], "info": info})
            )
            assert (await script.receive())["method"] == "shutdown"
            script.leave()

        tasks.start_soon(notify)
        async with connect_extension_over(script, id="demo", grants=ALL, timeouts=SOON) as extension:
            assert extension.about == ExtensionInfo(BuildInfo("cpu", version="1.0"))


async def test_info_of_another_shape_in_the_handshake_is_requested_again() -> None:
    async with connecting() as (script, failures):
        script.send(response(await script.receive(), {**initialized(tools=[ECHO]), "info": {"name": "demo"}}))
        called = await script.receive()
        assert called["method"] == "info.get"
        script.send(response(called, {"build": {"backend": "cpu"}}))
    assert failures == []


@pytest.mark.parametrize(("output", "level"), [({"build": 5}, logging.WARNING), (None, logging.WARNING)])
async def test_invalid_info_is_ignored_and_logged(output: object, level: int, caplog: pytest.LogCaptureFixture) -> None:
    async with connecting() as (script, failures):
        script.send(response(await script.receive(), initialized(tools=[ECHO])))
        script.send(response(await script.receive(), output))
    assert failures == []
    assert [record.levelno for record in caplog.records if record.name == "becket.host"] == [level]


async def test_an_unknown_info_method_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with connecting() as (script, failures):
        await introduce(script, initialized(tools=[ECHO]))
    assert failures == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_an_extension_that_leaves_during_the_info_request_has_not_started() -> None:
    async with connecting() as (script, failures):
        script.send(response(await script.receive(), initialized(tools=[ECHO])))
        await script.receive()
        script.leave()
    assert isinstance(failures[0], HandshakeFailed)


# -- refusals: every rule, and that nothing of the extension is left


def a_tool(**members: Any) -> dict[str, Any]:
    return {"tools": [ECHO | members]}


def a_provider(**members: Any) -> dict[str, Any]:
    return {"providers": [LOCAL | members]}


def a_capability(**members: Any) -> dict[str, Any]:
    return {"capabilities": [{"kind": "k", "name": "n"} | members]}


RULES: list[tuple[dict[str, Any], str, str]] = [
    (a_tool(name=" "), "tools/0/name", "registered a tool with an empty tool name"),
    (a_tool(name="a:b"), "tools/0/name", "registered tool 'a:b' with invalid tool name: ':' is reserved"),
    (
        a_tool(name=LONG),
        "tools/0/name",
        f"registered tool '{LONG}' with invalid tool name: must be at most 64 chars (got 65)",
    ),
    (a_tool(name="a b"), "tools/0/name", "registered tool 'a b' with invalid tool name: must not contain whitespace"),
    (
        a_tool(name="a\x1b"),
        "tools/0/name",
        "registered tool 'a\x1b' with invalid tool name: contains control character U+001B",
    ),
    ({"tools": [ECHO, ECHO]}, "tools/1/name", "registered duplicate tool name 'echo'"),
    (a_tool(description=" "), "tools/0/description", "registered tool 'echo' with an empty description"),
    (
        a_tool(input_schema=[]),
        "tools/0/input_schema",
        "registered tool 'echo' with invalid input_schema: input_schema must be a JSON object",
    ),
    (a_provider(id=""), "providers/0/id", "registered provider with empty provider id"),
    (a_provider(id="Local"), "providers/0/id", "registered provider 'Local' with invalid provider id"),
    (
        a_provider(id="a:b"),
        "providers/0/id",
        "registered provider 'a:b' with invalid provider id: must not contain reserved character ':'",
    ),
    (a_provider(display_name=""), "providers/0/display_name", "registered provider 'local' with empty display_name"),
    (a_provider(description=""), "providers/0/description", "registered provider 'local' with empty description"),
    (a_provider(models=[]), "providers/0/models", "registered provider 'local' must declare at least one model"),
    (
        a_provider(models=[{"id": ""}]),
        "providers/0/models/0/id",
        "registered provider 'local' with empty model id",
    ),
    (
        a_provider(models=[{"id": "a:b"}]),
        "providers/0/models/0/id",
        "registered provider 'local' with invalid model id 'a:b': ':' is reserved",
    ),
    (
        a_provider(models=[{"id": "a"}, {"id": "a"}]),
        "providers/0/models/1/id",
        "registered provider 'local' with duplicate model id 'a'",
    ),
    (
        a_provider(config_schema=5),
        "providers/0/config_schema",
        "registered provider 'local' with invalid config_schema: config_schema must be a JSON object",
    ),
    (
        a_provider(config_schema={"required": ["endpoint"]}),
        "providers/0/config_schema/required/0",
        "provider 'local' missing required provider config 'endpoint'",
    ),
    (
        a_provider(config_schema={"required": [7]}),
        "providers/0/config_schema/required/0",
        "provider 'local' config_schema.required must contain only strings",
    ),
    (a_capability(kind=" "), "capabilities/0/kind", "capability ' ' invalid: capability 'kind' must be non-empty"),
    (a_capability(name=""), "capabilities/0/name", "capability 'k' invalid: capability 'name' must be non-empty"),
    (
        a_capability(permissions=["audio.telepathy"]),
        "capabilities/0/permissions/0",
        "capability 'k' invalid: capability 'k' declares unknown permission 'audio.telepathy'",
    ),
    (
        a_capability(permissions=["audio.output"]),
        "capabilities/0/permissions/0",
        "capability 'k' invalid: capability 'k' requires permission 'audio.output' but it is not granted",
    ),
]


@pytest.mark.parametrize(("declared", "pointer", "text"), RULES, ids=[f"{rule[1]}-{rule[2][:40]!a}" for rule in RULES])
async def test_a_broken_rule_is_reported_with_the_message_of_the_contract(
    declared: dict[str, Any], pointer: str, text: str
) -> None:
    async with connecting() as (script, failures):
        script.send(response(await script.receive(), initialized(**declared)))
        shutdown = await script.receive()
        assert shutdown["method"] == "shutdown"  # it works, and gets a shutdown before it is killed
        script.send(response(shutdown))
    (error,) = failures
    assert isinstance(error, BadCapabilities)
    assert error.problems == ((f"/capabilities/{pointer}", text),)
    assert script.is_closed


async def test_all_broken_rules_are_reported_together() -> None:
    error = await refused(initialized(tools=[ECHO | {"name": "", "description": ""}], providers=[LOCAL | {"id": "X"}]))
    assert isinstance(error, BadCapabilities)
    assert [pointer for pointer, _ in error.problems] == [
        "/capabilities/tools/0/name",
        "/capabilities/tools/0/description",
        "/capabilities/providers/0/id",
    ]
    assert "demo" in str(error)


async def test_a_provider_cannot_be_registered_twice() -> None:
    error = await refused(initialized(providers=[LOCAL, LOCAL]))
    assert isinstance(error, BadCapabilities)
    assert error.problems == (("/capabilities/providers/1/id", "provider 'demo:local' is already registered"),)


@pytest.mark.parametrize(
    ("declared", "what", "permission"),
    [({"tools": [ECHO]}, "tools", "tools.register"), ({"providers": [LOCAL]}, "providers", "providers.register")],
)
async def test_to_register_something_needs_the_permission(declared: Any, what: str, permission: str) -> None:
    error = await refused(initialized(**declared), grants=["memory.read"])
    assert isinstance(error, BadCapabilities)
    text = f"registered {what} but lacks permission '{permission}'"
    assert error.problems == ((f"/capabilities/{what}", text),)


async def test_a_host_may_have_permissions_of_its_own() -> None:
    known = PERMISSIONS | {"lights.switch"}
    async with connecting(known=known, grants=["lights.switch"]) as (script, failures):
        await introduce(script, initialized(**a_capability(permissions=["lights.switch"])))
    assert failures == []


async def test_required_settings_are_checked_in_the_configuration() -> None:
    async with connecting(config={"endpoint": ""}) as (script, failures):
        await introduce(script, initialized(**a_provider(config_schema={"required": ["endpoint"]})))
    assert failures == []


# -- versions and shapes


@pytest.mark.parametrize("version", [0, 2, -1, 2**40])
@pytest.mark.parametrize("capabilities", [{}, ["of another time"], {"tools": 5}])
async def test_another_version_is_reported_as_such_whatever_shape_the_rest_has(
    version: int, capabilities: object
) -> None:
    error = await refused({"protocol_version": version, "capabilities": capabilities})
    assert isinstance(error, VersionMismatch)
    assert (error.given, error.supported) == (version, 1)
    assert error.because == (f"initialize returned unsupported protocol_version {version} (supported: 1)")


@pytest.mark.parametrize(
    ("result", "pointers"),
    [
        (None, [""]),
        ([], [""]),
        ("ok", [""]),
        ({}, ["/protocol_version"]),
        ({"protocol_version": "1"}, ["/protocol_version"]),
        ({"protocol_version": True}, ["/protocol_version"]),
        ({"protocol_version": 1, "capabilities": ["tools"]}, ["/capabilities"]),
        (
            initialized(tools=[{"name": 5}]),
            ["/capabilities/tools/0/name", "/capabilities/tools/0/description", "/capabilities/tools/0/input_schema"],
        ),
        (initialized(providers=[{"id": "a"}]), ["/capabilities/providers/0/display_name"]),
    ],
)
async def test_a_response_that_cannot_be_read_is_refused_with_pointers(result: object, pointers: list[str]) -> None:
    error = await refused(result)
    assert isinstance(error, BadCapabilities)
    assert set(pointers) <= {pointer for pointer, _ in error.problems}
    assert all(text.startswith("Invalid initialize response from extension 'demo': ") for _, text in error.problems)


# -- no response


async def test_an_extension_that_never_responds_times_out_with_a_hint() -> None:
    async with connecting(limits=Limits(handshake=0.02)) as (script, failures):
        await script.receive()
    (error,) = failures
    assert isinstance(error, HandshakeFailed)
    assert error.extension == "demo"
    assert "0.02 s" in error.because
    assert "`native`" in error.because
    assert script.is_closed


async def test_an_extension_that_responds_with_an_error_is_quoted() -> None:
    async with connecting() as (script, failures):
        script.send(refusal(await script.receive(), 1008, "I need a newer host"))
    assert isinstance(failures[0], HandshakeFailed)
    assert "I need a newer host" in failures[0].because
    assert script.is_closed


async def test_an_extension_that_leaves_has_failed() -> None:
    async with connecting() as (script, failures):
        await script.receive()
        script.leave()
    assert isinstance(failures[0], HandshakeFailed)


async def test_an_invalid_response_fails_the_handshake() -> None:
    async with connecting() as (script, failures):
        called = await script.receive()
        script.send({"jsonrpc": "2.0", "id": called["id"], "error": 5})
    assert isinstance(failures[0], HandshakeFailed)


async def test_a_cancelled_handshake_leaves_nothing_behind() -> None:
    script = Script()
    async with anyio.create_task_group() as tasks:

        async def connect() -> None:
            await connect_extension_over(script, id="demo")

        tasks.start_soon(connect)
        await script.receive()
        tasks.cancel_scope.cancel()
    assert script.is_closed


async def test_notifications_before_the_response_are_ignored() -> None:
    async with connecting() as (script, failures):
        called = await script.receive()
        script.send(
            notification("$/log", {"level": "info", "logger": "x", "message": "starting"}),
            notification("task.start", {"id": "1", "label": "Loading"}),
            notification("nobody/knows", {}),
        )
        script.send(response(called, initialized()))
    assert failures == []


# -- schemas

LOOP = {"$ref": "https://example.org/schema"}


@pytest.mark.parametrize("schema", [LOOP, {"type": "nonsense"}, {"type": "object", "properties": 5}])
async def test_a_schema_that_cannot_be_applied_disables_its_tool_alone(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [ECHO, ECHO | {"name": "other", "input_schema": schema}]
    async with played(initialized(tools=tools)) as (notes, _):
        assert [tool.name for tool in notes.tools] == ["echo"]
        assert notes.disabled_tools.keys() == {"other"}
        assert "/input_schema" in notes.disabled_tools["other"]
        with pytest.raises(NotDeclared):
            await notes.call_tool("other", {})
    assert "'other' is disabled" in caplog.text


async def test_where_schemas_are_only_warned_about_the_extension_starts(caplog: pytest.LogCaptureFixture) -> None:
    async with connecting(schemas="warn") as (script, failures):
        await introduce(script, initialized(tools=[ECHO | {"input_schema": LOOP}]))
    assert failures == []
    assert "input_schema" in caplog.text


async def test_schemas_are_not_checked_if_checking_is_off(caplog: pytest.LogCaptureFixture) -> None:
    async with connecting(schemas="off") as (script, failures):
        await introduce(script, initialized(tools=[ECHO | {"input_schema": LOOP}]))
    assert failures == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# -- mistakes of the connecting program


@pytest.mark.parametrize("id", ["", "a b", "a:b", "a/b", "a\\b", "..", "x" * 65, "a\x1b"])
def test_an_invalid_namespace_is_an_invalid_id(id: str) -> None:
    with pytest.raises(ValueError, match="not a valid id of an extension:"):
        connect_extension(["notes"], id=id)


@pytest.mark.parametrize(
    ("command", "id"),
    [
        (["notes"], "notes"),
        (["/usr/lib/notes.py", "--fast"], "notes"),
        (["/usr/bin/python3.11", "-I", "notes.py"], "notes"),
        (["python", "-m", "notes"], "notes"),
        (["env", "A=1", "node", "dist/notes.js"], "notes"),
        (["python", "-c", "print('x y')"], "python"),
        (["my notes"], "my notes"),
    ],
)
def test_an_id_is_read_from_the_command(command: list[str], id: str) -> None:
    assert derive_id(command) == id


def test_a_grant_of_an_unknown_permission_is_refused_before_anything_starts() -> None:
    with pytest.raises(UnknownPermission):
        connect_extension(["notes"], grants=["memory.reed"])
    with pytest.raises(ReservedPermission):
        connect_extension(["notes"], grants=["tools.override"])


def test_a_gate_has_its_own_grants_and_belongs_to_the_extension() -> None:
    gate = Gate("notes", Grants())
    with pytest.raises(TypeError, match="not both"):
        connect_extension(["notes"], gate=gate, grants=[])
    with pytest.raises(ValueError, match="the gate is of 'notes'"):
        connect_extension(["others"], gate=gate)


@pytest.mark.parametrize("options", [{"dialect": "klingon"}, {"schemas": "sometimes"}])
def test_an_unknown_option_value_is_refused_before_anything_starts(options: Any) -> None:
    with pytest.raises(ValueError):
        connect_extension(["notes"], **options)
