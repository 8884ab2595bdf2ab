"""The first exchange with an extension of Roder, from both sides: every check, in Roder's order and with its words.

A host holds the answer against the manifest that it has read, and refuses whatever differs. Without a manifest (a
program that somebody starts by hand) the answer itself says what there is. Then it asks each engine for its models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.contract.handshake import PROTOCOL_VERSION as CONTRACT_VERSION
from becket.contract.handshake import Capabilities, DeclaredCapability, Initialize, Initialized
from becket.contract.names import LONGEST_ID, SEPARATOR, WHITE_SPACE, find_id_problem, is_control, is_provider_id, trim
from becket.contract.providers import Model, Provider
from becket.contract.shapes import REFUSED, is_object
from becket.contract.tools import Tool
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.phrases import Saying, Scene
from becket.dialects.roder.manifest import (
    API_VERSION,
    PROTOCOL_VERSION,
    EventFilter,
    LoadedManifest,
    RoderManifest,
)
from becket.dialects.roder.models import LIST_MODELS, ListModels, ModelDescriptor, ModelList
from becket.dialects.roder.own_manifest import OwnSide, check_agreement, find_own_side
from becket.dialects.roder.services import (
    EventSink,
    InferenceEngine,
    Service,
    ToolProvider,
    are_same,
    services_of,
)
from becket.dialects.roder.shown import show_services, show_text
from becket.dialects.roder.tasks import TASKS_SPEC, TaskSpec, TaskSpecParams, TaskSpecResult
from becket.errors import (
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

__all__ = ["INITIALIZE", "SHUTDOWN", "WELCOME", "InitializeParams", "InitializeResult", "Offer", "greet", "read_params"]

# -- what travels


class InitializeParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The host's first words: the versions that it has, and what the extension may and will hear."""

    protocol_version: str
    api_version: str
    extension_id: str
    cwd: str
    granted_capabilities: tuple[str, ...]
    config: Any
    event_filter: EventFilter


class InitializeResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The extension's answer: its manifest as it has it."""

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
    summary="Opens the conversation: the extension repeats what its manifest says.",
)
SHUTDOWN: Final[Method[Any, Any]] = Method(
    "extension/shutdown", Any, Any, timeout=2.0, direction="to-extension", summary="Asks the extension to end."
)


# -- the host's side


class Offer(Struct, frozen=True, kw_only=True):
    """What an extension has turned out to offer, and by which names Roder knows what the contract calls otherwise.

    `tools` are by the contract's names: the provider and the tool. `models` are by the contract's provider and model:
    the engine and the model."""

    manifest: RoderManifest
    event_filter: EventFilter = EventFilter()
    tools: Mapping[str, tuple[str, str]] = {}
    models: Mapping[tuple[str, str], tuple[str, str]] = {}

    def hears(self, kind: str) -> bool:
        """Returns whether the extension is to be told of events of this kind: it has a sink, and its filter lets them
        through."""
        return bool(services_of(self.manifest.provides, EventSink)) and self.event_filter.matches(kind)


def greet(introduction: Introduction) -> Greeting:
    """Introduces the host, and returns what the extension offers."""
    loaded: LoadedManifest | None = introduction.particulars
    raw = yield Saying(INITIALIZE, introduce(introduction, loaded))
    manifest = read_manifest(introduction.extension, loaded, raw)
    tools = find_tools(manifest.provides)
    models: dict[tuple[str, str], tuple[str, str]] = {}
    providers: dict[str, Provider] = {}
    notes: list[str] = []
    for engine in services_of(manifest.provides, InferenceEngine):
        try:
            listed = read_models((yield Saying(LIST_MODELS, ListModels(engine.id))))
        except (RemoteError, CallTimeout, ValueError) as error:  # what else it offers can be used all the same
            notes.append(f"no models of {show_text(engine.id)}: {error}")
            continue
        provider = fit_provider_id(engine.id, providers)
        models |= {(provider, name): (engine.id, model.id) for name, model in listed.items()}
        if listed:
            providers[provider] = describe_engine(provider, engine.id, listed)
    others = (one for one in manifest.provides if not isinstance(one, InferenceEngine | ToolProvider))
    return Greeted(
        declared=Capabilities(
            tuple(tool for tool, _ in tools.values()),
            tuple(providers.values()),
            tuple(DeclaredCapability(str(one.__struct_config__.tag), one.id) for one in others),
        ),
        particulars=Offer(
            manifest=manifest,
            event_filter=EventFilter() if loaded is None else loaded.event_filter,
            tools={name: place for name, (_, place) in tools.items()},
            models=models,
        ),
        notes=tuple(notes),
        tolerates_schemas=True,
    )


def introduce(introduction: Introduction, loaded: LoadedManifest | None) -> InitializeParams:
    cwd = introduction.cwd if loaded is None or loaded.cwd is None else loaded.cwd
    return InitializeParams(
        protocol_version=PROTOCOL_VERSION,
        api_version=API_VERSION,
        extension_id=introduction.extension if loaded is None else loaded.manifest.id,
        cwd=cwd or ".",
        granted_capabilities=() if loaded is None else loaded.manifest.required_capabilities,
        config=dict(introduction.config),
        event_filter=EventFilter() if loaded is None else loaded.event_filter,
    )


# -- the checks


def read_manifest(extension: str, loaded: LoadedManifest | None, raw: Raw) -> RoderManifest:
    """Returns what the extension is by its manifest, once its answer was held against that."""
    id = extension if loaded is None else loaded.manifest.id
    check_version(extension, id, raw)
    try:
        result = msgspec.json.decode(raw, type=InitializeResult)
    except REFUSED as error:
        malformed = "process extension returned a malformed initialize result"
        raise BadCapabilities(extension, [("", f"{malformed}: {error}")]) from error
    if loaded is None:
        return RoderManifest(
            id=result.extension_id, name=result.extension_id, version="", api_version="*", provides=result.services
        )
    check_echo(extension, loaded, result)
    return loaded.manifest


class Spoken(Struct, rename="camel"):
    protocol_version: Any = None


def check_version(extension: str, id: str, raw: Raw) -> None:
    """Looks at the version before all else: an answer of another version may have any shape."""
    try:
        given = msgspec.json.decode(raw, type=Spoken).protocol_version
    except REFUSED:
        return  # what it is instead is told by whoever reads the whole
    if isinstance(given, str) and given != PROTOCOL_VERSION:
        requires = f"but the host requires {show_text(PROTOCOL_VERSION)}"
        because = f"process extension {id} speaks protocol {show_text(given)} {requires}"
        raise VersionMismatch(extension, because, given=given, supported=PROTOCOL_VERSION)


def check_echo(extension: str, loaded: LoadedManifest, result: InitializeResult) -> None:
    manifest = loaded.manifest
    if result.extension_id != manifest.id:
        declares = f"but the manifest declares {show_text(manifest.id)}"
        because = f"process extension echoed id {show_text(result.extension_id)} {declares}"
        raise HandshakeFailed(extension, because)
    if not are_same(result.services, manifest.provides):
        declares = f"but the manifest declares {show_services(manifest.provides)}"
        because = f"process extension {manifest.id} echoed services {show_services(result.services)} {declares}"
        raise BadCapabilities(extension, [("/services", because)])
    if result.manifest_checksum != loaded.checksum:
        hashes = f"but the configured manifest hashes to {show_text(loaded.checksum)}"
        echoed = f"echoed manifest checksum {show_text(result.manifest_checksum)} {hashes}"
        because = f"process extension {manifest.id} {echoed}; the child is running against a different manifest"
        raise HandshakeFailed(extension, because)


# -- what it offers, in the contract's words


def find_tools(provides: tuple[Service, ...]) -> dict[str, tuple[Tool, tuple[str, str]]]:
    """Returns the tools by the contract's names, each with the provider and the tool that it is."""
    tools: dict[str, tuple[Tool, tuple[str, str]]] = {}
    for provider in services_of(provides, ToolProvider):
        for spec in provider.tools:
            name = fit(spec.name, tools)
            tool = Tool(name, trim(spec.description) or spec.name, spec.parameters)
            tools[name] = tool, (provider.id, spec.name)
    return tools


def read_models(raw: Raw) -> dict[str, ModelDescriptor]:
    """Returns the models of an engine by the contract's names."""
    try:
        listed = msgspec.json.decode(raw, type=ModelList).models
    except REFUSED as error:
        raise ValueError(f"a malformed answer to {LIST_MODELS.name}: {error}") from error
    models: dict[str, ModelDescriptor] = {}
    for model in listed:
        models[fit(model.id, models)] = model
    return models


def describe_engine(provider: str, engine: str, models: Mapping[str, ModelDescriptor]) -> Provider:
    shown = trim(engine) or provider
    return Provider(
        id=provider,
        display_name=shown,
        description=f"Models of {shown}",
        models=tuple(
            Model(name, model.name, model.context_window, streaming=True, tool_use=True)
            for name, model in models.items()
        ),
    )


def fit(text: str, taken: Mapping[str, object]) -> str:
    """Returns the text as a name that the contract allows, and that is not taken.

    Roder allows any text that is not blank; models are often called `family:size`."""
    name = trim(text)
    if find_id_problem(name) is not None:
        name = "".join("-" if is_forbidden(letter) else letter for letter in name)
        name = name.encode("utf-8", "replace")[:LONGEST_ID].decode("utf-8", "ignore") or "unnamed"
    number, fitted = 1, name
    while fitted in taken:
        number += 1
        fitted = f"{name}_{number}"
    return fitted


def is_forbidden(letter: str) -> bool:
    return letter == SEPARATOR or letter in WHITE_SPACE or is_control(letter)


def fit_provider_id(engine: str, taken: Mapping[str, object]) -> str:
    id = trim(engine)
    if not is_provider_id(id) or find_id_problem(id) is not None:
        id = "".join(letter if is_provider_id(letter) else "-" for letter in id.lower())[:LONGEST_ID] or "engine"
    return fit(id, taken)


# -- the extension's side


def read_params(given: Any, kind: type[Any]) -> Any:
    """Returns params as their class; raises the answer to those that are none."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        from becket.typed.problems import find_problems

        raise InvalidParams(find_problems(given, kind)) from error


def read(given: Any, scene: Scene) -> Initialize:
    """Returns what the host said; raises where it is another's host, or the manifest another class's."""
    version = given.get("protocolVersion") if is_object(given) else None
    if isinstance(version, str) and version != PROTOCOL_VERSION:
        text = f"{scene.extension} speaks protocol {show_text(PROTOCOL_VERSION)} of Roder, not {show_text(version)}"
        raise RpcError(Meaning.INCOMPATIBLE, text, {"supported": [PROTOCOL_VERSION]})
    params: InitializeParams = read_params(given, InitializeParams)
    side = scene.particulars if isinstance(scene.particulars, OwnSide) else find_own_side(scene)
    manifest = side.manifest
    if side.has_file:
        if params.extension_id != manifest.id:
            text = (
                f"its manifest is of {show_text(manifest.id)}, and the host asks for {show_text(params.extension_id)}"
            )
            raise RpcError(Meaning.INCOMPATIBLE, f"{scene.extension}: {text}")
        check_agreement(manifest, scene)
    scene.particulars = side
    return Initialize(
        extension_protocol_version=CONTRACT_VERSION,
        plugin_id=params.extension_id,
        plugin_root=side.loaded.folder,
        config=params.config if is_object(params.config) else {},
    )


def reply(_: Initialized, scene: Scene) -> InitializeResult:
    """Returns the manifest, to the letter."""
    side: OwnSide = scene.particulars
    loaded = side.loaded
    return InitializeResult(
        protocol_version=PROTOCOL_VERSION,
        extension_id=loaded.manifest.id,
        services=loaded.manifest.provides,
        manifest_checksum=loaded.checksum,
    )


def list_models(given: Any, scene: Scene) -> ModelList:
    """Answers an engine's host with the models of a provider."""
    params: ListModels = read_params(given, ListModels)
    for provider in scene.declared.providers:
        if provider.id == params.engine_id:
            return ModelList(
                tuple(
                    ModelDescriptor(id=one.id, name=one.display_name or one.id, context_window=one.context_window)
                    for one in provider.models
                )
            )
    raise InvalidParams([("/engineId", f"there is no engine {show_text(params.engine_id)} here")])


INPUT_SCHEMA: Final = {"type": "object", "properties": {"args": {"type": "array", "items": {"type": "string"}}}}


def describe_task(given: Any, scene: Scene) -> TaskSpecResult:
    """Answers an executor's host with what a command does."""
    params: TaskSpecParams = read_params(given, TaskSpecParams)
    for name, description in scene.commands:
        if name == params.executor_id:
            spec = TaskSpec(kind=name, description=description, input_schema=INPUT_SCHEMA, metadata={})
            return TaskSpecResult(spec)
    raise InvalidParams([("/executorId", f"there is no executor {show_text(params.executor_id)} here")])


QUERIES: Final[Mapping[str, Callable[[Any, Scene], Any]]] = {
    LIST_MODELS.name: list_models,
    TASKS_SPEC.name: describe_task,
}

WELCOME: Final = Welcome(opening=INITIALIZE, read=read, reply=reply, queries=QUERIES, farewell={})
