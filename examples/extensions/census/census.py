"""A command that counts the files below a folder and their lines. All is plain `def`: it runs without an event loop."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from becket import ExtensionServer, command
from becket.extension import BlockingCommandOutput

HIDDEN = (".", "__pycache__", "node_modules")


class Census(ExtensionServer):
    id = "census"
    version = "1.0.0"

    @command("census")
    def count(self, args: list[str], out: BlockingCommandOutput) -> dict[str, int]:
        folder = Path(args[0] if args else self.root or ".")
        paths = find_files(folder)
        if not paths:
            out.error(f"There are no files in {folder}.")
        files: Counter[str] = Counter()
        lines: Counter[str] = Counter()
        with out.task("Counting lines", total=len(paths)) as task:
            for path in paths:
                try:
                    lines[path.suffix] += count_lines(path)
                    files[path.suffix] += 1
                except OSError as error:
                    task.log(f"{path}: {error.strerror}")
                task.advance(message=path.name)
        rows = [[suffix or "(none)", str(files[suffix]), str(number)] for suffix, number in lines.most_common()]
        out.table(["kind", "files", "lines"], rows)
        return {"files": files.total(), "lines": lines.total()}


def find_files(folder: Path) -> list[Path]:
    """Returns the files below a folder, without generated and hidden ones."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        found += [Path(parent, name) for name in sorted(names) if not name.startswith(HIDDEN)]
    return found


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


if __name__ == "__main__":
    Census().run()
