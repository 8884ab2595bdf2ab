"""`becket mcp serve`: serves an extension class, or a host, to MCP clients over stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from becket.cli.support.options import HostOptions, host_options, run_async
from becket.cli.support.output import print_message

if TYPE_CHECKING:
    from types import ModuleType

    from becket.extension.server import ExtensionServer

__all__ = ["find_server", "mcp"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def mcp() -> None:
    """Serve extensions to clients of MCP, the Model Context Protocol.

    \b
    becket mcp serve notes.py          serve the extension that a file defines
    becket mcp serve notes:Notes       the same, by module and class
    becket mcp serve extensions        serve the tools of all extensions in a folder as one server
    """


@mcp.command()
@host_options(roots="option")
@click.argument("what", nargs=-1, metavar="[FILE | MODULE:CLASS | FOLDER...]")
def serve(options: HostOptions, what: tuple[str, ...]) -> None:
    """Run an MCP server over stdin and stdout.

    With a file, or a module and a class, its `ExtensionServer` is served on its own: its tools, its commands as
    prompts, and the MCP methods that it implements. With folders, a host starts all extensions in them, in any language
    and dialect, and serves their tools with its permissions, hooks and restarts. There is no prompt for consent: grant
    permissions beforehand, or with options.

    Settings of a client:

    \b
    {"mcpServers": {"notes": {"command": "becket", "args": ["mcp", "serve", "/path/to/notes.py"]}}}
    """
    if sys.stdin.isatty():
        raise click.UsageError("This is to be started by an MCP client, not from a terminal: add it to its settings.")
    if len(what) == 1 and not os.path.isdir(what[0]):
        serve_class(what[0])
    roots = tuple(Path(one) for one in what)
    missing = [str(root) for root in roots if not root.is_dir()]
    if missing:
        raise click.BadParameter(f"no such folder: {missing[0]}", param_hint="FOLDER")
    run_async(serve_folders, options, roots)


# -- one class


def serve_class(named: str) -> NoReturn:
    find_server(named).run(mcp=True)


def find_server(named: str) -> ExtensionServer:
    """Returns the extension that `FILE`, `FILE:CLASS` or `MODULE:CLASS` names.

    Raises:
        click.BadParameter: there is none, or there are several.
    """
    place, _, name = named.partition(":")
    is_file = place.endswith(".py")
    if is_file and not os.path.isfile(place):
        raise click.BadParameter(f"no such file: {place}", param_hint="FILE")
    if not is_file and not name:
        raise click.BadParameter(f"{named} is neither a folder, nor a `.py` file, nor MODULE:CLASS", param_hint="WHAT")
    with guard_author_code(place):
        module = load_file(Path(place)) if is_file else load_module(place)
        found = dict(find_servers_in(module))
        chosen = [found[name]] if name in found else [] if name else [*found.values()]
        if len(chosen) == 1:
            return chosen[0]()
    names = ", ".join(found) or "none"
    raise click.BadParameter(f"name one class of {place}, which has: {names}", param_hint="WHAT")


@contextmanager
def guard_author_code(place: str) -> Generator[None, None, None]:
    """Runs an author's code: redirects its prints to stderr, and reports its errors as those of the file."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except Exception as error:
        problem = f"cannot be loaded: {type(error).__name__}: {error}"
        raise click.BadParameter(f"{place} {problem}", param_hint="WHAT") from error


def load_file(path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    sys.path.insert(0, str(path.resolve().parent))  # as if it were run as a script
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations are resolved there
    spec.loader.exec_module(module)
    return module


def load_module(name: str) -> ModuleType:
    from importlib import import_module

    sys.path.insert(0, os.getcwd())
    return import_module(name)


def find_servers_in(module: ModuleType) -> Iterator[tuple[str, type[ExtensionServer]]]:
    from becket.extension.server import ExtensionServer

    for name, value in vars(module).items():
        kind: Any = value
        if isinstance(kind, type) and issubclass(kind, ExtensionServer) and kind.__module__ == module.__name__:
            yield name, kind


# -- folders


async def serve_folders(options: HostOptions, roots: tuple[Path, ...]) -> None:
    """Starts a host and serves its tools until the client disconnects."""
    from becket.adapters.mcp.dialect import MCP
    from becket.adapters.mcp.host_server import McpHostServer
    from becket.peer.peer import Peer

    more: dict[str, Any] = {"roots": (*roots, *options.roots)} if roots else {}
    async with options.build_host(**more) as host:
        for problem in host.problems:
            print_message(str(problem))
        server = McpHostServer(host)
        registry = server.build_registry()
        async with Peer.connect_stdio(dialect=MCP, methods=registry, name="client", limits=MCP.limits) as peer:
            await server.notify_tool_changes(peer)
