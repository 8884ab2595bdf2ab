"""Imports stand at the top of a module; one inside a function puts off something that its module does not load yet.

Such imports keep the start of an extension, the help of a command and the import of a host short, leave out packages
that are not installed, and break circles. Wherever the module is loaded already they save nothing, and hide what a
module depends on."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.test_layers import Sources, absolute, sources_of_becket

COMMAND = "a command imports what it uses, so that help and completion come at once"
DECLARED = "an extension pays at its start for what it declares and uses, and for nothing else"
LOOP = "a program imports its own event loop, and none where it has none"
TRANSPORT = "a link imports its own transport"
RARE = "most programs never get there, and a start should not pay for it"
PROBLEMS = "problems are explained only where there are some"
CLASSES = "most programs have no classes of attrs, pydantic or dataclasses"
HOSTS = "a host needs it, and an extension imports the same module"
EXTRA = "its package may not be installed"
POSIX = "the module can be imported where there is no `fcntl`"
ORDER = "when these modules are imported is what the module is for"
WHOLE_HOST = "two peers in memory need no host"

IN_FUNCTIONS = {
    "becket._deprecated": (6, RARE),
    "becket._loggers": (1, RARE),
    "becket._msgspec_import": (5, ORDER),
    "becket.adapters.cigen.dialect": (1, EXTRA),
    "becket.adapters.lsp": (2, EXTRA),
    "becket.adapters.lsp.pygls_bridge": (1, PROBLEMS),
    "becket.adapters.mcp.client_handshake": (2, PROBLEMS),
    "becket.adapters.mcp.dialect": (1, DECLARED),
    "becket.adapters.mcp.mapping": (1, RARE),
    "becket.adapters.mcp.server_handshake": (1, PROBLEMS),
    "becket.adapters.nexo.handshake": (1, HOSTS),
    "becket.adapters.roder.handshake": (1, PROBLEMS),
    "becket.adapters.roder.manifest": (4, PROBLEMS),
    "becket.adapters.roder.served_manifest": (3, RARE),
    "becket.adapters.synaps.handshake": (1, PROBLEMS),
    "becket.cli.call": (8, COMMAND),
    "becket.cli.chat": (12, COMMAND),
    "becket.cli.check": (5, COMMAND),
    "becket.cli.config": (15, COMMAND),
    "becket.cli.conform": (1, COMMAND),
    "becket.cli.doctor": (1, COMMAND),
    "becket.cli.entry": (1, COMMAND),
    "becket.cli.grants": (1, COMMAND),
    "becket.cli.invoke": (3, COMMAND),
    "becket.cli.main": (2, COMMAND),
    "becket.cli.mcp": (6, COMMAND),
    "becket.cli.memory": (8, COMMAND),
    "becket.cli.support.checks": (1, COMMAND),
    "becket.cli.support.host_session": (1, COMMAND),
    "becket.cli.support.options": (16, COMMAND),
    "becket.cli.support.output": (6, COMMAND),
    "becket.cli.support.terminal_prompt": (5, COMMAND),
    "becket.cli.support.relay": (1, COMMAND),
    "becket.cli.support.screen": (8, COMMAND),
    "becket.cli.support.sequence_diagram": (1, COMMAND),
    "becket.cli.support.store": (2, COMMAND),
    "becket.cli.trace": (12, COMMAND),
    "becket.conformance.runner": (1, EXTRA),
    "becket.contract.audit": (2, COMMAND),
    "becket.contract.handshake": (2, DECLARED),
    "becket.contract.handshake_checks": (4, HOSTS),
    "becket.contract.hooks": (1, PROBLEMS),
    "becket.contract.sidecar": (1, PROBLEMS),
    "becket.conversion.attrs_classes": (12, CLASSES),
    "becket.conversion.decode": (6, DECLARED),
    "becket.conversion.duplicates": (2, PROBLEMS),
    "becket.conversion.files.reader": (1, RARE),
    "becket.conversion.files.toml": (1, RARE),
    "becket.conversion.files.yaml": (4, EXTRA),
    "becket.conversion.introspect": (2, CLASSES),
    "becket.conversion.suggestions": (1, PROBLEMS),
    "becket.dialects.dialect": (1, RARE),
    "becket.extension._logging_import": (2, RARE),
    "becket.extension.decorators": (2, DECLARED),
    "becket.extension.handlers": (16, DECLARED),
    "becket.extension.host_client": (7, DECLARED),
    "becket.extension.results": (5, CLASSES),
    "becket.extension.runner": (8, LOOP),
    "becket.extension.runtime_async": (6, LOOP),
    "becket.extension.runtime_blocking": (3, DECLARED),
    "becket.extension.server": (9, DECLARED),
    "becket.extension.session": (3, DECLARED),
    "becket.extension.tool_input.signature": (8, CLASSES),
    "becket.framing.content_length": (4, RARE),
    "becket.framing.detect": (2, RARE),
    "becket.framing.length_prefixed": (1, RARE),
    "becket.host.audit_log": (2, POSIX),
    "becket.host.host": (2, RARE),
    "becket.host.persistence": (2, RARE),
    "becket.host.starting.grants_file": (1, POSIX),
    "becket.host.starting.working_copies": (2, POSIX),
    "becket.host.watcher": (1, RARE),
    "becket.json_schema.compiler": (2, EXTRA),
    "becket.json_schema.files": (1, RARE),
    "becket.json_schema.validator": (3, RARE),
    "becket.jsonrpc.codec": (1, RARE),
    "becket.jsonrpc.connection": (1, RARE),
    "becket.peer.blocking_peer": (7, TRANSPORT),
    "becket.peer.inbound": (2, LOOP),
    "becket.peer.loops.async_base": (1, LOOP),
    "becket.peer.loops.async_loops": (5, LOOP),
    "becket.peer.loops.asyncio_loop": (1, LOOP),
    "becket.peer.loops.thread_loop": (4, DECLARED),
    "becket.peer.loops.trio_poller": (2, LOOP),
    "becket.peer.outbound": (4, DECLARED),
    "becket.peer.peer": (8, TRANSPORT),
    "becket.peer.permission_check": (3, RARE),
    "becket.peer.transport.child_process": (1, RARE),
    "becket.peer.transport.fd": (2, RARE),
    "becket.peer.transport.server": (1, LOOP),
    "becket.peer.transport.guardian_process": (4, RARE),
    "becket.peer.transport.sockets": (2, LOOP),
    "becket.peer.transport.stream": (2, LOOP),
    "becket.peer.watchdog": (4, RARE),
    "becket.permissions.grants": (1, PROBLEMS),
    "becket.permissions.policies": (3, RARE),
    "becket.stores.sqlite.lock": (1, POSIX),
    "becket.testing.leaks": (1, EXTRA),
    "becket.testing.pairs": (1, WHOLE_HOST),
}
"""How many imports each module has inside functions, and why. Another one needs one of these reasons."""


class ModuleImports(NamedTuple):
    at_top: set[str]
    in_functions: list[tuple[int, str]]


def imports_of(module: str, sources: Sources) -> ModuleImports:
    """Returns what a module loads when it is imported, and what its functions import, with the lines."""
    found = ModuleImports(set(), [])

    def visit(node: ast.AST, is_inside: bool) -> None:
        for child, is_for_types in walk_flat(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                if is_inside:
                    found.in_functions.extend((child.lineno, target) for target in targets_of(child, module, sources))
                elif not is_for_types:
                    found.at_top.update(targets_of(child, module, sources))
            elif not is_for_types:
                is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                if is_function and not is_inside:
                    found.in_functions.extend(named_imports(child))
                visit(child, is_inside or is_function)

    visit(ast.parse(sources[module]), False)
    return found


def named_imports(function: ast.AST) -> Iterator[tuple[int, str]]:
    """Gives the modules that a function imports by `import_module("name")`, at any depth."""
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name
            case _:
                pass


def walk_flat(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Gives the statements directly below, and whether they are for type checkers alone."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=orelse):
            yield from ((child, True) for child in body)
            yield from ((child, False) for child in orelse)
        case _:
            yield from ((child, False) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def targets_of(node: ast.Import | ast.ImportFrom, module: str, sources: Sources) -> list[str]:
    """Returns the modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    origin = absolute(node, module, sources)
    inner = [f"{origin}.{alias.name}" for alias in node.names]
    return list(dict.fromkeys(name if name in sources else origin for name in inner))


def loaded_with(module: str, imports: Mapping[str, ModuleImports]) -> set[str]:
    """Returns all modules that importing this one loads, as far as becket's own modules import them."""
    loaded: set[str] = set()
    pending = [module]
    while pending:
        parts = pending.pop().split(".")
        for name in (".".join(parts[: size + 1]) for size in range(len(parts))):
            if name not in loaded:
                loaded.add(name)
                pending += imports[name].at_top if name in imports else ()
    return loaded


def test_no_function_imports_what_its_module_has_loaded() -> None:
    sources = sources_of_becket()
    imports = {module: imports_of(module, sources) for module in sources}
    needless = [
        f"{module}, line {line}: {target} is loaded already, import it at the top"
        for module, found in imports.items()
        if found.in_functions and (loaded := loaded_with(module, imports))
        for line, target in found.in_functions
        if target in loaded
    ]

    assert needless == []


def test_imports_stand_inside_functions_only_where_the_table_has_a_reason() -> None:
    sources = sources_of_becket()
    found = Counter(module for module in sources for _ in imports_of(module, sources).in_functions)

    assert found == {module: count for module, (count, _) in IN_FUNCTIONS.items()}


def test_imports_by_a_literal_name_count_too() -> None:
    source = "a = import_module('a')\ndef f():\n  x = import_module('b').x\n  def g():\n    return import_module(x)"

    assert imports_of("m", {"m": source}).in_functions == [(3, "b")]


def test_imports_in_functions_are_found_at_any_depth_and_counted_once() -> None:
    source = "import a\ndef f():\n  import b\n  def g():\n    from c import d\nclass C:\n  import e"

    assert imports_of("m", {"m": source}) == ({"a", "e"}, [(3, "b"), (5, "c")])
