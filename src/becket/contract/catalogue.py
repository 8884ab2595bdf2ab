"""Lists of every method and notification of the contract, for docs, checks and listings.

Not imported at run time: code that uses a method imports it from its own module.
"""

from __future__ import annotations

from typing import Any, Final

from becket.contract.commands import COMMAND_INVOKE, COMMAND_OUTPUT
from becket.contract.config import CONFIG_CHANGED, CONFIG_GET, CONFIG_SET, CONFIG_SUBSCRIBE
from becket.contract.handshake import INITIALIZE, SHUTDOWN
from becket.contract.hooks import HOOK_HANDLE
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS
from becket.contract.log import LOG
from becket.contract.memory import MEMORY_APPEND, MEMORY_QUERY
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, PROVIDER_STREAM_EVENT
from becket.contract.settings import (
    SETTINGS_EDITOR_CLOSE,
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_RENDER,
)
from becket.contract.tasks import TASK_DONE, TASK_LOG, TASK_START, TASK_UPDATE
from becket.contract.tools import TOOL_CALL
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT
from becket.methods.descriptors import Method, Notification

__all__ = ["METHODS", "NOTIFICATIONS"]

METHODS: Final[tuple[Method[Any, Any], ...]] = (
    INITIALIZE,
    SHUTDOWN,
    TOOL_CALL,
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    COMMAND_INVOKE,
    HOOK_HANDLE,
    INFO_GET,
    SIDECAR_SPAWN_ARGS,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_COMMIT,
    MEMORY_APPEND,
    MEMORY_QUERY,
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
)
"""All requests, with and without streams."""

NOTIFICATIONS: Final[tuple[Notification[Any], ...]] = (
    PROVIDER_STREAM_EVENT,
    COMMAND_OUTPUT,
    TASK_START,
    TASK_UPDATE,
    TASK_LOG,
    TASK_DONE,
    SETTINGS_EDITOR_RENDER,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_CLOSE,
    WIDGET_UPSERT,
    WIDGET_DISMISS,
    CONFIG_CHANGED,
    LOG,
)
"""All notifications."""
