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
from becket.peer.permission_prompt import AskCallback
from becket.peer.streams import Overflow
from becket.permissions.gate import Gate

__all__ = ["BeginOptions", "CallOptions", "PeerOptions", "StreamOptions"]


class PeerOptions(TypedDict, total=False):
    """Keyword arguments of a peer, however it is connected.

    `gate` decides what the other side may call, and `ask` asks a person where the gate says so; without a gate the
    methods that require a permission are refused. `limits` are those of the dialect unless given. `budget` is one that
    several links share, beside that of each: see `Limits.inbound_bytes`."""

    dialect: Dialect | str
    framing: FramingFactory | None
    methods: Registry | None
    limits: Limits | None
    gate: Gate | None
    ask: AskCallback | None
    budget: SharedBudget | None


class BeginOptions(TypedDict, total=False):
    """What every form of `begin` takes besides."""

    timeout: float | Unset | None


class CallOptions(BeginOptions, total=False):
    """What every form of a call takes besides."""

    on: Mapping[str, Callable[..., Any]] | None
    on_progress: Callable[..., Any] | None


class StreamOptions(TypedDict, total=False):
    """What every form of a stream takes besides."""

    progress: Any
    timeout: float | Unset | None
    idle_timeout: float | Unset | None
    overflow: Overflow
    pause_connection: bool
