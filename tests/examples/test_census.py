"""The command counts, shows how far it is, and puts out a table; without an event loop, also in a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.extensions.census.census import Census
from tests.examples.example_programs import started

from becket.contract.commands import CommandDone, ErrorText, Table
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.testing import connected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder of three files that count and one that does not."""
    (tmp_path / "part").mkdir()
    (tmp_path / "a.py").write_text("1\n2\n3\n", encoding="utf-8")
    (tmp_path / "part" / "b.py").write_text("1\n", encoding="utf-8")
    (tmp_path / "LICENSE").write_text("1\n2", encoding="utf-8")
    (tmp_path / ".hidden").write_text("1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.loops
async def test_census_counts_files_and_reports_progress(folder: Path) -> None:
    async with connected(Census()) as (host, _), host.invoke_command("census", [str(folder)]) as run:
        events = [event async for event in run]
        assert await run.result() == {"files": 3, "lines": 6}
    assert isinstance(events[0], TaskStarted)
    updates = [event for event in events if isinstance(event, TaskUpdated)]
    assert [(update.current, update.total) for update in updates] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert events[-3:] == [
        TaskEnded(events[0].id),
        Table(("kind", "files", "lines"), ((".py", "2", "4"), ("(none)", "1", "2"))),
        CommandDone(),
    ]


async def test_a_file_that_cannot_be_read_is_reported_and_skipped(folder: Path) -> None:
    (folder / "gone.py").symlink_to(folder / "nowhere")
    async with connected(Census()) as (host, _), host.invoke_command("census", [str(folder)]) as run:
        logged = [event async for event in run if isinstance(event, TaskLogged)]
        assert await run.result() == {"files": 3, "lines": 6}
    assert [event.line for event in logged] == [f"{folder}/gone.py: No such file or directory"]


async def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    async with connected(Census()) as (host, _), host.invoke_command("census", [str(tmp_path)]) as run:
        assert ErrorText(f"There are no files in {tmp_path}.") in [event async for event in run]


@pytest.mark.process
async def test_census_runs_as_a_process(folder: Path) -> None:
    async with started("census") as census, census.invoke_command("census", [str(folder)]) as run:
        tables = [event async for event in run if isinstance(event, Table)]
        assert await run.result() == {"files": 3, "lines": 6}
    assert len(tables) == 1
