"""How the contract is said in Morphir, from both sides: capabilities as tools, the health as what is told of oneself.

An extension has no words for memory, configuration, models, commands or hooks. What it tells for the log is `log`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw

from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, Initialize, Initialized
from becket.contract.info import INFO_GET, CapabilityInfo, ExtensionInfo
from becket.contract.log import LOG as CONTRACT_LOG
from becket.contract.log import LogLevel, LogRecord
from becket.contract.names import find_id_problem
from becket.contract.shapes import REFUSED, is_object
from becket.contract.tools import TOOL_CALL, Tool, ToolCall
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.morphir.words import (
    CAPABILITIES,
    HEALTH_CHECK,
    INITIALIZE,
    LOG,
    Capability,
    Health,
    HealthStatus,
    MorphirSettings,
)
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.speech import Speech, TalePhrase
from becket.errors import HandshakeFailed, InvalidParams, RemoteError, RpcError
from becket.methods.descriptors import Method, check_method_name

__all__ = ["SPEECH"]

RESERVED: Final = frozenset({INITIALIZE.name, CAPABILITIES.name, HEALTH_CHECK.name})
HEALTH: Final = "health"  # the kind of what is told of oneself

# -- the first exchanges, on the host's side


def greet(introduction: Introduction) -> Greeting:
    """Gives the configuration, asks for the capabilities and returns them as tools."""
    extension = introduction.extension
    settings = introduction.particulars
    own = settings.config if isinstance(settings, MorphirSettings) else {}
    try:
        yield Saying(INITIALIZE, {**own, **introduction.config})
        raw = yield Saying(CAPABILITIES)
    except RemoteError as error:
        raise HandshakeFailed(extension, f"Initialization failed: {error.message}") from error
    capabilities = read_capabilities(extension, raw)
    tools: dict[str, Tool] = {}
    notes: list[str] = []
    for capability in capabilities:
        problem = find_problem(capability.name, tools)
        if problem is None:
            tools[capability.name] = tool_of(capability)
        else:
            notes.append(f"the capability `{capability.name}` is no tool here: {problem}")
    return Greeted(
        declared=Capabilities(tuple(tools.values())),
        particulars=capabilities,
        notes=tuple(notes),
        tolerates_schemas=True,
    )


def read_capabilities(extension: str, raw: Raw) -> tuple[Capability, ...]:
    try:
        return msgspec.json.decode(raw, type=tuple[Capability, ...])
    except REFUSED as error:
        raise HandshakeFailed(extension, f"Serialization error: no list of capabilities: {error}") from error


def find_problem(name: str, tools: dict[str, Tool]) -> str | None:
    """Returns why a capability cannot be a tool, None if it can; it can be called by its name all the same."""
    if name in RESERVED:
        return "the name belongs to the protocol"
    if name in tools:
        return "there is another of the same name"
    try:
        check_method_name(name)
    except ValueError as error:
        return str(error)
    problem = find_id_problem(name)
    return None if problem is None else problem.sentence


def tool_of(capability: Capability) -> Tool:
    schema = capability.params_schema if is_object(capability.params_schema) else {"type": "object"}
    return Tool(capability.name, capability.description.strip() or capability.name, schema)


# -- the same on the extension's side

WRAPPING: Final = {"config", "protocol_version", "extension_version"}


def read_config(given: Any, scene: Scene) -> Initialize:
    """Returns what the host said as the contract would have it. Some hosts give the configuration itself, others wrap
    it: `{"config": {...}}`."""
    config: Any = {} if given is None else given
    if is_object(config) and "config" in config and config.keys() <= WRAPPING:
        config = config["config"] or {}
    if not is_object(config):
        raise InvalidParams([("", "the configuration is no object")])
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION, plugin_id=scene.extension, plugin_root=None, config=config
    )


def say_ready(initialized: Initialized, scene: Scene) -> dict[str, str]:
    return {"status": "ready"}


def list_capabilities(params: Any, scene: Scene) -> list[Capability]:
    """Returns the tools as capabilities, whatever the params are."""
    return [Capability(tool.name, tool.description, tool.input_schema) for tool in offered(scene)]


def offered(scene: Scene) -> Iterator[Tool]:
    return (tool for tool in scene.declared.tools if tool.name not in RESERVED)


# -- tools


def ask_for_tool(call: ToolCall, scene: Scene) -> Saying:
    return Saying(method_of(call.name), call.input)


def method_of(name: str) -> Method[Any, Any]:
    return Method(name, Any, Any)


def methods_of_tools(scene: Scene) -> Iterator[Method[Any, Any]]:
    """Returns the methods under which the tools are asked for; one that the author handles himself is his."""
    return (method_of(tool.name) for tool in offered(scene) if tool.name not in scene.own)


def hear_tool(saying: Saying, scene: Scene) -> ToolCall:
    given: Any = {} if saying.params is None else saying.params
    if not is_object(given):
        raise InvalidParams([("", f"the params of {saying.method.name} are no object")])
    return ToolCall(saying.method.name, given)


def fail_tool(error: RpcError, saying: Saying, scene: Scene) -> NoReturn:
    """Raises what a tool has failed with; the params are the input here, so places in it begin with it."""
    if isinstance(error, InvalidParams):
        raise InvalidParams([(pointer.removeprefix("/input"), text) for pointer, text in error.problems])
    raise error


# -- health


def read_health(health: Health, saying: Saying, scene: Scene) -> ExtensionInfo:
    told = () if health.message is None else (health.message,)
    return ExtensionInfo(capabilities=(CapabilityInfo(HEALTH, health.status, told),))


def tell_health(info: ExtensionInfo, saying: Saying, scene: Scene) -> Health:
    """Returns how an extension is: well, unless it tells otherwise among its capabilities."""
    for one in info.capabilities:
        if one.kind == HEALTH and one.name in HEALTH_NAMES:
            return Health(HealthStatus(one.name), "; ".join(one.modes) or None)
    return Health(HealthStatus.HEALTHY)


HEALTH_NAMES: Final = frozenset(HealthStatus)

# -- log

LEVELS: Final = {
    "trace": LogLevel.DEBUG,
    "warn": LogLevel.WARNING,
    "fatal": LogLevel.CRITICAL,
    **{level.value: level for level in LogLevel},
}
WORDS: Final = {LogLevel.WARNING: "warn", LogLevel.CRITICAL: "error"}


def tell_log(record: LogRecord, scene: Scene) -> Tale:
    return Tale(LOG, {"level": WORDS.get(record.level, record.level.value), "message": record.message})


def hear_log(given: Any, scene: Scene) -> LogRecord:
    """Returns what was told, as far as it can be read: a message of any shape at a level that nobody knows is told."""
    told: dict[str, Any] = given if is_object(given) else {"message": given}
    level = told.get("level")
    message = told.get("message")
    return LogRecord(
        LEVELS.get(level.lower(), LogLevel.INFO) if isinstance(level, str) else LogLevel.INFO,
        LOG,
        message if isinstance(message, str) else msgspec.json.encode(message).decode(),
    )


SPEECH: Final = Speech(
    dialect="morphir",
    greet=greet,
    welcome=Welcome(
        opening=INITIALIZE,
        read=read_config,
        reply=say_ready,
        queries={CAPABILITIES.name: list_capabilities},
        always=frozenset({CAPABILITIES.name}),
    ),
    phrases={
        TOOL_CALL.name: Phrase(say=ask_for_tool, heard_as=methods_of_tools, hear=hear_tool, fail=fail_tool),
        INFO_GET.name: Phrase(
            say=lambda _, scene: Saying(HEALTH_CHECK),
            read=read_health,
            heard_as=lambda scene: [HEALTH_CHECK][HEALTH_CHECK.name in scene.own :],
            hear=lambda saying, scene: None,
            answer=tell_health,
        ),
    },
    tales={CONTRACT_LOG.name: TalePhrase(heard_as=LOG, tell=tell_log, hear=hear_log)},
)
