"""The names of becket that the benchmarks use exist: without this check, a rename would break a section unnoticed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NOT_OURS = {"results", "node", "__pycache__"}


def becket_imports(file: Path) -> Iterator[tuple[str, str]]:
    """Yields each module of becket and each name that a file imports from it; an empty name for the module itself."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "becket":
                yield from ((module, each.name) for each in names)
            case ast.Import(names=names):
                yield from ((each.name, "") for each in names if each.name.split(".")[0] == "becket")


def is_importable(module: str, name: str) -> bool:
    try:
        found = import_module(module)
        return not name or hasattr(found, name) or bool(import_module(f"{module}.{name}"))
    except ImportError:
        return False


@pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason="there are no benchmarks beside the tests: the source archive has none"
)
def test_each_name_that_the_benchmarks_import_from_becket_exists() -> None:
    files = [file for file in BENCHMARKS.rglob("*.py") if not NOT_OURS.intersection(file.relative_to(BENCHMARKS).parts)]
    wanted = {(file.name, *each) for file in files for each in becket_imports(file)}
    assert wanted
    missing = sorted(f"{file}: {module}.{name}" for file, module, name in wanted if not is_importable(module, name))
    assert not missing
