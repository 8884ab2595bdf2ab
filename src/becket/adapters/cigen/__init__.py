"""Adapter for cigen plugins: lazy exports of the dialect, its methods and its messages.

A host asks `extension.peer.call(cigen.PLAN, PlanRequest(...))`, then `cigen.GENERATE`; an extension has methods marked
`@handles(cigen.PLAN)` and `@handles(cigen.GENERATE)`. Names are loaded at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports
from becket.adapters.cigen.dialect import CIGEN

if TYPE_CHECKING:
    from becket.adapters.cigen.handshake import CigenSettings
    from becket.adapters.cigen.messages import (
        CacheDefinition,
        CigenDiagnostic,
        CigenHello,
        CigenOutputConfig,
        CigenResource,
        CigenSchema,
        CommandDefinition,
        CommandParameter,
        CustomStep,
        Dependency,
        DependencyType,
        Fragment,
        GenerateRequest,
        GenerateResult,
        GitInfo,
        JobDefinition,
        Level,
        MatrixRow,
        MatrixValue,
        MergeStrategy,
        PackageSpec,
        PlanRequest,
        PlanResult,
        PluginInfo,
        ProjectConfig,
        RepoSnapshot,
        ResourceType,
        RestoreCacheStep,
        RunnerDefinition,
        RunStep,
        SaveCacheStep,
        SkipConfig,
        SourceLocation,
        Step,
        StringList,
        UsesStep,
        WorkflowCondition,
        WorkflowConditionKind,
        WorkflowDefinition,
    )
    from becket.adapters.cigen.methods import CIGEN_PROTOCOL_VERSION, GENERATE, HELLO, PLAN

__all__ = [
    "CIGEN",
    "CIGEN_PROTOCOL_VERSION",
    "GENERATE",
    "HELLO",
    "PLAN",
    "CacheDefinition",
    "CigenDiagnostic",
    "CigenHello",
    "CigenOutputConfig",
    "CigenResource",
    "CigenSchema",
    "CigenSettings",
    "CommandDefinition",
    "CommandParameter",
    "CustomStep",
    "Dependency",
    "DependencyType",
    "Fragment",
    "GenerateRequest",
    "GenerateResult",
    "GitInfo",
    "JobDefinition",
    "Level",
    "MatrixRow",
    "MatrixValue",
    "MergeStrategy",
    "PackageSpec",
    "PlanRequest",
    "PlanResult",
    "PluginInfo",
    "ProjectConfig",
    "RepoSnapshot",
    "ResourceType",
    "RestoreCacheStep",
    "RunStep",
    "RunnerDefinition",
    "SaveCacheStep",
    "SkipConfig",
    "SourceLocation",
    "Step",
    "StringList",
    "UsesStep",
    "WorkflowCondition",
    "WorkflowConditionKind",
    "WorkflowDefinition",
]

HOMES = {
    **dict.fromkeys(__all__, "becket.adapters.cigen.messages"),
    **dict.fromkeys(("GENERATE", "HELLO", "PLAN", "CIGEN_PROTOCOL_VERSION"), "becket.adapters.cigen.methods"),
    "CIGEN": "becket.adapters.cigen.dialect",
    "CigenSettings": "becket.adapters.cigen.handshake",
}

__getattr__, __dir__ = lazy_exports(__name__, globals(), HOMES)
