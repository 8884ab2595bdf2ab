"""nexo client and server handshake, and the shutdown request.

No version is negotiated: a host sends its own version and the id of the extension, and the extension returns its tools
and hooks, or null.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from becket._text import truncate
from becket.adapters.nexo.hook_mapping import to_hook_kinds, to_hook_names
from becket.adapters.nexo.manifest import NexoExtra, NexoManifest
from becket.adapters.nexo.messages import (
    INITIALIZE,
    SHUTDOWN,
    TOOLS_LIST,
    NexoInitializeParams,
    NexoInitializeResult,
    NexoShutdownParams,
    NexoTool,
    NexoToolList,
    to_tools,
)
from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, HostInfo, Initialize, Initialized
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.conversion.problems import to_problem
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import JSON_ERRORS, HandshakeFailed, InvalidParams

__all__ = ["SERVER_HANDSHAKE", "clean_reason", "client_handshake", "encode_shutdown"]

MAX_REASON_LENGTH = 200  # characters
DEFAULT_REASON = "client shutdown"
HOST_NAME = "nexo"  # nexo hosts do not send their name


# -- host


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Initializes the extension and returns what it offers.

    Raises:
        HandshakeFailed: its result is malformed.
    """
    host = context.host
    raw = yield WireRequest(INITIALIZE, NexoInitializeParams(host.version, context.extension))
    offer = decode_initialize_result(raw, context.extension)
    kinds, unknown = to_hook_kinds(offer.hooks)
    known = context.extra
    manifest = known if isinstance(known, NexoManifest) else NexoManifest()
    version = offer.server_version
    return HandshakeResult(
        capabilities=Capabilities(to_tools(offer.tools)),
        hooks=kinds,
        info=None if version is None else ExtensionInfo(BuildInfo("cpu", version=version)),
        extra=NexoExtra(agent_id=host.name, server_version=version, manifest=manifest),
        warnings=tuple(f"the hook `{truncate(name)}` is unknown, and passed over" for name in unknown),
        allows_invalid_schemas=True,  # nexo does not validate input
    )


def decode_initialize_result(raw: Raw, extension: str) -> NexoInitializeResult:
    """Returns what an extension offers; null is an empty offer."""
    try:
        return msgspec.json.decode(raw, type=NexoInitializeResult | None) or NexoInitializeResult()
    except JSON_ERRORS as error:
        raise HandshakeFailed(extension, f"undecodable handshake payload: {truncate(str(error))}") from error


def encode_shutdown(state: LinkState) -> WireRequest:
    """Returns the request that ends an extension, with the reason."""
    return WireRequest(SHUTDOWN, NexoShutdownParams(clean_reason(state.shutdown_reason) or DEFAULT_REASON))


def clean_reason(reason: str) -> str:
    """Returns a reason without control characters, truncated to `MAX_REASON_LENGTH`."""
    from becket.contract.names import is_control

    return "".join(letter for letter in reason if not is_control(letter))[:MAX_REASON_LENGTH]


# -- extension


def decode_initialize(wire_params: Any, state: LinkState) -> Initialize:
    """Returns the host's params for the contract, without a folder and configuration, which nexo does not send.

    Raises:
        InvalidParams: they have another shape.
    """
    try:
        params = NexoInitializeParams() if wire_params is None else msgspec.convert(wire_params, NexoInitializeParams)
    except msgspec.ValidationError as error:
        raise InvalidParams([to_problem(error)]) from error
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=params.extension_id or state.extension,
        plugin_root=None,
        config={},
        host=HostInfo(HOST_NAME, params.agent_version),
    )


def encode_initialize_result(initialized: Initialized, state: LinkState) -> NexoInitializeResult:
    """Returns the result of `initialize`."""
    return NexoInitializeResult(
        state.version or None, build_tool_list(initialized.capabilities), to_hook_names(state.hooks)
    )


def build_tool_list(declared: Capabilities) -> tuple[NexoTool, ...]:
    return tuple(NexoTool(tool.name, tool.description, tool.input_schema) for tool in declared.tools)


SERVER_HANDSHAKE = ServerHandshake(
    initialize_method=INITIALIZE,
    decode_params=decode_initialize,
    encode_result=encode_initialize_result,
    handlers={TOOLS_LIST.name: lambda _, state: NexoToolList(build_tool_list(state.capabilities))},
    shutdown_result={"ok": True},
)
