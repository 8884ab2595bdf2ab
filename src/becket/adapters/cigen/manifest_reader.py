"""Finds cigen plugins by the `cigen-provider-` prefix of their program names."""

from __future__ import annotations

import os
from typing import Final

from becket.adapters.cigen.handshake import CigenSettings
from becket.host.starting.becket_toml import parse_manifest
from becket.host.starting.manifest import build_id
from becket.host.starting.manifest_reader import FoundExtension, ManifestReader

__all__ = ["PREFIX", "READER", "CigenManifestReader"]

PREFIX: Final = "cigen-provider-"
VERSION: Final = "0.0.0"  # unknown until it runs
MAX_NAME_LENGTH: Final = 64


class CigenManifestReader(ManifestReader):
    """The reader of a folder of plugins."""

    dialect = "cigen"
    prefixes = (PREFIX,)

    def read_program(self, path: str) -> FoundExtension | None:
        """Returns the plugin of a program; None if nothing follows the prefix of its name."""
        file = os.path.basename(path)
        name = file.removeprefix(PREFIX)
        if not name:
            return None
        table = {
            "id": build_id(file),
            "version": VERSION,
            "name": f"provider/{name}"[:MAX_NAME_LENGTH],
            "command": [f"./{file}"],
            "dialect": "cigen",
        }
        return FoundExtension(manifest=parse_manifest(table, path), extra=CigenSettings())


READER: Final = CigenManifestReader()
