"""The data directory of a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.host.data_dir import DataDir, default_data_dir


def test_the_folder_of_a_host_is_named_after_it_below_the_users_data(tmp_path: Path) -> None:
    assert default_data_dir("notes", {"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "becket" / "notes"


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_an_invalid_data_home_is_ignored(given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir("x", {"XDG_DATA_HOME": given}) == tmp_path / ".local" / "share" / "becket" / "x"


def test_everything_lies_in_a_folder_that_only_the_user_can_open(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "deep" / "host")
    data.create()
    data.create()
    assert data.folder.stat().st_mode & 0o077 == 0
    files = [data.store, data.audit, data.grants, data.trust, data.snapshots]
    assert {file.parent for file in files} == {data.folder}
    assert data.extension_dir("notes") == data.folder / "data" / "notes"


@pytest.mark.parametrize("id", ["..", ".", "a/b", "", "a b"])
def test_an_id_cannot_lead_out_of_the_data_directory(id: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        DataDir(tmp_path).extension_dir(id)


def test_a_folder_is_absolute_however_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert DataDir("data").folder == tmp_path / "data"
