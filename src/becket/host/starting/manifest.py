"""The `becket.toml` manifest: its types, its rules, and the base class of manifest readers.

The classes repeat `schemas/manifest.schema.json`; a test compares the two. Other systems have other `ManifestReader`s
(`becket.host.starting.manifest_formats`), and all of them return a `Manifest`. `discovery` finds the files, and
`start_check` decides."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from becket._text import join_pointer, quote_path, truncate
from becket.contract.handshake import Capabilities, DeclaredCapability
from becket.contract.hooks import HOOKS, HookKind, HookMatch, find_hook_problem
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import find_id_problem, strip_whitespace
from becket.conversion.files.reader import load_bytes
from becket.conversion.files.toml import parse_toml
from becket.conversion.problems import find_problems
from becket.conversion.suggestions import did_you_mean, find_nearest
from becket.dialects import DIALECTS
from becket.errors import BadFile, ManifestError, Problem
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

__all__ = [
    "FILE_NAME",
    "FORMAT",
    "BecketToml",
    "CommandEntry",
    "ConfigEntry",
    "ConfigType",
    "Environment",
    "ExtensionList",
    "FoundExtension",
    "HookEntry",
    "Id",
    "InputMatch",
    "LimitOverrides",
    "Manifest",
    "ManifestReader",
    "Requirements",
    "RestartOverrides",
    "ScopedFiles",
    "SearchFolder",
    "ServerName",
    "SettingsCategory",
    "SettingsField",
    "SidecarEntry",
    "explain_patterns",
    "hint_for",
    "is_below",
    "is_id",
    "list_named_files",
    "load_manifest",
    "normalize_id",
    "parse_manifest",
    "parse_table",
]

FILE_NAME: Final = "becket.toml"
FORMAT: Final = 1  # the version of the format that is read here

# `\Z`, since `$` would let a new line follow.
ID = r"\A(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,63}\Z"
VERSION = r"\A(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\Z"
ID_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
ARGUMENT = r"\A[^\x00]*\Z"
PERMISSION = r"\A[a-z0-9_]+(\.[a-z0-9_]+)+\Z"
PROGRAM = r"\A[^/\x00]+\Z"
KEY = r"\A[^./\x00- \x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+\Z"
VARIABLE = r"\A[A-Za-z_][A-Za-z0-9_]*\Z"
SERVER = r"\A[a-z][a-z0-9_-]{0,31}\Z"
TEXT = r"[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

Id = Annotated[str, Meta(pattern=ID)]
ArgumentText = Annotated[str, Meta(pattern=ARGUMENT)]
Command = Annotated[tuple[ArgumentText, ...], Meta(min_length=1, max_length=256)]
Permission = Annotated[str, Meta(pattern=PERMISSION, max_length=128)]
ConfigKey = Annotated[str, Meta(pattern=KEY, max_length=256)]
Variable = Annotated[str, Meta(pattern=VARIABLE, max_length=256)]
ServerName = Annotated[str, Meta(pattern=SERVER)]
NonBlankText = Annotated[str, Meta(pattern=TEXT)]
Description = Annotated[str, Meta(max_length=512)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


# -- the tables of the file


class ManifestTable(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base class of all tables of a manifest: it rejects misspelt members."""


class CommandEntry(ManifestTable, frozen=True, kw_only=True):
    """Something that the user can run by its name. One that is `read_only` changes nothing outside of its process."""

    name: str
    description: Description = ""
    subcommands: tuple[str, ...] = ()
    read_only: bool = False


class InputMatch(ManifestTable, frozen=True, kw_only=True):
    """Which inputs of a tool a hook is for; all conditions must hold."""

    input_contains: str | UnsetType = UNSET
    input_equals: Any = UNSET


class HookEntry(ManifestTable, frozen=True, kw_only=True):
    """A kind of event that the extension is consulted about, and which of them."""

    hook: HookKind
    tool: Annotated[str, Meta(min_length=1)] = ""
    match: InputMatch = InputMatch()
    required: bool = False

    @property
    def matcher(self) -> HookMatch:
        """The match of this hook."""
        contains, equals = self.match.input_contains, self.match.input_equals
        return HookMatch(self.tool or None, contains or None, None if equals is UNSET else equals)


class Requirements(ManifestTable, frozen=True, kw_only=True):
    """What the extension needs to start."""

    bins: tuple[Annotated[str, Meta(pattern=PROGRAM)], ...] = ()
    env: tuple[Variable, ...] = ()


class ConfigType(StrEnum):
    """The type of a key's value."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"


class ConfigEntry(ManifestTable, frozen=True, kw_only=True):
    """One key of the configuration: its type, where its value comes from, and its purpose."""

    type: ConfigType
    description: Description = ""
    default: str | bool | int | float | UnsetType = UNSET
    required: bool = False
    secret: bool = False
    env: Variable = ""
    choices: Annotated[tuple[str, ...], Meta(min_length=1)] = ()


class Environment(ManifestTable, frozen=True, kw_only=True, rename={"passed": "pass"}):
    """The variables that the process gets besides the base list: inherited from the host's, or set."""

    passed: tuple[Variable, ...] = ()
    set: dict[Variable, ArgumentText] = {}


class RestartOverrides(ManifestTable, frozen=True, kw_only=True):
    """What happens when the process ends by itself, as far as the extension sets it."""

    strategy: RestartStrategy | UnsetType = UNSET
    most: Annotated[int, Meta(ge=0, le=1000)] | UnsetType = UNSET
    window: Seconds | UnsetType = UNSET
    delay: Seconds | UnsetType = UNSET
    longest_delay: Seconds | UnsetType = UNSET
    healthy_after: Seconds | UnsetType = UNSET

    def apply_to(self, policy: RestartPolicy) -> RestartPolicy:
        """Returns the policy with these overrides."""
        return replace(policy, **set_members(self))


class LimitOverrides(ManifestTable, frozen=True, kw_only=True):
    """Other values for limits, as far as the extension requests them."""

    frame: Count | UnsetType = UNSET
    nodes: Count | UnsetType = UNSET
    depth: Count | UnsetType = UNSET
    batch: Count | UnsetType = UNSET
    inbound_requests: Count | UnsetType = UNSET
    inbound_bytes: Count | UnsetType = UNSET
    outbound_calls: Count | UnsetType = UNSET
    call_timeout: Seconds | UnsetType = UNSET
    send_queue: Count | UnsetType = UNSET
    stream_events: Count | UnsetType = UNSET
    stream_bytes: Count | UnsetType = UNSET
    message_rate: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    message_burst: Count | UnsetType = UNSET
    handshake: Seconds | UnsetType = UNSET
    stdin_grace: Seconds | UnsetType = UNSET
    term_grace: Seconds | UnsetType = UNSET
    stderr_tail: Count | UnsetType = UNSET
    stderr_rate: Count | UnsetType = UNSET
    stderr_lines: Count | UnsetType = UNSET
    hook_output: Count | UnsetType = UNSET
    memory_records: Count | UnsetType = UNSET
    memory_bytes: Count | UnsetType = UNSET
    config_keys: Count | UnsetType = UNSET
    config_bytes: Count | UnsetType = UNSET
    config_subscriptions: Count | UnsetType = UNSET

    def apply_to(self, limits: Limits) -> Limits:
        """Returns the limits with these overrides."""
        return replace(limits, **set_members(self))

    def clamp(self, most: LimitOverrides) -> LimitOverrides:
        """Returns these overrides, cut down to the allowed maximum."""
        requested, bounds = set_members(self), set_members(most)
        return LimitOverrides(**{name: min(value, bounds.get(name, value)) for name, value in requested.items()})


class SettingsField(ManifestTable, frozen=True, kw_only=True):
    """One key of the configuration as it is shown and changed."""

    key: ConfigKey
    label: NonBlankText
    editor: Literal["text", "cycler", "picker", "custom"] = "text"
    options: tuple[str, ...] = ()
    help: str = ""
    numeric: bool = False


class SettingsCategory(ManifestTable, frozen=True, kw_only=True):
    """A page of the host's settings."""

    id: str
    label: NonBlankText
    fields: tuple[SettingsField, ...]


class SidecarEntry(ManifestTable, frozen=True, kw_only=True):
    """A long-running program beside the extension, with a channel of its own."""

    command: Command
    protocol: Annotated[int, Meta(ge=2)] = 2
    label: NonBlankText = ""


class Manifest(ManifestTable, frozen=True, kw_only=True):
    """All that an extension declares before it runs."""

    manifest: Literal[1] = FORMAT
    id: Id
    version: Annotated[str, Meta(pattern=VERSION, max_length=64)]
    name: Annotated[str, Meta(min_length=1, max_length=64)] = ""
    description: Description = ""
    authors: tuple[str, ...] = ()
    license: str = ""
    homepage: str = ""
    command: Command
    dialect: Annotated[str, Meta(min_length=1)] = "native"
    permissions: tuple[Permission, ...] = ()
    capabilities: tuple[DeclaredCapability, ...] = ()
    commands: tuple[CommandEntry, ...] = ()
    hooks: tuple[HookEntry, ...] = ()
    requires: Requirements = Requirements()
    config: dict[ConfigKey, ConfigEntry] = {}
    environment: Environment = Environment()
    restart: RestartOverrides = RestartOverrides()
    limits: LimitOverrides = LimitOverrides()
    after: tuple[Id, ...] = ()
    settings: tuple[SettingsCategory, ...] = ()
    sidecar: SidecarEntry | UnsetType = UNSET
    mcp_servers: dict[ServerName, dict[str, Any]] = {}
    x: dict[str, Any] = {}


def set_members(table: Struct) -> dict[str, Any]:
    """Returns the members that are set in a table."""
    return {name: value for name, value in msgspec.structs.asdict(table).items() if value is not UNSET}


# -- reading


class FoundExtension(Struct, frozen=True, kw_only=True):
    """An extension that a reader has found, with more than its manifest.

    `extra` is what a `Manifest` cannot hold, in a class of the dialect's. `folder` is where its files are, if not in
    the folder of the file that was read; it `owns_folder` if that is not the project's. `path` is its own manifest that
    a list names: it is not read again. `files` are its own in a folder that it shares with others; by default, those
    that its command names. `cwd` is its requested working directory. `declared` is all that it offers, if known before
    it runs. `unused` are the members of its file that becket does not use. Paths are absolute."""

    manifest: Manifest
    extra: Any = None
    folder: str | None = None
    owns_folder: bool = False
    path: str | None = None
    files: tuple[str, ...] | None = None
    cwd: str | None = None
    declared: Capabilities | None = None
    unused: tuple[Problem, ...] = ()


class SearchFolder(Struct, frozen=True, kw_only=True):
    """A further folder to search for extensions: so deep, and without these."""

    folder: str
    depth: int = 1
    ignore: tuple[str, ...] = ()


class ExtensionList(Struct, frozen=True, kw_only=True):
    """A file that lists several extensions. An invalid one is a problem, and the others are used.

    `disabled` are ids that the file turns off, of its own and of those of its dialect in the same root; `only`, if set,
    are all those that it allows of them."""

    extensions: tuple[FoundExtension, ...] = ()
    problems: tuple[Problem, ...] = ()
    search_folders: tuple[SearchFolder, ...] = ()
    disabled: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None


class ScopedFiles:
    """The files that a list may name: small ones, in the root that the list itself was found in."""

    def __init__(self, folder: str, root: str, *, limit: int = DEFAULT_LIMITS.manifest) -> None:
        self.folder = folder
        self.root = root
        self._limit = limit

    def find(self, name: str) -> str:
        """Returns the absolute path, free of links, of a name in a list, which is relative to the list's folder.

        Raises:
            ManifestError: it leads out of the root, or holds a zero byte.
        """
        path = os.path.join(self.folder, name)
        try:
            real = os.path.realpath(path)
        except ValueError as error:
            raise ManifestError(quote_path(path), [("", f"cannot be read: {error}")]) from error
        if not is_below(real, self.root):
            raise ManifestError(quote_path(path), [("", "leads out of the root of its list")])
        return real

    def read(self, name: str) -> bytes:
        """Returns the content of a file that a list names.

        Raises:
            ManifestError: it is outside the root, is missing, is not a regular file, or is too large.
        """
        path = self.find(name)
        try:
            return load_bytes(path, self._limit, follow_links=False)
        except BadFile as error:
            raise ManifestError(error.path, error.problems) from error


class ManifestReader:
    """One format: where the extensions of a system are, and how their files are read. Subclass it for another system,
    and override what that system has.

    `file_names` are paths below the folder of an extension, the preferred one first: a folder with one belongs to that
    extension with all that is in it. `list_names` are paths of files that list extensions; the folder then belongs to
    none of them, and is searched further. `prefixes` begin the names of programs that are extensions without any file.
    `bundle_table` is the table of any manifest in which an extension bundles others of this system; a file of
    `list_names` beside a manifest stands for that table.

    A reader never runs or writes anything, and checks what it returns, the id above all (`normalize_id`)."""

    dialect: str = "native"
    file_names: tuple[str, ...] = ()
    list_names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    bundle_table: str = ""

    def read(self, data: bytes, path: str) -> Manifest | FoundExtension | None:
        """Returns the content of a manifest; None if it is not an extension. `path` is absolute.

        Raises:
            ManifestError: it cannot be used; all problems, each with its JSON pointer.
        """
        raise NotImplementedError

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions that a file lists. `path` is absolute.

        Raises:
            ManifestError: nothing in it can be used; all problems, each with its JSON pointer.
        """
        raise NotImplementedError

    def read_program(self, path: str) -> Manifest | FoundExtension | None:
        """Returns the extension of a program, by its name; None if it is not one. `path` is an absolute path of an
        executable file.

        Raises:
            ManifestError: it cannot be used.
        """
        raise NotImplementedError

    def read_bundle(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Returns the table that a file beside a manifest stands for. Raises what `msgspec` raises."""
        raise NotImplementedError

    def list_bundle(self, table: Mapping[str, Any], prefix: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions of a table in a manifest; their ids begin with `prefix`."""
        raise NotImplementedError

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem; empty if the problem says it all."""
        return ""


def normalize_id(name: str) -> str:
    """Returns the name as an id, with invalid characters replaced or removed; empty if nothing is left."""
    letters = "".join(letter if letter in ID_LETTERS else "-" for letter in name.lower())
    return re.sub(r"\.{2,}", ".", letters).lstrip("._-")[:64]


def is_id(text: str) -> bool:
    """Returns whether a text may name an extension, and its data folder."""
    return re.match(ID, text) is not None


def is_below(path: str, root: str) -> bool:
    """Returns whether a path is the root or inside it; both without links. `data-evil` is not inside `data`."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def list_named_files(folder: str, command: Sequence[str]) -> Iterator[str]:
    """Yields the files in a folder that the arguments of a command name, and the targets of links among them."""
    for word in command:
        path = os.path.normpath(os.path.join(folder, word))
        if is_below(path, folder) and os.path.isfile(path):
            yield path
            real = os.path.realpath(path)
            if real != path and is_below(real, folder):
                yield real


class BecketToml(ManifestReader):
    """The reader of `becket.toml`."""

    file_names = (FILE_NAME,)

    def read(self, data: bytes, path: str) -> Manifest:
        """Returns the content of the file.

        Raises:
            ManifestError: it cannot be used; all problems, each with its JSON pointer.
        """
        return parse_manifest(parse_table(data, path), path)

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem of the file."""
        return hint_for(problem)


def parse_table(data: bytes, path: str) -> dict[str, Any]:
    """Returns the unchecked content of a manifest in TOML.

    Raises:
        ManifestError: it is not TOML.
    """
    try:
        return parse_toml(data, path)
    except BadFile as error:
        raise ManifestError(error.path, error.problems) from error


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Returns the manifest in this `becket.toml`.

    Raises:
        ManifestError: it cannot be read or used; all problems, each with its JSON pointer.
    """
    try:
        data = load_bytes(path)
    except BadFile as error:
        raise ManifestError(error.path, error.problems) from error
    return BecketToml().read(data, os.fspath(path))


def parse_manifest(table: dict[str, Any], path: str) -> Manifest:
    """Returns the manifest that a table holds; `path` is for the message.

    Raises:
        ManifestError: it breaks rules; all problems, each with its JSON pointer.
    """
    try:
        manifest = msgspec.convert(table, Manifest)
    except msgspec.ValidationError as error:
        problems = find_format_problems(table)
        problems = problems or [
            *explain_patterns(find_problems(table, Manifest)),
            *find_rule_problems(table),
            *find_misspellings(table),
        ]
        raise ManifestError(quote_path(path), problems) from error
    problems = [*find_rule_problems(table)]
    if problems:
        raise ManifestError(quote_path(path), [*problems, *find_misspellings(table)])
    return manifest


def find_format_problems(table: dict[str, Any]) -> list[Problem]:
    """Returns that the version of the format is another one: then nothing else can be checked."""
    given = table.get("manifest", FORMAT)
    if not isinstance(given, int) or isinstance(given, bool) or given == FORMAT:
        return []
    return [("/manifest", f"is version {given} of the format, and this host reads version {FORMAT}")]


def explain_patterns(problems: list[Problem]) -> list[Problem]:
    """Returns the problems with a sentence in the place of each pattern that a text does not match."""
    return [
        (pointer, PATTERN_MESSAGES.get(message.removeprefix("is no key: "), message)) for pointer, message in problems
    ]


PATTERN_MESSAGES: Final = {
    truncate(f"expected `str` matching regex {pattern!r}"): sentence
    for pattern, sentence in {
        ID: "is no id: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, no two dots together",
        VERSION: "is no semantic version such as `1.2.0`",
        ARGUMENT: "must not hold a zero byte",
        PERMISSION: "is no name of a permission such as `memory.read`",
        PROGRAM: "is no name of a program: it must not be empty or hold a slash",
        KEY: "is no key: it must not be empty or hold dots, slashes, white space or control characters",
        VARIABLE: "is no name of a variable",
        SERVER: "is no name of a server: 1 to 32 of `a-z 0-9 _ -`, the first a letter",
        TEXT: "must not be blank",
    }.items()
}


# -- rules beyond types


def find_rule_problems(table: dict[str, Any]) -> Iterator[Problem]:
    """Yields the rule violations of a table of any shape; members of a wrong type are skipped."""
    yield from find_permission_problems(table.get("permissions"), "/permissions")
    yield from find_duplicates(table.get("permissions"), "/permissions")
    yield from find_duplicates(table.get("after"), "/after")
    for pointer, entry in tables_of(table.get("capabilities"), "/capabilities"):
        yield from find_capability_problems(entry, pointer)
    for pointer, entry in tables_of(table.get("commands"), "/commands"):
        yield from find_name_problems(entry.get("name"), f"{pointer}/name")
    for pointer, entry in tables_of(table.get("settings"), "/settings"):
        yield from find_name_problems(entry.get("id"), f"{pointer}/id")
    for pointer, entry in tables_of(table.get("hooks"), "/hooks"):
        yield from find_hook_problems(entry, pointer)
    for pointer, entry in tables_of(table.get("config"), "/config"):
        yield from find_config_problems(entry, pointer)


def find_misspellings(table: dict[str, Any]) -> Iterator[Problem]:
    """Yields near misses of names that a host checks later, so that all errors are reported together.

    Alone they are no problem of a manifest, since a host may have permissions and dialects of its own."""
    for place, name in texts_of(table.get("permissions"), "/permissions"):
        if name not in PERMISSIONS | RESERVED_PERMISSIONS and did_you_mean(name, PERMISSIONS):
            yield place, f"is no permission: {truncate(name)}"
    dialect = table.get("dialect")
    if isinstance(dialect, str) and dialect not in DIALECTS and did_you_mean(dialect, DIALECTS):
        yield "/dialect", f"is no dialect: {truncate(dialect)}"


def tables_of(value: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the tables in an array or in a table, each with its pointer."""
    parts: Iterable[tuple[Any, Any]] = ()
    if is_object(value):
        parts = value.items()
    elif is_array(value):
        parts = enumerate(value)
    return ((join_pointer(pointer, str(name)), part) for name, part in parts if is_object(part))


def texts_of(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    elements: Iterable[Any] = value if is_array(value) else ()
    return ((f"{pointer}/{index}", part) for index, part in enumerate(elements) if isinstance(part, str))


def find_permission_problems(value: Any, pointer: str) -> Iterator[Problem]:
    for place, name in texts_of(value, pointer):
        if name in RESERVED_PERMISSIONS:
            yield place, f"is reserved and never granted: {name}"


def find_duplicates(value: Any, pointer: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, text in texts_of(value, pointer):
        if text in seen:
            yield place, f"stands here twice: {truncate(text)}"
        seen.add(text)


def find_capability_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    for name in ("kind", "name"):
        if isinstance(text := entry.get(name), str) and not strip_whitespace(text):
            yield f"{pointer}/{name}", "must not be blank"
    for place, name in texts_of(entry.get("permissions"), f"{pointer}/permissions"):
        if name not in PERMISSIONS:
            yield place, f"is no permission: {truncate(name)}"


def find_name_problems(name: Any, pointer: str) -> Iterator[Problem]:
    problem = find_id_problem(strip_whitespace(name)) if isinstance(name, str) else None
    if problem is not None:
        yield pointer, problem.sentence


def find_hook_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    hook, tool = entry.get("hook"), entry.get("tool")
    if isinstance(hook, str) and hook in HOOKS and tool is not None:
        problem = find_hook_problem(hook, HookMatch(tool="any"))
        if problem is not None:
            yield f"{pointer}/tool", problem
    if isinstance(hook, str) and hook in HOOKS and entry.get("required") is True:
        problem = find_hook_problem(hook, required=True)
        if problem is not None:
            yield f"{pointer}/required", problem


CONFIG_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    ConfigType.STRING: (str,),
    ConfigType.INTEGER: (int,),
    ConfigType.NUMBER: (int, float),
    ConfigType.BOOLEAN: (bool,),
}


def find_config_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    kind = entry.get("type")
    if "default" in entry:
        if entry.get("secret") is True:
            yield f"{pointer}/default", "a secret has no default"
        elif (
            isinstance(kind, str)
            and kind in CONFIG_PYTHON_TYPES
            and type(entry["default"]) not in CONFIG_PYTHON_TYPES[kind]
        ):  # True is an int
            yield f"{pointer}/default", f"is not of the type `{kind}`"
    if "choices" in entry and isinstance(kind, str) and kind in CONFIG_PYTHON_TYPES and kind != ConfigType.STRING:
        yield f"{pointer}/choices", "only a string has choices"


# -- hints


def hint_for(problem: Problem) -> str:
    """Returns what to do about a problem of a `becket.toml`, if that is more than the problem itself says."""
    pointer, message = problem
    if message == "is unknown":
        return hint_for_unknown(pointer.rpartition("/")[2])
    if (misspelt := MISSPELT.fullmatch(message)) and (meant := did_you_mean(misspelt[misspelt.lastindex or 0], VALUES)):
        return meant
    if pointer == "/manifest":
        return "get a version of the extension and of the host that fit together"
    if pointer == "/command" and "got `str`" in message:
        return 'write a list of the program and its arguments: `["python3", "notes.py"]`; there is no shell'
    return HINTS.get(pointer, "")


HINTS: Final = {
    "/id": "give it an id such as `acme.notes`",
    "/version": 'give it a version: `version = "0.1.0"`',
    "/command": 'set how it is started: `command = ["python3", "notes.py"]`',
}


# Values that are one of a few, and how their problems name an invalid one.
VALUES: Final = (*HookKind, *ConfigType, *RestartStrategy, *PERMISSIONS, *DIALECTS)
MISSPELT: Final = re.compile(r"invalid enum value '(.*)'|is no (?:permission|dialect): (.*)")


def hint_for_unknown(name: str) -> str:
    if name in MEMBER_TABLES:
        return f"`{name}` belongs to {MEMBER_TABLES[name]}"
    nearest = find_nearest(name, MEMBER_TABLES)
    return f"did you mean `{nearest}` of {MEMBER_TABLES[nearest]}?" if nearest else "put your own members under `[x]`"


def build_member_tables() -> dict[str, str]:
    """Returns for each name of a member the table that it belongs to."""
    tables: dict[str, type[Struct]] = {
        "the manifest itself": Manifest,
        "`[requires]`": Requirements,
        "`[environment]`": Environment,
        "`[restart]`": RestartOverrides,
        "`[limits]`": LimitOverrides,
        "`[sidecar]`": SidecarEntry,
        "an entry of `[config]`": ConfigEntry,
        "an entry of `[[hooks]]`": HookEntry,
        "`match` of an entry of `[[hooks]]`": InputMatch,
        "an entry of `[[commands]]`": CommandEntry,
        "an entry of `[[settings]]`": SettingsCategory,
        "an entry of `fields` of `[[settings]]`": SettingsField,
    }
    homes: dict[str, str] = {}
    for home, table in tables.items():
        for name in table.__struct_encode_fields__:
            homes.setdefault(name, home)
    return homes


MEMBER_TABLES: Final = build_member_tables()
