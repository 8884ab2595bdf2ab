"""Defines the client handshake (a sans-I/O generator) and the server handshake of a dialect.

A client handshake is a generator that neither sends nor waits. It yields one `WireRequest` after another, is sent each
raw result, and returns what the extension has declared; for a `WireNotification` it is sent nothing. The error of a
step is thrown into it. The extension has a `ServerHandshake`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from becket.contract.handshake import Capabilities, HostInfo, Initialize, Initialized
from becket.contract.hooks import HookKind
from becket.contract.info import ExtensionInfo
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.methods.descriptors import Method

__all__ = ["ClientHandshake", "HandshakeContext", "HandshakeResult", "ServerHandshake"]


class HandshakeContext(Struct, frozen=True, kw_only=True):
    """What a host has about an extension, and sends about itself, at the start of the handshake.

    `cwd` is the working directory of the extension if one was chosen; `host_cwd` is that of the host. `host_methods`
    are the names of the methods that the host adds to the contract. `extra` is what the dialect's manifest has beyond a
    `Manifest`."""

    extension: str
    host: HostInfo
    root: str | None = None
    cwd: str | None = None
    host_cwd: str | None = None
    host_methods: frozenset[str] = frozenset()
    config: Mapping[str, Any] = {}
    grants: frozenset[str] = frozenset()
    environment: Mapping[str, str] = {}
    extra: Any = None


class HandshakeResult(Struct, frozen=True, kw_only=True):
    """What an extension has declared in a successful handshake.

    `hooks` are the kinds that it announced, in dialects that have this in the handshake. `warnings` name what was
    ignored. `own_id` is the id in its code if it differs. `version` and `plugin` (plain JSON values) describe the
    extension in systems without manifests. With `allows_invalid_schemas` a tool with an unusable schema is called
    without validation of its input."""

    capabilities: Capabilities = Capabilities()
    hooks: tuple[HookKind, ...] = ()
    info: ExtensionInfo | None = None
    extra: Any = None
    warnings: tuple[str, ...] = ()
    own_id: str = ""
    allows_invalid_schemas: bool = False
    version: str | None = None
    plugin: Mapping[str, Any] = {}


ClientHandshake: TypeAlias = Generator[WireRequest | WireNotification, Raw, HandshakeResult]
"""Raises `HandshakeFailed` or a subclass for a result that breaks the rules."""


class ServerHandshake(Struct, frozen=True, kw_only=True):
    """How an extension handles the first request of its host.

    `decode_params` converts the params, as plain JSON values, to the contract's `Initialize`; it raises `RpcError` for
    a host that cannot be served. `encode_result` converts the contract's `Initialized` to the result. `handlers` serve
    further queries about the extension, by method name, after the handshake; those in `allowed_before_initialize` also
    before it. `shutdown_result` is the result of the shutdown request."""

    initialize_method: Method[Any, Any]
    decode_params: Callable[[Any, LinkState], Initialize]
    encode_result: Callable[[Initialized, LinkState], Any]
    handlers: Mapping[str, Callable[[Any, LinkState], Any]] = {}
    allowed_before_initialize: frozenset[str] = frozenset()
    shutdown_result: Any = None
