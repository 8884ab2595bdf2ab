"""Maps the contract to Morphir: handshake, capabilities as tools, health as info, and logs.

Morphir has no memory, configuration, models, commands or hooks. Log records are sent as `log`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw

from becket.adapters.morphir.messages import (
    CAPABILITIES,
    HEALTH_CHECK,
    INITIALIZE,
    LOG,
    MorphirCapability,
    MorphirHealth,
    MorphirHealthStatus,
    MorphirSettings,
)
from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, Initialize, Initialized
from becket.contract.info import INFO_GET, CapabilityInfo, ExtensionInfo
from becket.contract.json_narrowing import is_object
from becket.contract.log import LOG as CONTRACT_LOG, LogLevel, LogRecord
from becket.contract.names import find_id_problem
from becket.contract.tools import TOOL_CALL, Tool, ToolCall
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping
from becket.errors import JSON_ERRORS, HandshakeFailed, InvalidParams, RemoteError, RpcError
from becket.methods.descriptors import Method, check_method_name

__all__ = ["MAPPING"]

RESERVED_METHODS: Final = frozenset({INITIALIZE.name, CAPABILITIES.name, HEALTH_CHECK.name})
HEALTH_KIND: Final = "health"  # kind of the capability that holds the health

# -- client handshake


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Sends the configuration, requests the capabilities and returns them as tools."""
    extension = context.extension
    settings = context.extra
    own = settings.config if isinstance(settings, MorphirSettings) else {}
    try:
        yield WireRequest(INITIALIZE, {**own, **context.config})
        raw = yield WireRequest(CAPABILITIES)
    except RemoteError as error:
        raise HandshakeFailed(extension, f"Initialization failed: {error.message}") from error
    capabilities = decode_capabilities(extension, raw)
    tools: dict[str, Tool] = {}
    notes: list[str] = []
    for capability in capabilities:
        problem = find_tool_problem(capability.name, tools)
        if problem is None:
            tools[capability.name] = build_tool(capability)
        else:
            notes.append(f"the capability `{capability.name}` cannot be a tool: {problem}")
    return HandshakeResult(
        capabilities=Capabilities(tuple(tools.values())),
        extra=capabilities,
        warnings=tuple(notes),
        allows_invalid_schemas=True,
    )


def decode_capabilities(extension: str, raw: Raw) -> tuple[MorphirCapability, ...]:
    try:
        return msgspec.json.decode(raw, type=tuple[MorphirCapability, ...])
    except JSON_ERRORS as error:
        raise HandshakeFailed(extension, f"Serialization error: no list of capabilities: {error}") from error


def find_tool_problem(name: str, tools: dict[str, Tool]) -> str | None:
    """Returns why a capability cannot be a tool, or None; it can be called as a method in any case."""
    if name in RESERVED_METHODS:
        return "the name belongs to the protocol"
    if name in tools:
        return "there is another of the same name"
    try:
        check_method_name(name)
    except ValueError as error:
        return str(error)
    problem = find_id_problem(name)
    return None if problem is None else problem.sentence


def build_tool(capability: MorphirCapability) -> Tool:
    schema = capability.params_schema if is_object(capability.params_schema) else {"type": "object"}
    return Tool(capability.name, capability.description.strip() or capability.name, schema)


# -- server handshake

WRAPPER_MEMBERS: Final = {"config", "protocol_version", "extension_version"}


def decode_initialize(params: Any, state: LinkState) -> Initialize:
    """Returns the host's params. Some hosts send the configuration itself, others wrap it: `{"config": {...}}`."""
    config: Any = {} if params is None else params
    if is_object(config) and "config" in config and config.keys() <= WRAPPER_MEMBERS:
        config = config["config"] or {}
    if not is_object(config):
        raise InvalidParams([("", "the configuration is no object")])
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION, plugin_id=state.extension, plugin_root=None, config=config
    )


def encode_initialize_result(initialized: Initialized, state: LinkState) -> dict[str, str]:
    return {"status": "ready"}


def build_capabilities(params: Any, state: LinkState) -> list[MorphirCapability]:
    """Returns the tools as capabilities; ignores the params."""
    return [MorphirCapability(tool.name, tool.description, tool.input_schema) for tool in list_offered_tools(state)]


def list_offered_tools(state: LinkState) -> Iterator[Tool]:
    return (tool for tool in state.capabilities.tools if tool.name not in RESERVED_METHODS)


# -- tools


def encode_tool_call(call: ToolCall, state: LinkState) -> WireRequest:
    return WireRequest(build_tool_method(call.name), call.input)


def build_tool_method(name: str) -> Method[Any, Any]:
    return Method(name, Any, Any)


def list_tool_methods(state: LinkState) -> Iterator[Method[Any, Any]]:
    """Returns the methods of the tools, except those that the author handles."""
    return (build_tool_method(tool.name) for tool in list_offered_tools(state) if tool.name not in state.own_methods)


def decode_tool_call(request: WireRequest, state: LinkState) -> ToolCall:
    params: Any = {} if request.params is None else request.params
    if not is_object(params):
        raise InvalidParams([("", f"the params of {request.method.name} are no object")])
    return ToolCall(request.method.name, params)


def encode_tool_error(error: RpcError, request: WireRequest, state: LinkState) -> NoReturn:
    """Raises the error of a tool. Pointers lose their prefix `/input`, because the params are the input."""
    if isinstance(error, InvalidParams):
        raise InvalidParams([(pointer.removeprefix("/input"), text) for pointer, text in error.problems])
    raise error


# -- health


def decode_health(health: MorphirHealth, request: WireRequest, state: LinkState) -> ExtensionInfo:
    modes = () if health.message is None else (health.message,)
    return ExtensionInfo(capabilities=(CapabilityInfo(HEALTH_KIND, health.status, modes),))


def encode_health(info: ExtensionInfo, request: WireRequest, state: LinkState) -> MorphirHealth:
    """Returns the health of an extension: healthy, unless its capabilities have another status."""
    for one in info.capabilities:
        if one.kind == HEALTH_KIND and one.name in HEALTH_NAMES:
            return MorphirHealth(MorphirHealthStatus(one.name), "; ".join(one.modes) or None)
    return MorphirHealth(MorphirHealthStatus.HEALTHY)


HEALTH_NAMES: Final = frozenset(MorphirHealthStatus)

# -- log

LOG_LEVELS: Final = {
    "trace": LogLevel.DEBUG,
    "warn": LogLevel.WARNING,
    "fatal": LogLevel.CRITICAL,
    **{level.value: level for level in LogLevel},
}
LEVEL_NAMES: Final = {LogLevel.WARNING: "warn", LogLevel.CRITICAL: "error"}


def encode_log(record: LogRecord, state: LinkState) -> WireNotification:
    return WireNotification(
        LOG, {"level": LEVEL_NAMES.get(record.level, record.level.value), "message": record.message}
    )


def decode_log(wire_params: Any, state: LinkState) -> LogRecord:
    """Returns a log record; accepts a message of any shape, and logs unknown levels as info."""
    params: dict[str, Any] = wire_params if is_object(wire_params) else {"message": wire_params}
    level = params.get("level")
    message = params.get("message")
    return LogRecord(
        LOG_LEVELS.get(level.lower(), LogLevel.INFO) if isinstance(level, str) else LogLevel.INFO,
        LOG,
        message if isinstance(message, str) else msgspec.json.encode(message).decode(),
    )


MAPPING: Final = ContractMapping(
    dialect="morphir",
    client_handshake=client_handshake,
    server_handshake=ServerHandshake(
        initialize_method=INITIALIZE,
        decode_params=decode_initialize,
        encode_result=encode_initialize_result,
        handlers={CAPABILITIES.name: build_capabilities},
        allowed_before_initialize=frozenset({CAPABILITIES.name}),
    ),
    methods={
        TOOL_CALL.name: MethodMapping(
            encode_request=encode_tool_call,
            wire_methods=list_tool_methods,
            decode_request=decode_tool_call,
            encode_failure=encode_tool_error,
        ),
        INFO_GET.name: MethodMapping(
            encode_request=lambda _, state: WireRequest(HEALTH_CHECK),
            decode_result=decode_health,
            wire_methods=lambda state: [HEALTH_CHECK][HEALTH_CHECK.name in state.own_methods :],
            decode_request=lambda request, state: None,
            encode_result=encode_health,
        ),
    },
    notifications={CONTRACT_LOG.name: NotificationMapping(wire_name=LOG, encode=encode_log, decode=decode_log)},
)
