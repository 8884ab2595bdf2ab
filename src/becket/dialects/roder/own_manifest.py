"""The manifest of an extension that is served here: where its file lies, and whether the class does what it says.

A host of Roder knows an extension by its manifest alone, and the answer to its first request repeats it to the letter.
So the file is looked for when the first request comes: where `RODER_EXTENSION_MANIFEST` says, beside the program, or in
the current folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from becket.dialects.phrases import Scene
from becket.dialects.roder.events import EVENTS_HANDLE
from becket.dialects.roder.inference import STREAM_TURN
from becket.dialects.roder.manifest import FILE_NAME, LoadedManifest, RoderManifest
from becket.dialects.roder.services import (
    EventSink,
    InferenceEngine,
    Service,
    SubagentDispatcher,
    TaskExecutor,
    ToolProvider,
    ToolSpec,
    services_of,
)
from becket.dialects.roder.subagents import SUBAGENTS_DISPATCH
from becket.dialects.roder.tasks import TASKS_EXECUTE
from becket.dialects.roder.tools import TOOLS_CALL
from becket.errors import BadFile, Meaning, RpcError

__all__ = ["VARIABLE", "OwnSide", "check_agreement", "find_own_side", "load_own_manifest", "made_up"]

VARIABLE: Final = "RODER_EXTENSION_MANIFEST"


class OwnSide(Struct, eq=False):
    """What an extension knows of itself on one link: its manifest, and what it has told of each answer that runs.

    `has_file` is False where no file was found, and the manifest is what the class comes to."""

    loaded: LoadedManifest
    has_file: bool = True
    told: dict[str, set[type]] = field(default_factory=dict[str, set[type]])

    @property
    def manifest(self) -> RoderManifest:
        """The manifest itself."""
        return self.loaded.manifest


def find_own_side(scene: Scene) -> OwnSide:
    """Returns the manifest of the program that runs.

    Raises:
        RpcError: there is a file that cannot be used.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0]
    path = find_file(os.environ, program, os.getcwd())
    if path is None:
        import logging

        looked = f"set {VARIABLE}, or put it beside the program: a host of Roder refuses an extension without"
        logging.getLogger(f"becket.ext.{scene.extension}").warning("there is no %s: %s", FILE_NAME, looked)
        return OwnSide(made_up(scene), has_file=False)
    try:
        return OwnSide(load_own_manifest(path))
    except BadFile as error:
        raise RpcError(Meaning.INCOMPATIBLE, f"{scene.extension}: its manifest cannot be used: {error}") from error


def find_file(environment: Mapping[str, str], program: str, folder: str) -> str | None:
    """Returns the path of the manifest; None where there is none, unless a variable names one."""
    if environment.get(VARIABLE):
        return os.path.abspath(environment[VARIABLE])
    places = (os.path.dirname(os.path.abspath(program)), folder)
    return next((path for place in places if os.path.isfile(path := os.path.join(place, FILE_NAME))), None)


def load_own_manifest(path: str) -> LoadedManifest:
    """Returns the manifest in a file.

    Raises:
        BadFile: it cannot be read, or is none. All problems.
    """
    from becket.typed.problems import find_problems
    from becket.typed.small_files import read_small_file, show_path
    from becket.typed.toml_files import parse_toml

    data = read_small_file(path)
    table = parse_toml(data, path)
    try:
        manifest = msgspec.convert(table, RoderManifest)
    except msgspec.ValidationError as error:
        raise BadFile(show_path(path), find_problems(table, RoderManifest)) from error
    return LoadedManifest.of(manifest, data, folder=os.path.dirname(path))


def made_up(scene: Scene) -> LoadedManifest:
    """Returns the manifest that the class comes to, with the checksum of an empty file."""
    declared = scene.declared
    tools = tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in declared.tools)
    services: list[Service] = [ToolProvider(scene.extension, tools)] if tools else []
    services += (InferenceEngine(provider.id) for provider in declared.providers)
    services += (TaskExecutor(name) for name, _ in scene.commands)
    services += [EventSink(scene.extension)] if EVENTS_HANDLE.name in scene.own else []
    services += [SubagentDispatcher(scene.extension)] if SUBAGENTS_DISPATCH.name in scene.own else []
    manifest = RoderManifest(
        id=scene.extension,
        name=scene.extension,
        version=scene.version,
        api_version="*",
        provides=tuple(services),
    )
    return LoadedManifest.of(manifest, b"")


# -- whether the class does what the manifest says


def check_agreement(manifest: RoderManifest, scene: Scene) -> None:
    """Raises where a host would call what is not there, or never hear of what is."""
    problems = [*find_differences(manifest.provides, scene)]
    if problems:
        text = f"{scene.extension}: {FILE_NAME} and the class of the extension do not agree: {'; '.join(problems)}"
        raise RpcError(Meaning.INCOMPATIBLE, text)


def find_differences(provides: tuple[Service, ...], scene: Scene) -> Iterator[str]:
    listed = [tool.name for provider in services_of(provides, ToolProvider) for tool in provider.tools]
    has = [tool.name for tool in scene.declared.tools]
    yield from compare("tool", listed, has, TOOLS_CALL.name, scene)
    listed = [engine.id for engine in services_of(provides, InferenceEngine)]
    has = [provider.id for provider in scene.declared.providers]
    yield from compare("provider", listed, has, STREAM_TURN.name, scene)
    listed = [executor.id for executor in services_of(provides, TaskExecutor)]
    yield from compare("command", listed, [name for name, _ in scene.commands], TASKS_EXECUTE.name, scene)
    for kind, method in ((EventSink, EVENTS_HANDLE.name), (SubagentDispatcher, SUBAGENTS_DISPATCH.name)):
        ids = [service.id for service in provides if isinstance(service, kind)]
        service = str(kind.__struct_config__.tag)
        if ids and method not in scene.own:
            yield f"the file lists the {service} `{ids[0]}`, and the class does not handle `{method}`"
        elif not ids and method in scene.own:
            yield f"the class handles `{method}`, and the file lists no {service}"


def compare(what: str, listed: list[str], has: list[str], method: str, scene: Scene) -> Iterator[str]:
    """Yields what only one of them has. A class that serves the method itself has whatever the file lists."""
    for name in listed:
        if name not in has and method not in scene.own:
            yield f"the file lists the {what} `{name}`, which the class has not"
    for name in has:
        if name not in listed:
            yield f"the class has the {what} `{name}`, which the file does not list"
