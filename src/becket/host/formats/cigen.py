"""The plugins of cigen: programs whose names begin with `cigen-provider-`, in one folder and without any file beside
them. What a plugin calls itself it says when it runs.
"""

from __future__ import annotations

import os
from typing import Final

from becket.dialects.cigen.handshake import CigenSettings
from becket.host.manifest import Found, ManifestReader, nearest_id, parse_manifest

__all__ = ["PREFIX", "READER", "CigenReader"]

PREFIX: Final = "cigen-provider-"
VERSION: Final = "0.0.0"  # none is known before it runs
LONGEST_NAME: Final = 64


class CigenReader(ManifestReader):
    """The reader of a folder of plugins."""

    dialect = "cigen"
    prefixes = (PREFIX,)

    def read_program(self, path: str) -> Found | None:
        """Returns the plugin that a program is by its name; None where its name ends with the prefix."""
        file = os.path.basename(path)
        name = file.removeprefix(PREFIX)
        if not name:
            return None
        table = {
            "id": nearest_id(file),
            "version": VERSION,
            "name": f"provider/{name}"[:LONGEST_NAME],
            "command": [f"./{file}"],
            "dialect": "cigen",
        }
        return Found(manifest=parse_manifest(table, path), particulars=CigenSettings())


READER: Final = CigenReader()
