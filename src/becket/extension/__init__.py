"""The kit for writing an extension: a class with decorated methods, and what these get to work with.

Each part is imported when it is first used: an extension pays at start only for what it declares.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.extension.declarations import command, handles, hook, provider, tool
    from becket.extension.host_services import BlockingHost, Host
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
    "BlockingHost",
    "BlockingProviderStream",
    "BlockingTask",
    "CommandOutput",
    "ExtensionServer",
    "Host",
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
    "BlockingHost": "becket.extension.host_services",
    "BlockingProviderStream": "becket.extension.outputs",
    "BlockingTask": "becket.extension.outputs",
    "CommandOutput": "becket.extension.outputs",
    "ExtensionServer": "becket.extension.server",
    "Host": "becket.extension.host_services",
    "ProviderStream": "becket.extension.outputs",
    "Task": "becket.extension.outputs",
    "command": "becket.extension.declarations",
    "handles": "becket.extension.declarations",
    "hook": "becket.extension.declarations",
    "provider": "becket.extension.declarations",
    "tool": "becket.extension.declarations",
}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
