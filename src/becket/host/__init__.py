"""Hosts extensions: a folder of them with `Host`, or a single one with `connect_extension`.

Each part is imported at first use. `becket.host.events` has the events of a host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._deprecated import keep_renamed
from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.host.audit_log import AuditMode as AuditMode
    from becket.host.breaker import BreakerPolicy as BreakerPolicy
    from becket.host.command_lines import CommandLines as CommandLines
    from becket.host.diagnostics import Diagnostic as Diagnostic
    from becket.host.extension import Extension as Extension
    from becket.host.heartbeat import HeartbeatPolicy as HeartbeatPolicy
    from becket.host.hook_plan import HookSettings as HookSettings
    from becket.host.host import ExtensionStatus as ExtensionStatus, Host as Host
    from becket.host.host_config import (
        ExtensionConfig as ExtensionConfig,
        HostConfig as HostConfig,
        load_host_config as load_host_config,
    )
    from becket.host.host_settings import HostSettings as HostSettings
    from becket.host.live_view import LiveView as LiveView, live as live
    from becket.host.restart import RestartPolicy as RestartPolicy, RestartStrategy as RestartStrategy
    from becket.host.serving.streams import ExtensionStream as ExtensionStream
    from becket.host.sidecar import Sidecar as Sidecar, connect_sidecar as connect_sidecar
    from becket.host.starting.connect import (
        connect_extension as connect_extension,
        connect_extension_over as connect_extension_over,
    )
    from becket.host.starting.consent_request import ConsentChanges as ConsentChanges, ConsentRequest as ConsentRequest
    from becket.host.starting.discovery import DiscoverySettings as DiscoverySettings
    from becket.host.starting.manifest import (
        Environment as Environment,
        LimitOverrides as LimitOverrides,
        RestartOverrides as RestartOverrides,
    )
    from becket.host.supervision_policy import SupervisionPolicy as SupervisionPolicy
    from becket.host.timeouts import Timeouts as Timeouts

EXPORTS = {
    "becket.host.audit_log": "AuditMode",
    "becket.host.breaker": "BreakerPolicy",
    "becket.host.command_lines": "CommandLines",
    "becket.host.diagnostics": "Diagnostic",
    "becket.host.extension": "Extension",
    "becket.host.heartbeat": "HeartbeatPolicy",
    "becket.host.hook_plan": "HookSettings",
    "becket.host.host": "ExtensionStatus Host",
    "becket.host.host_config": "ExtensionConfig HostConfig load_host_config",
    "becket.host.host_settings": "HostSettings",
    "becket.host.live_view": "live LiveView",
    "becket.host.restart": "RestartPolicy RestartStrategy",
    "becket.host.serving.streams": "ExtensionStream",
    "becket.host.sidecar": "connect_sidecar Sidecar",
    "becket.host.starting.connect": "connect_extension connect_extension_over",
    "becket.host.starting.consent_request": "ConsentChanges ConsentRequest",
    "becket.host.starting.discovery": "DiscoverySettings",
    "becket.host.starting.manifest": "Environment LimitOverrides RestartOverrides",
    "becket.host.supervision_policy": "SupervisionPolicy",
    "becket.host.timeouts": "Timeouts",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
RENAMED = {
    "Care": "SupervisionPolicy",
    "McpSettings": "becket.adapters.mcp.hosted_servers.McpSettings",
    "Run": "ExtensionStream",
    "Supervised": "Extension",
}
__getattr__ = keep_renamed(__name__, RENAMED, __getattr__)
