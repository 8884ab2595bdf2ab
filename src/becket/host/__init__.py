"""Hosting extensions: a whole folder of them with `Host`, or one with `connect_extension`.

Each part is imported when it is first used. What happens to extensions is told as the classes of `becket.host.events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.loading import lazy_names

if TYPE_CHECKING:
    from becket.host.connecting import connect_extension, connect_extension_over
    from becket.host.consent import ConsentChanges, ConsentRequest
    from becket.host.diagnostics import Diagnostic
    from becket.host.extension import Extension
    from becket.host.host import ExtensionStatus, Host
    from becket.host.live_view import LiveView, live
    from becket.host.mcp_servers import McpSettings
    from becket.host.restart import RestartPolicy, RestartStrategy
    from becket.host.runs import Run
    from becket.host.sidecar import Sidecar, connect_sidecar
    from becket.host.supervised import Supervised
    from becket.host.supervisor import Care
    from becket.host.timeouts import Timeouts

__all__ = [
    "Care",
    "ConsentChanges",
    "ConsentRequest",
    "Diagnostic",
    "Extension",
    "ExtensionStatus",
    "Host",
    "LiveView",
    "McpSettings",
    "RestartPolicy",
    "RestartStrategy",
    "Run",
    "Sidecar",
    "Supervised",
    "Timeouts",
    "connect_extension",
    "connect_extension_over",
    "connect_sidecar",
    "live",
]

HOMES = {
    "Care": "becket.host.supervisor",
    "ConsentChanges": "becket.host.consent",
    "ConsentRequest": "becket.host.consent",
    "Diagnostic": "becket.host.diagnostics",
    "Extension": "becket.host.extension",
    "ExtensionStatus": "becket.host.host",
    "Host": "becket.host.host",
    "LiveView": "becket.host.live_view",
    "McpSettings": "becket.host.mcp_servers",
    "RestartPolicy": "becket.host.restart",
    "RestartStrategy": "becket.host.restart",
    "Run": "becket.host.runs",
    "Sidecar": "becket.host.sidecar",
    "Supervised": "becket.host.supervised",
    "Timeouts": "becket.host.timeouts",
    "connect_extension": "becket.host.connecting",
    "connect_extension_over": "becket.host.connecting",
    "connect_sidecar": "becket.host.sidecar",
    "live": "becket.host.live_view",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), HOMES)
