"""Exports the MCP dialect, McpClient and the protocol's messages and descriptors.

`McpClient` starts and calls a server. Any `ExtensionServer` is an MCP server with `run(mcp=True)`. No other MCP library
is needed. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.adapters.mcp.client.callbacks import (
        ClientCallbacks as ClientCallbacks,
        ElicitationCallback as ElicitationCallback,
        RootLike as RootLike,
        SamplingCallback as SamplingCallback,
    )
    from becket.adapters.mcp.client.connector import ClientOptions as ClientOptions
    from becket.adapters.mcp.client.mcp_client import McpClient as McpClient, OnProgress as OnProgress
    from becket.adapters.mcp.dialect import MCP as MCP
    from becket.adapters.mcp.messages.base import (
        Annotations as Annotations,
        EmptyMessage as EmptyMessage,
        Icon as Icon,
        PaginatedParams as PaginatedParams,
        Role as Role,
    )
    from becket.adapters.mcp.messages.client_features import *
    from becket.adapters.mcp.messages.content import (
        AudioContent as AudioContent,
        Content as Content,
        EmbeddedResource as EmbeddedResource,
        ImageContent as ImageContent,
        ResourceContents as ResourceContents,
        ResourceLink as ResourceLink,
        SamplingContent as SamplingContent,
        TextContent as TextContent,
        ToolResultContent as ToolResultContent,
        ToolUseContent as ToolUseContent,
    )
    from becket.adapters.mcp.messages.lifecycle import (
        INITIALIZE as INITIALIZE,
        INITIALIZED as INITIALIZED,
        LATEST_VERSION as LATEST_VERSION,
        PING as PING,
        PROTOCOL_VERSIONS as PROTOCOL_VERSIONS,
        ClientCapabilities as ClientCapabilities,
        ElicitationCapability as ElicitationCapability,
        Implementation as Implementation,
        ListCapability as ListCapability,
        McpInitializeParams as McpInitializeParams,
        McpInitializeResult as McpInitializeResult,
        ResourcesCapability as ResourcesCapability,
        SamplingCapability as SamplingCapability,
        ServerCapabilities as ServerCapabilities,
    )
    from becket.adapters.mcp.messages.notifications import (
        LOG_MESSAGE as LOG_MESSAGE,
        LOGGING_SET_LEVEL as LOGGING_SET_LEVEL,
        PROGRESS as PROGRESS,
        LoggingLevel as LoggingLevel,
        LogMessage as LogMessage,
        Progress as Progress,
        SetLevelParams as SetLevelParams,
    )
    from becket.adapters.mcp.messages.prompts import *
    from becket.adapters.mcp.messages.resources import *
    from becket.adapters.mcp.messages.tools import (
        TOOLS_CALL as TOOLS_CALL,
        TOOLS_CHANGED as TOOLS_CHANGED,
        TOOLS_LIST as TOOLS_LIST,
        CallToolParams as CallToolParams,
        ListToolsResult as ListToolsResult,
        McpTool as McpTool,
        ToolAnnotations as ToolAnnotations,
        ToolResult as ToolResult,
        ToolsChanged as ToolsChanged,
    )

EXPORTS = {
    "becket.adapters.mcp.client.callbacks": "ClientCallbacks ElicitationCallback RootLike SamplingCallback",
    "becket.adapters.mcp.client.connector": "ClientOptions",
    "becket.adapters.mcp.client.mcp_client": "McpClient OnProgress",
    "becket.adapters.mcp.dialect": "MCP",
    "becket.adapters.mcp.messages.base": "Annotations EmptyMessage Icon PaginatedParams Role",
    "becket.adapters.mcp.messages.client_features": """
        CreateMessageParams CreateMessageResult ELICITATION_COMPLETE ELICITATION_CREATE ElicitationCompleted
        ElicitParams ElicitResult ListRootsResult ModelHint ModelPreferences Root ROOTS_CHANGED ROOTS_LIST
        RootsChanged SAMPLING_CREATE_MESSAGE SamplingMessage ToolChoice USER_REJECTED
    """,
    "becket.adapters.mcp.messages.content": """
        AudioContent Content EmbeddedResource ImageContent ResourceContents ResourceLink SamplingContent
        TextContent ToolResultContent ToolUseContent
    """,
    "becket.adapters.mcp.messages.lifecycle": """
        ClientCapabilities ElicitationCapability Implementation INITIALIZE INITIALIZED LATEST_VERSION
        ListCapability McpInitializeParams McpInitializeResult PING PROTOCOL_VERSIONS ResourcesCapability
        SamplingCapability ServerCapabilities
    """,
    "becket.adapters.mcp.messages.notifications": """
        LOG_MESSAGE LOGGING_SET_LEVEL LoggingLevel LogMessage PROGRESS Progress SetLevelParams
    """,
    "becket.adapters.mcp.messages.prompts": """
        CompleteParams CompleteResult Completion COMPLETION_COMPLETE CompletionArgument CompletionContext
        GetPromptParams GetPromptResult ListPromptsResult Prompt PromptArgument PromptMessage PromptReference
        PROMPTS_CHANGED PROMPTS_GET PROMPTS_LIST PromptsChanged ResourceTemplateReference
    """,
    "becket.adapters.mcp.messages.resources": """
        ListResourcesResult ListResourceTemplatesResult ReadResourceResult Resource RESOURCE_UPDATED
        ResourceParams RESOURCES_CHANGED RESOURCES_LIST RESOURCES_READ RESOURCES_SUBSCRIBE
        RESOURCES_TEMPLATES_LIST RESOURCES_UNSUBSCRIBE ResourcesChanged ResourceTemplate ResourceUpdated
    """,
    "becket.adapters.mcp.messages.tools": """
        CallToolParams ListToolsResult McpTool ToolAnnotations ToolResult TOOLS_CALL TOOLS_CHANGED TOOLS_LIST
        ToolsChanged
    """,
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
