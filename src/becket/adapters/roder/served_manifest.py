"""Finds the manifest of the extension that runs here and compares it with the extension class.

A Roder host compares the result of its first request with the manifest. So an extension loads this file at the first
request: from `RODER_EXTENSION_MANIFEST`, beside the program, or from the current folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from becket._loggers import extension_logger
from becket._text import quote_path
from becket.adapters.roder.manifest import FILE_NAME, LoadedManifest, RoderManifest
from becket.adapters.roder.messages.events import EVENTS_HANDLE
from becket.adapters.roder.messages.inference import STREAM_TURN
from becket.adapters.roder.messages.services import (
    EventSink,
    InferenceEngine,
    Service,
    SubagentDispatcher,
    TaskExecutor,
    ToolProvider,
    ToolSpec,
    filter_services,
)
from becket.adapters.roder.messages.subagents import SUBAGENTS_DISPATCH
from becket.adapters.roder.messages.tasks import TASKS_EXECUTE
from becket.adapters.roder.messages.tools import TOOLS_CALL
from becket.dialects.link_state import LinkState
from becket.errors import BadFile, Meaning, RpcError

__all__ = [
    "MANIFEST_VARIABLE",
    "ServedManifest",
    "build_default_manifest",
    "check_matches_class",
    "load_manifest_file",
    "load_served_manifest",
]

MANIFEST_VARIABLE: Final = "RODER_EXTENSION_MANIFEST"


class ServedManifest(Struct, eq=False):
    """State of an extension on one connection: its manifest, and the event types sent in each running turn.

    `has_file` is False if no file was found and the manifest was built from the class."""

    loaded: LoadedManifest
    has_file: bool = True
    sent_event_types: dict[str, set[type]] = field(default_factory=dict[str, set[type]])

    @property
    def manifest(self) -> RoderManifest:
        """The manifest itself."""
        return self.loaded.manifest


def load_served_manifest(state: LinkState) -> ServedManifest:
    """Returns the manifest of the running program.

    Raises:
        RpcError: there is a file that cannot be used.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0]
    path = find_manifest_path(os.environ, program, os.getcwd())
    if path is None:
        looked = f"set {MANIFEST_VARIABLE}, or put it beside the program: a host of Roder refuses an extension without"
        extension_logger(state.extension).warning("there is no %s: %s", FILE_NAME, looked)
        return ServedManifest(build_default_manifest(state), has_file=False)
    try:
        return ServedManifest(load_manifest_file(path))
    except BadFile as error:
        raise RpcError(Meaning.INCOMPATIBLE, f"{state.extension}: its manifest cannot be used: {error}") from error


def find_manifest_path(environment: Mapping[str, str], program: str, folder: str) -> str | None:
    """Returns the path of the manifest, or None; a path in the variable is returned even if it does not exist."""
    if environment.get(MANIFEST_VARIABLE):
        return os.path.abspath(environment[MANIFEST_VARIABLE])
    folders = (os.path.dirname(os.path.abspath(program)), folder)
    return next((path for each in folders if os.path.isfile(path := os.path.join(each, FILE_NAME))), None)


def load_manifest_file(path: str) -> LoadedManifest:
    """Returns the manifest in a file.

    Raises:
        BadFile: it cannot be read, or is none. All problems.
    """
    from becket.conversion.files.reader import load_bytes
    from becket.conversion.files.toml import parse_toml
    from becket.conversion.problems import find_problems

    data = load_bytes(path)
    table = parse_toml(data, path)
    try:
        manifest = msgspec.convert(table, RoderManifest)
    except msgspec.ValidationError as error:
        raise BadFile(quote_path(path), find_problems(table, RoderManifest)) from error
    return LoadedManifest.from_bytes(manifest, data, folder=os.path.dirname(path))


def build_default_manifest(state: LinkState) -> LoadedManifest:
    """Returns a manifest built from the class, with the checksum of an empty file."""
    declared = state.capabilities
    tools = tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in declared.tools)
    services: list[Service] = [ToolProvider(state.extension, tools)] if tools else []
    services += (InferenceEngine(provider.id) for provider in declared.providers)
    services += (TaskExecutor(name) for name, _ in state.commands)
    services += [EventSink(state.extension)] if EVENTS_HANDLE.name in state.own_methods else []
    services += [SubagentDispatcher(state.extension)] if SUBAGENTS_DISPATCH.name in state.own_methods else []
    manifest = RoderManifest(
        id=state.extension,
        name=state.extension,
        version=state.version,
        api_version="*",
        provides=tuple(services),
    )
    return LoadedManifest.from_bytes(manifest, b"")


# -- comparison of class and manifest


def check_matches_class(manifest: RoderManifest, state: LinkState) -> None:
    """Raises if the class lacks a service of the manifest, or has one that the manifest does not list."""
    problems = [*find_mismatches(manifest.provides, state)]
    if problems:
        text = f"{state.extension}: {FILE_NAME} and the class of the extension do not agree: {'; '.join(problems)}"
        raise RpcError(Meaning.INCOMPATIBLE, text)


def find_mismatches(provides: tuple[Service, ...], state: LinkState) -> Iterator[str]:
    listed = [tool.name for provider in filter_services(provides, ToolProvider) for tool in provider.tools]
    has = [tool.name for tool in state.capabilities.tools]
    yield from compare_names("tool", listed, has, TOOLS_CALL.name, state)
    listed = [engine.id for engine in filter_services(provides, InferenceEngine)]
    has = [provider.id for provider in state.capabilities.providers]
    yield from compare_names("provider", listed, has, STREAM_TURN.name, state)
    listed = [executor.id for executor in filter_services(provides, TaskExecutor)]
    yield from compare_names("command", listed, [name for name, _ in state.commands], TASKS_EXECUTE.name, state)
    for kind, method in ((EventSink, EVENTS_HANDLE.name), (SubagentDispatcher, SUBAGENTS_DISPATCH.name)):
        ids = [service.id for service in provides if isinstance(service, kind)]
        service = str(kind.__struct_config__.tag)
        if ids and method not in state.own_methods:
            yield f"the file lists the {service} `{ids[0]}`, and the class does not handle `{method}`"
        elif not ids and method in state.own_methods:
            yield f"the class handles `{method}`, and the file lists no {service}"


def compare_names(what: str, listed: list[str], has: list[str], method: str, state: LinkState) -> Iterator[str]:
    """Yields services that only one of them has. A class that handles the method itself has all of the file's."""
    for name in listed:
        if name not in has and method not in state.own_methods:
            yield f"the file lists the {what} `{name}`, which the class has not"
    for name in has:
        if name not in listed:
            yield f"the class has the {what} `{name}`, which the file does not list"
