"""The first exchange in a dialect, from both sides, as pure functions.

A host's side is a generator: it yields what is asked (a `Saying`) and gets the raw answers, or what is told (a `Tale`)
and gets nothing, one after the other, and returns what the extension has declared. It never sends and never waits;
whoever drives it does; what a step fails with is thrown into it. An extension's side is a `Welcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from becket.contract.handshake import Capabilities, HostInfo, Initialize, Initialized
from becket.contract.hooks import HookKind
from becket.contract.info import ExtensionInfo
from becket.dialects.phrases import Saying, Scene, Tale
from becket.methods.descriptors import Method

__all__ = ["Greeted", "Greeting", "Introduction", "Welcome"]


class Introduction(Struct, frozen=True, kw_only=True):
    """What a host knows of an extension, and tells of itself, before the first word.

    `cwd` is the folder that it runs in, where somebody has chosen one; `host_cwd` is that of the host. `serves` are the
    names of the host's own methods, beside those of the contract. `particulars` is what the reader of a dialect's own
    manifest has found beyond a `Manifest`."""

    extension: str
    host: HostInfo
    root: str | None = None
    cwd: str | None = None
    host_cwd: str | None = None
    serves: frozenset[str] = frozenset()
    config: Mapping[str, Any] = {}
    grants: frozenset[str] = frozenset()
    environment: Mapping[str, str] = {}
    particulars: Any = None


class Greeted(Struct, frozen=True, kw_only=True):
    """What an extension has declared in a handshake that went well.

    `hooks` are the kinds that it has announced, where a dialect has a place for that in the handshake. `notes` say what
    was odd and was passed over. `own_id` is the id in its code, where that is another. `version` and `plugin` are what
    the extension says of itself where its system has no manifests, `plugin` as plain JSON values. With
    `tolerates_schemas` a tool whose schema cannot be used is called without a look at its input: its author may be
    anybody."""

    declared: Capabilities = Capabilities()
    hooks: tuple[HookKind, ...] = ()
    about: ExtensionInfo | None = None
    particulars: Any = None
    notes: tuple[str, ...] = ()
    own_id: str = ""
    tolerates_schemas: bool = False
    version: str | None = None
    plugin: Mapping[str, Any] = {}


Greeting: TypeAlias = Generator[Saying | Tale, Raw, Greeted]
"""Raises `HandshakeFailed`, or one of its kind, for an answer that breaks the rules."""


class Welcome(Struct, frozen=True, kw_only=True):
    """How an extension takes the first request of its host.

    `read` makes of its params, as plain JSON values, what the contract would have said; it raises `RpcError` for a host
    that it cannot serve.
    `reply` makes the answer of what the contract would have answered. `queries` are further questions about what the
    extension offers, by name, each with a function that answers it at any time after that: from the params.
    Those named in `always` are answered before it too. `farewell` answers the goodbye."""

    opening: Method[Any, Any]
    read: Callable[[Any, Scene], Initialize]
    reply: Callable[[Initialized, Scene], Any]
    queries: Mapping[str, Callable[[Any, Scene], Any]] = {}
    always: frozenset[str] = frozenset()
    farewell: Any = None
