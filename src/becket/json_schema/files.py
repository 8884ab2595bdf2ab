"""Finds and loads the shipped JSON Schema files of the wire contract.

They are in `schemas/` of the repository, and in the wheel as `becket/schemas`. An editable install sees only the
former, an installed wheel only the latter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["load_schema", "schema_names"]

SCHEMA_SUFFIX = ".schema.json"


def schema_names() -> list[str]:
    """Returns the names that `load_schema` accepts, sorted."""
    names = (file.name for file in schema_folder().iterdir())
    return sorted(name.removesuffix(SCHEMA_SUFFIX) for name in names if name.endswith(SCHEMA_SUFFIX))


def load_schema(name: str) -> dict[str, Any]:
    """Loads the schema of this name; the caller may modify it.

    Raises:
        LookupError: there is no schema of this name.
    """
    # An untrusted name must never become a path: only files listed in the folder are opened.
    if name not in (known := schema_names()):
        raise LookupError(f"no schema is named `{name}`, there are: {', '.join(known)}")
    return msgspec.json.decode(schema_folder().joinpath(name + SCHEMA_SUFFIX).read_bytes(), type=dict[str, Any])


def schema_folder() -> Traversable:
    """Returns the folder of the installed package, or of the checkout."""
    from importlib.resources import files  # slow to import, and rarely needed

    shipped = files("becket").joinpath("schemas")
    if shipped.is_dir():
        return shipped
    return Path(__file__).resolve().parents[3] / "schemas"
