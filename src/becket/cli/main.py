"""Entry point: loads the requested command lazily and prints its errors.

A command is a function that returns an exit code, or None where all is well. It raises what it fails with.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from becket import __version__
from becket._text import escape
from becket.cli.support.exit_codes import ExitCode, exit_code_for
from becket.cli.support.options import WORDS, TerminationRequested
from becket.errors import BadFile, BecketError

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS: Final = {
    "run": ("becket.cli.run:run", "Start a host on folders of extensions and show how they do."),
    "list": ("becket.cli.list:list_extensions", "List the extensions in folders, without starting them."),
    "doctor": ("becket.cli.doctor:doctor", "Say what is wrong with extensions, and what to do."),
    "call": ("becket.cli.call:call", "Call a method or a tool of an extension: JSON in, JSON out."),
    "invoke": ("becket.cli.invoke:invoke", "Run a command of an extension and draw its output live."),
    "chat": ("becket.cli.chat:chat", "Talk to a model that an extension provides."),
    "check": ("becket.cli.check:check", "Drive any program through the handshake and report what is wrong."),
    "trace": ("becket.cli.trace:trace", "Record a conversation, show it, replay it."),
    "new": ("becket.cli.new:new", "Write a working extension with its test into a folder."),
    "mcp": ("becket.cli.mcp:mcp", "Offer extensions to clients of MCP, as servers."),
    "memory": ("becket.cli.memory:memory", "Look into what extensions have remembered."),
    "config": ("becket.cli.config:config", "Look into the configuration of extensions, and change it."),
    "grant": ("becket.cli.grants:grant", "Give an extension permissions."),
    "revoke": ("becket.cli.grants:revoke", "Take permissions away from an extension."),
    "audit": ("becket.cli.audit:audit", "Verify the audit of a host and show it."),
    "schema": ("becket.cli.schema:schema", "List and print the JSON Schemas of the contract."),
}
"""Each command: where it is, which is loaded when the command is used, and what it does in a line."""
# What a group without a command raises; click before 8.2 has no such error, and prints the help by itself.
NO_ARGUMENTS: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class CommandGroup(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands, in the order in which they are shown."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that is meant, or says which one may have been."""
        from becket.conversion.suggestions import did_you_mean

        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            meant = did_you_mean(name, COMMANDS)
            ctx.fail(f"There is no command `{name}`" + (f": {meant}" if meant else "."))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the names of commands without loading them, and this command's own options."""
        names = [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command and exits with its code; what it fails with is told on stderr."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        is_debugging = "--debug" in (sys.argv[1:] if args is None else args)[:1]
        try:
            code = self._run(is_debugging, args, prog_name, complete_var, standalone_mode=False, **extra)
        except (ReaderGone, BrokenPipeError):
            discard_unread_output()
            code = ExitCode.READER_GONE
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
        sys.exit(int(code or 0))

    def _run(self, is_debugging: bool, *arguments: Any, **extra: Any) -> Any:
        try:
            return super().main(*arguments, **extra)
        except click.Abort:
            return ExitCode.INTERRUPTED
        except NO_ARGUMENTS as error:
            click.echo(error.ctx.get_help())
            return ExitCode.DONE
        except click.ClickException as error:
            print_error([error.format_message()], find_hint(error))
            return error.exit_code
        except TerminationRequested:
            return ExitCode.TERMINATED
        except Exception as error:
            if is_debugging or isinstance(error, ReaderGone):
                raise
            print_error(format_error(error))
            return exit_code_for(error)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parses the command line; `--help` and `--version` are written here."""
        words = tuple(args)  # which parsing takes away
        with noticing_the_reader():
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[WORDS] = words
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        with noticing_the_reader():
            return super().invoke(ctx)


class ReaderGone(Exception):
    """Nobody reads the output any more. Not an OSError: click exits with 1 for those, as for a failure."""


@contextmanager
def noticing_the_reader() -> Generator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


def discard_unread_output() -> None:
    """Sends what is buffered to the null device: Python would try to write it at the exit, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def find_hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return f"try: {ctx.command_path} --help" if isinstance(ctx, click.Context) else ""


def format_error(error: BaseException) -> Iterator[str]:
    """Yields what to tell about an error; one line for each problem where there are many."""
    from becket.conversion.files.reader import describe_os_error

    match error:
        case BaseExceptionGroup():
            for inner in error.exceptions:
                yield from format_error(inner)
        case BadFile():
            for pointer, message in error.problems:
                yield ": ".join(part for part in (error.path, pointer, message) if part)
        case BecketError():
            yield str(error)
        case OSError(filename=str(path)):
            yield f"{path}: {describe_os_error(error)}"
        case OSError():
            yield describe_os_error(error)
        case _:
            again = shlex.join(["becket", "--debug", *sys.argv[1:]])
            yield f"a mistake in becket itself: {type(error).__name__}: {error} (`{again}` shows where)"


def print_error(lines: Iterator[str] | Sequence[str], hint: str = "") -> None:
    for line in lines:
        for part in line.splitlines() or [""]:
            click.echo(f"error: {escape(part)}", err=True)
    if hint:
        click.echo(hint, err=True)


@click.group(
    cls=CommandGroup,
    epilog="Exit codes: " + ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode) + ".",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails. Stands before the command.")
def cli(debug: bool) -> None:
    """Joins a program and its extensions: child processes, in any language, that speak JSON-RPC 2.0.

    \b
    becket new notes              a working extension with its test
    becket check -- ./notes/run   is it one?
    becket run .                  a host for all extensions in this folder
    """


def main() -> NoReturn:
    """Runs the command line of this process, which `becket.cli.entry` has prepared."""
    cli.main(prog_name="becket")
    raise AssertionError("it exits")
