"""Defines the client handshake (a sans-I/O generator) and the server handshake of a dialect.

A host's side is a generator: it yields what is asked (a `WireRequest`) and gets the raw answers, or what is told (a
`WireNotification`) and gets nothing, one after the other, and returns what the extension has declared. It never sends
and never waits; whoever drives it does; what a step fails with is thrown into it. An extension's side is a
`ServerHandshake`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from becket.contract.handshake import Capabilities, HostInfo, Initialize, Initialized
from becket.contract.hooks import HookKind
from becket.contract.info import ExtensionInfo
from becket.dialects.mapping import LinkState, WireNotification, WireRequest
from becket.methods.descriptors import Method

__all__ = ["ClientHandshake", "HandshakeContext", "HandshakeResult", "ServerHandshake"]


class HandshakeContext(Struct, frozen=True, kw_only=True):
    """What a host knows of an extension, and tells of itself, before the first word.

    `cwd` is the folder that it runs in, where somebody has chosen one; `host_cwd` is that of the host. `host_methods`
    are the names of the host's own methods, beside those of the contract. `extra` is what the reader of a dialect's own
    manifest has found beyond a `Manifest`."""

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
    """What an extension has declared in a handshake that went well.

    `hooks` are the kinds that it has announced, where a dialect has a place for that in the handshake. `warnings` say
    what was odd and was passed over. `own_id` is the id in its code, where that is another. `version` and `plugin` are
    what the extension says of itself where its system has no manifests, `plugin` as plain JSON values. With
    `allows_invalid_schemas` a tool whose schema cannot be used is called without a look at its input: its author may be
    anybody."""

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
"""Raises `HandshakeFailed`, or one of its kind, for an answer that breaks the rules."""


class ServerHandshake(Struct, frozen=True, kw_only=True):
    """How an extension takes the first request of its host.

    `decode_params` makes of its params, as plain JSON values, what the contract would have said; it raises `RpcError`
    for a host that it cannot serve. `encode_result` makes the answer of what the contract would have answered.
    `handlers` are further questions about what the extension offers, by name, each with a function that answers it at
    any time after that: from the params. Those named in `allowed_before_initialize` are answered before it too.
    `shutdown_result` answers the goodbye."""

    initialize_method: Method[Any, Any]
    decode_params: Callable[[Any, LinkState], Initialize]
    encode_result: Callable[[Initialized, LinkState], Any]
    handlers: Mapping[str, Callable[[Any, LinkState], Any]] = {}
    allowed_before_initialize: frozenset[str] = frozenset()
    shutdown_result: Any = None
