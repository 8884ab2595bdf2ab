"""What a core asks a plugin of cigen: the three requests, in the order that tells them apart."""

from __future__ import annotations

from typing import Final

from becket.dialects.cigen.messages import (
    GenerateRequest,
    GenerateResult,
    Hello,
    PlanRequest,
    PlanResult,
    PluginInfo,
)
from becket.methods.descriptors import Method

__all__ = ["GENERATE", "HELLO", "PLAN", "PROTOCOL"]

PROTOCOL: Final = 1  # both sides must name the same

HELLO: Final = Method("hello", Hello, PluginInfo, summary="Opens the conversation: who the core is, and the plugin.")
PLAN: Final = Method("plan", PlanRequest, PlanResult, summary="Asks what there is to be built.")
GENERATE: Final = Method("generate", GenerateRequest, GenerateResult, summary="Asks for the files, after a plan.")
