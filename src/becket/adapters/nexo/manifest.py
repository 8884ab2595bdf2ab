"""Data of a nexo `plugin.toml` beyond `Manifest`, and the `extra` of a nexo connection."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ["NexoExtra", "NexoManifest"]


class NexoManifest(Struct, frozen=True, kw_only=True):
    """Members of a `plugin.toml` that `Manifest` does not have.

    `tools` are informational: the tools of the handshake are used. Hooks of the handshake are called only if `hooks`
    names them, because consent covers these; a lower `priority` comes first. With `passthrough` calls have session
    metadata. `required_capabilities` and `optional_capabilities` are admin capabilities."""

    tools: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    pollers: tuple[str, ...] = ()
    priority: int = 0
    passthrough: bool = False
    min_agent_version: str | None = None
    outbound_bindings: Mapping[str, tuple[str, ...]] = {}
    required_capabilities: tuple[str, ...] = ()
    optional_capabilities: tuple[str, ...] = ()


class NexoExtra(Struct, frozen=True, kw_only=True):
    """The state of a connection after the handshake. `agent_id` is the default agent of calls."""

    agent_id: str
    server_version: str | None = None
    manifest: NexoManifest = NexoManifest()
