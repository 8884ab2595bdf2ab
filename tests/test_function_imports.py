"""Imports stand at the top of a module; one inside a function puts off something that its module does not load yet.

Such imports keep the start of an extension, the help of a command and the import of a host short, leave out packages
that are not installed, and break circles. Wherever the module is loaded already they save nothing, and hide what a
module depends on."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.test_layers import Sources, absolute, layer_of, sources_of_becket

MOST = {
    "_deprecated": 6,
    "_loggers": 1,
    "_msgspec_import": 2,
    "adapters": 18,
    "cli": 117,
    "conformance": 1,
    "contract": 10,
    "conversion": 27,
    "dialects": 2,
    "extension": 66,
    "framing": 6,
    "host": 17,
    "json_schema": 5,
    "jsonrpc": 2,
    "peer": 52,
    "permissions": 4,
    "stores": 1,
    "testing": 12,
}
"""How many imports inside functions each package has at most: lower it when there are fewer. A new one needs a reason
of those above."""


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
                visit(child, is_inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(sources[module]), False)
    return found


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


def test_the_number_of_imports_inside_functions_does_not_grow() -> None:
    sources = sources_of_becket()
    found = Counter(layer_of(module) for module in sources for _ in imports_of(module, sources).in_functions)

    assert {package: count for package, count in found.items() if count > MOST.get(package, 0)} == {}
