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
DEFAULT_PROMPT_TIMEOUT = 60.0  # seconds for a person to answer
LOOKING = ("list", "doctor")  # commands that start nothing, so that consent for them alone would be of no use
WORDS = "becket.words"  # under which the context has the words of the command line
INHERITING = ("cigen", "morphir", "nexo")  # dialects whose own hosts pass variables on; a test compares the two


# -- where a host keeps its files


class DataDirOptions(Struct, frozen=True, kw_only=True):
    """Which host is meant."""

    name: str | None = None
    data: Path | None = None
    config_file: Path | None = None

    def load_config(self) -> HostConfig | None:
        """Returns what the configuration file says, None where none was named.

        Raises:
            BadFile: it cannot be used; all problems, each with its JSON pointer.
        """
        if self.config_file is None:
            return None
        from becket.host.host_config import load_host_config

        return load_host_config(self.config_file)

    def data_dir(self) -> DataDir:
        """Returns where this host keeps its files.

        Raises:
            BadFile: the configuration file cannot be used.
            click.UsageError: this host keeps none.
        """
        from becket.host.data_dir import DataDir, default_data_dir

        config = self.load_config()
        if self.data is not None:
            return DataDir(self.data)
        if config is not None and self.name is None:
            folder = config.data_folder()
            if folder is None:
                raise click.UsageError(f"`data` is false in {self.config_file}: this host keeps nothing")
            return DataDir(folder)
        return DataDir(default_data_dir(self.name or DEFAULT_NAME))

    def command_lines(self) -> CommandLines:
        """Returns the commands that hints name, with the options in use."""
        from becket.host.command_lines import CommandLines

        return CommandLines(options=self._place_words())

    def _place_words(self) -> tuple[str, ...]:
        given = (("--config", self.config_file), ("--name", self.name), ("--data", self.data))
        return tuple(word for option, value in given if value is not None for word in (option, str(value)))


# -- what a host is started with


class HostOptions(DataDirOptions, frozen=True, kw_only=True):
    """All that the command line says about a host."""

    roots: tuple[Path, ...] = ()
    no_data: bool = False
    grants: tuple[tuple[str, str], ...] = ()
    yes: bool = False
    only: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    development: bool = False
    inherit_environment: tuple[str, ...] = ()

    def arguments(self, *, read_answer: ReadAnswer | None = None) -> dict[str, Any]:
        """Returns the arguments for `Host`: what the configuration file says, with what was said here above it.

        Somebody at the terminal is asked where there is one, by `read_answer` where the command draws there itself.

        Raises:
            BadFile: the configuration file cannot be used.
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
        """Returns what is to be logged, and how."""
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
        from becket.cli.support.prompt import approve_all, build_terminal_prompt, is_interactive

        if self.yes:
            return approve_all
        patience = DEFAULT_PROMPT_TIMEOUT if config is None else config.ask
        return build_terminal_prompt(patience, read_answer) if patience and is_interactive() else None

    def command_lines(self) -> CommandLines:
        """Returns the commands that hints name, with the options in use."""
        from becket.host.command_lines import CommandLines

        config = self.load_config()
        is_kept = self.data is not None or self.name is not None or config is None or config.data_folder() is not None
        keeps = is_kept and not self.no_data
        options = (*self._place_words(), *(["--no-data"] if self.no_data else []))
        roots = tuple(map(str, self.roots))
        return CommandLines(
            roots=roots, options=options, keeps_consent=keeps, consent="" if keeps else consent_line(roots, options)
        )

    def build_host(self, *, read_answer: ReadAnswer | None = None, **more: Any) -> Host:
        """Returns the host that is meant, not started yet: `async with options.open() as host`."""
        from becket.host.host import Host

        arguments = self.arguments(read_answer=read_answer)
        arguments["command_lines"] = self.command_lines()
        return Host(**{**arguments, **more})


def consent_line(roots: Sequence[str], options: Sequence[str]) -> str:
    """Returns the command line of this program again, with consent; `becket run` where it only looks."""
    ctx = click.get_current_context(silent=True)
    words = [] if ctx is None else [*ctx.meta.get(WORDS, ())]
    if ctx is None or ctx.info_name in LOOKING or ctx.info_name not in words:
        return shlex.join(["becket", "run", "--yes", *roots, *options])
    at = words.index(ctx.info_name) + 1
    return shlex.join(["becket", *words[:at], "--yes", *words[at:]])


if TYPE_CHECKING:
    GrantType = click.ParamType[tuple[str, str]]
else:
    GrantType = click.ParamType  # older ones take no parameter


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
    click.option("--name", metavar="NAME", help="The name of the host; its files are kept under it."),
    click.option("--data", type=FOLDER, metavar="PATH", help="Keep the host's files in this folder."),
    click.option("--config", "config_file", type=FILE, metavar="FILE", help="Take what is said in this TOML file."),
)
HOST_OPTIONS = (
    *DATA_DIR_OPTIONS,
    click.option("--no-data", is_flag=True, help="Keep all in memory: nothing survives the end."),
    click.option(
        "--grant", "grants", type=GrantParam(), multiple=True, help="Give an extension a permission; repeatable."
    ),
    click.option("--yes", "-y", is_flag=True, help="Agree to whatever extensions ask for."),
    click.option("--only", multiple=True, metavar="ID", help="Start only this extension; repeatable."),
    click.option("--disable", multiple=True, metavar="ID", help="Do not start this extension; repeatable."),
    click.option("--development", is_flag=True, help="Start also what has changed since it was agreed to."),
    click.option(
        "--inherit-environment",
        type=click.Choice(INHERITING),
        multiple=True,
        help="Give extensions of this dialect the host's variables, as hosts of their own system do; repeatable.",
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
    """Gives a command all options of a host; its function gets them as one `HostOptions`, before all else.

    `roots` says how the folders are given: as arguments, or with `--root` where the command has other arguments. Where
    none is given the current folder is looked through."""
    return lambda function: collect_options(HostOptions, (ROOTS[roots], *HOST_OPTIONS))(function)


def data_dir_options(function: Command) -> Command:
    """Gives a command the options that say where a host keeps its files; its function gets one `DataDirOptions`."""
    return collect_options(DataDirOptions, DATA_DIR_OPTIONS)(function)


def collect_options(
    kind: type[DataDirOptions], options: tuple[Callable[[Command], Command], ...]
) -> Callable[[Command], Command]:
    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def collected(**given: Any) -> Any:
            collected_options = kind(**{name: given.pop(name) for name in kind.__struct_fields__})
            return function(collected_options, **given)

        decorated: Command = collected
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


# -- the loop


class TerminationRequested(Exception):
    """Somebody has asked this program to end, by a signal."""

    def __init__(self, signal: signal.Signals) -> None:
        self.signal = signal
        super().__init__(signal.name)


def run_async(function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Runs an async function until it is done and returns what it returns.

    Raises:
        KeyboardInterrupt: Ctrl-C; what ran was cancelled and has cleaned up.
        Terminated: SIGTERM, or SIGHUP where that is not ignored; as for Ctrl-C.
    """
    import anyio

    return anyio.run(run_until_signal, function, arguments)


async def run_until_signal(function: Callable[..., Awaitable[T]], arguments: tuple[Any, ...]) -> T:
    import anyio
    from anyio.abc import TaskStatus

    from becket.host.signals import STOP_SIGNALS, without_ignored

    heard: list[signal.Signals] = []
    results: list[T] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def watch(*, task_status: TaskStatus[None]) -> None:
            with anyio.open_signal_receiver(*without_ignored(STOP_SIGNALS)) as signals:
                task_status.started()
                async for number in signals:
                    heard.append(number)
                    tasks.cancel_scope.cancel()

        await tasks.start(watch)
        try:
            results.append(await function(*arguments))
        except Exception as error:  # raised again below: a group around it would say nothing more
            failures.append(error)
        tasks.cancel_scope.cancel()
    if heard:
        raise TerminationRequested(heard[0])
    if failures:
        raise failures[0]
    return results[0]
