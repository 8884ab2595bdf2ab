"""What an extension reports about itself: build, models, sidecar arguments.

It is for display and for starting a sidecar; it registers and permits nothing.
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

INFO_TIMEOUT = 5.0  # requested while the extension starts


class BuildInfo(Struct, frozen=True, omit_defaults=True):
    """What the extension runs on: `cpu`, `cuda`, `metal`."""

    backend: str
    features: tuple[str, ...] = ()
    version: str = ""


class CapabilityInfo(Struct, frozen=True, omit_defaults=True):
    """A capability of the extension, for display."""

    kind: str
    name: str
    modes: tuple[str, ...] = ()


class ModelInfo(Struct, frozen=True, omit_defaults=True):
    """A model of the extension, and whether it is installed."""

    id: str
    display_name: str | None = None
    installed: bool = False


class ExtensionInfo(Struct, frozen=True, omit_defaults=True):
    """What the extension reports about itself. Every member is optional."""

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
    summary="Returns the extension's build, capabilities and models.",
)
SIDECAR_SPAWN_ARGS: Final = Method(
    "sidecar.spawn_args",
    None,
    SidecarArgs,
    timeout=INFO_TIMEOUT,
    direction="to-extension",
    summary="Returns how to start the extension's sidecar.",
)
