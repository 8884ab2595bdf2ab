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
    """A method that an extension offers. The schemas are JSON Schema; many leave them out."""

    name: str
    description: str
    params_schema: Any = None
    return_schema: Any = None


class MorphirHealthStatus(StrEnum):
    """How an extension is."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class MorphirHealth(Struct, frozen=True, omit_defaults=True):
    """How an extension is, and why."""

    status: MorphirHealthStatus
    message: str | None = None


class MorphirPermissions(Struct, frozen=True, kw_only=True):
    """What the configuration says that an extension may do and use: bytes and seconds, None where nothing is said.

    Nobody enforces it on a process: it is for the operator, who may."""

    network: bool = False
    filesystem: tuple[str, ...] = ()
    max_memory: int | None = None
    max_execution_time: float | None = None


class MorphirSettings(Struct, frozen=True, kw_only=True):
    """What the configuration of Morphir says of an extension, beyond how it is started."""

    config: dict[str, Any] = {}
    permissions: MorphirPermissions = MorphirPermissions()


INITIALIZE: Final[Method[Any, Any]] = Method("initialize", Any, Any, summary="Opens the conversation.")
CAPABILITIES: Final[Method[None, Any]] = Method("capabilities", None, Any, summary="Asks which methods there are.")
HEALTH_CHECK: Final = Method(
    "health_check", None, MorphirHealth, summary="Asks how the extension is; many do not know it."
)
LOG: Final = "log"
