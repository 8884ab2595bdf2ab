"""Walks folders, reads the manifests in them, and reports candidates and diagnostics.

One walk finds the extensions of all formats: folders with a manifest, files that list several, and programs with a
certain prefix of their name.

Nothing on disk makes it raise, block, or walk for ever: an unreadable folder, a circular link, a pipe in the place of a
manifest or a name that is not UTF-8 is a diagnostic, and the walk goes on. Nothing that it finds is run. `start_check`
decides whether a candidate may start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from becket._text import quote_path, truncate
from becket.contract.argument_checks import check_list
from becket.conversion.files.reader import load_bytes
from becket.errors import JSON_ERRORS, BadFile, ManifestError
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.starting.candidate import Candidate, build_diagnostic
from becket.host.starting.conflicts import drop_duplicates, drop_nested, withhold_shared_variables
from becket.host.starting.manifest import Manifest, is_id
from becket.host.starting.manifest_formats import MANIFEST_READERS
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ManifestReader, ScopedFiles
from becket.host.starting.paths import is_below, list_named_files
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["DiscoveryReport", "DiscoverySettings", "discover_extensions"]

MAX_DEPTH: Final = 16


class DiscoverySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How extensions are discovered.

    A root itself is level 0, and `depth` the last level that is searched. Folders whose name is in `ignore` or begins
    with a dot are skipped. Links to folders are followed only with `follow_links`, and never out of the root."""

    depth: Annotated[int, Meta(ge=0, le=MAX_DEPTH)] = 1
    ignore: tuple[Annotated[str, Meta(min_length=1)], ...] = ("node_modules", "target", "__pycache__")
    follow_links: bool = False

    def __post_init__(self) -> None:
        check_list(self.ignore, "ignore", "names")


DEFAULT_SETTINGS: Final = DiscoverySettings()
CORRECT_IT: Final = "correct it there"


class DiscoveryReport(Struct, frozen=True):
    """The result of a walk: candidates by root and id, diagnostics by path, and counts of what was left out."""

    candidates: tuple[Candidate, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    invalid: int = 0
    disabled: int = 0
    not_allowed: int = 0


ApplyConfigs = Callable[[list[Candidate], list[Diagnostic]], list[Candidate]]
"""Changes candidates, adds some, and adds problems to the diagnostics."""


def discover_extensions(
    roots: Sequence[str | os.PathLike[str]],
    *,
    settings: DiscoverySettings = DEFAULT_SETTINGS,
    only: Collection[str] | None = None,
    disabled: Collection[str] = (),
    readers: Sequence[ManifestReader] = MANIFEST_READERS,
    later_root_wins: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    settle: ApplyConfigs | None = None,
) -> DiscoveryReport:
    """Returns all extensions below these roots; it never raises for what is on disk.

    A folder with a manifest belongs to that extension with all that is in it, and is not searched further. `only` are
    the allowed ids, None for all. Of two of one system with the same id the one that this system uses is used;
    otherwise that of the later root, and in one root that of the first path. Without `later_root_wins` the first is
    used, for any system. `settle` applies the host's own settings to those that were found."""
    check_list(roots, "roots", "folders")
    walk = DiscoveryWalk(settings, readers, limits)
    for number, root in enumerate(roots):
        walk.visit_root(number, root)
    walk.read_manifests()
    notes = walk.diagnostics
    candidates = drop_nested(walk.found, walk.owned, notes)
    candidates = drop_duplicates(candidates, later_root_wins, notes)
    if settle is not None:
        candidates = settle(candidates, notes)
    notes += [
        Diagnostic(
            code=ProblemCode.NOT_FOUND,
            extension=id,
            problem="is to be allowed, and was not found",
            hint="check its spelling, and `roots`",
            severity=Severity.WARNING,
        )
        for id in sorted(set(only or ()) - {candidate.id for candidate in candidates})
    ]
    off = [candidate for candidate in candidates if candidate.id in disabled or walk.is_disabled(candidate)]
    enabled = [candidate for candidate in candidates if candidate not in off]
    allowed = [candidate for candidate in enabled if only is None or candidate.id in only]
    strangers = [candidate for candidate in enabled if only is not None and candidate.id not in only]
    notes += [
        build_diagnostic(candidate, ProblemCode.DISABLED, "is disabled", "enable it to start it") for candidate in off
    ]
    notes += [
        build_diagnostic(candidate, ProblemCode.NOT_ALLOWED, "left out by --only", "add its id to `only`")
        for candidate in strangers
    ]
    allowed = withhold_shared_variables(allowed, notes)
    return DiscoveryReport(
        candidates=tuple(sorted(allowed, key=lambda candidate: (candidate.root, candidate.id))),
        diagnostics=tuple(sorted(notes, key=lambda note: (note.path or "", note.problem))),
        invalid=walk.invalid,
        disabled=len(off),
        not_allowed=len(strangers),
    )


# -- walking


class TooManyEntries(Exception):
    """More names were seen than the limit allows."""


class PendingFolder(Struct, frozen=True):
    """A folder to search, how many levels below it, and the names to ignore."""

    folder: str
    levels: int
    ignored: frozenset[str]


class ManifestMarker(Struct, frozen=True):
    """A name by which a folder shows that it holds something for a reader."""

    reader: ManifestReader
    name: str
    is_list: bool


class PendingManifest(Struct, frozen=True):
    """A manifest that was seen, and is read after all lists: one of them may replace it."""

    reader: ManifestReader
    folder: str
    path: str
    root: str
    number: int
    bundles: tuple[ManifestMarker, ...]


class DiscoveryWalk:
    """One walk through all roots."""

    def __init__(self, settings: DiscoverySettings, readers: Sequence[ManifestReader], limits: Limits) -> None:
        self.found: list[Candidate] = []
        self.owned: set[str] = set()  # folders with a manifest, whatever is in it
        self.diagnostics: list[Diagnostic] = []
        self.invalid = 0
        self._settings = settings
        self._marks = build_marks(readers)
        self._bundles = [
            ManifestMarker(reader, name, is_list=True)
            for reader in readers
            if reader.bundle_table
            for name in reader.list_names
        ]
        self._prefixes = [(prefix, reader) for reader in readers for prefix in reader.prefixes]
        self._limits = limits
        self._entries = 0
        self._root = ""
        self._number = 0
        self._waiting: list[PendingManifest] = []
        self._listed: set[str] = set()  # manifests that a list has named
        self._off: set[tuple[int, str, str]] = set()  # by root, dialect and id
        self._only: dict[tuple[int, str], frozenset[str]] = {}

    def visit_root(self, number: int, root: str | os.PathLike[str]) -> None:
        """Searches a root for extensions."""
        try:
            self._root = os.path.realpath(root, strict=True)
        except FileNotFoundError:
            hint = "create it, or take it out of `roots`"
            self._report(ProblemCode.ROOT_MISSING, root, "no such folder", hint)
            return
        except (OSError, ValueError) as error:  # circular links; a zero byte
            hint = "make it readable, or take it out of `roots`"
            self._report(ProblemCode.FOLDER_UNREADABLE, root, f"cannot be read: {error}", hint, Severity.ERROR)
            return
        if not is_text(self._root):
            self._report(
                ProblemCode.FOLDER_UNREADABLE,
                root,
                "its name is not UTF-8, and cannot be sent to an extension",
                "give it another name",
                Severity.ERROR,
            )
            return
        self._number = number
        seen: set[str] = set()
        place = PendingFolder(self._root, self._settings.depth, frozenset(self._settings.ignore))
        waiting = [place]
        try:
            while waiting:
                place = waiting.pop()
                if place.folder not in seen:
                    seen.add(place.folder)
                    waiting += self._visit_folder(place)
        except TooManyEntries:
            problem = f"more than {self._limits.found_entries} names were seen, and the search ended here"
            hint = "choose roots that hold extensions and little else, or add to `ignore`"
            self._report(ProblemCode.FOLDER_UNREADABLE, place.folder, problem, hint, Severity.ERROR)

    def _visit_folder(self, place: PendingFolder) -> list[PendingFolder]:
        """Records the manifest of a folder, or reads its lists; returns the folders to search, the first one last."""
        entries = self._list_folder(place.folder)
        names = {entry.name for entry in entries}
        lists: list[ManifestMarker] = []
        for mark in self._marks_in(place.folder, names):
            if not mark.is_list:
                self.owned.add(place.folder)
                path = os.path.join(place.folder, mark.name)
                bundles = tuple(bundle for bundle in self._bundles if bundle.name in names)
                self._waiting.append(
                    PendingManifest(mark.reader, place.folder, path, self._root, self._number, bundles)
                )
                return []
            lists.append(mark)
        for entry in entries:
            for prefix, reader in self._prefixes:
                if entry.name.startswith(prefix):
                    self._visit_program(reader, place.folder, entry)
        below: list[PendingFolder] = []
        if place.levels:
            paths = (self._path_below(entry, place.ignored) for entry in entries)
            below = [PendingFolder(path, place.levels - 1, place.ignored) for path in paths if path is not None]
        further = [one for mark in lists for one in self._visit_list(mark, place)]
        return [*below[::-1], *further[::-1]]  # folders of a list come first: the list sets how deep to search there

    def _marks_in(self, folder: str, names: set[str]) -> list[ManifestMarker]:
        """Returns the markers of a folder: manifests first, and those in the order of their readers."""
        hints = self._marks.keys() & names
        if not hints:
            return []
        marks = sorted((one for hint in hints for one in self._marks[hint]), key=lambda one: one[0])
        return [mark for _, mark in marks if "/" not in mark.name or os.path.lexists(os.path.join(folder, mark.name))]

    def _list_folder(self, folder: str) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries > self._limits.found_entries:
                        raise TooManyEntries
                    entries.append(entry)
        except FileNotFoundError:
            return []  # removed since it was listed
        except OSError as error:
            hint = "make it readable, or add its name to `ignore`"
            self._report(ProblemCode.FOLDER_UNREADABLE, folder, f"cannot be read: {error.strerror}", hint)
        return sorted(entries, key=lambda entry: entry.name)

    def _path_below(self, entry: os.DirEntry[str], ignored: frozenset[str]) -> str | None:
        """Returns the folder to search next; None if this entry is not a folder, or must be skipped."""
        if entry.name.startswith(".") or entry.name in ignored or not is_folder_link(entry):
            return None
        if not is_text(entry.name):
            self._report(
                ProblemCode.FOLDER_UNREADABLE,
                entry.path,
                "its name is not UTF-8: not searched",
                "give it another name",
            )
            return None
        if not entry.is_symlink():
            return entry.path
        if not self._settings.follow_links:
            hint = "turn `follow_links` on, or make the folder itself a root"
            self._report(ProblemCode.LINK_NOT_FOLLOWED, entry.path, "is a link: not searched", hint, Severity.NOTE)
            return None
        target = os.path.realpath(entry.path)
        if not is_below(target, self._root):
            problem = f"is a link that leads out of its root, to {quote_path(target)}"
            self._report(
                ProblemCode.LINK_NOT_FOLLOWED, entry.path, problem, "make the folder itself a root", Severity.ERROR
            )
            return None
        return target if is_text(target) else None

    # -- manifests

    def read_manifests(self) -> None:
        """Reads the manifests that were seen, except those that a list has replaced."""
        for one in self._waiting:
            if one.path in self._listed:
                continue
            try:
                found = one.reader.read(self._read_file(one.path, one.root), one.path)
            except BadFile as error:
                self._note_problems(error, one.reader)
                continue
            if found is None:
                self._note(one.reader, one.path, "", "holds no extension")
                continue
            found = found if isinstance(found, FoundExtension) else FoundExtension(manifest=found)
            for pointer, message in found.unused:
                self._note(one.reader, one.path, pointer, message, found.manifest.id)
            for bundle in one.bundles:
                if not getattr(found.manifest, bundle.reader.bundle_table):
                    found = replace(found, manifest=self._with_bundle(found.manifest, bundle, one.folder))
            self._add(found, one.folder, one.path, one.number, is_listed=False)

    def _visit_list(self, mark: ManifestMarker, place: PendingFolder) -> list[PendingFolder]:
        """Applies a list; returns the folders that it names."""
        path = os.path.join(place.folder, mark.name)
        nearby = ScopedFiles(os.path.dirname(path), self._root, limit=self._limits.manifest)
        try:
            listing = mark.reader.read_list(self._read_file(path, self._root), path, nearby)
        except BadFile as error:
            self._note_problems(error, mark.reader)
            return []
        if listing.problems:
            self._note_problems(ManifestError(quote_path(path), list(listing.problems)), mark.reader)
        for found in listing.extensions:
            if found.path is not None:
                self._listed.add(found.path)
            self._add(found, place.folder, path, self._number, is_listed=True)
        dialect = mark.reader.dialect
        self._off.update((self._number, dialect, id) for id in listing.disabled)
        if listing.only is not None:
            self._only[self._number, dialect] = frozenset(listing.only)
        return [*self._listed_folders(listing, nearby, place)]

    def _listed_folders(
        self, listing: ExtensionList, nearby: ScopedFiles, place: PendingFolder
    ) -> Iterator[PendingFolder]:
        for one in listing.search_folders:
            try:
                folder = nearby.find(one.folder)
            except BadFile as error:
                self.diagnostics.append(
                    Diagnostic(
                        code=ProblemCode.MANIFEST_INVALID,
                        path=error.path,
                        problem=error.problems[0][1],
                        hint="make the folder itself a root",
                    )
                )
                continue
            if os.path.isdir(folder) and is_text(folder):
                yield PendingFolder(folder, min(one.depth, MAX_DEPTH), place.ignored | frozenset(one.ignore))
            else:
                self._report(
                    ProblemCode.ROOT_MISSING, folder, "no such folder", "create it, or take it out of the list"
                )

    def _visit_program(self, reader: ManifestReader, folder: str, entry: os.DirEntry[str]) -> None:
        """Adds a program as an extension, by its name."""
        if not is_text(entry.name) or not leads_to_file(entry):
            return
        if not os.access(entry.path, os.X_OK):
            self._report(
                ProblemCode.NOT_EXECUTABLE,
                entry.path,
                "is not executable: left out",
                "make it executable: chmod +x",
                Severity.NOTE,
            )
            return
        try:
            self._check_link(entry.path, self._root)
            found = reader.read_program(entry.path)
        except BadFile as error:
            self._note_problems(error, reader)
            return
        if found is not None:
            found = found if isinstance(found, FoundExtension) else FoundExtension(manifest=found)
            found = found if found.files is not None else replace(found, files=(entry.path,))
            self._add(found, folder, entry.path, self._number, is_listed=True)

    def _add(self, found: FoundExtension, folder: str, path: str, number: int, *, is_listed: bool) -> None:
        manifest = found.manifest
        if not is_id(manifest.id):
            self.invalid += 1
            problem = f"its id is `{quote_path(truncate(manifest.id))}`, which is not valid"
            hint = "1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, no two dots together"
            self._report(ProblemCode.ID_INVALID, path, problem, hint, Severity.ERROR)
            return
        files = found.files
        if files is None and is_listed and found.path is None:
            files = tuple(list_named_files(found.folder or folder, manifest.command))
        self.found.append(
            Candidate(
                manifest,
                found.folder or folder,
                found.path or path,
                number,
                extra=found.extra,
                files=files,
                is_listed=is_listed,
                owns_folder=found.owns_folder,
                cwd=found.cwd,
                declared=found.declared,
            )
        )

    def is_disabled(self, candidate: Candidate) -> bool:
        """Returns whether a list of its own system disables this one."""
        dialect = candidate.manifest.dialect
        allowed = self._only.get((candidate.root, dialect))
        return (candidate.root, dialect, candidate.id) in self._off or (
            allowed is not None and candidate.id not in allowed
        )

    def _read_file(self, path: str, root: str) -> bytes:
        self._check_link(path, root)
        return load_bytes(path, self._limits.manifest, follow_links=self._settings.follow_links)

    def _note_problems(self, error: BadFile, reader: ManifestReader) -> None:
        if not isinstance(error.__cause__, FileNotFoundError):  # removed since it was listed
            self.invalid += 1
            self.diagnostics += build_diagnostics(error, reader)

    def _check_link(self, path: str, root: str) -> None:
        if not os.path.islink(path):
            return
        if not self._settings.follow_links:
            raise ManifestError(quote_path(path), [("", "is a link: not followed")])
        if not is_below(os.path.realpath(path), root):
            raise ManifestError(quote_path(path), [("", "is a link that leads out of its root")])

    def _with_bundle(self, manifest: Manifest, bundle: ManifestMarker, folder: str) -> Manifest:
        path = os.path.join(folder, bundle.name)
        try:
            data = load_bytes(path, self._limits.manifest, follow_links=False)
            return replace(manifest, **{bundle.reader.bundle_table: bundle.reader.read_bundle(data)})
        except (BadFile, *JSON_ERRORS) as error:
            problem = error.problems[0][1] if isinstance(error, BadFile) else str(error)
            self.diagnostics.append(
                Diagnostic(
                    code=ProblemCode.MANIFEST_INVALID,
                    extension=manifest.id,
                    path=quote_path(path),
                    problem=f"is ignored: {problem}",
                    hint="fix it, or name the servers in the manifest",
                    severity=Severity.WARNING,
                )
            )
            return manifest

    def _note(
        self, reader: ManifestReader, path: str, pointer: str, message: str, extension: str | None = None
    ) -> None:
        """Records what is left out on purpose."""
        self.diagnostics.append(
            Diagnostic(
                code=ProblemCode.NOT_SUPPORTED,
                extension=extension,
                path=quote_path(path),
                problem=f"{pointer}: {message}" if pointer else message,
                hint=reader.hint_for((pointer, message)),
                severity=Severity.NOTE,
            )
        )

    def _report(
        self,
        code: ProblemCode,
        path: str | os.PathLike[str],
        problem: str,
        hint: str,
        severity: Severity = Severity.WARNING,
    ) -> None:
        self.diagnostics.append(
            Diagnostic(code=code, path=quote_path(path), problem=problem, hint=hint, severity=severity)
        )


def is_folder_link(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # circular links
        return False


def is_text(name: str) -> bool:
    """Returns whether a name can be sent. On disk it is bytes; those that are not UTF-8 come as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def leads_to_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # circular links
        return False


def build_marks(readers: Sequence[ManifestReader]) -> dict[str, list[tuple[tuple[bool, int, int], ManifestMarker]]]:
    """Returns each marker name by its first part, in order of precedence."""
    marks: dict[str, list[tuple[tuple[bool, int, int], ManifestMarker]]] = {}
    for number, reader in enumerate(readers):
        for is_list, names in ((False, reader.file_names), (True, reader.list_names)):
            for place, name in enumerate(names):
                order = (is_list, number, place)
                marks.setdefault(name.partition("/")[0], []).append((order, ManifestMarker(reader, name, is_list)))
    return marks


def build_diagnostics(error: BadFile, reader: ManifestReader) -> Iterator[Diagnostic]:
    for pointer, message in error.problems:
        problem = f"{pointer}: {message}" if pointer else message
        yield Diagnostic(
            code=ProblemCode.MANIFEST_INVALID,
            path=error.path,
            problem=problem,
            hint=reader.hint_for((pointer, message)) or CORRECT_IT,
        )
