"""The kit for writing an extension: a class with decorated methods, and what these get to work with.

Each part is imported when it is first used: an extension pays at start only for what it declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.loading import lazy_names

if TYPE_CHECKING:
    from becket.extension.declarations import command, handles, hook, provider, tool
    from becket.extension.host_services import BlockingHostServices, HostServices
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
    "BlockingHostServices",
    "BlockingProviderStream",
    "BlockingTask",
    "CommandOutput",
    "ExtensionServer",
    "HostServices",
    "ProviderStream",
    "Task",
    "command",
    "handles",
    "hook",
    "provider",
    "tool",
]

HOMES = {
    "BlockingCommandOutput": "becket.extension.outputs",
    "BlockingHostServices": "becket.extension.host_services",
    "BlockingProviderStream": "becket.extension.outputs",
    "BlockingTask": "becket.extension.outputs",
    "CommandOutput": "becket.extension.outputs",
    "ExtensionServer": "becket.extension.server",
    "HostServices": "becket.extension.host_services",
    "ProviderStream": "becket.extension.outputs",
    "Task": "becket.extension.outputs",
    "command": "becket.extension.declarations",
    "handles": "becket.extension.declarations",
    "hook": "becket.extension.declarations",
    "provider": "becket.extension.declarations",
    "tool": "becket.extension.declarations",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), HOMES)
