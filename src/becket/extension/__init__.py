"""Exports the kit for writing extensions: ExtensionServer, decorators, outputs and host clients.

Each part is imported at first use: an extension pays at start only for what it declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._deprecated import keep_renamed
from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.extension.decorators import (
        command as command,
        handles as handles,
        hook as hook,
        provider as provider,
        tool as tool,
    )
    from becket.extension.host_client import BlockingHostClient as BlockingHostClient, HostClient as HostClient
    from becket.extension.outputs import *
    from becket.extension.server import ExtensionServer as ExtensionServer

EXPORTS = {
    "becket.extension.decorators": "command handles hook provider tool",
    "becket.extension.host_client": "BlockingHostClient HostClient",
    "becket.extension.outputs": """
        BlockingCommandOutput BlockingProviderStream BlockingTask CommandOutput ProviderStream Task
    """,
    "becket.extension.server": "ExtensionServer",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
__getattr__ = keep_renamed(
    __name__, {"HostServices": "HostClient", "BlockingHostServices": "BlockingHostClient"}, __getattr__
)
