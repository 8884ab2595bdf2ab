"""Lists the manifest readers and loads those of adapters on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from becket.dialects import ADAPTERS
from becket.dialects.dialect import import_adapter
from becket.errors import Problem
from becket.host.starting.becket_toml import BecketToml
from becket.host.starting.manifest import Manifest
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ManifestReader, ScopedFiles

__all__ = ["MANIFEST_READERS", "LazyManifestReader"]


class LazyManifestReader(ManifestReader):
    """A reader that is imported when the first file of it is found; until then only its names are known.

    The reader itself is `READER` of the module `manifest_reader` of the adapter."""

    def __init__(
        self,
        dialect: str,
        *,
        file_names: tuple[str, ...] = (),
        list_names: tuple[str, ...] = (),
        prefixes: tuple[str, ...] = (),
        bundle_table: str = "",
    ) -> None:
        self.dialect = dialect
        self.file_names = file_names
        self.list_names = list_names
        self.prefixes = prefixes
        self.bundle_table = bundle_table

    @property
    def reader(self) -> ManifestReader:
        """The reader itself."""
        reader: ManifestReader = import_adapter(self.dialect, "manifest_reader").READER
        return reader

    def read(self, data: bytes, path: str) -> Manifest | FoundExtension | None:
        """Returns the content of a manifest."""
        return self.reader.read(data, path)

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions that a file lists."""
        return self.reader.read_list(data, path, nearby)

    def read_program(self, path: str) -> Manifest | FoundExtension | None:
        """Returns the extension of a program, by its name."""
        return self.reader.read_program(path)

    def read_bundle(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Returns the table that a file beside a manifest stands for."""
        return self.reader.read_bundle(data)

    def list_bundle(self, table: Mapping[str, Any], prefix: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions of a table in a manifest."""
        return self.reader.list_bundle(table, prefix, nearby)

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem."""
        return self.reader.hint_for(problem)


MANIFEST_READERS: Final[tuple[ManifestReader, ...]] = (
    BecketToml(),
    *(LazyManifestReader(name, **files) for name, files in ADAPTERS.items() if files),
)
"""In order of precedence, if a folder has the files of several."""
