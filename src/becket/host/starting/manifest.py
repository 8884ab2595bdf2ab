"""The classes of a manifest: what an extension declares before it runs.

They repeat `schemas/manifest.schema.json`; a test compares the two. `becket_toml` reads the file, `manifest_problems`
has the rules beyond types, and readers of other systems (`manifest_formats`) also return a `Manifest`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from becket.contract.argument_checks import check_list
from becket.contract.handshake import DeclaredCapability
from becket.contract.hooks import HookKind, HookMatch
from becket.contract.settings import EditorKind
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.limits import Limits

__all__ = [
    "CONFIG_PYTHON_TYPES",
    "FORMAT",
    "CommandEntry",
    "ConfigEntry",
    "ConfigType",
    "Environment",
    "HookEntry",
    "Id",
    "InputMatch",
    "LimitOverrides",
    "Manifest",
    "Requirements",
    "RestartOverrides",
    "ServerName",
    "SettingsCategory",
    "SettingsField",
    "SidecarEntry",
    "build_id",
    "is_id",
]

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


CONFIG_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    ConfigType.STRING: (str,),
    ConfigType.INTEGER: (int,),
    ConfigType.NUMBER: (int, float),
    ConfigType.BOOLEAN: (bool,),
}


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

    def __post_init__(self) -> None:
        check_list(self.passed, "passed", "variables")


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
    editor: EditorKind = "text"
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


def build_id(name: str) -> str:
    """Returns the name as an id, with invalid characters replaced or removed; empty if nothing is left."""
    letters = "".join(letter if letter in ID_LETTERS else "-" for letter in name.lower())
    return re.sub(r"\.{2,}", ".", letters).lstrip("._-")[:64]


def is_id(text: str) -> bool:
    """Returns whether a text may name an extension, and its data folder."""
    return re.match(ID, text) is not None
