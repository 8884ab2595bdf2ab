"""Lists the types of the contract: the name of each, its Python type, and the family's definition that describes it.

The order is that of the bundle and of every emitted file.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from becket.contract import (
    audit,
    commands,
    config,
    handshake,
    hooks,
    info,
    log,
    memory,
    models,
    providers,
    settings,
    sidecar,
    tasks,
    tools,
    widgets,
)
from becket.dialects.dialect import CallMeta

__all__ = ["ENTRIES", "FORMS", "MEMBERS", "Entry"]

Json = dict[str, Any]


class Entry(NamedTuple):
    """A definition of the bundle. Its shape is that of its Python type, else of `FORMS`, else of the family's
    definition. The family `link` has no schema file: `FORMS` describes its types."""

    name: str
    family: str
    definition: str
    type: Any = None


def described(family: str, **types: Any) -> tuple[Entry, ...]:
    """Returns entries named after their Python types; the keyword is the family's definition."""
    return tuple(Entry(type.__name__, family, definition.strip("_"), type) for definition, type in types.items())


ENTRIES: Final = (
    Entry("Request", "envelope", "request"),
    Entry("Notification", "envelope", "notification"),
    Entry("Success", "envelope", "success"),
    Entry("Failure", "envelope", "failure"),
    Entry("ErrorObject", "envelope", "error"),
    Entry("RequestId", "envelope", "id"),
    Entry("CallMeta", "link", "", CallMeta),
    Entry("CancelParams", "link", ""),
    Entry("ProgressParams", "link", ""),
    Entry("CreditParams", "link", ""),
    *described("initialize", params=handshake.Initialize, result=handshake.Initialized, host=handshake.HostInfo),
    *described("capabilities", capabilities=handshake.Capabilities, capability=handshake.DeclaredCapability),
    Entry("Permission", "capabilities", "permission"),
    Entry("DeclaredName", "capabilities", "id"),
    Entry("NonBlankText", "capabilities", "text"),
    *described("tools", tool=tools.Tool, call=tools.ToolCall),
    *described("providers", provider=models.Provider, model=models.Model),
    Entry("ModelCapabilities", "providers", "model/properties/capabilities"),
    *described("providers", message=providers.Message),
    Entry("MessageContent", "providers", "message/properties/content"),
    *described("providers", request=providers.ProviderRequest, result=providers.ProviderResult),
    Entry("ProviderEvent", "provider-events", "event", providers.ProviderEvent),
    *described("provider-events", text=providers.TextDelta, thinking=providers.ThinkingDelta),
    *described("provider-events", tool_use=providers.ToolUse),
    Entry("Usage", "provider-events", "usage"),
    *described("provider-events", error=providers.ProviderFailed, done=providers.ProviderDone),
    Entry("ErrorCode", "provider-events", "error/properties/code"),
    *described("commands", params=commands.CommandInvoke),
    *described("command-output", params=commands.CommandOutputParams),
    Entry("CommandOutputEvent", "command-output", "event", commands.CommandOutputEvent),
    *described("command-output", text=commands.Text, system=commands.SystemText, error=commands.ErrorText),
    *described("command-output", table=commands.Table, done=commands.CommandDone),
    *described("tasks", start=tasks.TaskStarted, update=tasks.TaskUpdated, log=tasks.TaskLogged, done=tasks.TaskEnded),
    Entry("TaskKind", "tasks", "start/properties/kind", tasks.TaskKind),
    *described("hooks", event=hooks.HookEvent, kind=hooks.HookKind),
    Entry("HookResult", "hooks", "result", hooks.HookResult),
    *described("hooks", continue_=hooks.Continue, block=hooks.Block, inject=hooks.Inject, confirm=hooks.Confirm),
    *described("hooks", modify=hooks.Modify, replace=hooks.Replace),
    *described("hooks", match=hooks.HookMatch, subscription=hooks.HookSubscription),
    *described("memory", append=memory.Append, appended=memory.Appended, query=memory.Query),
    *described("memory", records=memory.Records, record=memory.Record),
    Entry("Namespace", "memory", "namespace"),
    Entry("Tag", "memory", "tag"),
    *described("config", get=config.ConfigGet, value=config.ConfigValue, set=config.ConfigSet),
    *described("config", saved=config.ConfigSaved, subscribe=config.ConfigSubscribe),
    *described("config", subscribed=config.ConfigSubscribed, changed=config.ConfigChanged),
    Entry("ConfigKey", "config", "key"),
    *described("settings-editor", open=settings.EditorOpen, key=settings.EditorKey, commit=settings.EditorCommit),
    *described("settings-editor", opened=settings.EditorOpened, taken=settings.EditorTaken),
    *described("settings-editor", render=settings.EditorRender, row=settings.EditorRow),
    *described("settings-editor", committed=settings.EditorCommitted, close=settings.EditorClosed),
    *described("widgets", upsert=widgets.WidgetUpsert, dismiss=widgets.WidgetDismiss),
    *described("widgets", position=widgets.Position, styled_text=widgets.StyledText),
    *described("log", record=log.LogRecord, level=log.LogLevel),
    *described("info", info=info.ExtensionInfo, build=info.BuildInfo, capability=info.CapabilityInfo),
    *described("info", model=info.ModelInfo, sidecar_args=info.SidecarArgs),
    Entry("SidecarCommand", "sidecar", "command", sidecar.SidecarCommand),
    *described("sidecar", init=sidecar.SidecarInit),
    Entry("SidecarConfig", "sidecar", "init/properties/config", sidecar.SidecarConfig),
    *described("sidecar", trigger=sidecar.SidecarTrigger, shutdown=sidecar.SidecarShutdown),
    Entry("SidecarEvent", "sidecar", "event", sidecar.KnownSidecarEvent),
    *described("sidecar", hello=sidecar.SidecarHello, status=sidecar.SidecarStatus, insert_text=sidecar.InsertText),
    Entry("InsertMode", "sidecar", "insert_text/properties/mode", sidecar.InsertMode),
    *described("sidecar", error=sidecar.SidecarFailed),
    *described("audit-record", record=audit.AuditRecord),
    Entry("AuditEvent", "audit-record", "event", audit.AuditEvent),
    *described("audit-record", call=audit.CallDecided, calls=audit.CallsCounted, grant=audit.GrantChanged),
    *described("audit-record", start=audit.ProcessStarted, change=audit.FilesChanged, refusal=audit.ConsentRefused),
    *described("audit-record", provider=audit.ProviderCalled, rotate=audit.FileRotated),
    Entry("ProviderOutcome", "audit-record", "provider/properties/outcome", audit.ProviderOutcome),
    Entry("Digest", "audit-record", "digest"),
)


def reference(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


OBJECT: Final[Json] = {"type": "object"}
COUNT: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
SPACES: Final = "\\t-\\r \\x85\\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # in a class of a pattern

MEMBERS: Final[dict[tuple[str, str], Json]] = {
    # At run time these members have a looser type, since a host tolerates more than the contract allows.
    ("Initialized", "capabilities"): reference("Capabilities"),
    ("Initialized", "features"): array({"type": "string"}),
    ("Initialized", "info"): reference("ExtensionInfo"),
    ("Initialized", "id"): {"type": "string"},
    ("Capabilities", "hooks"): array(reference("HookSubscription")),
    ("Tool", "input_schema"): OBJECT,
    ("Tool", "output_schema"): OBJECT,
    ("Provider", "config_schema"): OBJECT,
    ("Model", "capabilities"): reference("ModelCapabilities"),
    ("Message", "content"): reference("MessageContent"),
    ("ProviderFailed", "code"): reference("ErrorCode"),
    ("CallMeta", "parent"): reference("RequestId"),
    # The family's file has it beside a tolerated form.
    ("CommandOutputParams", "event"): reference("CommandOutputEvent"),
}
"""Shapes of members that their Python types do not have."""

FORMS: Final[dict[str, Json]] = {
    "RequestId": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
    "CallMeta": {
        "description": "What belongs to one call, in `params._meta.becket`. All members are optional.",
        "properties": {
            "timeout_ms": {"description": "How long the caller waits, in milliseconds from receipt."},
            "parent": {"description": "The id of the request whose handler makes this call, as its sender chose it."},
            "depth": {"description": "How many calls are nested around this one."},
            "credit": {"description": "How many events may be sent before the first `$/credit`."},
            "idem": {"description": "A key of the caller's own, the same in each attempt of one call."},
            "no_params": {"description": "Beside nothing else: true for absent params, false for an empty object."},
        },
        "examples": [{"timeout_ms": 5000, "parent": 3, "depth": 1}],
    },
    "CancelParams": {
        "description": "Params of `$/cancelRequest`: the request that is not needed any more. It is still answered.",
        "type": "object",
        "required": ["id"],
        "properties": {"id": reference("RequestId")},
        "examples": [{"id": 7}],
    },
    "ProgressParams": {
        "description": "Params of `$/progress`: how far a request is. The token is the id of the request.",
        "type": "object",
        "required": ["token", "value"],
        "properties": {"token": reference("RequestId"), "value": {}},
        "examples": [{"token": 7, "value": 0.5}],
    },
    "CreditParams": {
        "description": "Params of `$/credit`: so many further events may be sent for this request.",
        "type": "object",
        "required": ["id", "n"],
        "properties": {"id": reference("RequestId"), "n": COUNT},
        "examples": [{"id": 7, "n": 32}],
    },
    "ModelCapabilities": {
        "type": "object",
        "properties": {
            "streaming": {"description": "Whether `provider.stream` is served for it.", "type": "boolean"},
            "tool_use": {"description": "Whether its answers may ask for tools.", "type": "boolean"},
        },
        "additionalProperties": True,
    },
    "MessageContent": {"anyOf": [{"type": "string"}, array(OBJECT)]},
    "Usage": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "const": "usage"}},
        "additionalProperties": True,
    },
    "ErrorCode": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "Namespace": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        # No two dots in a row, no slash and no white space; generators ignore the `not` of the family's file.
        "pattern": rf"^(\.?[^./\\{SPACES}])*\.?$",
    },
}
"""Shapes that neither the Python type nor the family's definition has in a form for generators."""
