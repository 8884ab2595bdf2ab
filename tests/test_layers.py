"""The layers hold: a module imports only from lower ranks and from its own package, and never in a circle. The layers
between the wire and the host name no foreign system, and an adapter is imported by name through one function.

The checker is made of functions from sources to problems, so that it is itself tested on modules that were made up.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import becket
from becket.dialects import ADAPTERS

RANKS = {
    "_lazy": -1,
    "_msgspec_import": -1,
    "_deprecated": -1,
    "_loggers": -1,
    "_threads": -1,
    "_text": -0.5,  # `errors` uses it
    "errors": 0,
    "host_errors": 0,
    "limits": 0,
    "_extras": 0.5,
    "framing": 1,
    "jsonrpc": 2,
    "conversion": 2,
    "json_schema": 2.5,  # it uses the file readers and the pointers of `conversion`
    "permissions": 2.5,
    "methods": 3,
    "contract": 4,
    "stores": 4.5,  # they keep the records and values of the contract
    "dialects": 5,
    "adapters": 8.5,  # above the host; other modules of an adapter: `adapter_rank`
    "peer": 6,
    "blocking": 6,  # the name under which users import `becket.peer.blocking_peer`
    "extension": 7,
    "host": 8,
    "testing": 9,
    "conformance": 9,
    "cli": 10,
    "__main__": 11,  # `python -m becket`
    **dict.fromkeys(("wire", "typed", "interop"), 0),  # forward to the new names of 0.2, which they import at first use
}
PURE_ADAPTER_RANK = 5.5  # above `dialects`, whose classes an adapter fills in
CLIENT_RANK = 7  # clients of other protocols' servers: they need a peer, and no host
ADAPTER_CLIENTS = {
    "_awaitable",
    "lsp.client",
    "lsp.conversion",
    "lsp.descriptors",
    "lsp.methods",
    "lsp.positions",
    "lsp.progress",
    "lsp.pygls_bridge",
    "lsp.pygls_server",
    "mcp.client",
}
ADAPTER_HOSTS = {"manifest_reader", "host_config", "host_server", "hosted_servers"}
"""Modules of an adapter that belong above `peer` and above `host`; all others describe the wire, and are pure."""
BACK_REFERENCES = {
    ("becket.errors", "becket.host_errors"): "re-exports them lazily, and type checkers cannot read that table",
    ("becket.peer.context", "becket.peer.peer"): "`Context.peer` is public: its type is the whole Peer, not a Protocol",
}
"""Imports for annotations alone that close a circle, and why."""
ROOT_RANK = 7.5  # `becket/__init__.py` opens the door to rank 7, and only what lies above may come in through it
NOT_AT_IMPORT = {"host", "testing", "conformance", "cli", "adapters"}  # what `import becket` never imports
SAME_LAYER = {frozenset({"peer", "blocking"}), frozenset({"errors", "host_errors"})}  # two names of one layer
LAST_PURE_RANK = PURE_ADAPTER_RANK
LOOPS = {"anyio", "asyncio", "trio", "uvloop"}

SYSTEMS = frozenset(ADAPTERS)
WITHOUT_SYSTEMS = {"framing", "jsonrpc", "methods", "peer", "extension", "host"}
SYSTEMS_NAMED = {
    "becket.extension.server": '`run(mcp=True)`, short for `run(dialect="mcp")`',
    "becket.framing.header_parser": "copies the header rules of one host, and its docstring says whose they are",
    "becket.host": "`McpSettings`, a deprecated name of 0.1",
    "becket.host.host_settings": "`Host(mcp=...)`, a deprecated keyword of 0.1",
    "becket.host.starting.interpreters": "`mcp` is a program that loads code from its folder",
    "becket.host.starting.manifest": "`mcp_servers`, a public table of every `becket.toml`",
    "becket.jsonrpc.calls": "the docstring says which protocols need which response to a cancelled request",
}
"""Modules of these layers that name a foreign system all the same, and why. Comments may: they carry reasons."""
ADAPTERS_NAMED = {
    "becket.dialects.dialect": "`import_adapter`, through which adapters are imported by name",
    "becket.host": "`McpSettings`, a deprecated name of 0.1",
    **dict.fromkeys((f"becket.dialects.{system}" for system in SYSTEMS), "a deprecated name of the adapter"),
    **dict.fromkeys(("becket.interop.mcp", "becket.interop.lsp"), "a deprecated name of the adapter"),
}
"""Modules with the name of a module of an adapter in a string, and why; an adapter may name its own modules."""

Sources = Mapping[str, str]
"""The text of each module by its dotted name; a package is named like its folder."""


class Import(NamedTuple):
    target: str
    line: int
    is_for_types: bool


# -- what a module imports


def imports_of(module: str, sources: Sources) -> list[Import]:
    """Returns all that a module imports, at any depth and also through `import_module` with a literal name."""
    found: list[Import] = []
    for node, is_for_types in nodes_of(sources[module]):
        targets: list[str] = []
        match node:
            case ast.Import(names=names):
                targets = [alias.name for alias in names]
            case ast.ImportFrom(names=names):
                origin = absolute(node, module, sources)
                # `from package import module` needs the module; `from package import name` needs the package.
                inner = [f"{origin}.{alias.name}" for alias in names]
                targets = [name if name in sources else origin for name in inner]
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                targets = [name]
            case _:
                pass
        found += [Import(target, node.lineno, is_for_types) for target in dict.fromkeys(targets)]
    return found


@cache
def nodes_of(source: str) -> list[tuple[Any, bool]]:
    """Returns those nodes of a module that may import something."""
    nodes = walk(ast.parse(source))
    return [(node, is_typed) for node, is_typed in nodes if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


def walk(node: ast.AST, is_for_types: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Gives every node below, and whether it stands under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        yield child, is_for_types
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for statement in child.body:
                    yield statement, True
                    yield from walk(statement, True)
                for statement in child.orelse:
                    yield statement, is_for_types
                    yield from walk(statement, is_for_types)
            case _:
                yield from walk(child, is_for_types)


def absolute(node: ast.ImportFrom, module: str, sources: Sources) -> str:
    if node.level == 0:
        return node.module or ""
    is_package = any(name.startswith(f"{module}.") for name in sources)
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


# -- what is wrong with it


def problems_in(sources: Sources) -> list[str]:
    """Returns one line for each import or function that breaks the layers; none when they hold."""
    problems: list[str] = []
    for module in sources:
        problems += rank_problems(module, sources)
        problems += purity_problems(module, sources)
        problems += name_problems(module, sources)
        problems += string_problems(module, sources)
    problems += cycle_problems(sources)
    return problems


def layer_of(module: str) -> str:
    """Returns the part that has a rank: `framing` for `becket.framing.framing`, nothing for `becket` itself."""
    return module.partition(".")[2].partition(".")[0]


def rank_of(module: str) -> float | None:
    layer = layer_of(module)
    if layer == "adapters":
        return adapter_rank(module)
    return RANKS.get(layer) if layer else ROOT_RANK


def adapter_rank(module: str) -> float:
    """Returns the rank of one module of an adapter: `becket.adapters.mcp.client.callbacks` has that of `client`."""
    parts = module.split(".")[2:4]
    if len(parts) == 2 and parts[1] in ADAPTER_HOSTS:
        return RANKS["adapters"]
    is_package = len(parts) < 2  # which exports its modules' names lazily
    return CLIENT_RANK if is_package or ".".join(parts) in ADAPTER_CLIENTS else PURE_ADAPTER_RANK


def rank_problems(module: str, sources: Sources) -> Iterator[str]:
    rank = rank_of(module)
    if rank is None:
        yield f"{module}: has no rank"
        return
    for target, line, is_for_types in imports_of(module, sources):
        if target.partition(".")[0] != "becket":
            continue
        if module == "becket" and is_for_types:
            continue  # its table of lazy exports, which type checkers cannot read
        here, there = layer_of(module), layer_of(target)
        other = rank_of(target)
        if (here == there and here != "adapters") or frozenset({here, there}) in SAME_LAYER:
            continue
        if here == there and other is not None and other <= rank:
            continue  # within the adapters
        if other is None:
            yield f"{module}:{line}: imports {target}, which has no rank"
        elif other >= rank:
            yield f"{module}:{line}: rank {rank:g} imports {target} of rank {other:g}"
        elif module == "becket" and there in NOT_AT_IMPORT:
            yield f"{module}:{line}: the package itself imports {target}"


def purity_problems(module: str, sources: Sources) -> Iterator[str]:
    rank = rank_of(module)
    if rank is None or rank > LAST_PURE_RANK:
        return
    for target, line, _ in imports_of(module, sources):
        if target.partition(".")[0] in LOOPS:
            yield f"{module}:{line}: rank {rank:g} imports {target}"
    for node in ast.walk(ast.parse(sources[module])):
        if isinstance(node, ast.AsyncFunctionDef):
            yield f"{module}:{node.lineno}: rank {rank:g} has the async function {node.name}"


def name_problems(module: str, sources: Sources) -> Iterator[str]:
    """Yields the foreign systems that a module of `WITHOUT_SYSTEMS` names in code or in a docstring."""
    if layer_of(module) not in WITHOUT_SYSTEMS or module in SYSTEMS_NAMED:
        return
    for system, line in systems_in(sources[module]):
        yield f"{module}:{line}: names the system {system}"


def systems_in(source: str) -> Iterator[tuple[str, int]]:
    """Yields each word that names a foreign system, in names and strings of any case, with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            words = {word.lower() for word in WORD.findall(token.string)}
            yield from ((system, token.start[0]) for system in sorted(words & SYSTEMS))


WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # `mcp` and `settings` in `McpSettings`


def string_problems(module: str, sources: Sources) -> Iterator[str]:
    """Yields the strings that begin with the name of a module of another adapter."""
    if module not in ADAPTERS_NAMED:
        yield from (f"{module}:{line}: has the string {text}" for text, line in adapter_strings(module, sources))


def adapter_strings(module: str, sources: Sources) -> Iterator[tuple[str, int]]:
    own = ".".join(module.split(".")[:3])
    for node in ast.walk(ast.parse(sources[module])):
        match node:
            case ast.Constant(value=str(text)) if text.startswith("becket.adapters"):
                if not (own.startswith("becket.adapters.") and f"{text}.".startswith(f"{own}.")):
                    yield text, node.lineno
            case _:
                pass


def counts(module: str, found: Import) -> bool:
    """Returns whether an import can close a circle."""
    is_excused = (module, found.target) in BACK_REFERENCES or module == "becket"
    return not (found.is_for_types and is_excused)


def cycle_problems(sources: Sources) -> Iterator[str]:
    """Yields each circle of imports once, those for types included unless it is one of the BACK_REFERENCES."""
    graph = {
        module: sorted({found.target for found in imports_of(module, sources) if counts(module, found)} & set(sources))
        for module in sources
    }
    finished: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> Iterator[str]:
        if module in path:
            yield "circle: " + " -> ".join([*path[path.index(module) :], module])
        elif module not in finished:
            path.append(module)
            for target in graph[module]:
                yield from visit(target)
            path.pop()
            finished.add(module)

    for module in sorted(graph):
        yield from visit(module)


# -- the layers of becket


def sources_of_becket() -> dict[str, str]:
    folder = Path(becket.__file__).parent
    sources: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        parts = ["becket", *file.relative_to(folder).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = file.read_text(encoding="utf-8")
    return sources


def test_every_module_imports_only_from_lower_ranks_and_in_no_circle() -> None:
    assert problems_in(sources_of_becket()) == []


def test_every_exception_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = sources_of_becket()

    assert [module for module in SYSTEMS_NAMED if not [*systems_in(sources[module])]] == []
    assert [module for module in ADAPTERS_NAMED if not [*adapter_strings(module, sources)]] == []
    for reference in [*BACK_REFERENCES]:
        with monkeypatch.context() as patch:
            patch.delitem(BACK_REFERENCES, reference)
            assert [*cycle_problems(sources)], reference


def test_the_modules_of_becket_are_found() -> None:
    assert {"becket", "becket.errors", "becket.framing.framing", "becket.conversion"} <= set(sources_of_becket())


# -- the checker itself


GOOD = {
    "becket": "import becket.errors\nfrom becket.peer import Peer\ndef later():\n    import becket.extension",
    "becket.errors": "import enum",
    "becket.framing": "from becket.framing.lines import Lines",
    "becket.framing.lines": "from becket.errors import BadFrame",
    "becket.peer": "from becket.peer.peer import Peer",
    "becket.peer.peer": (
        "import anyio\nfrom becket import framing\nfrom ..framing.lines import Lines\nasync def run(): ..."
    ),
    "becket.peer.threads": "from . import peer",
    "becket.blocking": "from becket.peer.threads import Peer",
    "becket.extension": "",
    "becket.host": "from becket import Peer",
    "becket.adapters": "",
}


def test_the_checker_accepts_imports_that_go_down() -> None:
    assert problems_in(GOOD) == []


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        pytest.param("becket.errors", "import becket.framing", "errors:1: rank 0 imports becket.framing", id="upwards"),
        pytest.param(
            "becket.errors", "from becket import framing", "rank 0 imports becket.framing", id="from-the-root"
        ),
        pytest.param(
            "becket.framing.lines", "from ..peer import peer", "rank 1 imports becket.peer.peer", id="relative"
        ),
        pytest.param(
            "becket.framing", "from ..peer import Peer", "rank 1 imports becket.peer", id="relative-in-package"
        ),
        pytest.param(
            "becket.framing.lines", "def f():\n  import becket.peer", "becket.framing.lines:2: rank 1", id="lazily"
        ),
        pytest.param(
            "becket.framing.lines", "import_module('becket.peer')", "rank 1 imports becket.peer", id="by-name"
        ),
        pytest.param(
            "becket.framing.lines",
            "if TYPE_CHECKING:\n  from becket.peer import Peer",
            "rank 1 imports becket.peer",
            id="for-types",
        ),
        pytest.param("becket.peer.peer", "from becket import Context", "rank 6 imports becket of rank", id="the-root"),
        pytest.param("becket.extension", "import becket.adapters", "rank 7 imports becket.adapters", id="sideways"),
        pytest.param("becket", "def f():\n  import becket.host", "rank 7.5 imports becket.host", id="root-too-high"),
        pytest.param(
            "becket", "import becket.adapters", "the package itself imports becket.adapters", id="root-interop"
        ),
        pytest.param("becket.utils", "", "becket.utils: has no rank", id="no-rank"),
        pytest.param("becket.peer.peer", "import becket.utils.x", "which has no rank", id="imports-no-rank"),
        pytest.param("becket.framing.lines", "import asyncio.events", "rank 1 imports asyncio.events", id="loop"),
        pytest.param(
            "becket.framing.lines", "def f():\n from trio import sleep", "rank 1 imports trio", id="loop-lazily"
        ),
        pytest.param("becket.framing.lines", "__import__('anyio')", "rank 1 imports anyio", id="loop-by-name"),
        pytest.param("becket.errors", "class A:\n async def f(self): 0", "rank 0 has the async function f", id="async"),
        pytest.param(
            "becket.adapters.mcp.mapping", "import asyncio", "rank 5.5 imports asyncio", id="loop-in-a-pure-adapter"
        ),
        pytest.param(
            "becket.adapters.nexo.handshake",
            "async def f(): 0",
            "rank 5.5 has the async function f",
            id="async-in-a-pure-adapter",
        ),
        pytest.param(
            "becket.host.x", "x = 1\nif dialect == 'mcp': 0", "becket.host.x:2: names the system mcp", id="name"
        ),
        pytest.param(
            "becket.peer.peer", "SYNAPS_VERSION = 1", "peer:1: names the system synaps", id="name-in-capitals"
        ),
        pytest.param("becket.peer.peer", "class McpSettings: 0", "names the system mcp", id="name-in-a-class"),
        pytest.param("becket.peer.peer", "def f(): 'as nexo does'", "names the system nexo", id="name-in-a-docstring"),
        pytest.param("becket.peer.peer", "f'{x}.cigen'", "names the system cigen", id="name-in-a-formatted-string"),
        pytest.param(
            "becket.extension",
            "import_module(f'becket.adapters.{name}.mapping')",
            "becket.extension:1: has the string becket.adapters.",
            id="adapter-by-name",
        ),
        pytest.param(
            "becket.adapters.nexo.handshake",
            "x = 'becket.adapters.mcp.dialect'",
            "has the string becket.adapters.mcp.dialect",
            id="another-adapter-by-name",
        ),
    ],
)
def test_the_checker_reports_each_violation(module: str, source: str, problem: str) -> None:
    sources = {**GOOD, module: source}

    checks = (rank_problems, purity_problems, name_problems, string_problems)
    (found,) = [found for check in checks for found in check(module, sources)]

    assert problem in found
    assert found in problems_in(sources)


def test_the_checker_accepts_comments_other_words_and_the_modules_of_the_own_adapter() -> None:
    sources = {
        "becket.peer.peer": "lspx = 'mcpx'  # as MCP does",
        "becket.cli": "def run(mcp): 'serves MCP'",
        "becket.adapters.mcp": "EXPORTS = {'becket.adapters.mcp.dialect': 'MCP'}",
    }

    assert problems_in(sources) == []


def test_the_checker_reports_a_circle_inside_a_package() -> None:
    sources = {
        "becket.framing.a": "from becket.framing.b import B",
        "becket.framing.b": "def f():\n  from becket.framing import c",
        "becket.framing.c": "import becket.framing.a",
    }

    assert problems_in(sources) == [
        "circle: becket.framing.a -> becket.framing.b -> becket.framing.c -> becket.framing.a"
    ]


def test_the_checker_reports_a_module_that_imports_its_own_package() -> None:
    sources = {"becket.framing": "from becket.framing.a import A", "becket.framing.a": "from becket.framing import B"}

    assert problems_in(sources) == ["circle: becket.framing -> becket.framing.a -> becket.framing"]


def test_an_import_for_types_alone_closes_a_circle_too_unless_it_is_named() -> None:
    wholes = {
        "becket.peer.peer": "from becket.peer.context import Context",
        "becket.peer.context": "import typing\nif typing.TYPE_CHECKING:\n  from becket.peer.peer import Peer",
    }
    others = {
        "becket.framing.a": "from becket.framing.b import B",
        "becket.framing.b": "if TYPE_CHECKING:\n  from becket.framing.a import A\nelse:\n  import json",
    }

    assert problems_in(wholes) == []
    assert problems_in(others) == ["circle: becket.framing.a -> becket.framing.b -> becket.framing.a"]
