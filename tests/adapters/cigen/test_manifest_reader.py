"""The plugins of cigen are found by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.adapters.cigen import CigenSettings
from becket.adapters.cigen.manifest_reader import READER
from becket.host.starting.discovery import discover_extensions


def program(folder: Path, name: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_program_whose_name_has_the_prefix_is_a_plugin(tmp_path: Path) -> None:
    path = program(tmp_path, "cigen-provider-github")
    program(tmp_path, "cigen-lang-ruby")
    program(tmp_path, "cigen-provider-notes.txt", 0o644)

    (candidate,) = discover_extensions([tmp_path], readers=[READER]).candidates

    manifest = candidate.manifest
    assert (manifest.id, manifest.name, manifest.dialect) == ("cigen-provider-github", "provider/github", "cigen")
    assert (manifest.command, candidate.folder) == (("./cigen-provider-github",), str(tmp_path))
    assert candidate.files == (str(path),)
    assert candidate.extra == CigenSettings()
    assert candidate.cwd is None


@pytest.mark.parametrize(
    ("name", "id"),
    [("cigen-provider-My CI", "cigen-provider-my-ci"), ("cigen-provider-" + "x" * 99, "cigen-provider-" + "x" * 49)],
)
def test_a_name_that_is_not_a_valid_id_becomes_one(tmp_path: Path, name: str, id: str) -> None:
    program(tmp_path, name)

    (candidate,) = discover_extensions([tmp_path], readers=[READER]).candidates

    assert candidate.id == id
    assert len(candidate.manifest.name) <= 64


def test_the_prefix_alone_is_not_a_plugin(tmp_path: Path) -> None:
    program(tmp_path, "cigen-provider-")

    assert discover_extensions([tmp_path], readers=[READER]).candidates == ()
