"""Exports the kit for writing extensions: ExtensionServer, decorators, outputs and host clients.

Each part is imported when it is first used: an extension pays at start only for what it declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.extension.decorators import command, handles, hook, provider, tool
    from becket.extension.host_client import BlockingHostClient, HostClient
    from becket.extension.outputs import (
        BlockingCommandOutput,
        BlockingProviderStream,
        BlockingTask,
        CommandOutput,
        ProviderStream,
        Task,
    )
    from becket.extension.server import ExtensionServer

__all__ = [
    "BlockingCommandOutput",
    "BlockingHostClient",
    "BlockingProviderStream",
    "BlockingTask",
    "CommandOutput",
    "ExtensionServer",
    "HostClient",
    "ProviderStream",
    "Task",
    "command",
    "handles",
    "hook",
    "provider",
    "tool",
]

LAZY_EXPORTS = {
    "BlockingCommandOutput": "becket.extension.outputs",
    "BlockingHostClient": "becket.extension.host_client",
    "BlockingProviderStream": "becket.extension.outputs",
    "BlockingTask": "becket.extension.outputs",
    "CommandOutput": "becket.extension.outputs",
    "ExtensionServer": "becket.extension.server",
    "HostClient": "becket.extension.host_client",
    "ProviderStream": "becket.extension.outputs",
    "Task": "becket.extension.outputs",
    "command": "becket.extension.decorators",
    "handles": "becket.extension.decorators",
    "hook": "becket.extension.decorators",
    "provider": "becket.extension.decorators",
    "tool": "becket.extension.decorators",
}

__getattr__, __dir__ = lazy_exports(__name__, globals(), LAZY_EXPORTS)
