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
    """Offer extensions to clients of MCP, the Model Context Protocol.

    \b
    becket mcp serve notes.py          the extension that a file defines
    becket mcp serve notes:Notes       the same, by the name of its module
    becket mcp serve extensions        the tools of all extensions in a folder, as one server
    """


@mcp.command()
@host_options(roots="option")
@click.argument("what", nargs=-1, metavar="[FILE | MODULE:CLASS | FOLDER...]")
def serve(options: HostOptions, what: tuple[str, ...]) -> None:
    """Be an MCP server, over stdin and stdout.

    Given a file, or a module and a class, the `ExtensionServer` in it is served by itself: its tools, its commands as
    prompts, and what it has of MCP's own methods. Given folders, a host is started on all extensions in them, in
    whatever language and dialect; their tools are those of the server, with the permissions, hooks and restarts of the
    host. Nobody can be asked meanwhile: grant before, or with the options.

    Put it into the settings of a client like this:

    \b
    {"mcpServers": {"notes": {"command": "becket", "args": ["mcp", "serve", "/path/to/notes.py"]}}}
    """
    if sys.stdin.isatty():
        raise click.UsageError("A client of MCP starts this and speaks with it: put it into the client's settings.")
    if len(what) == 1 and not os.path.isdir(what[0]):
        serve_class(what[0])
    roots = tuple(Path(one) for one in what)
    missing = [str(root) for root in roots if not root.is_dir()]
    if missing:
        raise click.BadParameter(f"there is no folder {missing[0]}", param_hint="FOLDER")
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
        raise click.BadParameter(f"there is no file {place}", param_hint="FILE")
    if not is_file and not name:
        raise click.BadParameter(f"{named} is no folder, no file `.py` and no MODULE:CLASS", param_hint="WHAT")
    with guard_author_code(place):
        module = load_file(Path(place)) if is_file else load_module(place)
        found = dict(find_servers_in(module))
        chosen = [found[name]] if name in found else [] if name else [*found.values()]
        if len(chosen) == 1:
            return chosen[0]()
    names = ", ".join(found) or "none"
    raise click.BadParameter(f"name one class of {place}: it has {names}", param_hint="WHAT")


@contextmanager
def guard_author_code(place: str) -> Generator[None, None, None]:
    """Runs what an author has written: what it prints is not for the client, and what it raises is no fault of ours."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except Exception as error:
        problem = f"cannot be loaded: {type(error).__name__}: {error}"
        raise click.BadParameter(f"{place} {problem}", param_hint="WHAT") from error


def load_file(path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    sys.path.insert(0, str(path.resolve().parent))  # as if it were run by itself
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations are looked up there
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


# -- all of some folders


async def serve_folders(options: HostOptions, roots: tuple[Path, ...]) -> None:
    """Starts a host and serves its tools until the client is gone."""
    from becket.adapters.mcp.dialect import MCP
    from becket.adapters.mcp.host_server import McpHostServer
    from becket.peer.peer import Peer

    more: dict[str, Any] = {"roots": (*roots, *options.roots)} if roots else {}
    async with options.build_host(**more) as host:
        for problem in host.problems:
            print_message(str(problem))
        face = McpHostServer(host)
        limits = MCP.limits
        async with Peer.connect_stdio(dialect=MCP, methods=face.build_registry(), name="client", limits=limits) as peer:
            await face.notify_tool_changes(peer)
