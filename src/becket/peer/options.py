"""Types the keyword arguments that Peer and BlockingPeer share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from becket.dialects import Dialect
from becket.framing.framing import FramingFactory
from becket.jsonrpc.budget import SharedBudget
from becket.limits import Limits
from becket.methods.registry import Registry
from becket.peer.outbound import Unset
from becket.peer.permission_check import AskCallback
from becket.peer.streams import Overflow
from becket.permissions.gate import Gate

__all__ = ["BeginOptions", "CallOptions", "PeerOptions", "StreamOptions"]


class PeerOptions(TypedDict, total=False):
    """Keyword arguments of a peer, however it is connected.

    `gate` decides what the other peer may call, and `ask` prompts a person where the gate requires consent; without a
    gate all methods that require a permission are refused. `limits` default to the dialect's. `budget` is shared by
    several links, beside that of each: see `Limits.inbound_bytes`."""

    dialect: Dialect | str
    framing: FramingFactory | None
    methods: Registry | None
    limits: Limits | None
    gate: Gate | None
    ask: AskCallback | None
    budget: SharedBudget | None


class BeginOptions(TypedDict, total=False):
    """Options of every form of `begin`."""

    timeout: float | Unset | None


class CallOptions(BeginOptions, total=False):
    """Options of every form of a call."""

    on: Mapping[str, Callable[..., Any]] | None
    on_progress: Callable[..., Any] | None


class StreamOptions(TypedDict, total=False):
    """Options of every form of a stream."""

    progress: Any
    timeout: float | Unset | None
    idle_timeout: float | Unset | None
    overflow: Overflow
    pause_connection: bool
