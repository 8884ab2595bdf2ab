"""What an extension reports about itself: build, models, sidecar arguments.

All of it is for people and for the start of a sidecar; nothing is registered or permitted by it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from becket.methods.descriptors import Method

__all__ = [
    "INFO_GET",
    "SIDECAR_SPAWN_ARGS",
    "BuildInfo",
    "CapabilityInfo",
    "ExtensionInfo",
    "ModelInfo",
    "SidecarArgs",
]

INFO_TIMEOUT = 5.0  # it is asked for while the extension starts


class BuildInfo(Struct, frozen=True, omit_defaults=True):
    """What the extension runs on: `cpu`, `cuda`, `metal`."""

    backend: str
    features: tuple[str, ...] = ()
    version: str = ""


class CapabilityInfo(Struct, frozen=True, omit_defaults=True):
    """Something that the extension can do, for people to read."""

    kind: str
    name: str
    modes: tuple[str, ...] = ()


class ModelInfo(Struct, frozen=True, omit_defaults=True):
    """A model that the extension knows, and whether it is there already."""

    id: str
    display_name: str | None = None
    installed: bool = False


class ExtensionInfo(Struct, frozen=True, omit_defaults=True):
    """What the extension tells of itself. Every member may be left out."""

    build: BuildInfo | None = None
    capabilities: tuple[CapabilityInfo, ...] = ()
    models: tuple[ModelInfo, ...] = ()


class SidecarArgs(Struct, frozen=True, omit_defaults=True):
    """Further arguments for the sidecar's command, and the language it should work in."""

    args: tuple[str, ...] = ()
    language: str | None = None


INFO_GET: Final = Method(
    "info.get",
    None,
    ExtensionInfo,
    timeout=INFO_TIMEOUT,
    direction="to-extension",
    summary="Asks the extension about its build, its capabilities and its models.",
)
SIDECAR_SPAWN_ARGS: Final = Method(
    "sidecar.spawn_args",
    None,
    SidecarArgs,
    timeout=INFO_TIMEOUT,
    direction="to-extension",
    summary="Asks how the extension's sidecar is to be started.",
)
