"""Finds extensions: walks through folders, reads the manifests in them, and reports candidates and all that is wrong.

Nothing that is on disk makes it raise, wait, or walk for ever: a folder that cannot be read, a link in a circle, a pipe
in the place of a manifest or a name that is no text is a diagnostic, and the search goes on. Nothing that it finds is
run. Whether a candidate may start is decided by the gate.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from becket.errors import BadFile, ManifestError
from becket.host.diagnostics import Diagnostic, Severity
from becket.host.manifest import BecketToml, Manifest, ManifestReader, Server
from becket.limits import DEFAULT_LIMITS, Limits
from becket.typed.small_files import read_small_file, show_path

__all__ = ["MCP_FILE", "Candidate", "DiscoveryReport", "DiscoverySettings", "discover_extensions", "prune_nested"]

MCP_FILE: Final = ".mcp.json"
READERS: Final = (BecketToml(),)


class DiscoverySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How extensions are looked for.

    A root itself is level 0, and `depth` the last level that is looked into. Folders whose name is in `ignore` or
    begins with a dot are passed over. Links to folders are followed only where `follow_links` says so, and never out of
    the root."""

    depth: Annotated[int, Meta(ge=0, le=16)] = 1
    ignore: tuple[Annotated[str, Meta(min_length=1)], ...] = ("node_modules", "target", "__pycache__")
    follow_links: bool = False


DEFAULT_SETTINGS: Final = DiscoverySettings()


class Candidate(Struct, frozen=True):
    """An extension that was found. `folder` is absolute and free of links; `root` is the number of its root.

    `is_operators` says that its command is that of the operator, who may run any program."""

    manifest: Manifest
    folder: str
    manifest_path: str
    root: int
    is_operators: bool = False

    @property
    def id(self) -> str:
        """The id of the extension."""
        return self.manifest.id


class DiscoveryReport(Struct, frozen=True):
    """What a search has found: candidates by root and id, diagnostics by path, and counts of what was left out."""

    candidates: tuple[Candidate, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    invalid: int = 0
    disabled: int = 0
    not_allowed: int = 0


Settle = Callable[[list[Candidate], list[Diagnostic]], list[Candidate]]
"""Changes candidates, adds some, and adds to the diagnostics what is wrong."""


def discover_extensions(
    roots: Sequence[str | os.PathLike[str]],
    *,
    settings: DiscoverySettings = DEFAULT_SETTINGS,
    only: Collection[str] | None = None,
    disabled: Collection[str] = (),
    readers: Sequence[ManifestReader] = READERS,
    later_root_wins: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    settle: Settle | None = None,
) -> DiscoveryReport:
    """Returns all extensions below these roots; it never raises for what is on disk.

    A folder with a manifest belongs to that extension with all that is in it, and is not looked into further. `only`
    are the ids that may be there, where not all may. Of two with the same id that of the later root is taken; in one
    root, that of the first path. `settle` is what the host's own settings make of those that were found."""
    walk = Walk(settings, readers, limits)
    for number, root in enumerate(roots):
        walk.visit_root(number, root)
    notes = walk.diagnostics
    candidates = without_nested(walk.found, walk.owned, notes)
    candidates = without_twins(candidates, later_root_wins, notes)
    if settle is not None:
        candidates = settle(candidates, notes)
    notes += [
        Diagnostic(
            extension=id,
            problem="is to be allowed, and was not found",
            hint="look at its spelling, and at `roots`",
            severity=Severity.WARNING,
        )
        for id in sorted(set(only or ()) - {candidate.id for candidate in candidates})
    ]
    off = [candidate for candidate in candidates if candidate.id in disabled]
    enabled = [candidate for candidate in candidates if candidate.id not in disabled]
    allowed = [candidate for candidate in enabled if only is None or candidate.id in only]
    strangers = [candidate for candidate in enabled if only is not None and candidate.id not in only]
    notes += [note_of(candidate, "is disabled") for candidate in off]
    notes += [note_of(candidate, "is not among those that are allowed") for candidate in strangers]
    return DiscoveryReport(
        candidates=tuple(sorted(allowed, key=lambda candidate: (candidate.root, candidate.id))),
        diagnostics=tuple(sorted(notes, key=lambda note: (note.path or "", note.problem))),
        invalid=walk.invalid,
        disabled=len(off),
        not_allowed=len(strangers),
    )


def note_of(candidate: Candidate, problem: str, hint: str = "", severity: Severity = Severity.NOTE) -> Diagnostic:
    path = show_path(candidate.manifest_path)
    return Diagnostic(extension=candidate.id, path=path, problem=problem, hint=hint, severity=severity)


# -- walking


class Enough(Exception):
    """More names were seen than anybody has extensions."""


class Walk:
    """One search through all roots."""

    def __init__(self, settings: DiscoverySettings, readers: Sequence[ManifestReader], limits: Limits) -> None:
        self.found: list[Candidate] = []
        self.owned: set[str] = set()  # folders with a manifest, whatever is in it
        self.diagnostics: list[Diagnostic] = []
        self.invalid = 0
        self._settings = settings
        self._ignored = frozenset(settings.ignore)
        self._readers = readers
        self._limits = limits
        self._entries = 0
        self._root = ""
        self._number = 0

    def visit_root(self, number: int, root: str | os.PathLike[str]) -> None:
        """Looks for extensions in a root and below it."""
        try:
            self._root = os.path.realpath(root, strict=True)
        except FileNotFoundError:
            hint = "create it, or take it out of `roots`"
            self._warn(root, "no such folder", hint)
            return
        except (OSError, ValueError) as error:  # links in a circle; a zero byte
            self._warn(root, f"cannot be looked into: {error}", severity=Severity.ERROR)
            return
        if not is_text(self._root):
            self._warn(root, "its name is no UTF-8, and could not be told to an extension", severity=Severity.ERROR)
            return
        self._number = number
        seen: set[str] = set()
        folder, level = self._root, 0
        waiting = [(folder, level)]
        try:
            while waiting:
                folder, level = waiting.pop()
                if folder not in seen:
                    seen.add(folder)
                    below = self._visit_folder(folder, look_below=level < self._settings.depth)
                    waiting += [(path, level + 1) for path in reversed(below)]
        except Enough:
            problem = f"more than {self._limits.found_entries} names were seen, and the search ended here"
            hint = "choose roots that hold extensions and little else, or add to `ignore`"
            self._warn(folder, problem, hint, Severity.ERROR)

    def _visit_folder(self, folder: str, *, look_below: bool) -> list[str]:
        """Reads the manifest of a folder; returns the folders to look into where it has none."""
        entries = self._list_folder(folder)
        names = {entry.name for entry in entries}
        for reader in self._readers:
            for name in reader.file_names:
                if name in names or ("/" in name and os.path.lexists(os.path.join(folder, name))):
                    self.owned.add(folder)
                    self._read_manifest(reader, folder, os.path.join(folder, name), MCP_FILE in names)
                    return []
        if not look_below:
            return []
        return [path for entry in entries if (path := self._path_below(folder, entry)) is not None]

    def _list_folder(self, folder: str) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries > self._limits.found_entries:
                        raise Enough
                    entries.append(entry)
        except FileNotFoundError:
            return []  # it was there a moment ago, and is nobody's problem now
        except OSError as error:
            hint = "make it readable, or add its name to `ignore`"
            self._warn(folder, f"cannot be looked into: {error.strerror}", hint)
        return sorted(entries, key=lambda entry: entry.name)

    def _path_below(self, folder: str, entry: os.DirEntry[str]) -> str | None:
        """Returns where to look next; None where this entry is no folder, or none to be looked into."""
        if entry.name.startswith(".") or entry.name in self._ignored or not leads_to_folder(entry):
            return None
        if not is_text(entry.name):
            self._warn(entry.path, "its name is no UTF-8: not looked into", "give it another name")
            return None
        if not entry.is_symlink():
            return entry.path
        if not self._settings.follow_links:
            hint = "turn `follow_links` on, or make the folder itself a root"
            self._warn(entry.path, "is a link: not looked into", hint, Severity.NOTE)
            return None
        target = os.path.realpath(entry.path)
        if not is_below(target, self._root):
            problem = f"is a link that leads out of its root, to {show_path(target)}"
            self._warn(entry.path, problem, "make the folder itself a root", Severity.ERROR)
            return None
        return target if is_text(target) else None

    # -- one extension

    def _read_manifest(self, reader: ManifestReader, folder: str, path: str, has_sidecar: bool) -> None:
        try:
            self._check_link(path)
            data = read_small_file(path, self._limits.manifest, follow_links=self._settings.follow_links)
            manifest = reader.read(data, path)
        except BadFile as error:
            if not isinstance(error.__cause__, FileNotFoundError):  # it was there a moment ago
                self.invalid += 1
                self.diagnostics += explain(error, reader)
            return
        if manifest is None:
            return
        if has_sidecar and not manifest.mcp_servers:
            manifest = self._with_sidecar(manifest, os.path.join(folder, MCP_FILE))
        self.found.append(Candidate(manifest, folder, path, self._number))

    def _check_link(self, path: str) -> None:
        if not os.path.islink(path):
            return
        if not self._settings.follow_links:
            raise ManifestError(show_path(path), [("", "is a link: not followed")])
        if not is_below(os.path.realpath(path), self._root):
            raise ManifestError(show_path(path), [("", "is a link that leads out of its root")])

    def _with_sidecar(self, manifest: Manifest, path: str) -> Manifest:
        try:
            data = read_small_file(path, self._limits.manifest, follow_links=False)
            return replace(manifest, mcp_servers=parse_servers(data))
        except (BadFile, *UNREADABLE) as error:
            problem = error.problems[0][1] if isinstance(error, BadFile) else str(error)
            self.diagnostics.append(
                Diagnostic(
                    extension=manifest.id,
                    path=show_path(path),
                    problem=f"is ignored: {problem}",
                    hint="mend it, or name the servers in the manifest",
                    severity=Severity.WARNING,
                )
            )
            return manifest

    def _warn(
        self, path: str | os.PathLike[str], problem: str, hint: str = "", severity: Severity = Severity.WARNING
    ) -> None:
        self.diagnostics.append(Diagnostic(path=show_path(path), problem=problem, hint=hint, severity=severity))


def leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def is_text(name: str) -> bool:
    """Returns whether a name can be sent. On disk it is bytes; those that are no UTF-8 come as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_below(path: str, root: str) -> bool:
    """Returns whether a path is the root or lies in it; both without links. `data-evil` does not lie in `data`."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def explain(error: BadFile, reader: ManifestReader) -> Iterator[Diagnostic]:
    for pointer, message in error.problems:
        problem = f"{pointer}: {message}" if pointer else message
        yield Diagnostic(path=error.path, problem=problem, hint=reader.hint_for((pointer, message)))


UNREADABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)


class McpFile(Struct):
    """What is read of a `.mcp.json`; there are two spellings."""

    mcpServers: dict[Server, dict[str, Any]] = {}
    mcp_servers: dict[Server, dict[str, Any]] = {}


def parse_servers(data: bytes) -> dict[str, dict[str, Any]]:
    """Returns the servers that a `.mcp.json` names."""
    file = msgspec.json.decode(data, type=McpFile)
    return file.mcpServers or file.mcp_servers


# -- what is left of what was found


def prune_nested(folders: Iterable[str], owned: Collection[str]) -> list[str]:
    """Returns the folders that lie in none of the owned ones; itself does not count. It takes N times their depth."""
    return [folder for folder in folders if owner_of(folder, owned) is None]


def owner_of(folder: str, owned: Collection[str]) -> str | None:
    """Returns the nearest owned folder above this one."""
    above = os.path.dirname(folder)
    while above != folder:
        if above in owned:
            return above
        folder, above = above, os.path.dirname(above)
    return None


def without_nested(found: list[Candidate], owned: set[str], notes: list[Diagnostic]) -> list[Candidate]:
    """Returns those that lie in no other's folder, each folder once: roots may lie in extensions, and in each other."""
    top = set(prune_nested((candidate.folder for candidate in found), owned))
    kept: dict[str, Candidate] = {}
    for candidate in found:
        if candidate.folder not in top:
            owner = owner_of(candidate.folder, owned)
            notes.append(note_of(candidate, f"lies in the folder of another extension: {show_path(owner or '')}"))
        elif candidate.folder not in kept:
            kept[candidate.folder] = candidate
    return list(kept.values())


def without_twins(found: list[Candidate], later_root_wins: bool, notes: list[Diagnostic]) -> list[Candidate]:
    """Returns one candidate for each id."""
    kept: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda one: (-one.root if later_root_wins else one.root, one.manifest_path)):
        taken = kept.setdefault(candidate.id, candidate)
        if taken is not candidate:
            problem = f"has the same id as {show_path(taken.manifest_path)}, which is taken"
            hint = "give one of them another id"
            notes.append(note_of(candidate, problem, hint, Severity.WARNING))
    return list(kept.values())
