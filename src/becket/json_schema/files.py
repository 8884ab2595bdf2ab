"""Finds and loads the shipped JSON Schema files of the wire contract.

They stand in `schemas/` at the top of the repository and are shipped in the wheel as `becket/schemas`. An editable
install sees only the first place, an installed wheel only the second. Validating values is not done here.
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
    """Returns the names that `load_schema` knows, sorted."""
    names = (file.name for file in schema_folder().iterdir())
    return sorted(name.removesuffix(SCHEMA_SUFFIX) for name in names if name.endswith(SCHEMA_SUFFIX))


def load_schema(name: str) -> dict[str, Any]:
    """Returns the schema of this name, freshly read: the caller may change it.

    Raises:
        LookupError: there is no schema of this name.
    """
    # A name from outside must never become a path: only what the folder lists is opened.
    if name not in (known := schema_names()):
        raise LookupError(f"no schema is named `{name}`, there are: {', '.join(known)}")
    return msgspec.json.decode(schema_folder().joinpath(name + SCHEMA_SUFFIX).read_bytes(), type=dict[str, Any])


def schema_folder() -> Traversable:
    """Returns the folder of the installed package, or of the checkout when the package is used from there."""
    from importlib.resources import files  # reads zip files and makes temporary ones: dear at start-up, needed by few

    shipped = files("becket").joinpath("schemas")
    if shipped.is_dir():
        return shipped
    return Path(__file__).resolve().parents[3] / "schemas"
