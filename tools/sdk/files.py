"""The files that are made from the contract: which they are, writing them, and finding those that are out of date."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tools.sdk import bundle, openrpc
from tools.sdk.model import load_model

__all__ = ["LANGUAGES", "find_drift", "write_all"]

ROOT: Final = Path(__file__).parents[2]
LANGUAGES: Final = {
    "typescript": Path("sdk/typescript/src/contract.ts"),
    "go": Path("sdk/go/contract.go"),
    "rust": Path("sdk/rust/src/contract.rs"),
}
"""Each language with an emitter, `tools/sdk/<language>.py`, and the file that `emit(model)` returns the text of."""

Render = Callable[[], str]


def renderings() -> Iterator[tuple[Path, Render]]:
    """Yields each file and what renders it, the bundle first: the others are made from it."""
    yield bundle.FILE, bundle.render_bundle
    yield openrpc.FILE, openrpc.render_document
    for language, path in LANGUAGES.items():
        name = f"tools.sdk.{language}"
        if importlib.util.find_spec(name) is not None:
            emit: Callable[..., str] = importlib.import_module(name).emit
            yield ROOT / path, lambda emit=emit: emit(load_model())  # type: ignore[misc]


def write_all() -> Iterator[Path]:
    """Writes all files, and yields the path of each, relative to the checkout."""
    for path, render in renderings():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), encoding="utf-8")
        yield path.relative_to(ROOT)


def find_drift() -> list[Path]:
    """Returns the files that are not what would be written now, relative to the checkout."""
    return [
        path.relative_to(ROOT)
        for path, render in renderings()
        if not path.is_file() or path.read_text(encoding="utf-8") != render()
    ]
