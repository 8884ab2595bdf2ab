"""Adapter for cigen plugins: lazy exports of the dialect, its methods and its messages.

A host calls `extension.peer.call(cigen.PLAN, PlanRequest(...))`, then `cigen.GENERATE`; an extension has methods marked
`@handles(cigen.PLAN)` and `@handles(cigen.GENERATE)`. Names are loaded at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.adapters.cigen.dialect import CIGEN as CIGEN
    from becket.adapters.cigen.handshake import CigenSettings as CigenSettings
    from becket.adapters.cigen.messages import *
    from becket.adapters.cigen.methods import *

EXPORTS = {
    "becket.adapters.cigen.dialect": "CIGEN",
    "becket.adapters.cigen.handshake": "CigenSettings",
    "becket.adapters.cigen.messages": """
        CacheDefinition CigenDiagnostic CigenHello CigenMessage CigenOutputConfig CigenResource CigenSchema
        CommandDefinition CommandParameter CustomStep Dependency DependencyType Fragment GenerateRequest
        GenerateResult GitInfo JobDefinition Level MatrixRow MatrixValue MergeStrategy PackageSpec PlanRequest
        PlanResult PluginInfo ProjectConfig RepoSnapshot ResourceType RestoreCacheStep RunnerDefinition RunStep
        SaveCacheStep Signed SkipConfig SourceLocation Step StringList Unsigned UsesStep WorkflowCondition
        WorkflowConditionKind WorkflowDefinition
    """,
    "becket.adapters.cigen.methods": "CIGEN_PROTOCOL_VERSION GENERATE HELLO PLAN",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
