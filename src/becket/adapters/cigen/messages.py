"""cigen message types, in the field order of `schemas/cigen.proto`.

The members stand in the order of their numbers, from 1 on and without a gap: the protobuf messages are made of these
classes, and a test holds them against the file. A member that has its default does not travel.
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
"""Classes whose message has another name in the protocol's own file."""


def proto_name(kind: type) -> str:
    """Returns the name of a message in the protocol's own file."""
    return PROTO_NAMES.get(kind.__name__, kind.__name__)


class CigenMessage(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What all messages have in common: a misspelt member is noticed before anything is sent."""


# -- the first exchange


class CigenHello(CigenMessage, frozen=True):
    """The core's first words. `env` are the variables that it tells the plugin of."""

    core_protocol: Unsigned = 0
    core_version: str = ""
    env: StringMap = {}


class PluginInfo(CigenMessage, frozen=True):
    """What a plugin is. Its `name` is its id: `provider/github`."""

    name: str = ""
    version: str = ""
    protocol: Unsigned = 0
    capabilities: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    conflicts_with: tuple[str, ...] = ()
    metadata: StringMap = {}

    @property
    def target(self) -> str:
        """What the plugin generates for: the part of its name behind the slash."""
        return self.name.partition("/")[2] or self.name


# -- what is wrong


class Level(StrEnum):
    """How bad it is. One error ends the generation."""

    UNSPECIFIED = "unspecified"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class SourceLocation(CigenMessage, frozen=True):
    """Where in a file something stands."""

    file: str = ""
    line: Unsigned = 0
    column: Unsigned = 0
    snippet: str = ""


class CigenDiagnostic(CigenMessage, frozen=True):
    """Something that a plugin has to say about what it was given: there are no other errors."""

    level: Level = Level.UNSPECIFIED
    code: str = ""
    title: str = ""
    message: str = ""
    fix_hint: str = ""
    loc: SourceLocation | None = None


def find_errors(diagnostics: tuple[CigenDiagnostic, ...]) -> tuple[CigenDiagnostic, ...]:
    return tuple(one for one in diagnostics if one.level is Level.ERROR)


# -- what is built: the configuration of a project


class ProjectConfig(CigenMessage, frozen=True):
    """The project."""

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
    """Brings back what a cache holds."""

    name: str = ""
    key: str = ""
    keys: tuple[str, ...] = ()
    restore_keys: tuple[str, ...] = ()
    extra: StringMap = {}


class SaveCacheStep(CigenMessage, frozen=True):
    """Puts files into a cache."""

    name: str = ""
    key: str = ""
    paths: tuple[str, ...] = ()
    extra: StringMap = {}


class CustomStep(CigenMessage, frozen=True):
    """Any other step, as it was written."""

    kind: str = ""
    yaml: str = ""


class Step(CigenMessage, frozen=True):
    """One step of a job: one of its members, or none."""

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
    """One row of a matrix that is written out."""

    values: StringMap = {}


class StringList(CigenMessage, frozen=True):
    """Several texts."""

    values: tuple[str, ...] = ()


class SkipConfig(CigenMessage, frozen=True):
    """When a job is not run."""

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
    """What a cache holds, and under which key."""

    paths: tuple[str, ...] = ()
    key_parts: tuple[str, ...] = ()
    backend: str = ""


class RunnerDefinition(CigenMessage, frozen=True):
    """A class of machines."""

    provider_config: StringMap = {}


class CigenOutputConfig(CigenMessage, frozen=True):
    """A file that is to be written."""

    provider: str = ""
    path: str = ""
    description: str = ""


class WorkflowConditionKind(StrEnum):
    """What a condition looks at."""

    UNSPECIFIED = "unspecified"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    ENV = "env"
    EXPRESSION = "expression"


class WorkflowCondition(CigenMessage, frozen=True):
    """When a workflow runs."""

    kind: WorkflowConditionKind = WorkflowConditionKind.UNSPECIFIED
    key: str = ""
    equals_yaml: str = ""
    provider: str = ""
    expression: str = ""


class WorkflowDefinition(CigenMessage, frozen=True):
    """Several jobs that run together."""

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
    """Steps under a name."""

    description: str = ""
    parameters: dict[str, CommandParameter] = {}
    steps: tuple[Step, ...] = ()
    extra: StringMap = {}


class CigenSchema(CigenMessage, frozen=True):
    """All that a project says of its builds. Values of any shape travel as YAML in a text."""

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
    """What a resource is."""

    UNSPECIFIED = "unspecified"
    JOB = "job"
    STEP = "step"
    CACHE = "cache"
    SECRET = "secret"
    ARTIFACT = "artifact"
    SERVICE = "service"


class CigenResource(CigenMessage, frozen=True):
    """Something that a plugin proposes."""

    id: str = ""
    type: ResourceType = ResourceType.UNSPECIFIED
    attributes: StringMap = {}
    metadata: StringMap = {}


class DependencyType(StrEnum):
    """What one resource has to do with another."""

    UNSPECIFIED = "unspecified"
    REQUIRES = "requires"
    OPTIONAL = "optional"
    CONFLICTS = "conflicts"


class Dependency(CigenMessage, frozen=True, rename={"source": "from", "target": "to"}):
    """Ties two resources by their ids."""

    source: str = ""
    target: str = ""
    type: DependencyType = DependencyType.UNSPECIFIED


class PlanRequest(CigenMessage, frozen=True):
    """Asks a plugin what there is to be built. The core of today gives the schema alone."""

    capabilities: tuple[str, ...] = ()
    facts: StringMap = {}
    schema: CigenSchema | None = None
    flags: StringMap = {}
    repo: RepoSnapshot | None = None


class PlanResult(CigenMessage, frozen=True):
    """What a plugin would build."""

    resources: tuple[CigenResource, ...] = ()
    deps: tuple[Dependency, ...] = ()
    diagnostics: tuple[CigenDiagnostic, ...] = ()

    @property
    def errors(self) -> tuple[CigenDiagnostic, ...]:
        """The diagnostics for which nothing should be generated."""
        return find_errors(self.diagnostics)


# -- generating


class MergeStrategy(StrEnum):
    """How a fragment becomes part of its file."""

    UNSPECIFIED = "unspecified"
    REPLACE = "replace"
    MERGE = "merge"
    APPEND = "append"


class Fragment(CigenMessage, frozen=True):
    """A file, or a part of one. Fragments that are appended stand in their `order`."""

    path: str = ""
    content: str = ""
    strategy: MergeStrategy = MergeStrategy.UNSPECIFIED
    order: Signed = 0
    format: str = ""


class GenerateRequest(CigenMessage, frozen=True):
    """Asks a plugin for its files. `graph` is what came of the plan."""

    target: str = ""
    graph: tuple[CigenResource, ...] = ()
    work_signatures: dict[str, bytes] = {}
    schema: CigenSchema | None = None
    facts: StringMap = {}


class GenerateResult(CigenMessage, frozen=True):
    """What a plugin has generated."""

    fragments: tuple[Fragment, ...] = ()
    diagnostics: tuple[CigenDiagnostic, ...] = ()

    @property
    def errors(self) -> tuple[CigenDiagnostic, ...]:
        """The diagnostics for which the fragments are not to be used."""
        return find_errors(self.diagnostics)
