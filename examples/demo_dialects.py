"""The last part of the demonstration: one host, and programs that were written for five other systems."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio

from becket import Host, HostSettings
from becket.adapters import cigen
from becket.host import ExtensionConfig
from becket.permissions import PERMISSIONS
from demo_screen import Screen

__all__ = ["show_dialects"]

DIALECTS = Path(__file__).with_name("dialects")
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "journal": ("write", {"text": "dear diary"}),
    "weather": ("forecast", {"city": "Oslo"}),
    "workshop": ("word_count", {"text": "one two three"}),
    "validator": ("validate", {"ir": {"modules": [{"name": "Billing"}]}}),
}
PLUGIN = "cigen-provider-make"


def open_host() -> Host:
    ids = [*TOOLS, PLUGIN]
    roots = sorted(folder for folder in DIALECTS.iterdir() if folder.is_dir())
    # Each gets what it requests, and nothing else.
    settings = {"journal": ExtensionConfig(allow_variables=("JOURNAL_TOKEN",))}
    return Host(
        roots,
        data=None,
        grants=dict.fromkeys(ids, sorted(PERMISSIONS)),
        settings=HostSettings(only=ids, extensions=settings),
    )


async def show_dialects(screen: Screen) -> None:
    """Shows extensions of five systems side by side. None of these programs uses becket."""
    screen.section("Five other systems", "Programs that were written for others, unchanged, side by side in one host.")
    logging.getLogger("becket").addHandler(logging.NullHandler())  # one of them prints, another has an odd hook
    responses: dict[str, str] = {}
    async with open_host() as host:

        async def call_tool(id: str) -> None:
            name, input = TOOLS[id]
            responses[id] = await (await host.ready(id)).call_tool(name, input)

        async def plan() -> None:
            extension = await host.ready(PLUGIN)
            schema = cigen.CigenSchema(version="1", jobs=(cigen.JobDefinition("build"),))
            result = await extension.call(cigen.PLAN, cigen.PlanRequest(schema=schema))
            responses[PLUGIN] = f"plans {', '.join(resource.id for resource in result.resources)}"

        async with anyio.create_task_group() as tasks:
            for id in TOOLS:
                tasks.start_soon(call_tool, id)
            tasks.start_soon(plan)
        for status in host.status():
            screen.line(status.dialect, f"{status.id}: {responses[status.id]}")
    screen.check(len(responses) == 5, "Each was found by its own kind of manifest, and called in its own dialect.")
