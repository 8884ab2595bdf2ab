"""The readers of other systems are known by name, and loaded when the first of their files is found."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from subprocess import run
from types import ModuleType

import pytest
from tests.host.folders import write_extension

from becket.errors import Problem
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.manifest import Manifest
from becket.host.starting.manifest_formats import MANIFEST_READERS, LazyManifestReader
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ManifestReader, ScopedFiles

LATER = [reader for reader in MANIFEST_READERS if isinstance(reader, LazyManifestReader)]


class Whole(ManifestReader):
    """A reader that finds something everywhere."""

    def read(self, data: bytes, path: str) -> Manifest:
        return build("read")

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        return ExtensionList(extensions=(FoundExtension(manifest=build("listed")),), problems=(("/x", "is odd"),))

    def read_program(self, path: str) -> Manifest:
        return build("program")

    def hint_for(self, problem: Problem) -> str:
        return "look at it"


def build(id: str) -> Manifest:
    return Manifest(id=id, version="0.0.0", command=("x",))


def test_a_reader_is_loaded_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("becket.adapters.made_up.manifest_reader")
    vars(module)["READER"] = Whole()
    reader = LazyManifestReader("made_up", file_names=("x.toml",), list_names=("y.toml",), prefixes=("z-",))
    assert discover_extensions([tmp_path], readers=[reader]).candidates == ()

    monkeypatch.setitem(sys.modules, "becket.adapters.made_up.manifest_reader", module)
    for name in ("y.toml", "z-one", "a/x.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(0o755)
    report = discover_extensions([tmp_path], readers=[reader])

    assert [candidate.id for candidate in report.candidates] == ["listed", "program", "read"]
    assert [note.hint for note in report.diagnostics] == ["look at it"]


@pytest.mark.parametrize("later", LATER, ids=lambda later: later.dialect)
def test_the_searched_names_come_from_the_reader_itself(later: LazyManifestReader) -> None:
    reader: ManifestReader = import_module(f"becket.adapters.{later.dialect}.manifest_reader").READER

    assert reader.dialect == later.dialect
    assert reader.file_names == later.file_names
    assert reader.list_names == later.list_names
    assert reader.prefixes == later.prefixes
    assert reader.bundle_table == later.bundle_table


def test_a_folder_of_native_extensions_loads_no_other_reader(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes")
    script = (
        "import sys; from becket.host.starting.discovery import discover_extensions\n"
        "print(len(discover_extensions([sys.argv[1]]).candidates))\n"
        "print([name for name in sys.modules if name.startswith('becket.host.starting.manifest_formats.')])\n"
        "print([name for name in sys.modules if name.startswith('becket.dialects.') and name.count('.') > 2])\n"
    )

    done = run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, check=True, encoding="utf-8")

    assert done.stdout == "1\n[]\n[]\n"
