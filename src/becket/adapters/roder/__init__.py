"""Adapter for Roder process extensions: lazy exports of the dialect, methods and messages.

`RODER` is the dialect. Tools, providers and commands are those of the contract. Other methods have descriptors here:
`extension.peer.call(roder.SUBAGENTS_DEFINITIONS, ...)` in a host, and `@handles(roder.SUBAGENTS_DISPATCH)` in an
extension. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.adapters.roder.dialect import RODER as RODER
    from becket.adapters.roder.handshake import (
        INITIALIZE as INITIALIZE,
        SHUTDOWN as SHUTDOWN,
        InitializeParams as InitializeParams,
        InitializeResult as InitializeResult,
        RoderOffer as RoderOffer,
    )
    from becket.adapters.roder.manifest import *
    from becket.adapters.roder.messages.events import *
    from becket.adapters.roder.messages.inference import (
        INFERENCE_EVENT as INFERENCE_EVENT,
        STREAM_TURN as STREAM_TURN,
        CompactionProgress as CompactionProgress,
        HostedToolCallCompleted as HostedToolCallCompleted,
        HostedToolCallStarted as HostedToolCallStarted,
        InferenceEvent as InferenceEvent,
        InferenceEventParams as InferenceEventParams,
        MessageDelta as MessageDelta,
        ReasoningDelta as ReasoningDelta,
        StreamTurnAck as StreamTurnAck,
        StreamTurnParams as StreamTurnParams,
        TaggedEvent as TaggedEvent,
        TokenUsage as TokenUsage,
        ToolCallCompleted as ToolCallCompleted,
        ToolCallDelta as ToolCallDelta,
        ToolCallStarted as ToolCallStarted,
        TurnCompleted as TurnCompleted,
        TurnFailed as TurnFailed,
    )
    from becket.adapters.roder.messages.inference_request import *
    from becket.adapters.roder.messages.models import *
    from becket.adapters.roder.messages.services import (
        EventSink as EventSink,
        InferenceEngine as InferenceEngine,
        Service as Service,
        SubagentDispatcher as SubagentDispatcher,
        TaskExecutor as TaskExecutor,
        ToolProvider as ToolProvider,
        ToolSpec as ToolSpec,
    )
    from becket.adapters.roder.messages.subagents import (
        DISPATCH_TIMEOUT as DISPATCH_TIMEOUT,
        SUBAGENTS_CANCEL as SUBAGENTS_CANCEL,
        SUBAGENTS_DEFINITIONS as SUBAGENTS_DEFINITIONS,
        SUBAGENTS_DISPATCH as SUBAGENTS_DISPATCH,
        SUBAGENTS_EVENT as SUBAGENTS_EVENT,
        CancelDispatchParams as CancelDispatchParams,
        DispatchAck as DispatchAck,
        DispatchParams as DispatchParams,
        ListDefinitionsParams as ListDefinitionsParams,
        ListDefinitionsResult as ListDefinitionsResult,
        SubagentCompleted as SubagentCompleted,
        SubagentDefinition as SubagentDefinition,
        SubagentEvent as SubagentEvent,
        SubagentEventParams as SubagentEventParams,
        SubagentExitReason as SubagentExitReason,
        SubagentFailed as SubagentFailed,
        SubagentLane as SubagentLane,
        SubagentPermissionMode as SubagentPermissionMode,
        SubagentRequest as SubagentRequest,
        SubagentResult as SubagentResult,
        SubagentStatus as SubagentStatus,
        get_dispatch_timeout as get_dispatch_timeout,
    )
    from becket.adapters.roder.messages.tasks import (
        TASKS_CANCEL as TASKS_CANCEL,
        TASKS_EVENT as TASKS_EVENT,
        TASKS_EXECUTE as TASKS_EXECUTE,
        TASKS_SPEC as TASKS_SPEC,
        CancelTaskParams as CancelTaskParams,
        ExecuteTaskAck as ExecuteTaskAck,
        ExecuteTaskParams as ExecuteTaskParams,
        RoderTaskEvent as RoderTaskEvent,
        TaskCompleted as TaskCompleted,
        TaskEventParams as TaskEventParams,
        TaskFailed as TaskFailed,
        TaskOutput as TaskOutput,
        TaskOutputStream as TaskOutputStream,
        TaskResult as TaskResult,
        TaskSpec as TaskSpec,
        TaskSpecParams as TaskSpecParams,
        TaskSpecResult as TaskSpecResult,
    )
    from becket.adapters.roder.messages.tools import *
    from becket.adapters.roder.served_manifest import MANIFEST_VARIABLE as MANIFEST_VARIABLE

EXPORTS = {
    "becket.adapters.roder.dialect": "RODER",
    "becket.adapters.roder.handshake": "INITIALIZE InitializeParams InitializeResult RoderOffer SHUTDOWN",
    "becket.adapters.roder.manifest": """
        API_VERSION EventFilter FILE_NAME find_manifest_problems LoadedManifest manifest_checksum
        ProcessExtension PROTOCOL_VERSION RoderLaunch RoderManifest
    """,
    "becket.adapters.roder.messages.events": """
        EventEnvelope EVENTS_HANDLE EventsHandleParams EventSource EXTENSION_EVENT ExtensionEventBuffer
        FORWARD_TIMEOUT MAX_BUFFERED_EVENTS RoderExtensionEvent
    """,
    "becket.adapters.roder.messages.inference": """
        CompactionProgress HostedToolCallCompleted HostedToolCallStarted INFERENCE_EVENT InferenceEvent
        InferenceEventParams MessageDelta ReasoningDelta STREAM_TURN StreamTurnAck StreamTurnParams TaggedEvent
        TokenUsage ToolCallCompleted ToolCallDelta ToolCallStarted TurnCompleted TurnFailed
    """,
    "becket.adapters.roder.messages.inference_request": """
        AssistantMessage ContextCompaction ErrorRecord FileChange InferenceRequest InputImage Instructions
        ModelSelection OutputConfig ProviderMetadata ReasoningConfig ReasoningSummary RuntimeHints SpecificTool
        TaggedTranscriptItem ToolCallRecord ToolResultRecord TranscriptItem UserMessage
    """,
    "becket.adapters.roder.messages.models": """
        LIST_MODELS ListModelsParams ListModelsResult ModelDescriptor ReasoningEffort
    """,
    "becket.adapters.roder.messages.services": """
        EventSink InferenceEngine Service SubagentDispatcher TaskExecutor ToolProvider ToolSpec
    """,
    "becket.adapters.roder.messages.subagents": """
        CancelDispatchParams DISPATCH_TIMEOUT DispatchAck DispatchParams get_dispatch_timeout
        ListDefinitionsParams ListDefinitionsResult SubagentCompleted SubagentDefinition SubagentEvent
        SubagentEventParams SubagentExitReason SubagentFailed SubagentLane SubagentPermissionMode
        SubagentRequest SubagentResult SUBAGENTS_CANCEL SUBAGENTS_DEFINITIONS SUBAGENTS_DISPATCH SUBAGENTS_EVENT
        SubagentStatus
    """,
    "becket.adapters.roder.messages.tasks": """
        CancelTaskParams ExecuteTaskAck ExecuteTaskParams RoderTaskEvent TaskCompleted TaskEventParams
        TaskFailed TaskOutput TaskOutputStream TaskResult TASKS_CANCEL TASKS_EVENT TASKS_EXECUTE TASKS_SPEC
        TaskSpec TaskSpecParams TaskSpecResult
    """,
    "becket.adapters.roder.messages.tools": "ToolCallParams ToolCallResult TOOLS_CALL",
    "becket.adapters.roder.served_manifest": "MANIFEST_VARIABLE",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
