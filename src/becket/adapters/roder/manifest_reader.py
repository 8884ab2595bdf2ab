"""Reads `roder-extension.toml`, and the process extensions of `.roder/config.toml`.

Unknown members are ignored. Violations of Roder's rules are reported in its own words, all at once. A manifest with
`[launch]` can be started without an entry in the configuration. The id on the wire is that of the manifest; if becket
does not allow it as an id, a similar one is used in the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket._text import quote_path, truncate
from becket.adapters.roder import (
    EventFilter,
    InferenceEngine,
    LoadedManifest,
    ProcessExtension,
    RoderLaunch,
    RoderManifest,
    TaskExecutor,
    ToolProvider,
    find_manifest_problems,
)
from becket.adapters.roder.handshake import convert_tools
from becket.adapters.roder.manifest import FILE_NAME
from becket.contract.handshake import Capabilities
from becket.contract.json_narrowing import is_array
from becket.conversion.problems import find_problems
from becket.errors import ManifestError, Problem
from becket.host.starting.becket_toml import parse_table
from becket.host.starting.manifest import CommandEntry, Environment, LimitOverrides, Manifest, build_id
from becket.host.starting.manifest_reader import (
    ExtensionList,
    FoundExtension,
    ManifestReader,
    ScopedFiles,
    SearchFolder,
)
from becket.host.starting.paths import is_below, list_named_files

__all__ = ["LIST_NAME", "PACKAGE_NAME", "READER", "RoderManifestReader"]

LIST_NAME: Final = ".roder/config.toml"
PACKAGE_NAME: Final = "roder.toml"
PACKAGE_ID: Final = re.compile(r"[a-z0-9._-]+")
USUAL_PATTERNS: Final = (f"extensions/*/{FILE_NAME}", "extensions/*.toml")  # of a package without `[resources]`
MAX_NAMES: Final = 10_000  # names per folder that are compared with a pattern
MAX_MATCHES: Final = 1_000  # manifests per pattern
ENTRIES_KEY: Final = "process_extensions"
MAX_NAME_LENGTH: Final = 64
MAX_DESCRIPTION_LENGTH: Final = 512


class RoderManifestReader(ManifestReader):
    """The reader of `roder-extension.toml`, `.roder/config.toml` and `roder.toml`."""

    dialect = "roder"
    file_names = (FILE_NAME,)
    list_names = (LIST_NAME, PACKAGE_NAME)

    def read(self, data: bytes, path: str) -> FoundExtension:
        """Returns the extension of a manifest with `[launch]`.

        Raises:
            ManifestError: the file is invalid; lists all problems, each with its JSON pointer.
        """
        manifest = parse_roder_manifest(data, path)
        if manifest.launch is None:
            raise ManifestError(quote_path(path), [("/launch", "is missing, and no configuration has an entry for it")])
        return build_from_launch(manifest, manifest.launch, data, os.path.dirname(path))

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions of a host's configuration or of a package.

        Raises:
            ManifestError: the file is not TOML, or is a package without an id.
        """
        table = parse_table(data, path)
        if os.path.basename(path) == PACKAGE_NAME:
            return read_package(parse_package(table, path), os.path.dirname(path), nearby)
        entries = table.get(ENTRIES_KEY, [])
        if not is_array(entries):
            return ExtensionList(
                problems=((f"/{ENTRIES_KEY}", "is not a list of tables: write `[[process_extensions]]`"),)
            )
        base = os.path.dirname(os.path.dirname(path))
        found: list[FoundExtension] = []
        problems: list[Problem] = []
        disabled: list[str] = []
        for index, table in enumerate(entries):
            pointer = f"/{ENTRIES_KEY}/{index}"
            wrong = [(f"{pointer}{place}", text) for place, text in find_problems(table, ProcessExtension)]
            problems += wrong
            if wrong:
                continue
            entry = msgspec.convert(table, ProcessExtension)
            try:
                one = build_from_entry(entry, base, nearby)
            except ManifestError as error:
                if entry.enabled:  # problems of disabled entries do not matter
                    problems += [(f"{pointer}{place}", text) for place, text in error.problems]
                continue
            found.append(one)
            disabled += () if entry.enabled else (one.manifest.id,)
        return ExtensionList(extensions=tuple(found), problems=tuple(problems), disabled=tuple(disabled))

    def hint_for(self, problem: Problem) -> str:
        """Returns a hint for a problem."""
        pointer, message = problem
        if pointer == "/launch":
            return f'add `[launch]` with `command = "python3"`, or an entry to `{LIST_NAME}`'
        if pointer == "/api_version" and "requires" in message:
            return "install compatible versions of the extension and the host"
        if pointer.startswith("/resources/extensions"):
            return f"name the manifest of an extension of the package: `extensions/hello/{FILE_NAME}`"
        if pointer.startswith("/package"):
            return 'begin it with `[package]` and `id = "my-pack"`'
        return ""


READER: Final = RoderManifestReader()


# -- reading


def parse_roder_manifest(data: bytes, path: str) -> RoderManifest:
    """Returns the content of a `roder-extension.toml`; `path` is for error messages.

    Raises:
        ManifestError: it violates Roder's rules; lists all problems, each with its JSON pointer.
    """
    table = parse_table(data, path)
    try:
        manifest = msgspec.convert(table, RoderManifest)
    except msgspec.ValidationError as error:
        raise ManifestError(quote_path(path), find_problems(table, RoderManifest)) from error
    problems = find_manifest_problems(manifest)
    if not problems and not build_id(manifest.id):
        problems = [("/id", "has no letter or digit to build an id from")]
    if problems:
        raise ManifestError(quote_path(path), problems)
    return manifest


def build_roder_error(entry: ProcessExtension, state: str, error: ManifestError) -> ManifestError:
    """Returns why the manifest of an entry is unusable, in Roder's words."""
    prefix = f"process extension {entry.id} manifest {error.path} is {state}"
    texts = (f"{place}: {message}" if place else message for place, message in error.problems)
    return ManifestError(error.path, [("/manifest", f"{prefix}: {text}") for text in texts])


# -- packages


class Package(Struct, frozen=True):
    """`[package]` of a `roder.toml`."""

    id: str


class Resources(Struct, frozen=True):
    """`[resources]` of a `roder.toml`; other kinds of resources are ignored."""

    extensions: tuple[str, ...] = ()


class PackageManifest(Struct, frozen=True):
    """A `roder.toml`. Without `[resources]` manifests are searched in `USUAL_PATTERNS`."""

    package: Package
    resources: Resources = Resources(USUAL_PATTERNS)


def parse_package(table: dict[str, object], path: str) -> PackageManifest:
    """Returns the content of a `roder.toml`; `path` is for error messages.

    Raises:
        ManifestError: its shape or its id is invalid; lists all problems, each with its JSON pointer.
    """
    problems = find_problems(table, PackageManifest)
    if problems:
        raise ManifestError(quote_path(path), problems)
    manifest = msgspec.convert(table, PackageManifest)
    if not PACKAGE_ID.fullmatch(manifest.package.id):
        raise ManifestError(quote_path(path), [("/package/id", "may contain only `a-z 0-9 - _ .`")])
    return manifest


def read_package(manifest: PackageManifest, folder: str, nearby: ScopedFiles) -> ExtensionList:
    """Returns the extensions of the package in a folder.

    A folder with a manifest of the usual name belongs to one extension and is left to discovery. Manifests of other
    names are read here, because several may share a folder."""
    found: list[FoundExtension] = []
    folders: dict[str, None] = {}
    problems: list[Problem] = []
    is_usual = manifest.resources.extensions == USUAL_PATTERNS
    for index, entry in enumerate(manifest.resources.extensions):
        pointer = f"/resources/extensions/{index}"
        names = [*find_manifests(entry, folder)]
        if not names and not is_usual:
            problems.append((pointer, f"`{quote_path(truncate(entry))}` matches no manifest in the package"))
        for name in names:
            if os.path.basename(name) == FILE_NAME:
                folders[os.path.dirname(os.path.join(folder, name))] = None
                continue
            try:
                path, data = nearby.find(name), nearby.read(name)
                one = READER.read(data, path)
            except ManifestError as error:
                texts = (f"{place}: {message}" if place else message for place, message in error.problems)
                problems += [(pointer, f"{quote_path(name)}: {text}") for text in texts]
            else:
                found.append(replace(one, folder=os.path.dirname(path), owns_folder=True, path=path))
    looked = tuple(SearchFolder(folder=one, depth=0) for one in folders)
    return ExtensionList(extensions=tuple(found), problems=tuple(problems), search_folders=looked)


def find_manifests(entry: str, folder: str) -> Iterator[str]:
    """Yields the files of a package that match an entry, which may contain `*`; none outside of the package."""
    words = entry.strip().removeprefix("./").strip("/").split("/")
    if "\0" in entry or not {"", ".."}.isdisjoint(words):
        return
    for name in islice(match_names(folder, "", words), MAX_MATCHES):
        if os.path.isfile(os.path.join(folder, name)):
            yield name


def match_names(folder: str, below: str, words: list[str]) -> Iterator[str]:
    """Yields the paths below a folder that match a pattern. `*` does not match links, because they can form cycles."""
    word, *rest = words
    if "*" in word:
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                names = sorted(
                    one.name
                    for one in islice(entries, MAX_NAMES)
                    if fnmatchcase(one.name, word) and not one.is_symlink() and not one.name.startswith(".")
                )
        except OSError:  # not a folder, or not readable
            return
    else:
        names = [word]
    for name in names:
        path = os.path.join(below, name)
        if rest:
            yield from match_names(folder, path, rest)
        else:
            yield path


# -- conversion


def build_from_launch(manifest: RoderManifest, launch: RoderLaunch, data: bytes, folder: str) -> FoundExtension:
    """Returns the extension of a manifest with `[launch]`, which starts in the folder of its manifest."""
    cwd = folder if launch.cwd is None else os.path.normpath(os.path.join(folder, launch.cwd))
    loaded = LoadedManifest.from_bytes(
        manifest,
        data,
        event_filter=EventFilter(launch.event_filter_kinds),
        cwd=None if launch.cwd is None else cwd,
        folder=folder,
    )
    timeout = 10_000 if launch.startup_timeout_ms is None else launch.startup_timeout_ms
    return FoundExtension(
        manifest=build_manifest(manifest, (launch.command, *launch.args), launch.env, timeout),
        extra=loaded,
        cwd=cwd,
        declared=find_declared_capabilities(manifest),
    )


def find_declared_capabilities(manifest: RoderManifest) -> Capabilities | None:
    """Returns what an extension offers, or None if it has an engine, whose models are known only at run time."""
    if any(isinstance(service, InferenceEngine) for service in manifest.provides):
        return None
    return Capabilities(tuple(tool for tool, _ in convert_tools(manifest.provides).values()))


def build_from_entry(entry: ProcessExtension, base: str, nearby: ScopedFiles) -> FoundExtension:
    """Returns the extension of an entry; paths are relative to `base`, the folder of the host."""
    name = os.path.join(base, entry.manifest)
    try:
        path, data = nearby.find(name), nearby.read(name)
    except ManifestError as error:
        raise build_roder_error(entry, "unreadable", error) from error
    try:
        manifest = parse_roder_manifest(data, path)
    except ManifestError as error:
        raise build_roder_error(entry, "invalid", error) from error
    folder = os.path.dirname(path)
    cwd = base if entry.cwd is None else os.path.normpath(os.path.join(base, entry.cwd))
    loaded = LoadedManifest.from_bytes(manifest, data, event_filter=entry.event_filter, cwd=entry.cwd, folder=folder)
    command = (resolve_program(entry.command, base, folder), *(argument_in(word, cwd, folder) for word in entry.args))
    owns_folder = not is_below(base, folder)  # else the folder is that of the project
    return FoundExtension(
        manifest=build_manifest(manifest, command, entry.env, entry.startup_timeout_ms),
        extra=loaded,
        folder=folder,
        owns_folder=owns_folder,
        files=None if owns_folder else (*list_named_files(folder, command), path),
        path=path,
        cwd=cwd,
        declared=find_declared_capabilities(manifest),
    )


def resolve_program(command: str, base: str, folder: str) -> str:
    """Returns the program of an entry, relative to the extension's folder if it is in there."""
    if os.sep not in command or os.path.isabs(command):
        return command
    path = os.path.normpath(os.path.join(base, command))
    return f".{os.sep}{os.path.relpath(path, folder)}" if is_below(path, folder) else path


def argument_in(word: str, cwd: str, folder: str) -> str:
    """Returns an argument of an entry; a path in the extension's folder becomes relative to that instead of `cwd`."""
    path = os.path.normpath(os.path.join(cwd, word))
    return os.path.relpath(path, folder) if os.path.exists(path) and is_below(path, folder) else word


def build_manifest(manifest: RoderManifest, command: tuple[str, ...], env: dict[str, str], timeout_ms: int) -> Manifest:
    """Returns the manifest as a native one; its services determine the requested permissions."""
    kinds = {type(service) for service in manifest.provides}
    required = {ToolProvider: "tools.register", InferenceEngine: "providers.register"}
    executors = (service.id for service in manifest.provides if isinstance(service, TaskExecutor))
    return Manifest(
        id=build_id(manifest.id),
        version=quote_path(manifest.version)[:MAX_NAME_LENGTH] or "0.0.0",
        name=quote_path(manifest.name)[:MAX_NAME_LENGTH],
        description=quote_path(manifest.description or "")[:MAX_DESCRIPTION_LENGTH],
        command=command,
        dialect="roder",
        permissions=tuple(permission for kind, permission in required.items() if kind in kinds),
        commands=tuple(CommandEntry(name=id) for id in executors),
        environment=Environment(set=env),
        limits=LimitOverrides(handshake=max(timeout_ms, 1) / 1000),
    )
