"""`Timeouts`: seconds that a host waits for each kind of call to an extension."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from becket.contract.commands import COMMAND_INVOKE
from becket.contract.handshake import SHUTDOWN
from becket.contract.hooks import HOOK_HANDLE
from becket.contract.info import INFO_GET
from becket.contract.providers import PROVIDER_COMPLETE
from becket.contract.settings import SETTINGS_EDITOR_OPEN
from becket.contract.tools import TOOL_CALL

__all__ = ["DEFAULT_TIMEOUTS", "Timeouts"]


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds for each kind of call; None is no limit. A timeout cancels the call and never ends the extension.

    The handshake has `Limits.handshake`."""

    tool: float | None = TOOL_CALL.timeout
    complete: float | None = PROVIDER_COMPLETE.timeout
    idle: float | None = COMMAND_INVOKE.idle_timeout  # of a stream or a command, since its last event
    total: float | None = None  # of a stream or a command, from its beginning
    hook: float | None = HOOK_HANDLE.timeout
    info: float | None = INFO_GET.timeout
    editor: float | None = SETTINGS_EDITOR_OPEN.timeout
    shutdown: float | None = SHUTDOWN.timeout


DEFAULT_TIMEOUTS: Final = Timeouts()
