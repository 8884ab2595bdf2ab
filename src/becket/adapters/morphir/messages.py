"""Morphir methods and message types: initialize, capabilities, health_check and settings."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from becket.methods.descriptors import Method

__all__ = [
    "CAPABILITIES",
    "HEALTH_CHECK",
    "INITIALIZE",
    "LOG",
    "MorphirCapability",
    "MorphirHealth",
    "MorphirHealthStatus",
    "MorphirPermissions",
    "MorphirSettings",
]


class MorphirCapability(Struct, frozen=True, omit_defaults=True):
    """A method of an extension, with optional JSON Schemas."""

    name: str
    description: str
    params_schema: Any = None
    return_schema: Any = None


class MorphirHealthStatus(StrEnum):
    """Health of an extension."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class MorphirHealth(Struct, frozen=True, omit_defaults=True):
    """Health of an extension, with a message."""

    status: MorphirHealthStatus
    message: str | None = None


class MorphirPermissions(Struct, frozen=True, kw_only=True):
    """Permissions and limits of an extension in the configuration, in bytes and seconds; None: not set.

    They are not enforced on a process, only shown to the operator."""

    network: bool = False
    filesystem: tuple[str, ...] = ()
    max_memory: int | None = None
    max_execution_time: float | None = None


class MorphirSettings(Struct, frozen=True, kw_only=True):
    """Settings of an extension in Morphir's configuration, besides its command."""

    config: dict[str, Any] = {}
    permissions: MorphirPermissions = MorphirPermissions()


INITIALIZE: Final[Method[Any, Any]] = Method("initialize", Any, Any, summary="Opens the conversation.")
CAPABILITIES: Final[Method[None, Any]] = Method("capabilities", None, Any, summary="Returns the extension's methods.")
HEALTH_CHECK: Final = Method(
    "health_check", None, MorphirHealth, summary="Returns the health of the extension; many do not define it."
)
LOG: Final = "log"
