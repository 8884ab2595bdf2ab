"""The page about operating leaves no command and no file out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import ROOT, read_page, read_table

from becket.cli.main import COMMANDS
from becket.host.data_dir import DataDir
from becket.host.host import Host

PAGE = ROOT / "docs" / "operating.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described(name: str) -> None:
    assert f"`{name}" in read_page(PAGE) or f"becket {name}" in read_page(PAGE)


def test_every_file_is_described() -> None:
    data = DataDir("/x")
    kept = {path.name for path in (data.store, data.audit, data.grants, data.trust)}
    files = {row[0].strip("`") for row in read_table(PAGE, "Files on disk")}

    assert kept < files
    assert "data/ID/" in files


async def test_files_that_a_host_leaves_on_disk_are_in_the_table(tmp_path: Path) -> None:
    files = {row[0].strip("`") for row in read_table(PAGE, "Files on disk")}

    async with Host(data=tmp_path / "data") as host:
        await host.grant("notes", "memory.read")

    assert {path.name for path in (tmp_path / "data").iterdir()} <= files
