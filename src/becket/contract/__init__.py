"""Types, methods and notifications of the protocol between host and extension.

The names that authors of extensions and hosts use can be imported from here; each module is imported at first use.
Everything else, such as methods and decoders, is in the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.contract.commands import (
        CommandDone as CommandDone,
        CommandEvent as CommandEvent,
        ErrorText as ErrorText,
        SystemText as SystemText,
        Table as Table,
        Text as Text,
    )
    from becket.contract.config import ConfigChanged as ConfigChanged, ConfigValue as ConfigValue
    from becket.contract.handshake import DeclaredCapability as DeclaredCapability
    from becket.contract.hooks import (
        Block as Block,
        Confirm as Confirm,
        Continue as Continue,
        HookEvent as HookEvent,
        HookKind as HookKind,
        HookResult as HookResult,
        Inject as Inject,
        Modify as Modify,
        Replace as Replace,
    )
    from becket.contract.info import (
        BuildInfo as BuildInfo,
        CapabilityInfo as CapabilityInfo,
        ExtensionInfo as ExtensionInfo,
        ModelInfo as ModelInfo,
        SidecarArgs as SidecarArgs,
    )
    from becket.contract.memory import Appended as Appended, Record as Record
    from becket.contract.providers import (
        Message as Message,
        Model as Model,
        Provider as Provider,
        ProviderDone as ProviderDone,
        ProviderEvent as ProviderEvent,
        ProviderFailed as ProviderFailed,
        ProviderRequest as ProviderRequest,
        ProviderResult as ProviderResult,
        TextDelta as TextDelta,
        ThinkingDelta as ThinkingDelta,
        ToolUse as ToolUse,
        Usage as Usage,
        assistant as assistant,
        user as user,
    )
    from becket.contract.settings import (
        EditorClosed as EditorClosed,
        EditorCommit as EditorCommit,
        EditorCommitted as EditorCommitted,
        EditorKey as EditorKey,
        EditorOpen as EditorOpen,
        EditorOpened as EditorOpened,
        EditorRender as EditorRender,
        EditorRow as EditorRow,
        EditorTaken as EditorTaken,
    )
    from becket.contract.tasks import (
        TaskEnded as TaskEnded,
        TaskKind as TaskKind,
        TaskLogged as TaskLogged,
        TaskStarted as TaskStarted,
        TaskUpdated as TaskUpdated,
    )
    from becket.contract.tools import Tool as Tool
    from becket.contract.widgets import (
        Position as Position,
        StyledText as StyledText,
        WidgetDismiss as WidgetDismiss,
        WidgetUpsert as WidgetUpsert,
    )

EXPORTS = {
    "becket.contract.commands": "CommandDone CommandEvent ErrorText SystemText Table Text",
    "becket.contract.config": "ConfigChanged ConfigValue",
    "becket.contract.handshake": "DeclaredCapability",
    "becket.contract.hooks": "Block Confirm Continue HookEvent HookKind HookResult Inject Modify Replace",
    "becket.contract.info": "BuildInfo CapabilityInfo ExtensionInfo ModelInfo SidecarArgs",
    "becket.contract.memory": "Appended Record",
    "becket.contract.providers": """
        assistant Message Model Provider ProviderDone ProviderEvent ProviderFailed ProviderRequest
        ProviderResult TextDelta ThinkingDelta ToolUse Usage user
    """,
    "becket.contract.settings": """
        EditorClosed EditorCommit EditorCommitted EditorKey EditorOpen EditorOpened EditorRender EditorRow
        EditorTaken
    """,
    "becket.contract.tasks": "TaskEnded TaskKind TaskLogged TaskStarted TaskUpdated",
    "becket.contract.tools": "Tool",
    "becket.contract.widgets": "Position StyledText WidgetDismiss WidgetUpsert",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
