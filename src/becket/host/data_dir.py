"""The data directory of a host: paths of its store, audit log, grants and snapshots."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from becket.contract.names import find_id_problem

__all__ = ["DataDir", "default_data_dir"]


def default_data_dir(name: str, variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the default data directory of the host of this name, in `$XDG_DATA_HOME` or its default."""
    data_home = variables.get("XDG_DATA_HOME", "")
    base = Path(data_home) if os.path.isabs(data_home) else Path.home() / ".local" / "share"
    return base / "becket" / name


class DataDir:
    """The files in a host's data directory. Each is created when it is needed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.abspath(folder))  # absolute: extensions get paths in it, and run elsewhere

    @property
    def store(self) -> Path:
        """The memory and the configuration of all extensions."""
        return self.folder / "store.sqlite"

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.folder / "audit.jsonl"

    @property
    def grants(self) -> Path:
        """The grants of all extensions."""
        return self.folder / "grants.toml"

    @property
    def secrets(self) -> Path:
        """The secret configuration values."""
        return self.folder / "secrets.json"

    @property
    def trust(self) -> Path:
        """The disabled model providers."""
        return self.folder / "trust.json"

    @property
    def snapshots(self) -> Path:
        """Snapshots of approved extensions, named by their digest: only these files are run."""
        return self.folder / "copies"

    @property
    def working(self) -> Path:
        """Working copies that extensions of other systems run in and may write to; each start discards them."""
        return self.folder / "working"

    def extension_dir(self, extension: str) -> Path:
        """Returns the folder that an extension may write to.

        Raises:
            ValueError: the id is not a valid id of an extension.
        """
        if find_id_problem(extension) is not None or os.sep in extension or extension in (".", ".."):
            raise ValueError(f"not a valid id of an extension: {extension!r}")
        return self.folder / "data" / extension

    def approval_of(self, extension: str) -> Path:
        """Returns the file with the last approval of an extension.

        Raises:
            ValueError: the id is not a valid id of an extension.
        """
        return self.folder / "approvals" / f"{self.extension_dir(extension).name}.json"

    def create(self) -> None:
        """Creates the folder, for its owner alone.

        Raises:
            OSError: it cannot be created.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
