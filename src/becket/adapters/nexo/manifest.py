"""Data of a nexo `plugin.toml` beyond `Manifest`, and the `extra` of a nexo link."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ["NexoExtra", "NexoManifest"]


class NexoManifest(Struct, frozen=True, kw_only=True):
    """What a `plugin.toml` says beyond a `Manifest`.

    `tools` are for people alone: what the handshake says holds. Of the hooks that it says there, the extension is asked
    at those that `hooks` name, since that is what somebody has agreed to; a lower `priority` comes first. With
    `passthrough` the extension is told of whose session a call is. `required_capabilities` and `optional_capabilities`
    are capabilities of administration, those that it cannot do without and those that it can."""

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
    """What a host knows of a link after the handshake. `agent_id` is who the host is where a caller does not say."""

    agent_id: str
    server_version: str | None = None
    manifest: NexoManifest = NexoManifest()
