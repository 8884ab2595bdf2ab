"""Types, methods and notifications of the protocol between host and extension.

What authors of extensions and of hosts write down can be imported from here; each family is imported when one of its
names is first used. The rest, such as the methods and how what comes in is read, stands in the modules of the families.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.contract.commands import CommandDone, CommandEvent, ErrorText, SystemText, Table, Text
    from becket.contract.config import ConfigChanged, ConfigValue
    from becket.contract.handshake import DeclaredCapability
    from becket.contract.hooks import Block, Confirm, Continue, HookEvent, HookKind, HookResult, Inject, Modify, Replace
    from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo, ModelInfo, SidecarArgs
    from becket.contract.memory import Appended, Record
    from becket.contract.providers import (
        Message,
        Model,
        Provider,
        ProviderDone,
        ProviderEvent,
        ProviderFailed,
        ProviderRequest,
        ProviderResult,
        TextDelta,
        ThinkingDelta,
        ToolUse,
        Usage,
        assistant,
        user,
    )
    from becket.contract.settings import (
        EditorClosed,
        EditorCommit,
        EditorCommitted,
        EditorKey,
        EditorOpen,
        EditorOpened,
        EditorRender,
        EditorRow,
        EditorTaken,
    )
    from becket.contract.tasks import TaskEnded, TaskKind, TaskLogged, TaskStarted, TaskUpdated
    from becket.contract.tools import Tool
    from becket.contract.widgets import Position, StyledText, WidgetDismiss, WidgetUpsert

__all__ = [
    "Appended",
    "Block",
    "BuildInfo",
    "CapabilityInfo",
    "CommandDone",
    "CommandEvent",
    "ConfigChanged",
    "ConfigValue",
    "Confirm",
    "Continue",
    "DeclaredCapability",
    "EditorClosed",
    "EditorCommit",
    "EditorCommitted",
    "EditorKey",
    "EditorOpen",
    "EditorOpened",
    "EditorRender",
    "EditorRow",
    "EditorTaken",
    "ErrorText",
    "ExtensionInfo",
    "HookEvent",
    "HookKind",
    "HookResult",
    "Inject",
    "Message",
    "Model",
    "ModelInfo",
    "Modify",
    "Position",
    "Provider",
    "ProviderDone",
    "ProviderEvent",
    "ProviderFailed",
    "ProviderRequest",
    "ProviderResult",
    "Record",
    "Replace",
    "SidecarArgs",
    "StyledText",
    "SystemText",
    "Table",
    "TaskEnded",
    "TaskKind",
    "TaskLogged",
    "TaskStarted",
    "TaskUpdated",
    "Text",
    "TextDelta",
    "ThinkingDelta",
    "Tool",
    "ToolUse",
    "Usage",
    "WidgetDismiss",
    "WidgetUpsert",
    "assistant",
    "user",
]

EXPORTS_BY_MODULE = {
    "commands": ("CommandDone", "CommandEvent", "ErrorText", "SystemText", "Table", "Text"),
    "config": ("ConfigChanged", "ConfigValue"),
    "handshake": ("DeclaredCapability",),
    "hooks": ("Block", "Confirm", "Continue", "HookEvent", "HookKind", "HookResult", "Inject", "Modify", "Replace"),
    "info": ("BuildInfo", "CapabilityInfo", "ExtensionInfo", "ModelInfo", "SidecarArgs"),
    "memory": ("Appended", "Record"),
    "providers": (
        "Message",
        "Model",
        "Provider",
        "ProviderDone",
        "ProviderEvent",
        "ProviderFailed",
        "ProviderRequest",
        "ProviderResult",
        "TextDelta",
        "ThinkingDelta",
        "ToolUse",
        "Usage",
        "assistant",
        "user",
    ),
    "settings": (
        "EditorClosed",
        "EditorCommit",
        "EditorCommitted",
        "EditorKey",
        "EditorOpen",
        "EditorOpened",
        "EditorRender",
        "EditorRow",
        "EditorTaken",
    ),
    "tasks": ("TaskEnded", "TaskKind", "TaskLogged", "TaskStarted", "TaskUpdated"),
    "tools": ("Tool",),
    "widgets": ("Position", "StyledText", "WidgetDismiss", "WidgetUpsert"),
}
EXPORTS = {name: f"becket.contract.{family}" for family, names in EXPORTS_BY_MODULE.items() for name in names}

__getattr__, __dir__ = lazy_exports(__name__, globals(), EXPORTS)
