"""Opens a host with only one extension and its dependencies, for one-shot commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from becket.cli.support.options import HostOptions
from becket.cli.support.output import print_message
from becket.contract.hooks import HOOKS, HookKind
from becket.errors import BecketError, NotDeclared, StoreInUse, StoreUnavailable
from becket.host.diagnostics import Diagnostic, Severity
from becket.host.host import Host
from becket.host.host_config import ExtensionConfig, apply_extension_configs
from becket.host.starting.candidate import Candidate
from becket.host.starting.discovery import DEFAULT_SETTINGS, discover_extensions

if TYPE_CHECKING:
    from becket.host.extension import Extension

__all__ = ["find_required", "open_extension", "open_host", "wait_and_report"]


@asynccontextmanager
async def open_extension(
    options: HostOptions,
    id: str,
    *,
    trace: Path | None = None,
    with_hooks: bool = False,
    command: str | None = None,
) -> AsyncGenerator[tuple[Host, Extension], None]:
    """Starts an extension, waits until it is ready, and stops it after the block. Messages are recorded to `trace`.

    With `with_hooks`, or for a `command` that the host itself runs, starts all extensions that may have tool hooks too,
    and prints why one does not run.

    Raises:
        NotDeclared: the extension was not found.
        ExtensionRefused, StartFailed, HandshakeFailed, ...: the extension does not run.
        StoreUnavailable: the data directory is in use by another host.
    """
    arguments = options.arguments()
    candidates = find_candidates(arguments, arguments.get("extensions") or {})
    needed = find_required(id, candidates.values())
    if not needed:
        raise NotDeclared("becket", "extension", id, sorted(candidates))
    with_hooks = with_hooks or (command is not None and is_run_by_host(candidates[id], command))
    guards = find_guards(candidates.values()) if with_hooks else ()
    needed = needed.union(*(find_required(guard, candidates.values()) for guard in guards))
    more: dict[str, Any] = {"only": needed}
    if trace is not None:
        more["wrap"] = FirstStart(id, trace).wrap
    async with open_host(options, **more) as host:
        extension = await host.ready(id)
        if guards:
            await host.settled()
        print_problems(host, {id, *guards})
        yield host, extension


class FirstStart:
    """Records the first process of an extension; a later one, such as the program of a command, would overwrite it."""

    def __init__(self, id: str, path: Path) -> None:
        self._id = id
        self._path = path
        self._is_recorded = False

    def wrap(self, started: str, command: Sequence[str]) -> Sequence[str]:
        """Returns the command with a recorder in front of it if it is to be recorded."""
        if started != self._id or self._is_recorded:
            return command
        from becket.cli.trace import build_record_command

        self._is_recorded = True
        return build_record_command(self._path, command)


@asynccontextmanager
async def open_host(options: HostOptions, **more: Any) -> AsyncGenerator[Host, None]:
    """Starts a host and closes it after the block; `more` are further arguments of `Host`.

    Raises:
        StoreUnavailable: the data directory is in use by another host.
    """
    host = options.build_host(**more)
    try:
        await host.start()
    except StoreInUse as error:
        hint = "stop it first, or use --no-data"
        raise StoreUnavailable(error.path, error.because, hint) from error
    try:
        yield host
    finally:
        await host.aclose()


async def wait_and_report(host: Host) -> None:
    """Waits until each extension runs or has failed, and prints the problems."""
    for id in host:
        try:
            await host.ready(id)
        except BecketError:
            continue  # reported with the problems
    print_problems(host)


def print_problems(host: Host, ids: Collection[str] | None = None) -> None:
    for problem in host.problems:
        if problem.severity is Severity.NOTE:  # the result of a setting
            continue
        if ids is None or problem.extension in ids:
            print_message(f"{problem.severity}: {problem}")


# -- candidates


def find_candidates(arguments: Mapping[str, Any], configs: Mapping[str, ExtensionConfig]) -> dict[str, Candidate]:
    """Returns the extensions that this host would find; if there are none, prints why."""

    def settle(found: list[Candidate], notes: list[Diagnostic]) -> list[Candidate]:
        return apply_extension_configs(configs, found, notes)

    report = discover_extensions(
        arguments["roots"],
        settings=arguments.get("discovery", DEFAULT_SETTINGS),
        only=arguments.get("only"),
        disabled=arguments["disabled"],
        settle=settle,
    )
    if not report.candidates:
        for diagnostic in report.diagnostics:
            print_message(str(diagnostic))
    return {candidate.id: candidate for candidate in report.candidates}


def is_run_by_host(candidate: Candidate, command: str) -> bool:
    """Returns whether the host, not the extension, runs this command, with tool hooks."""
    return any(one.name == command for one in getattr(candidate.extra, "host_commands", ()))


def find_guards(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Returns the extensions that may have tool hooks, because they request the permission."""
    permission = HOOKS[HookKind.BEFORE_TOOL_CALL].permission
    return tuple(candidate.id for candidate in candidates if permission in candidate.manifest.permissions)


def find_required(id: str, candidates: Iterable[Candidate]) -> frozenset[str]:
    """Returns an extension and all that must run before it; an empty set if it is not a candidate."""
    after = {candidate.id: candidate.manifest.after for candidate in candidates}
    found: set[str] = set()
    to_visit = [id] if id in after else []
    while to_visit:
        one = to_visit.pop()
        if one not in found:
            found.add(one)
            to_visit += after.get(one, ())
    return frozenset(found)
