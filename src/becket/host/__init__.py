"""Hosts extensions: a folder of them with `Host`, or a single one with `connect_extension`.

Each part is imported when it is first used. What happens to extensions is told as the classes of `becket.host.events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.adapters.mcp.hosted_servers import McpSettings
    from becket.host.diagnostics import Diagnostic
    from becket.host.extension import Extension
    from becket.host.host import ExtensionStatus, Host
    from becket.host.live_view import LiveView, live
    from becket.host.restart import RestartPolicy, RestartStrategy
    from becket.host.serving.streams import ExtensionStream
    from becket.host.sidecar import Sidecar, connect_sidecar
    from becket.host.starting.connect import connect_extension, connect_extension_over
    from becket.host.starting.consent_request import ConsentChanges, ConsentRequest
    from becket.host.supervised import ExtensionHandle
    from becket.host.supervisor import SupervisionPolicy
    from becket.host.timeouts import Timeouts

__all__ = [
    "ConsentChanges",
    "ConsentRequest",
    "Diagnostic",
    "Extension",
    "ExtensionHandle",
    "ExtensionStatus",
    "ExtensionStream",
    "Host",
    "LiveView",
    "McpSettings",
    "RestartPolicy",
    "RestartStrategy",
    "Sidecar",
    "SupervisionPolicy",
    "Timeouts",
    "connect_extension",
    "connect_extension_over",
    "connect_sidecar",
    "live",
]

HOMES = {
    "SupervisionPolicy": "becket.host.supervisor",
    "ConsentChanges": "becket.host.starting.consent_request",
    "ConsentRequest": "becket.host.starting.consent_request",
    "Diagnostic": "becket.host.diagnostics",
    "Extension": "becket.host.extension",
    "ExtensionStatus": "becket.host.host",
    "Host": "becket.host.host",
    "LiveView": "becket.host.live_view",
    "McpSettings": "becket.adapters.mcp.hosted_servers",
    "RestartPolicy": "becket.host.restart",
    "RestartStrategy": "becket.host.restart",
    "ExtensionStream": "becket.host.serving.streams",
    "Sidecar": "becket.host.sidecar",
    "ExtensionHandle": "becket.host.supervised",
    "Timeouts": "becket.host.timeouts",
    "connect_extension": "becket.host.starting.connect",
    "connect_extension_over": "becket.host.starting.connect",
    "connect_sidecar": "becket.host.sidecar",
    "live": "becket.host.live_view",
}

__getattr__, __dir__ = lazy_exports(__name__, globals(), HOMES)
