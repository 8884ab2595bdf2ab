"""The formats of other systems: where their extensions stand, by name. Each is read by a module of its own, which is
imported when the first of its files is found: a folder without any costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from becket.errors import Problem
from becket.host.manifest import BecketToml, Found, Listing, Manifest, ManifestReader, Nearby

__all__ = ["FORMATS", "LaterReader"]


class LaterReader(ManifestReader):
    """A reader of which only the names are known until the first file of one is found.

    The reader itself is `READER` of the module of the dialect's name."""

    def __init__(
        self,
        dialect: str,
        *,
        file_names: tuple[str, ...] = (),
        list_names: tuple[str, ...] = (),
        prefixes: tuple[str, ...] = (),
    ) -> None:
        self.dialect = dialect
        self.file_names = file_names
        self.list_names = list_names
        self.prefixes = prefixes

    @property
    def reader(self) -> ManifestReader:
        """The reader itself."""
        reader: ManifestReader = import_module(f"becket.host.formats.{self.dialect}").READER
        return reader

    def read(self, data: bytes, path: str) -> Manifest | Found | None:
        """Returns what a manifest says."""
        return self.reader.read(data, path)

    def read_list(self, data: bytes, path: str, nearby: Nearby) -> Listing:
        """Returns what a file says of several extensions."""
        return self.reader.read_list(data, path, nearby)

    def read_program(self, path: str) -> Manifest | Found | None:
        """Returns the extension that a program is by its name."""
        return self.reader.read_program(path)

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem that was found."""
        return self.reader.hint_for(problem)


FORMATS: Final[tuple[ManifestReader, ...]] = (
    BecketToml(),
    LaterReader("synaps", file_names=(".synaps-plugin/plugin.json",)),
    LaterReader("nexo", file_names=("plugin.toml",), list_names=("config/extensions.yaml",)),
    LaterReader("roder", file_names=("roder-extension.toml",), list_names=(".roder/config.toml", "roder.toml")),
    LaterReader("morphir", list_names=("morphir.toml",)),
    LaterReader("cigen", prefixes=("cigen-provider-",)),
    LaterReader("mcp", list_names=(".mcp.json",)),
)
"""In the order in which they are asked, where a folder has the files of several."""
