"""Options shared by commands: builds a `Host` from flags and configuration, and runs it."""

from __future__ import annotations

import functools
import shlex
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

if TYPE_CHECKING:
    from becket.host.command_lines import CommandLines
    from becket.host.data_dir import DataDir
    from becket.host.host import Host
    from becket.host.host_config import HostConfig, LogConfig
    from becket.host.starting.consent_request import AskConsent

__all__ = ["DataDirOptions", "HostOptions", "TerminationRequested", "data_dir_options", "host_options", "run_async"]

T = TypeVar("T")
Command = Callable[..., Any]
ReadAnswer = Callable[[str], Awaitable[str | None]]
DEFAULT_NAME = "becket"
DEFAULT_PROMPT_TIMEOUT = 60.0  # seconds for a person to decide
LOOKING = ("list", "doctor")  # commands that start nothing: consent for one of these runs would have no effect
WORDS = "becket.words"  # key in the click context: the words of the command line
INHERITING = ("cigen", "morphir", "nexo")  # dialects whose own hosts pass their environment on; checked by a test


# -- data directory of a host


class DataDirOptions(Struct, frozen=True, kw_only=True):
    """Options that select a host and its data directory."""

    name: str | None = None
    data: Path | None = None
    config_file: Path | None = None

    def load_config(self) -> HostConfig | None:
        """Returns the configuration file's content, or None without `--config`.

        Raises:
            BadFile: the file is invalid; lists all problems, each with its JSON pointer.
        """
        if self.config_file is None:
            return None
        from becket.host.host_config import load_host_config

        return load_host_config(self.config_file)

    def data_dir(self) -> DataDir:
        """Returns the data directory of the host.

        Raises:
            BadFile: the configuration file is invalid.
            click.UsageError: the configuration disables the data directory.
        """
        from becket.host.data_dir import DataDir, default_data_dir

        config = self.load_config()
        if self.data is not None:
            return DataDir(self.data)
        if config is not None and self.name is None:
            folder = config.data_folder()
            if folder is None:
                raise click.UsageError(f"`data` is false in {self.config_file}: this host has no data directory")
            return DataDir(folder)
        return DataDir(default_data_dir(self.name or DEFAULT_NAME))

    def command_lines(self) -> CommandLines:
        """Returns the command lines for hints, with the options in use."""
        from becket.host.command_lines import CommandLines

        return CommandLines(options=self._data_dir_words())

    def _data_dir_words(self) -> tuple[str, ...]:
        options = (("--config", self.config_file), ("--name", self.name), ("--data", self.data))
        return tuple(word for option, value in options if value is not None for word in (option, str(value)))


# -- options of a host


class HostOptions(DataDirOptions, frozen=True, kw_only=True):
    """All options of a host."""

    roots: tuple[Path, ...] = ()
    no_data: bool = False
    grants: tuple[tuple[str, str], ...] = ()
    yes: bool = False
    only: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    development: bool = False
    inherit_environment: tuple[str, ...] = ()

    def arguments(self, *, read_answer: ReadAnswer | None = None) -> dict[str, Any]:
        """Returns the values for `Host` and its settings; options take precedence over the configuration file.

        On a terminal the user is prompted for consent; a command that draws on the terminal passes `read_answer`.

        Raises:
            BadFile: the configuration file is invalid.
        """
        config = self.load_config()
        arguments: dict[str, Any] = {} if config is None else config.arguments()
        if self.roots or not arguments.get("roots"):
            arguments["roots"] = self.roots or (Path(),)
        if self.name is not None:
            arguments["name"] = self.name
        if self.data is not None or self.no_data:
            arguments["data"] = self.data
        if self.only:
            arguments["only"] = self.only
        arguments["disabled"] = {*arguments.get("disabled", ()), *self.disable}
        arguments["grants"] = self._merge_grants(arguments.get("grants", {}))
        arguments["development"] = self.development or arguments.get("development", False)
        arguments["inherit_environment"] = {*arguments.get("inherit_environment", ()), *self.inherit_environment}
        arguments["ask"] = self._choose_prompt(config, read_answer)
        return arguments

    def log_config(self) -> LogConfig:
        """Returns the log settings."""
        from becket.host.host_config import LogConfig

        config = self.load_config()
        return LogConfig() if config is None else config.log

    def _merge_grants(self, configured: dict[str, Any]) -> dict[str, Any]:
        from becket.permissions.grants import Grants

        merged = dict(configured)
        for id, permission in self.grants:
            before = merged.get(id, Grants())
            merged[id] = Grants(before.allow | {permission}, before.deny)
        return merged

    def _choose_prompt(self, config: HostConfig | None, read_answer: ReadAnswer | None) -> AskConsent | None:
        from becket.cli.support.terminal_prompt import approve_all, build_terminal_prompt, is_interactive

        if self.yes:
            return approve_all
        timeout = DEFAULT_PROMPT_TIMEOUT if config is None else config.ask
        return build_terminal_prompt(timeout, read_answer) if timeout and is_interactive() else None

    def command_lines(self) -> CommandLines:
        """Returns the command lines for hints, with the options in use."""
        from becket.host.command_lines import CommandLines

        config = self.load_config()
        has_data = self.data is not None or self.name is not None or config is None or config.data_folder() is not None
        keeps = has_data and not self.no_data
        options = (*self._data_dir_words(), *(["--no-data"] if self.no_data else []))
        roots = tuple(map(str, self.roots))
        return CommandLines(
            roots=roots, options=options, keeps_consent=keeps, consent="" if keeps else consent_line(roots, options)
        )

    def build_host(self, *, read_answer: ReadAnswer | None = None, **more: Any) -> Host:
        """Returns the host, not started yet: `async with options.build_host() as host`."""
        from becket.host.host import Host
        from becket.host.host_settings import group_arguments

        arguments = self.arguments(read_answer=read_answer)
        arguments["command_lines"] = self.command_lines()
        return Host(**group_arguments({**arguments, **more}))


def consent_line(roots: Sequence[str], options: Sequence[str]) -> str:
    """Returns the current command line with `--yes` added, or `becket run --yes` for a command that starts nothing."""
    ctx = click.get_current_context(silent=True)
    words = [] if ctx is None else [*ctx.meta.get(WORDS, ())]
    if ctx is None or ctx.info_name in LOOKING or ctx.info_name not in words:
        return shlex.join(["becket", "run", "--yes", *roots, *options])
    at = words.index(ctx.info_name) + 1
    return shlex.join(["becket", *words[:at], "--yes", *words[at:]])


if TYPE_CHECKING:
    GrantType = click.ParamType[tuple[str, str]]
else:
    GrantType = click.ParamType  # not generic in older versions


class GrantParam(GrantType):
    """`ID=PERMISSION` on the command line."""

    name = "ID=PERMISSION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Returns the id and the permission."""
        from becket.errors import ReservedPermission, UnknownPermission
        from becket.permissions.names import parse_permission

        id, found, permission = str(value).partition("=")
        if not (id and found):
            self.fail(f"`{value}` is not of the form ID=PERMISSION, such as notes=memory.read", param, ctx)
        try:
            return id, parse_permission(permission)
        except (ReservedPermission, UnknownPermission) as error:
            self.fail(f"{error}; there are: {', '.join(permission_names())}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Completes the permission."""
        id, found, begun = incomplete.partition("=")
        if not found:
            return []
        return [CompletionItem(f"{id}={name}") for name in permission_names() if name.startswith(begun)]


def permission_names() -> list[str]:
    """Returns the names of all permissions, sorted."""
    from becket.permissions.names import PERMISSIONS

    return sorted(PERMISSIONS)


# -- decorators


FOLDER = click.Path(path_type=Path, file_okay=False)
ROOT = click.Path(path_type=Path, file_okay=False, exists=True)
FILE = click.Path(path_type=Path, dir_okay=False)
DATA_DIR_OPTIONS = (
    click.option("--name", metavar="NAME", help="Name of the host; also names its data directory."),
    click.option("--data", type=FOLDER, metavar="PATH", help="Data directory of the host."),
    click.option("--config", "config_file", type=FILE, metavar="FILE", help="Configuration of the host, a TOML file."),
)
HOST_OPTIONS = (
    *DATA_DIR_OPTIONS,
    click.option("--no-data", is_flag=True, help="Keep all data in memory; nothing is saved."),
    click.option(
        "--grant", "grants", type=GrantParam(), multiple=True, help="Grant an extension a permission; repeatable."
    ),
    click.option("--yes", "-y", is_flag=True, help="Consent to everything that extensions request."),
    click.option("--only", multiple=True, metavar="ID", help="Start only this extension; repeatable."),
    click.option("--disable", multiple=True, metavar="ID", help="Do not start this extension; repeatable."),
    click.option("--development", is_flag=True, help="Start also extensions that have changed since consent."),
    click.option(
        "--inherit-environment",
        type=click.Choice(INHERITING),
        multiple=True,
        help="Pass the host's environment to extensions of this dialect, as its own hosts do; repeatable.",
    ),
)
ROOTS = {
    "argument": click.argument("roots", nargs=-1, type=ROOT),
    "option": click.option(
        "--root",
        "-r",
        "roots",
        multiple=True,
        type=ROOT,
        metavar="PATH",
        help="Look for extensions here; repeatable.",
    ),
}


def host_options(*, roots: Literal["argument", "option"] = "option") -> Callable[[Command], Command]:
    """Adds all options of a host to a command, whose function gets one `HostOptions` as its first argument.

    `roots` selects how folders are given: as arguments, or with `--root` if the command has other arguments. The
    default is the current folder."""
    return lambda function: collect_options(HostOptions, (ROOTS[roots], *HOST_OPTIONS))(function)


def data_dir_options(function: Command) -> Command:
    """Adds the options of a data directory to a command, whose function gets one `DataDirOptions` first."""
    return collect_options(DataDirOptions, DATA_DIR_OPTIONS)(function)


def collect_options(
    kind: type[DataDirOptions], options: tuple[Callable[[Command], Command], ...]
) -> Callable[[Command], Command]:
    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def collected(**values: Any) -> Any:
            collected_options = kind(**{name: values.pop(name) for name in kind.__struct_fields__})
            return function(collected_options, **values)

        decorated: Command = collected
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


# -- event loop


class TerminationRequested(Exception):
    """This program received a signal that ends it."""

    def __init__(self, signal: signal.Signals) -> None:
        self.signal = signal
        super().__init__(signal.name)


def run_async(function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Runs an async function and returns its result.

    Raises:
        KeyboardInterrupt: on Ctrl-C, after the function was cancelled and has cleaned up.
        TerminationRequested: on SIGTERM, or SIGHUP unless it is ignored; likewise after cleanup.
    """
    import anyio

    return anyio.run(run_until_signal, function, arguments)


async def run_until_signal(function: Callable[..., Awaitable[T]], arguments: tuple[Any, ...]) -> T:
    import anyio
    from anyio.abc import TaskStatus

    from becket.host.signals import STOP_SIGNALS, without_ignored

    received: list[signal.Signals] = []
    results: list[T] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def receive_signals(*, task_status: TaskStatus[None]) -> None:
            with anyio.open_signal_receiver(*without_ignored(STOP_SIGNALS)) as signals:
                task_status.started()
                async for number in signals:
                    received.append(number)
                    tasks.cancel_scope.cancel()

        await tasks.start(receive_signals)
        try:
            results.append(await function(*arguments))
        except Exception as error:  # raised again below, without an exception group around it
            failures.append(error)
        tasks.cancel_scope.cancel()
    if received:
        raise TerminationRequested(received[0])
    if failures:
        raise failures[0]
    return results[0]
