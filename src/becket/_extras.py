"""Dependencies that few programs need: if one is missing, the error names the extra that installs it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from becket.errors import MissingExtra

__all__ = ["needs_extra"]


@contextmanager
def needs_extra(extra: str) -> Generator[None]:
    """Turns a failed import in its block into a `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "becket":  # one of becket's own modules: no extra has it
            raise
        raise MissingExtra(module, extra) from error
