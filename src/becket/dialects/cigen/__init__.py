"""`cigen`, the dialect of a generator of build configurations: `CIGEN`, its messages as classes and its three requests.

A host asks `extension.peer.call(cigen.PLAN, PlanRequest(...))`, then `cigen.GENERATE`; an extension has methods marked
`@handles(cigen.PLAN)` and `@handles(cigen.GENERATE)`. Names are loaded at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.dialects.cigen.link import CIGEN
from becket.loading import lazy_names

if TYPE_CHECKING:
    from becket.dialects.cigen.handshake import CigenSettings
    from becket.dialects.cigen.messages import (
        CacheDefinition,
        CigenSchema,
        CommandDefinition,
        CommandParameter,
        CustomStep,
        Dependency,
        DependencyType,
        Diagnostic,
        Fragment,
        GenerateRequest,
        GenerateResult,
        GitInfo,
        Hello,
        JobDefinition,
        Level,
        MatrixRow,
        MatrixValue,
        MergeStrategy,
        OutputConfig,
        PackageSpec,
        PlanRequest,
        PlanResult,
        PluginInfo,
        ProjectConfig,
        RepoSnapshot,
        Resource,
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
    from becket.dialects.cigen.words import GENERATE, HELLO, PLAN, PROTOCOL

__all__ = [
    "CIGEN",
    "GENERATE",
    "HELLO",
    "PLAN",
    "PROTOCOL",
    "CacheDefinition",
    "CigenSchema",
    "CigenSettings",
    "CommandDefinition",
    "CommandParameter",
    "CustomStep",
    "Dependency",
    "DependencyType",
    "Diagnostic",
    "Fragment",
    "GenerateRequest",
    "GenerateResult",
    "GitInfo",
    "Hello",
    "JobDefinition",
    "Level",
    "MatrixRow",
    "MatrixValue",
    "MergeStrategy",
    "OutputConfig",
    "PackageSpec",
    "PlanRequest",
    "PlanResult",
    "PluginInfo",
    "ProjectConfig",
    "RepoSnapshot",
    "Resource",
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
    **dict.fromkeys(__all__, "becket.dialects.cigen.messages"),
    **dict.fromkeys(("GENERATE", "HELLO", "PLAN", "PROTOCOL"), "becket.dialects.cigen.words"),
    "CIGEN": "becket.dialects.cigen.link",
    "CigenSettings": "becket.dialects.cigen.handshake",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), HOMES)
