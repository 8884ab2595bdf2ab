"""An extension on becket, for `mini_host.py`: nothing in it is about Morphir."""

from __future__ import annotations

from typing import Any

from becket import ExtensionServer, tool
from becket.contract.info import CapabilityInfo, ExtensionInfo
from becket.errors import NotSupported


class Served(ExtensionServer):
    """Counts the modules of a model."""

    id, version = "served", "1.0.0"

    async def on_start(self) -> None:
        self.host.log(f"counting in a {self.config.get('style', 'plain')} style")

    @tool("Counts the modules of a model.")
    async def count(self, ir: dict[str, Any]) -> dict[str, int]:
        return {"modules": len(ir.get("modules", []))}

    @tool("Remembers nothing: there is no memory here.")
    async def remember(self, text: str) -> str:
        try:
            await self.host.memory.append(text)
        except NotSupported as error:
            return str(error)
        return "kept"

    @tool("Answers with nothing.")
    async def reset(self) -> None: ...

    @tool("Fails.")
    async def fail(self) -> None:
        raise RuntimeError("a secret of the implementation")

    async def info(self) -> ExtensionInfo:
        """Returns how the extension is."""
        return ExtensionInfo(capabilities=(CapabilityInfo("health", "degraded", ("it only counts",)),))


if __name__ == "__main__":
    Served().run()
