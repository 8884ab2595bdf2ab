"""Defines the data that handshakes and mappings of a dialect share: the state of a link, requests and notifications."""

from __future__ import annotations

from itertools import count
from typing import Any

from msgspec import Struct, field

from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookKind
from becket.methods.descriptors import Method

__all__ = ["LinkState", "WireNotification", "WireRequest"]


class LinkState(Struct, eq=False):
    """What mappings know of a link.

    `capabilities` are those of the extension, in the contract's classes; `extra` is what the dialect's handshake and
    manifest have beyond them, in a class of the dialect. `sequence` numbers what needs an id; `shutdown_reason` is why
    the host stops the extension.

    Only an extension sets its `version`, its `commands` (name and description), its `hooks`, and the names of its
    `own_methods`."""

    extension: str
    capabilities: Capabilities = Capabilities()
    extra: Any = None
    sequence: count[int] = field(default_factory=lambda: count(1))
    shutdown_reason: str = ""
    version: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    hooks: tuple[HookKind, ...] = ()
    own_methods: frozenset[str] = frozenset()


class WireRequest(Struct, frozen=True, eq=False):
    """A request of a dialect. `method` may be a `Stream`, whose readers return events of the contract."""

    method: Method[Any, Any]
    params: Any = None


class WireNotification(Struct, frozen=True):
    """A notification of a dialect."""

    method: str
    params: Any = None
