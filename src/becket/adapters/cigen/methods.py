"""Method descriptors of cigen: hello, plan and generate."""

from __future__ import annotations

from typing import Final

from becket.adapters.cigen.messages import (
    CigenHello,
    GenerateRequest,
    GenerateResult,
    PlanRequest,
    PlanResult,
    PluginInfo,
)
from becket.methods.descriptors import Method

__all__ = ["CIGEN_PROTOCOL_VERSION", "GENERATE", "HELLO", "PLAN"]

CIGEN_PROTOCOL_VERSION: Final = 1  # must be equal on both peers

HELLO: Final = Method(
    "hello", CigenHello, PluginInfo, summary="Opens the conversation: who the core is, and the plugin."
)
PLAN: Final = Method("plan", PlanRequest, PlanResult, summary="Returns what is to be built.")
GENERATE: Final = Method("generate", GenerateRequest, GenerateResult, summary="Returns the files, after a plan.")
