"""The data directory of a host: paths of its store, audit log, grants and snapshots."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from becket.contract.names import find_id_problem

__all__ = ["DataDir", "default_data_dir"]


def default_data_dir(name: str, variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the host of this name: in `$XDG_DATA_HOME`, or where that is unless set."""
    given = variables.get("XDG_DATA_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return base / "becket" / name


class DataDir:
    """The files in a host's folder. Nothing is made before it is asked for."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.abspath(folder))  # extensions are told of it, and run elsewhere

    @property
    def store(self) -> Path:
        """The memory and the configuration of all extensions."""
        return self.folder / "store.sqlite"

    @property
    def audit(self) -> Path:
        """What was decided and what happened."""
        return self.folder / "audit.jsonl"

    @property
    def grants(self) -> Path:
        """What each extension may do."""
        return self.folder / "grants.toml"

    @property
    def secrets(self) -> Path:
        """The values of configuration that are secret."""
        return self.folder / "secrets.json"

    @property
    def trust(self) -> Path:
        """Which providers of models are not to be used."""
        return self.folder / "trust.json"

    @property
    def snapshots(self) -> Path:
        """What was agreed to of extensions, named by its digest: these files are run, and no others."""
        return self.folder / "copies"

    @property
    def working(self) -> Path:
        """Copies that extensions of other systems run in and may write to; each start discards what is there."""
        return self.folder / "working"

    def extension_dir(self, extension: str) -> Path:
        """Returns the folder that an extension may write to.

        Raises:
            ValueError: the id is none that an extension can have.
        """
        if find_id_problem(extension) is not None or os.sep in extension or extension in (".", ".."):
            raise ValueError(f"no extension can have the id {extension!r}")
        return self.folder / "data" / extension

    def approval_of(self, extension: str) -> Path:
        """Returns the file that tells what the last consent to an extension was about.

        Raises:
            ValueError: the id is none that an extension can have.
        """
        return self.folder / "approvals" / f"{self.extension_dir(extension).name}.json"

    def create(self) -> None:
        """Makes the folder, for its owner alone.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
