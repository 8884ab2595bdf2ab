"""Deprecated since 0.2: `becket.adapters.nexo` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.adapters.nexo",
    {
        "ListedTool": "NexoTool",
        "ListedTools": "NexoToolList",
        "Particulars": "NexoExtra",
        "PollFault": "PollFailure",
        "PollKind": "PollListToolsParams",
        "PollTick": "PollTickParams",
        "PollToolCall": "PollToolCallParams",
        "Polled": "PollTickResult",
        "build_meta": "build_session_meta",
        "capability_of": "to_capability",
        "fault_of": "classify_failure",
        "meta_of": "get_session_meta",
        "permission_of": "to_permission",
        "read_poller_tools": "decode_poller_tools",
        "tools_of": "to_tools",
    },
)
