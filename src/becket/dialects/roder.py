"""Deprecated since 0.2: `becket.adapters.roder` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.adapters.roder",
    {
        "Completed": "TurnCompleted",
        "DispatchCancel": "CancelDispatchParams",
        "EventsHandle": "EventsHandleParams",
        "ExecuteAck": "ExecuteTaskAck",
        "ExecuteCancel": "CancelTaskParams",
        "ExecuteParams": "ExecuteTaskParams",
        "ExitReason": "SubagentExitReason",
        "ExtensionEvent": "RoderExtensionEvent",
        "Failed": "TurnFailed",
        "KeptEvents": "ExtensionEventBuffer",
        "Lane": "SubagentLane",
        "Launch": "RoderLaunch",
        "ListDefinitions": "ListDefinitionsParams",
        "ListModels": "ListModelsParams",
        "MOST_KEPT": "MAX_BUFFERED_EVENTS",
        "ModelList": "ListModelsResult",
        "Offer": "RoderOffer",
        "PermissionMode": "SubagentPermissionMode",
        "StreamTurn": "StreamTurnParams",
        "SubagentDefinitions": "ListDefinitionsResult",
        "TaggedItem": "TaggedTranscriptItem",
        "TaskEvent": "RoderTaskEvent",
        "VARIABLE": "MANIFEST_VARIABLE",
        "dispatch_timeout": "get_dispatch_timeout",
    },
)
