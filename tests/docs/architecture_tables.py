"""Tables of docs/architecture.md: ranks, packages, and the moves of an extension's lifecycle."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from tests.test_layers import RANKS

import becket
from becket.host.lifecycle import TRANSITIONS

__all__ = ["PACKAGE", "PARTS"]

PACKAGE = Path(becket.__file__).parent


def render_ranks() -> str:
    layers = sorted((rank, name) for name, rank in RANKS.items() if not is_deprecated(name) and name != "adapters")
    rows = [f"| {rank:g} | `{path_of(name)}` | {summary_of(name)} |" for rank, name in layers]
    return "\n".join(["| rank | where | what it owns |", "|---|---|---|", *rows, ""])


def render_subpackages() -> str:
    packages = sorted(file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("__init__.py"))
    below = [name for name in packages if name.count("/") == 1]
    rows = [f"| `{name}/` | {summary_of(name)} |" for name in below]
    return "\n".join(["| package | what it owns |", "|---|---|", *rows, ""])


def render_moves() -> str:
    rows = [f"| {before} | {after} | {why} |" for before, moves in TRANSITIONS.items() for after, why in moves.items()]
    return "\n".join(["| from | to | because |", "|---|---|---|", *rows, ""])


def path_of(name: str) -> str:
    return f"{name}/" if (PACKAGE / name).is_dir() else f"{name}.py"


def is_deprecated(name: str) -> bool:
    return summary_of(name).startswith("Deprecated")


def summary_of(name: str) -> str:
    """Returns the first line of a module's docstring."""
    file = PACKAGE / path_of(name)
    source = (file / "__init__.py" if file.is_dir() else file).read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


PARTS: dict[str, Callable[[], str]] = {
    "ranks": render_ranks,
    "packages below": render_subpackages,
    "moves of an extension": render_moves,
}
