"""Roder client and server handshake, with every check in Roder's order and wording.

A host compares the result of `extension/initialize` with the manifest and rejects any difference. Without a manifest,
for a program that is started by its command alone, the result is used as it is. Then it requests the models of each
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket._text import truncate_bytes
from becket.adapters.roder.manifest import (
    API_VERSION,
    PROTOCOL_VERSION,
    EventFilter,
    LoadedManifest,
    RoderManifest,
)
from becket.adapters.roder.messages.models import LIST_MODELS, ListModelsParams, ListModelsResult, ModelDescriptor
from becket.adapters.roder.messages.services import (
    EventSink,
    InferenceEngine,
    Service,
    ToolProvider,
    are_equal_services,
    filter_services,
)
from becket.adapters.roder.messages.tasks import TASKS_SPEC, TaskSpec, TaskSpecParams, TaskSpecResult
from becket.adapters.roder.rust_debug import format_services, format_text
from becket.adapters.roder.served_manifest import ServedManifest, check_matches_class, load_served_manifest
from becket.contract.handshake import (
    PROTOCOL_VERSION as CONTRACT_VERSION,
    Capabilities,
    DeclaredCapability,
    Initialize,
    Initialized,
)
from becket.contract.json_narrowing import is_object
from becket.contract.names import (
    MAX_ID_LENGTH,
    SEPARATOR,
    WHITE_SPACE,
    find_id_problem,
    is_control,
    is_provider_id,
    strip_whitespace,
)
from becket.contract.providers import Model, Provider
from becket.contract.tools import Tool
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import (
    JSON_ERRORS,
    BadCapabilities,
    CallTimeout,
    HandshakeFailed,
    InvalidParams,
    Meaning,
    RemoteError,
    RpcError,
    VersionMismatch,
)
from becket.methods.descriptors import Method

__all__ = [
    "INITIALIZE",
    "SERVER_HANDSHAKE",
    "SHUTDOWN",
    "InitializeParams",
    "InitializeResult",
    "RoderOffer",
    "client_handshake",
    "decode_params",
]

# -- messages


class InitializeParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The host's first request: its versions, the granted capabilities and the event filter."""

    protocol_version: str
    api_version: str
    extension_id: str
    cwd: str
    granted_capabilities: tuple[str, ...]
    config: Any
    event_filter: EventFilter


class InitializeResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The extension's result: the content of its manifest."""

    protocol_version: str
    extension_id: str
    services: tuple[Service, ...]
    manifest_checksum: str


INITIALIZE: Final = Method(
    "extension/initialize",
    InitializeParams,
    InitializeResult,
    timeout=10.0,
    direction="to-extension",
    summary="Opens the connection: the extension repeats its manifest.",
)
SHUTDOWN: Final[Method[Any, Any]] = Method(
    "extension/shutdown", Any, Any, timeout=2.0, direction="to-extension", summary="Stops the extension."
)


# -- host


class RoderOffer(Struct, frozen=True, kw_only=True):
    """What an extension offers, with the mapping from the contract's names to Roder's.

    `tools` maps a tool's name to (provider, tool), `models` maps (provider, model) to (engine, model)."""

    manifest: RoderManifest
    event_filter: EventFilter = EventFilter()
    tools: Mapping[str, tuple[str, str]] = {}
    models: Mapping[tuple[str, str], tuple[str, str]] = {}

    def accepts_event(self, kind: str) -> bool:
        """Returns whether events of this kind are sent to the extension: it has a sink, and its filter matches."""
        return bool(filter_services(self.manifest.provides, EventSink)) and self.event_filter.matches(kind)


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Initializes the extension and returns what it offers."""
    loaded: LoadedManifest | None = context.extra
    raw = yield WireRequest(INITIALIZE, build_initialize_params(context, loaded))
    manifest = decode_manifest(context.extension, loaded, raw)
    tools = convert_tools(manifest.provides)
    models: dict[tuple[str, str], tuple[str, str]] = {}
    providers: dict[str, Provider] = {}
    notes: list[str] = []
    for engine in filter_services(manifest.provides, InferenceEngine):
        try:
            listed = decode_models((yield WireRequest(LIST_MODELS, ListModelsParams(engine.id))))
        except (RemoteError, CallTimeout, ValueError) as error:  # its other services are still usable
            notes.append(f"no models of {format_text(engine.id)}: {error}")
            continue
        provider = build_provider_id(engine.id, providers)
        models |= {(provider, name): (engine.id, model.id) for name, model in listed.items()}
        if listed:
            providers[provider] = build_provider(provider, engine.id, listed)
    others = (one for one in manifest.provides if not isinstance(one, InferenceEngine | ToolProvider))
    return HandshakeResult(
        capabilities=Capabilities(
            tuple(tool for tool, _ in tools.values()),
            tuple(providers.values()),
            tuple(DeclaredCapability(str(one.__struct_config__.tag), one.id) for one in others),
        ),
        extra=RoderOffer(
            manifest=manifest,
            event_filter=EventFilter() if loaded is None else loaded.event_filter,
            tools={name: place for name, (_, place) in tools.items()},
            models=models,
        ),
        warnings=tuple(notes),
        allows_invalid_schemas=True,
    )


def build_initialize_params(context: HandshakeContext, loaded: LoadedManifest | None) -> InitializeParams:
    cwd = context.cwd if loaded is None or loaded.cwd is None else loaded.cwd
    return InitializeParams(
        protocol_version=PROTOCOL_VERSION,
        api_version=API_VERSION,
        extension_id=context.extension if loaded is None else loaded.manifest.id,
        cwd=cwd or ".",
        granted_capabilities=() if loaded is None else loaded.manifest.required_capabilities,
        config=dict(context.config),
        event_filter=EventFilter() if loaded is None else loaded.event_filter,
    )


# -- checks


def decode_manifest(extension: str, loaded: LoadedManifest | None, raw: Raw) -> RoderManifest:
    """Returns the manifest of the extension, after comparing the result of `extension/initialize` with it."""
    id = extension if loaded is None else loaded.manifest.id
    check_version(extension, id, raw)
    try:
        result = msgspec.json.decode(raw, type=InitializeResult)
    except JSON_ERRORS as error:
        malformed = "process extension returned a malformed initialize result"
        raise BadCapabilities(extension, [("", f"{malformed}: {error}")]) from error
    if loaded is None:
        return RoderManifest(
            id=result.extension_id, name=result.extension_id, version="", api_version="*", provides=result.services
        )
    check_initialize_result(extension, loaded, result)
    return loaded.manifest


class RoderVersionProbe(Struct, rename="camel"):
    protocol_version: Any = None


def check_version(extension: str, id: str, raw: Raw) -> None:
    """Checks the version first, because a result of another version may have any shape."""
    try:
        version = msgspec.json.decode(raw, type=RoderVersionProbe).protocol_version
    except JSON_ERRORS:
        return  # decoding the whole result reports the problem
    if isinstance(version, str) and version != PROTOCOL_VERSION:
        requires = f"but the host requires {format_text(PROTOCOL_VERSION)}"
        because = f"process extension {id} speaks protocol {format_text(version)} {requires}"
        raise VersionMismatch(extension, because, given=version, supported=PROTOCOL_VERSION)


def check_initialize_result(extension: str, loaded: LoadedManifest, result: InitializeResult) -> None:
    manifest = loaded.manifest
    if result.extension_id != manifest.id:
        declares = f"but the manifest declares {format_text(manifest.id)}"
        because = f"process extension echoed id {format_text(result.extension_id)} {declares}"
        raise HandshakeFailed(extension, because)
    if not are_equal_services(result.services, manifest.provides):
        declares = f"but the manifest declares {format_services(manifest.provides)}"
        because = f"process extension {manifest.id} echoed services {format_services(result.services)} {declares}"
        raise BadCapabilities(extension, [("/services", because)])
    if result.manifest_checksum != loaded.checksum:
        hashes = f"but the configured manifest hashes to {format_text(loaded.checksum)}"
        echoed = f"echoed manifest checksum {format_text(result.manifest_checksum)} {hashes}"
        because = f"process extension {manifest.id} {echoed}; the child is running against a different manifest"
        raise HandshakeFailed(extension, because)


# -- mapping of offers to the contract


def convert_tools(provides: tuple[Service, ...]) -> dict[str, tuple[Tool, tuple[str, str]]]:
    """Returns the tools by their names in the contract, each with Roder's (provider, tool)."""
    tools: dict[str, tuple[Tool, tuple[str, str]]] = {}
    for provider in filter_services(provides, ToolProvider):
        for spec in provider.tools:
            name = build_contract_name(spec.name, tools)
            tool = Tool(name, strip_whitespace(spec.description) or spec.name, spec.parameters)
            tools[name] = tool, (provider.id, spec.name)
    return tools


def decode_models(raw: Raw) -> dict[str, ModelDescriptor]:
    """Returns the models of an engine by their names in the contract."""
    try:
        listed = msgspec.json.decode(raw, type=ListModelsResult).models
    except JSON_ERRORS as error:
        raise ValueError(f"malformed result of {LIST_MODELS.name}: {error}") from error
    models: dict[str, ModelDescriptor] = {}
    for model in listed:
        models[build_contract_name(model.id, models)] = model
    return models


def build_provider(provider: str, engine: str, models: Mapping[str, ModelDescriptor]) -> Provider:
    shown = strip_whitespace(engine) or provider
    return Provider(
        id=provider,
        display_name=shown,
        description=f"Models of {shown}",
        models=tuple(
            Model(name, model.name, model.context_window, streaming=True, tool_use=True)
            for name, model in models.items()
        ),
    )


def build_contract_name(text: str, taken: Mapping[str, object]) -> str:
    """Returns the text as a name that the contract allows and that is not taken.

    Roder allows any non-blank text; models often have names such as `family:size`."""
    name = strip_whitespace(text)
    if find_id_problem(name) is not None:
        name = "".join("-" if is_forbidden_character(letter) else letter for letter in name)
        name = truncate_bytes(name, MAX_ID_LENGTH) or "unnamed"
    number, fitted = 1, name
    while fitted in taken:
        number += 1
        fitted = f"{name}_{number}"
    return fitted


def is_forbidden_character(letter: str) -> bool:
    return letter == SEPARATOR or letter in WHITE_SPACE or is_control(letter)


def build_provider_id(engine: str, taken: Mapping[str, object]) -> str:
    id = strip_whitespace(engine)
    if not is_provider_id(id) or find_id_problem(id) is not None:
        id = "".join(letter if is_provider_id(letter) else "-" for letter in id.lower())[:MAX_ID_LENGTH] or "engine"
    return build_contract_name(id, taken)


# -- extension


def decode_params(params: Any, kind: type[Any]) -> Any:
    """Returns params as an instance of `kind`; raises `InvalidParams` if they do not match."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        from becket.conversion.problems import find_problems

        raise InvalidParams(find_problems(params, kind)) from error


def decode_initialize(wire_params: Any, state: LinkState) -> Initialize:
    """Returns the params of the host; raises `RpcError` if version, id or manifest do not match."""
    version = wire_params.get("protocolVersion") if is_object(wire_params) else None
    if isinstance(version, str) and version != PROTOCOL_VERSION:
        text = f"{state.extension} speaks protocol {format_text(PROTOCOL_VERSION)} of Roder, not {format_text(version)}"
        raise RpcError(Meaning.INCOMPATIBLE, text, {"supported": [PROTOCOL_VERSION]})
    params: InitializeParams = decode_params(wire_params, InitializeParams)
    served = state.extra if isinstance(state.extra, ServedManifest) else load_served_manifest(state)
    manifest = served.manifest
    if served.has_file:
        if params.extension_id != manifest.id:
            own, requested = format_text(manifest.id), format_text(params.extension_id)
            text = f"its manifest is of {own}, and the host requests {requested}"
            raise RpcError(Meaning.INCOMPATIBLE, f"{state.extension}: {text}")
        check_matches_class(manifest, state)
    state.extra = served
    return Initialize(
        extension_protocol_version=CONTRACT_VERSION,
        plugin_id=params.extension_id,
        plugin_root=served.loaded.folder,
        config=params.config if is_object(params.config) else {},
    )


def encode_initialize_result(_: Initialized, state: LinkState) -> InitializeResult:
    """Returns the content of the manifest."""
    served: ServedManifest = state.extra
    loaded = served.loaded
    return InitializeResult(
        protocol_version=PROTOCOL_VERSION,
        extension_id=loaded.manifest.id,
        services=loaded.manifest.provides,
        manifest_checksum=loaded.checksum,
    )


def handle_list_models(wire_params: Any, state: LinkState) -> ListModelsResult:
    """Returns the models of a provider."""
    params: ListModelsParams = decode_params(wire_params, ListModelsParams)
    for provider in state.capabilities.providers:
        if provider.id == params.engine_id:
            return ListModelsResult(
                tuple(
                    ModelDescriptor(id=one.id, name=one.display_name or one.id, context_window=one.context_window)
                    for one in provider.models
                )
            )
    raise InvalidParams([("/engineId", f"there is no engine {format_text(params.engine_id)} here")])


INPUT_SCHEMA: Final = {"type": "object", "properties": {"args": {"type": "array", "items": {"type": "string"}}}}


def handle_task_spec(wire_params: Any, state: LinkState) -> TaskSpecResult:
    """Returns the task specification of a command."""
    params: TaskSpecParams = decode_params(wire_params, TaskSpecParams)
    for name, description in state.commands:
        if name == params.executor_id:
            spec = TaskSpec(kind=name, description=description, input_schema=INPUT_SCHEMA, metadata={})
            return TaskSpecResult(spec)
    raise InvalidParams([("/executorId", f"there is no executor {format_text(params.executor_id)} here")])


HANDLERS: Final[Mapping[str, Callable[[Any, LinkState], Any]]] = {
    LIST_MODELS.name: handle_list_models,
    TASKS_SPEC.name: handle_task_spec,
}

SERVER_HANDSHAKE: Final = ServerHandshake(
    initialize_method=INITIALIZE,
    decode_params=decode_initialize,
    encode_result=encode_initialize_result,
    handlers=HANDLERS,
    shutdown_result={},
)
