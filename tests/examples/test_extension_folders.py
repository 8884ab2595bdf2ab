"""The example extensions run in a host: each has a valid manifest and offers what it declares."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from examples.extensions.census.census import Census
from examples.extensions.eliza.eliza import Eliza
from examples.extensions.guard.guard import Guard
from examples.extensions.notes.notes import Notes
from tests.docs.schemas import check_value
from tests.examples.example_programs import EXTENSIONS, manifest_of, started

from becket.contract.hooks import HOOKS
from becket.conversion.files.toml import load_toml
from becket.extension import ExtensionServer
from becket.host.starting.discovery import discover_extensions

ON_THE_KIT: dict[str, type[ExtensionServer]] = {"census": Census, "eliza": Eliza, "guard": Guard, "notes": Notes}
ALL = {*ON_THE_KIT, "dice"}


def test_every_folder_is_tested_here() -> None:
    assert {folder.name for folder in EXTENSIONS.iterdir()} == ALL


def test_a_host_finds_all_example_extensions() -> None:
    report = discover_extensions([EXTENSIONS])
    assert {candidate.id for candidate in report.candidates} == ALL
    assert report.diagnostics == ()


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_manifest_fits_its_schema_and_its_folder(name: str) -> None:
    check_value(load_toml(EXTENSIONS / name / "becket.toml"), "manifest")
    manifest = manifest_of(name)
    assert manifest.id == name
    assert (EXTENSIONS / name / manifest.command[1]).is_file()


@pytest.mark.parametrize("name", sorted(ON_THE_KIT))
def test_a_manifest_matches_its_class(name: str) -> None:
    manifest, extension = manifest_of(name), ON_THE_KIT[name]
    assert (manifest.id, manifest.version) == (extension.id, extension.version)
    assert {HOOKS[entry.hook].permission for entry in manifest.hooks} <= set(manifest.permissions)


@pytest.mark.process
@pytest.mark.parametrize("name", sorted(ON_THE_KIT))
async def test_each_starts_with_its_requested_permissions_and_ends_on_shutdown(name: str) -> None:
    async with started(name) as extension:
        process = extension.peer.process
    assert process is not None
    assert process.exit_code == 0


@pytest.mark.process
@pytest.mark.parametrize(("name", "imports"), [("census", False), ("guard", False), ("notes", True)])
def test_only_what_has_coroutines_imports_an_event_loop(name: str, imports: bool, tmp_path: Path) -> None:
    program = EXTENSIONS / name / f"{name}.py"
    ending = f"import runpy, sys\ntry:\n runpy.run_path({str(program)!r}, run_name='__main__')\nfinally:\n"
    ending += " print('asyncio' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", ending], stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=True
    )
    assert done.stderr.decode().strip() == str(imports)
