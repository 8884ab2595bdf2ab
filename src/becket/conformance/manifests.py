"""Writes the manifest of the suite's child in the format of each system that a host may belong to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from becket.conformance.host_link import ManifestWriter

__all__ = ["MANIFEST_WRITERS", "write_becket_toml"]

PERMISSIONS: Final = (
    "tools.register",
    "tools.intercept",
    "providers.register",
    "memory.read",
    "memory.write",
    "config.write",
    "config.subscribe",
)


def write_becket_toml(folder: Path, command: Sequence[str]) -> None:
    """Writes the manifest of becket."""
    lines = [
        'id = "conform"',
        'version = "1.0.0"',
        'description = "The extension of the conformance suite."',
        f"command = {json.dumps(list(command))}",
        f"permissions = {json.dumps(PERMISSIONS)}",
        "",
        "[[commands]]",
        'name = "conform_count"',
        'description = "A command of the suite."',
        "",
    ]
    (folder / "becket.toml").write_text("\n".join(lines), encoding="utf-8")


def write_mcp_json(folder: Path, command: Sequence[str]) -> None:
    """Writes the list of servers that MCP clients read."""
    server = {"command": command[0], "args": list(command[1:])}
    document = json.dumps({"mcpServers": {"conform": server}}, indent=2)
    (folder / ".mcp.json").write_text(document, encoding="utf-8")


MANIFEST_WRITERS: Final[dict[str, ManifestWriter]] = {"native": write_becket_toml, "mcp": write_mcp_json}
"""The writer for each dialect with cases for hosts."""
