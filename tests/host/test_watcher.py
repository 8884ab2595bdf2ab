"""Changes of an extension's files: which count, and that content decides."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from watchfiles import Change

from becket.host.watcher import FolderChanged, is_relevant, watch_folders

pytestmark = pytest.mark.loops


class Seen:
    """The reports of a watcher so far."""

    def __init__(self) -> None:
        self.changes: list[FolderChanged] = []
        self._news = anyio.Event()

    def take(self, change: FolderChanged) -> None:
        self.changes.append(change)
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()


@asynccontextmanager
async def watching(
    folders: dict[str, str], files: dict[str, tuple[str, ...]] | None = None
) -> AsyncGenerator[Seen, None]:
    seen = Seen()
    stop, began = anyio.Event(), anyio.Event()

    async def watch() -> None:
        async for change in watch_folders(folders, files=files, debounce=50, stop=stop, began=began):
            seen.take(change)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await began.wait()
            yield seen
            stop.set()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "notes.py").write_text("one = 1\n", encoding="utf-8")
    return folder


async def test_a_changed_file_is_reported_once_with_its_extension(notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with watching({"notes": str(notes), "other": str(other)}) as seen:
        (notes / "notes.py").write_text("two = 2\n", encoding="utf-8")
        await seen.until(lambda: len(seen.changes) == 1)
    (change,) = seen.changes
    assert change.extension == "notes"
    assert change.paths == (str(notes / "notes.py"),)


async def test_a_file_that_is_rewritten_with_the_same_content_is_not_a_change(notes: Path) -> None:
    async with watching({"notes": str(notes)}) as seen:
        (notes / "notes.py").write_text("one = 1\n", encoding="utf-8")
        os.utime(notes / "notes.py", (1, 1))
        (notes / "more.py").write_text("", encoding="utf-8")  # this one is reported
        await seen.until(lambda: bool(seen.changes))
    assert str(notes / "more.py") in seen.changes[0].paths
    assert len({change.digest for change in seen.changes}) == len(seen.changes)


async def test_a_file_that_is_gone_is_a_change(notes: Path) -> None:
    async with watching({"notes": str(notes)}) as seen:
        (notes / "notes.py").unlink()
        await seen.until(lambda: bool(seen.changes))
    assert seen.changes[0].digest is not None


async def test_a_folder_that_cannot_be_read_is_reported_without_a_digest(notes: Path) -> None:
    async with watching({"notes": str(notes)}) as seen:
        notes.joinpath(*["folder"] * 70).mkdir(parents=True)  # deeper than the limit of a digest
        await seen.until(lambda: bool(seen.changes) and seen.changes[-1].digest is None)


async def test_in_a_shared_folder_only_the_extension_whose_file_changed_is_reported(notes: Path) -> None:
    shared = {"one": str(notes), "two": str(notes)}
    files = {"one": (str(notes / "notes.py"),), "two": (str(notes / "two.py"),)}
    (notes / "two.py").touch()
    async with watching(shared, files) as seen:
        (notes / "other.py").write_text("nobody's", encoding="utf-8")
        (notes / "two.py").write_text("two = 2\n", encoding="utf-8")
        await seen.until(lambda: bool(seen.changes))
    assert {(change.extension, change.paths) for change in seen.changes} == {("two", files["two"])}


async def test_watching_nothing_waits_until_it_is_stopped() -> None:
    async with watching({}) as seen:
        pass
    assert seen.changes == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/x/notes/notes.py", True),
        ("/x/notes/becket.toml", True),
        ("/x/notes/__pycache__/notes.cpython-311.pyc", False),
        ("/x/notes/node_modules/a/index.js", False),
        ("/x/notes/.git", False),
        ("/x/notes/.notes.py.swp", False),
        ("/x/notes/notes.py~", False),
        ("/x/notes/#notes.py#", False),
    ],
)
def test_files_that_tools_leave_behind_do_not_count(path: str, expected: bool) -> None:
    assert is_relevant(Change.modified, path) is expected
