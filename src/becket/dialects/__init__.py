"""Finds dialects by name or by the first frame of a host, and imports adapters on first use.

`ADAPTERS` is the one table of foreign systems. Their records are imported at first use: most programs use one dialect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from becket._deprecated import keep_renamed
from becket.dialects.dialect import CallMeta, Dialect, ProgressFormat, import_adapter
from becket.dialects.native import NATIVE
from becket.dialects.plain import PLAIN
from becket.errors import JSON_ERRORS
from becket.jsonrpc.codec import decode_envelope

__all__ = [
    "DIALECTS",
    "NATIVE",
    "PLAIN",
    "CallMeta",
    "Dialect",
    "DialectRegistry",
    "ProgressFormat",
    "detect_dialect",
    "find_dialect",
]


class DialectRegistry(Mapping[str, Dialect]):
    """Dialects by name. `add` makes one of your own known, so that manifests can name it."""

    def __init__(self, dialects: tuple[Dialect, ...], adapters: Collection[str]) -> None:
        self._known = {dialect.name: dialect for dialect in dialects}
        self._adapters = adapters

    def add(self, dialect: Dialect) -> None:
        """Makes a dialect known under its name.

        Raises:
            ValueError: the name belongs to another.
        """
        if dialect.name in self and self._known.get(dialect.name) is not dialect:
            raise ValueError(f"there is a dialect {dialect.name!r} already")
        self._known[dialect.name] = dialect

    def replace(self, dialect: Dialect) -> None:
        """Replaces the dialect of this name, by one with other host defaults for example."""
        self._known[dialect.name] = dialect

    def __getitem__(self, name: str) -> Dialect:
        if name not in self._known and name in self._adapters:
            self._known[name] = getattr(import_adapter(name, "dialect"), name.upper())
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._adapters

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._adapters]))

    def __len__(self) -> int:
        return len(list(iter(self)))


if TYPE_CHECKING:
    from typing import TypedDict

    class ManifestFiles(TypedDict, total=False):
        """The names by which a host recognises files of a system; see `becket.host.starting.manifest_reader`."""

        file_names: tuple[str, ...]
        list_names: tuple[str, ...]
        prefixes: tuple[str, ...]
        bundle_table: str


ADAPTERS: Final[Mapping[str, ManifestFiles]] = {
    "synaps": {"file_names": (".synaps-plugin/plugin.json",)},
    "nexo": {"file_names": ("plugin.toml",), "list_names": ("config/extensions.yaml",)},
    "roder": {"file_names": ("roder-extension.toml",), "list_names": (".roder/config.toml", "roder.toml")},
    "morphir": {"list_names": ("morphir.toml",)},
    "cigen": {"prefixes": ("cigen-provider-",)},
    "mcp": {"list_names": (".mcp.json",), "bundle_table": "mcp_servers"},
    "lsp": {},
}
"""The systems that have a package in `becket.adapters`, and their manifest files, if they have some. The order is that
of precedence, if a folder has the files of several."""
DIALECTS: Final = DialectRegistry((PLAIN, NATIVE), ADAPTERS)


def find_dialect(dialect: Dialect | str) -> Dialect:
    """Returns the dialect of this name.

    Raises:
        ValueError: no dialect has it.
    """
    if isinstance(dialect, Dialect):
        return dialect
    try:
        return DIALECTS[dialect]
    except KeyError:
        raise ValueError(f"unknown dialect: {dialect} (known: {', '.join(sorted(DIALECTS))})") from None


def detect_dialect(frame: bytes, framing: type) -> Dialect:
    """Returns the dialect of a host whose first frame, in this framing, is this one.

    A frame that no dialect recognises is taken for native, which has the best error messages."""
    if is_native(frame):
        return NATIVE
    for dialect in DIALECTS.values():
        if dialect.matches_first_frame is not None and dialect.matches_first_frame(frame, framing):
            return dialect
    return NATIVE


def is_native(frame: bytes) -> bool:
    try:
        opening = decode_envelope(frame)
    except JSON_ERRORS:
        return False
    return b'"extension_protocol_version"' in bytes(opening.params)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"Dialects": "DialectRegistry", "ProgressForm": "ProgressFormat"})
