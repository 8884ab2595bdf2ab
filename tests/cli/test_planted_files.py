"""A file in the current folder of `becket run` never replaces a file of an extension."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import becket

from becket.dialects import DIALECTS

COMMANDS = {
    "script": ["python3", "main.py"],
    "option": ["python3", "-u", "main.py"],
    "module": ["python3", "-m", "main"],
    "package": ["python3", "-m", "package"],
    "code": ["python3", "-c", "import main"],
    "missing": ["python3", "only_planted.py"],
    "node": ["node", "main.js"],
    "required": ["node", "-r", "./main", "empty.js"],
}
IN_ALL_DIALECTS = ("script", "module")


def write_code(folder: Path, says: str, seen: Path) -> None:
    """Writes programs that leave a file with the name of their owner."""
    (folder / "package").mkdir(parents=True)
    python = f"open('{seen}/{says}', 'w').close()\n"
    node = f"require('fs').writeFileSync('{seen}/{says}', '')\n"
    for name, text in {"main.py": python, "package/__main__.py": python, "main.js": node, "empty.js": ""}.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_extensions(root: Path, seen: Path) -> Iterator[str]:
    for dialect in sorted(DIALECTS):
        for kind, command in COMMANDS.items():
            if kind not in IN_ALL_DIALECTS and dialect != "morphir":
                continue
            if command[0] == "node" and shutil.which("node") is None:
                continue
            id = f"{dialect}-{kind}"
            write_code(root / id, id, seen)
            manifest = f'id = "{id}"\nversion = "1.0.0"\ncommand = {command}\ndialect = "{dialect}"\n'
            (root / id / "becket.toml").write_text(manifest + '[restart]\nstrategy = "never"\n', encoding="utf-8")
            if kind != "missing":
                yield id


@pytest.mark.process
@pytest.mark.parametrize("keeping", ["--data", "--no-data"])
def test_a_planted_file_of_the_same_name_never_runs_in_any_dialect(tmp_path: Path, keeping: str) -> None:
    seen, planted = tmp_path / "seen", tmp_path / "planted"
    seen.mkdir()
    write_code(planted, "planted", seen)
    shutil.copy(planted / "main.py", planted / "only_planted.py")
    ids = [*write_extensions(tmp_path / "root", seen)]

    words = ["--data", str(tmp_path / "data")] if keeping == "--data" else ["--no-data"]
    becket("run", str(tmp_path / "root"), "--once", "--yes", *words, folder=planted)

    assert sorted(path.name for path in seen.iterdir()) == sorted(ids)
