"""Entry point: loads the requested command lazily and prints its errors.

A command is a function that returns an exit code, or None for success, and raises an exception when it fails.
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
    "run": ("becket.cli.run:run", "Start a host on folders of extensions and show their status."),
    "list": ("becket.cli.list:list_extensions", "List the extensions in folders, without starting them."),
    "doctor": ("becket.cli.doctor:doctor", "Report problems of extensions, and how to fix them."),
    "call": ("becket.cli.call:call", "Call a method or a tool of an extension: JSON in, JSON out."),
    "invoke": ("becket.cli.invoke:invoke", "Run a command of an extension and show its output live."),
    "chat": ("becket.cli.chat:chat", "Chat with a model that an extension provides."),
    "check": ("becket.cli.check:check", "Start a program and check whether it is a valid extension."),
    "conform": ("becket.cli.conform:conform", "Run the conformance cases against an extension or a host."),
    "trace": ("becket.cli.trace:trace", "Record, show and replay the messages between a host and an extension."),
    "new": ("becket.cli.new:new", "Create a working extension with its test in a folder."),
    "mcp": ("becket.cli.mcp:mcp", "Serve extensions to MCP clients."),
    "memory": ("becket.cli.memory:memory", "Show and remove the records that extensions have stored."),
    "config": ("becket.cli.config:config", "Show and change the configuration of extensions."),
    "grant": ("becket.cli.grants:grant", "Grant permissions to an extension."),
    "revoke": ("becket.cli.grants:revoke", "Revoke permissions of an extension."),
    "audit": ("becket.cli.audit:audit", "Verify and show the audit log of a host."),
    "schema": ("becket.cli.schema:schema", "List and print the JSON Schemas of the contract."),
}
"""Maps the name of each command to its function, which is loaded on use, and to its one-line summary."""
# Raised by a group without a command; click before 8.2 has no such error and prints the help itself.
NO_ARGUMENTS: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class CommandGroup(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands in display order."""
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
        """Returns the command of this name; for an unknown name the error suggests a similar one."""
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
        """Runs a command and exits with its code; prints its error to stderr."""
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
        words = tuple(args)  # parsing consumes `args`
        with noticing_the_reader():
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[WORDS] = words
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        with noticing_the_reader():
            return super().invoke(ctx)


class ReaderGone(Exception):
    """The reader of the output has closed it. Not an OSError: click exits with 1 for those."""


@contextmanager
def noticing_the_reader() -> Generator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


def discard_unread_output() -> None:
    """Redirects buffered output to the null device; otherwise Python fails to write it at exit."""
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
    """Yields the lines that describe an error, one for each problem."""
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
            yield f"a bug in becket: {type(error).__name__}: {error} (`{again}` shows the traceback)"


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
@click.option("--debug", is_flag=True, help="Show a traceback on errors. Must precede the command.")
def cli(debug: bool) -> None:
    """Runs and tests extensions: child processes, in any language, that speak JSON-RPC 2.0 with a host.

    \b
    becket new notes              create a working extension with its test
    becket check -- ./notes/run   check that it is a valid extension
    becket run .                  run a host with all extensions in this folder
    """


def main() -> NoReturn:
    """Runs the command line of this process; `becket.cli.entry` prepares signals and streams first."""
    cli.main(prog_name="becket")
    raise AssertionError("cli.main exits")
