"""cigen message types, in the field order of `schemas/cigen.proto`.

The protobuf messages are built from these classes: field numbers are the positions of the members, from 1 without gaps.
A test compares them with the file. A member that has its default value is not sent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

__all__ = [
    "CacheDefinition",
    "CigenDiagnostic",
    "CigenHello",
    "CigenMessage",
    "CigenOutputConfig",
    "CigenResource",
    "CigenSchema",
    "CommandDefinition",
    "CommandParameter",
    "CustomStep",
    "Dependency",
    "DependencyType",
    "Fragment",
    "GenerateRequest",
    "GenerateResult",
    "GitInfo",
    "JobDefinition",
    "Level",
    "MatrixRow",
    "MatrixValue",
    "MergeStrategy",
    "PackageSpec",
    "PlanRequest",
    "PlanResult",
    "PluginInfo",
    "ProjectConfig",
    "RepoSnapshot",
    "ResourceType",
    "RestoreCacheStep",
    "RunStep",
    "RunnerDefinition",
    "SaveCacheStep",
    "Signed",
    "SkipConfig",
    "SourceLocation",
    "Step",
    "StringList",
    "Unsigned",
    "UsesStep",
    "WorkflowCondition",
    "WorkflowConditionKind",
    "WorkflowDefinition",
]

Unsigned = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Signed = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
StringMap = dict[str, str]


PROTO_NAMES = {
    "CigenDiagnostic": "Diagnostic",
    "CigenHello": "Hello",
    "CigenOutputConfig": "OutputConfig",
    "CigenResource": "Resource",
}
"""Classes whose message has another name in `cigen.proto`."""


def proto_name(kind: type) -> str:
    """Returns the name of a message in `cigen.proto`."""
    return PROTO_NAMES.get(kind.__name__, kind.__name__)


class CigenMessage(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base class of all messages. Rejects unknown members."""


# -- handshake


class CigenHello(CigenMessage, frozen=True):
    """The core's first message. `env` are environment variables for the plugin."""

    core_protocol: Unsigned = 0
    core_version: str = ""
    env: StringMap = {}


class PluginInfo(CigenMessage, frozen=True):
    """Describes a plugin. Its `name` is its id: `provider/github`."""

    name: str = ""
    version: str = ""
    protocol: Unsigned = 0
    capabilities: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    conflicts_with: tuple[str, ...] = ()
    metadata: StringMap = {}

    @property
    def target(self) -> str:
        """The target that the plugin generates for: the part of its name after the slash."""
        return self.name.partition("/")[2] or self.name


# -- diagnostics


class Level(StrEnum):
    """Severity of a diagnostic. One error ends the generation."""

    UNSPECIFIED = "unspecified"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class SourceLocation(CigenMessage, frozen=True):
    """A position in a file."""

    file: str = ""
    line: Unsigned = 0
    column: Unsigned = 0
    snippet: str = ""


class CigenDiagnostic(CigenMessage, frozen=True):
    """A plugin's remark about its input. Plugins report errors only this way."""

    level: Level = Level.UNSPECIFIED
    code: str = ""
    title: str = ""
    message: str = ""
    fix_hint: str = ""
    loc: SourceLocation | None = None


def find_errors(diagnostics: tuple[CigenDiagnostic, ...]) -> tuple[CigenDiagnostic, ...]:
    return tuple(one for one in diagnostics if one.level is Level.ERROR)


# -- configuration of a project


class ProjectConfig(CigenMessage, frozen=True):
    """General settings of the project."""

    name: str = ""
    default_runner: str = ""


class RunStep(CigenMessage, frozen=True, rename={"condition": "if"}):
    """Runs a command."""

    name: str = ""
    command: str = ""
    env: StringMap = {}
    condition: str = ""


class UsesStep(CigenMessage, frozen=True, rename={"inputs": "with", "condition": "if"}):
    """Uses a module."""

    name: str = ""
    module: str = ""
    inputs: StringMap = {}
    condition: str = ""


class RestoreCacheStep(CigenMessage, frozen=True):
    """Restores files from a cache."""

    name: str = ""
    key: str = ""
    keys: tuple[str, ...] = ()
    restore_keys: tuple[str, ...] = ()
    extra: StringMap = {}


class SaveCacheStep(CigenMessage, frozen=True):
    """Saves files to a cache."""

    name: str = ""
    key: str = ""
    paths: tuple[str, ...] = ()
    extra: StringMap = {}


class CustomStep(CigenMessage, frozen=True):
    """Any other step, as its YAML source."""

    kind: str = ""
    yaml: str = ""


class Step(CigenMessage, frozen=True):
    """One step of a job; at most one member is set."""

    is_one_of: ClassVar[bool] = True

    run: RunStep | None = None
    uses: UsesStep | None = None
    restore_cache: RestoreCacheStep | None = None
    save_cache: SaveCacheStep | None = None
    custom: CustomStep | None = None


class MatrixValue(CigenMessage, frozen=True):
    """The values along one dimension of a matrix."""

    values: tuple[str, ...] = ()


class MatrixRow(CigenMessage, frozen=True):
    """One row of an explicit matrix."""

    values: StringMap = {}


class StringList(CigenMessage, frozen=True):
    """A list of strings."""

    values: tuple[str, ...] = ()


class SkipConfig(CigenMessage, frozen=True):
    """Conditions under which a job is skipped."""

    paths_unmodified: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    branch: tuple[str, ...] = ()


class PackageSpec(CigenMessage, frozen=True):
    """A package manager that a job needs."""

    name: str = ""
    manager: str = ""
    path: str = ""
    version: str = ""
    extra: StringMap = {}


class JobDefinition(CigenMessage, frozen=True):
    """One job."""

    id: str = ""
    needs: tuple[str, ...] = ()
    matrix: dict[str, MatrixValue] = {}
    packages: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    skip_if: SkipConfig | None = None
    runner: str = ""
    env: StringMap = {}
    image: str = ""
    workflow: str = ""
    checkout: StringMap = {}
    extra: StringMap = {}
    source_files: tuple[str, ...] = ()
    package_specs: tuple[PackageSpec, ...] = ()
    services: tuple[str, ...] = ()
    matrix_rows: tuple[MatrixRow, ...] = ()
    stage: str = ""


class CacheDefinition(CigenMessage, frozen=True):
    """The files of a cache, and the parts of its key."""

    paths: tuple[str, ...] = ()
    key_parts: tuple[str, ...] = ()
    backend: str = ""


class RunnerDefinition(CigenMessage, frozen=True):
    """A class of machines."""

    provider_config: StringMap = {}


class CigenOutputConfig(CigenMessage, frozen=True):
    """An output file."""

    provider: str = ""
    path: str = ""
    description: str = ""


class WorkflowConditionKind(StrEnum):
    """What a condition tests."""

    UNSPECIFIED = "unspecified"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    ENV = "env"
    EXPRESSION = "expression"


class WorkflowCondition(CigenMessage, frozen=True):
    """A condition under which a workflow runs."""

    kind: WorkflowConditionKind = WorkflowConditionKind.UNSPECIFIED
    key: str = ""
    equals_yaml: str = ""
    provider: str = ""
    expression: str = ""


class WorkflowDefinition(CigenMessage, frozen=True):
    """A group of jobs."""

    id: str = ""
    yaml: str = ""
    run_when: tuple[WorkflowCondition, ...] = ()


class CommandParameter(CigenMessage, frozen=True):
    """A parameter of a command."""

    type: str = ""
    description: str = ""
    default_yaml: str = ""
    extra: StringMap = {}


class CommandDefinition(CigenMessage, frozen=True):
    """A named, reusable list of steps."""

    description: str = ""
    parameters: dict[str, CommandParameter] = {}
    steps: tuple[Step, ...] = ()
    extra: StringMap = {}


class CigenSchema(CigenMessage, frozen=True):
    """The whole configuration of a project. Values of arbitrary shape are sent as YAML strings."""

    version: str = ""
    project: ProjectConfig | None = None
    variables: StringMap = {}
    jobs: tuple[JobDefinition, ...] = ()
    caches: dict[str, CacheDefinition] = {}
    runners: dict[str, RunnerDefinition] = {}
    outputs: tuple[CigenOutputConfig, ...] = ()
    workflows: tuple[WorkflowDefinition, ...] = ()
    source_file_groups: dict[str, StringList] = {}
    commands: dict[str, CommandDefinition] = {}
    provider_config: StringMap = {}
    raw_config_yaml: str = ""


class GitInfo(CigenMessage, frozen=True):
    """The state of a repository."""

    branch: str = ""
    commit_sha: str = ""
    is_dirty: bool = False
    tags: tuple[str, ...] = ()


class RepoSnapshot(CigenMessage, frozen=True):
    """The files of a project."""

    root_path: str = ""
    files: tuple[str, ...] = ()
    git: GitInfo | None = None
    file_cache: dict[str, bytes] = {}


# -- planning


class ResourceType(StrEnum):
    """Type of a resource."""

    UNSPECIFIED = "unspecified"
    JOB = "job"
    STEP = "step"
    CACHE = "cache"
    SECRET = "secret"
    ARTIFACT = "artifact"
    SERVICE = "service"


class CigenResource(CigenMessage, frozen=True):
    """A resource that a plugin proposes."""

    id: str = ""
    type: ResourceType = ResourceType.UNSPECIFIED
    attributes: StringMap = {}
    metadata: StringMap = {}


class DependencyType(StrEnum):
    """Type of a dependency."""

    UNSPECIFIED = "unspecified"
    REQUIRES = "requires"
    OPTIONAL = "optional"
    CONFLICTS = "conflicts"


class Dependency(CigenMessage, frozen=True, rename={"source": "from", "target": "to"}):
    """A dependency between two resources, named by their ids."""

    source: str = ""
    target: str = ""
    type: DependencyType = DependencyType.UNSPECIFIED


class PlanRequest(CigenMessage, frozen=True):
    """Requests a plan from a plugin. The current core sets only `schema`."""

    capabilities: tuple[str, ...] = ()
    facts: StringMap = {}
    schema: CigenSchema | None = None
    flags: StringMap = {}
    repo: RepoSnapshot | None = None


class PlanResult(CigenMessage, frozen=True):
    """The plan of a plugin."""

    resources: tuple[CigenResource, ...] = ()
    deps: tuple[Dependency, ...] = ()
    diagnostics: tuple[CigenDiagnostic, ...] = ()

    @property
    def errors(self) -> tuple[CigenDiagnostic, ...]:
        """Diagnostics that forbid the generation."""
        return find_errors(self.diagnostics)


# -- generating


class MergeStrategy(StrEnum):
    """How a fragment is merged into its file."""

    UNSPECIFIED = "unspecified"
    REPLACE = "replace"
    MERGE = "merge"
    APPEND = "append"


class Fragment(CigenMessage, frozen=True):
    """A file or a part of one. Appended fragments are sorted by `order`."""

    path: str = ""
    content: str = ""
    strategy: MergeStrategy = MergeStrategy.UNSPECIFIED
    order: Signed = 0
    format: str = ""


class GenerateRequest(CigenMessage, frozen=True):
    """Requests the files of a plugin. `graph` is the result of the plan."""

    target: str = ""
    graph: tuple[CigenResource, ...] = ()
    work_signatures: dict[str, bytes] = {}
    schema: CigenSchema | None = None
    facts: StringMap = {}


class GenerateResult(CigenMessage, frozen=True):
    """The files that a plugin has generated."""

    fragments: tuple[Fragment, ...] = ()
    diagnostics: tuple[CigenDiagnostic, ...] = ()

    @property
    def errors(self) -> tuple[CigenDiagnostic, ...]:
        """Diagnostics that forbid use of the fragments."""
        return find_errors(self.diagnostics)
