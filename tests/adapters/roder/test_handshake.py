"""The handshake of Roder for host and extension: every check, its order and its message."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from becket.adapters.roder import (
    INITIALIZE,
    LIST_MODELS,
    TASKS_SPEC,
    EventFilter,
    EventSink,
    InferenceEngine,
    InitializeParams,
    InitializeResult,
    LoadedManifest,
    RoderManifest,
    Service,
    SubagentDispatcher,
    TaskExecutor,
    TaskSpec,
    TaskSpecResult,
    ToolProvider,
    ToolSpec,
)
from becket.adapters.roder.handshake import (
    SERVER_HANDSHAKE,
    RoderOffer,
    build_contract_name,
    build_provider_id,
    client_handshake,
)
from becket.adapters.roder.messages.models import ListModelsResult, ModelDescriptor
from becket.adapters.roder.served_manifest import ServedManifest
from becket.contract.handshake import Capabilities, DeclaredCapability, HostInfo, Initialize, Initialized
from becket.contract.providers import Model, Provider
from becket.contract.tools import Tool
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import (
    BadCapabilities,
    HandshakeFailed,
    InvalidParams,
    Meaning,
    RemoteError,
    RpcError,
    VersionMismatch,
)

SCHEMA = {"type": "object"}
PROVIDES: tuple[Service, ...] = (
    EventSink("s"),
    ToolProvider("t", (ToolSpec("count", "Counts.", SCHEMA), ToolSpec("odd name: yes", "", SCHEMA))),
    InferenceEngine("models"),
    TaskExecutor("build"),
    SubagentDispatcher("agents"),
)
MANIFEST = RoderManifest(
    id="demo",
    name="Demo",
    version="0.1.0",
    api_version="^0.1",
    provides=PROVIDES,
    required_capabilities=("events.read.turn",),
)
LOADED = LoadedManifest.from_bytes(MANIFEST, b"id = 1", event_filter=EventFilter(("turn.",)))
MODELS = [{"id": "small", "name": "Small", "context_window": 4096}, {"id": "sage:7b", "name": "Sage"}]


def build_context(loaded: LoadedManifest | None = LOADED, **more: Any) -> HandshakeContext:
    return HandshakeContext(extension="demo", host=HostInfo("becket", "1"), extra=loaded, **more)


def echo(**changes: Any) -> dict[str, Any]:
    result = InitializeResult(
        protocol_version="0.2.0", extension_id="demo", services=PROVIDES, manifest_checksum=LOADED.checksum
    )
    response: dict[str, Any] = msgspec.to_builtins(result) | changes
    return response


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def hold(
    responses: list[object], output: list[WireRequest] | None = None, context: HandshakeContext | None = None
) -> HandshakeResult:
    """Drives a handshake with these responses; errors are thrown into it."""
    steps: Generator[Any, Any, HandshakeResult] = client_handshake(context or build_context())
    step = next(steps)
    try:
        for response in responses:
            if output is not None:
                output.append(step)
            step = steps.throw(response) if isinstance(response, Exception) else steps.send(raw(response))
    except StopIteration as stop:
        handshake_result: HandshakeResult = stop.value
        return handshake_result
    raise AssertionError(f"it asks for more: {step}")


# -- the host


def test_the_host_sends_its_versions_the_manifest_and_the_configuration() -> None:
    output: list[WireRequest] = []

    hold([echo(), {"models": []}], output, build_context(config={"a": 1}))

    assert output[0].method is INITIALIZE
    assert msgspec.json.encode(output[0].params).decode() == (
        '{"protocolVersion":"0.2.0","apiVersion":"0.1.0","extensionId":"demo","cwd":".",'
        '"grantedCapabilities":["events.read.turn"],"config":{"a":1},"eventFilter":{"kinds":["turn."]}}'
    )
    assert msgspec.json.encode(output[1].params) == b'{"engineId":"models"}'


@pytest.mark.parametrize(
    ("loaded", "cwd", "received"),
    [
        (LOADED, None, "."),
        (replace(LOADED, cwd="work"), "/elsewhere", "work"),
        (None, "/elsewhere", "/elsewhere"),
        (None, None, "."),
    ],
)
def test_the_folder_is_sent_as_it_was_configured(loaded: LoadedManifest | None, cwd: str | None, received: str) -> None:
    output: list[WireRequest] = []

    hold([echo(), {"models": []}], output, build_context(loaded, cwd=cwd))

    assert output[0].params.cwd == received


def test_events_go_to_sinks_that_subscribe_to_their_kind() -> None:
    offer: RoderOffer = hold([echo(), {"models": MODELS}]).extra
    without_sink = replace(offer, manifest=replace(MANIFEST, provides=(ToolProvider("t", ()),)))

    assert offer.accepts_event("turn.started")
    assert not offer.accepts_event("tool.call_started")
    assert not without_sink.accepts_event("turn.started")


def test_all_services_are_mapped_to_the_contract() -> None:
    handshake_result = hold([echo(), {"models": MODELS}])

    assert handshake_result.capabilities == Capabilities(
        (Tool("count", "Counts.", SCHEMA), Tool("odd-name--yes", "odd name: yes", SCHEMA)),
        (
            Provider(
                id="models",
                display_name="models",
                description="Models of models",
                models=(
                    Model("small", "Small", 4096, streaming=True, tool_use=True),
                    Model("sage-7b", "Sage", None, streaming=True, tool_use=True),
                ),
            ),
        ),
        (
            DeclaredCapability("event_sink", "s"),
            DeclaredCapability("task_executor", "build"),
            DeclaredCapability("subagent_dispatcher", "agents"),
        ),
    )
    offer: RoderOffer = handshake_result.extra
    assert offer.manifest is MANIFEST
    assert offer.event_filter == EventFilter(("turn.",))
    assert offer.tools == {"count": ("t", "count"), "odd-name--yes": ("t", "odd name: yes")}
    assert offer.models == {
        ("models", "small"): ("models", "small"),
        ("models", "sage-7b"): ("models", "sage:7b"),
    }
    assert handshake_result.warnings == ()


@pytest.mark.parametrize(
    "response",
    [
        RemoteError(method=LIST_MODELS.name, code=-32000, message="no network"),
        {"models": [{"id": 1}]},
        {"models": []},
        None,
    ],
)
def test_an_engine_without_models_does_not_affect_the_tools(response: object) -> None:
    handshake_result = hold([echo(), response])

    assert handshake_result.capabilities.providers == ()
    assert len(handshake_result.capabilities.tools) == 2
    assert len(handshake_result.warnings) == (response != {"models": []})


@pytest.mark.parametrize("version", ["0.1.0", "0.0.1", ""])
@pytest.mark.parametrize("further", [{}, {"services": "all"}])
def test_another_version_is_refused_before_all_else(version: str, further: dict[str, Any]) -> None:
    with pytest.raises(VersionMismatch) as caught:
        hold([echo(protocolVersion=version, extensionId="other", **further)])

    assert (caught.value.given, caught.value.supported) == (version, "0.2.0")
    assert caught.value.because == (f'process extension demo speaks protocol "{version}" but the host requires "0.2.0"')


def test_another_id_is_refused_before_the_services_are_checked() -> None:
    with pytest.raises(HandshakeFailed) as caught:
        hold([echo(extensionId="someone-else", services=[])])

    assert caught.value.because == ('process extension echoed id "someone-else" but the manifest declares "demo"')


@pytest.mark.parametrize(
    "services",
    [
        [],
        msgspec.to_builtins(PROVIDES[:-1]),
        msgspec.to_builtins(PROVIDES[::-1]),
        [*msgspec.to_builtins(PROVIDES), {"type": "event_sink", "id": "more"}],
    ],
)
def test_other_services_or_another_order_are_refused_before_the_checksum_is_checked(services: object) -> None:
    with pytest.raises(BadCapabilities) as caught:
        hold([echo(services=services, manifestChecksum="")])

    [(pointer, text)] = caught.value.problems
    assert pointer == "/services"
    assert text.startswith("process extension demo echoed services [")
    assert 'but the manifest declares [EventSink { id: "s" }, ToolProvider {' in text


def test_services_with_unknown_members_are_the_same() -> None:
    services = [service | {"note": 1} for service in msgspec.to_builtins(PROVIDES)]

    assert hold([echo(services=services), {"models": []}]).capabilities.tools


def test_another_manifest_is_refused() -> None:
    with pytest.raises(HandshakeFailed) as caught:
        hold([echo(manifestChecksum="deadbeefdeadbeef")])

    assert caught.value.because == (
        'process extension demo echoed manifest checksum "deadbeefdeadbeef" but the configured manifest hashes to '
        f'"{LOADED.checksum}"; the child is running against a different manifest'
    )


@pytest.mark.parametrize(
    "response",
    [None, [], {}, "yes", echo(services=[{"type": "surprise", "id": "x"}]), echo(protocolVersion=2)],
)
def test_a_response_that_cannot_be_read_is_refused(response: object) -> None:
    with pytest.raises(BadCapabilities) as caught:
        hold([response])

    assert caught.value.problems[0][1].startswith("process extension returned a malformed initialize result")


def test_without_a_manifest_the_services_come_from_the_response() -> None:
    response = echo(extensionId="whoever", manifestChecksum="whatever")

    handshake_result = hold([response, {"models": MODELS}], context=build_context(None))

    assert handshake_result.extra.manifest.id == "whoever"
    assert handshake_result.extra.event_filter == EventFilter()
    assert [tool.name for tool in handshake_result.capabilities.tools] == ["count", "odd-name--yes"]


def test_without_a_manifest_the_version_counts_all_the_same() -> None:
    with pytest.raises(VersionMismatch):
        hold([echo(protocolVersion="9")], context=build_context(None))


# -- adapted names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("count", "count"),
        ("  count ", "count"),
        ("a:b c\x07", "a-b-c-"),
        ("", "unnamed"),
        ("é" * 40, "é" * 32),
        ("taken", "taken_3"),
    ],
)
def test_a_valid_name_is_unchanged_and_others_are_adapted(text: str, name: str) -> None:
    assert build_contract_name(text, {"taken": 1, "taken_2": 2}) == name


@pytest.mark.parametrize(
    ("engine", "id"),
    [("local", "local"), ("My Models!", "my-models-"), ("", "engine"), ("x" * 70, "x" * 64), ("used", "used_2")],
)
def test_the_id_of_an_engine_is_made_to_fit_a_provider(engine: str, id: str) -> None:
    assert build_provider_id(engine, {"used": None}) == id


def test_two_engines_and_two_tools_of_one_name_stay_distinct() -> None:
    tools = tuple(ToolProvider(id, (ToolSpec("count", "d", SCHEMA),)) for id in ("a", "b"))
    provides = (*tools, InferenceEngine("One"), InferenceEngine("one"))
    loaded = LoadedManifest.from_bytes(replace(MANIFEST, provides=provides), b"id = 1")

    models = {"models": [{"id": "m", "name": "M"}]}
    handshake_result = hold(
        [echo(services=msgspec.to_builtins(provides)), models, models], context=build_context(loaded)
    )

    assert handshake_result.extra.tools == {"count": ("a", "count"), "count_2": ("b", "count")}
    assert handshake_result.extra.models == {("one", "m"): ("One", "m"), ("one_2", "m"): ("one", "m")}


# -- the extension

PARAMS = InitializeParams(
    protocol_version="0.2.0",
    api_version="0.1.0",
    extension_id="demo",
    cwd=".",
    granted_capabilities=(),
    config={"a": 1},
    event_filter=EventFilter(),
)
SMALL = RoderManifest(
    id="demo",
    name="Demo",
    version="1",
    api_version="*",
    provides=(InferenceEngine("local"), TaskExecutor("tidy")),
)


def state(manifest: RoderManifest = SMALL) -> LinkState:
    models = (Model("small", "Small", 5), Model("plain"))
    provider = Provider(id="local", display_name="L", description="d", models=models)
    side = ServedManifest(LoadedManifest.from_bytes(manifest, b"a", folder="/home"))
    return LinkState("demo", Capabilities((), (provider,)), side, commands=(("tidy", "Tidies."),))


def test_the_first_request_is_mapped_to_the_contract_and_gets_the_manifest_as_response() -> None:
    here = state()

    heard = SERVER_HANDSHAKE.decode_params(msgspec.to_builtins(PARAMS), here)
    response = SERVER_HANDSHAKE.encode_result(Initialized(1), here)

    assert heard == Initialize(extension_protocol_version=1, plugin_id="demo", plugin_root="/home", config={"a": 1})
    assert msgspec.json.encode(response).decode() == (
        '{"protocolVersion":"0.2.0","extensionId":"demo","services":[{"type":"inference_engine","id":"local"},'
        '{"type":"task_executor","id":"tidy"}],"manifestChecksum":"af63dc4c8601ec8c"}'
    )


def test_a_configuration_that_is_not_an_object_counts_as_absent() -> None:
    assert SERVER_HANDSHAKE.decode_params(msgspec.to_builtins(PARAMS) | {"config": None}, state()).config == {}


def test_a_host_of_another_version_is_refused_whatever_else_it_sends() -> None:
    with pytest.raises(RpcError) as caught:
        SERVER_HANDSHAKE.decode_params({"protocolVersion": "0.3.0"}, state())

    assert caught.value.meaning is Meaning.INCOMPATIBLE
    assert "0.3.0" in caught.value.message


@pytest.mark.parametrize("given", [None, [], {}, {"protocolVersion": 1}])
def test_a_first_request_that_cannot_be_read_is_refused(given: object) -> None:
    with pytest.raises(InvalidParams):
        SERVER_HANDSHAKE.decode_params(given, state())


def test_a_host_that_requests_another_extension_is_refused() -> None:
    with pytest.raises(RpcError, match='its manifest is of "demo", and the host requests "other"'):
        SERVER_HANDSHAKE.decode_params(msgspec.to_builtins(PARAMS) | {"extensionId": "other"}, state())


def test_a_manifest_that_does_not_match_the_class_is_refused_in_a_sentence() -> None:
    with pytest.raises(RpcError) as caught:
        SERVER_HANDSHAKE.decode_params(
            msgspec.to_builtins(PARAMS), state(replace(SMALL, provides=(InferenceEngine("local"),)))
        )

    assert caught.value.message == (
        "demo: roder-extension.toml and the class of the extension do not agree: "
        "the class has the command `tidy`, which the file does not list"
    )


def test_a_class_without_a_file_is_served_under_any_id(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RODER_EXTENSION_MANIFEST", raising=False)
    here = state()
    here.extra = None

    SERVER_HANDSHAKE.decode_params(msgspec.to_builtins(PARAMS) | {"extensionId": "other"}, here)

    assert SERVER_HANDSHAKE.encode_result(Initialized(1), here).services == (
        InferenceEngine("local"),
        TaskExecutor("tidy"),
    )


def test_the_models_of_an_engine_are_requested() -> None:
    assert SERVER_HANDSHAKE.handlers[LIST_MODELS.name]({"engineId": "local"}, state()) == ListModelsResult(
        (ModelDescriptor(id="small", name="Small", context_window=5), ModelDescriptor(id="plain", name="plain"))
    )


def test_the_description_of_an_executor_is_requested() -> None:
    schema = {"type": "object", "properties": {"args": {"type": "array", "items": {"type": "string"}}}}

    assert SERVER_HANDSHAKE.handlers[TASKS_SPEC.name]({"executorId": "tidy"}, state()) == TaskSpecResult(
        TaskSpec(kind="tidy", description="Tidies.", input_schema=schema, metadata={})
    )


@pytest.mark.parametrize(
    ("query", "params"),
    [
        (LIST_MODELS.name, {"engineId": "other"}),
        (LIST_MODELS.name, None),
        (TASKS_SPEC.name, {"executorId": "other"}),
        (TASKS_SPEC.name, {}),
    ],
)
def test_undeclared_services_are_not_called(query: str, params: object) -> None:
    with pytest.raises(InvalidParams):
        SERVER_HANDSHAKE.handlers[query](params, state())


def test_shutdown_gets_a_response_with_an_empty_object() -> None:
    assert SERVER_HANDSHAKE.shutdown_result == {}
