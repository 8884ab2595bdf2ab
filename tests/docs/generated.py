"""The parts of the documentation that are made from the code: `python -m tests.docs` writes them anew."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

from tests.docs import (
    architecture_tables,
    cli_tables,
    conformance_tables,
    contract_tables,
    dialect_tables,
    host_tables,
    manifest_tables,
)

import becket
from becket import errors, host_errors
from becket.errors import ERROR_CODES, BecketError, DisconnectReason, Meaning, ProtocolError, RpcError
from becket.testing import CHILDREN

__all__ = ["PARTS", "render_page"]

PART = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render_page(text: str) -> str:
    """Returns a page with all of its generated parts as they should be.

    Raises:
        KeyError: a part has a name that nothing is generated for.
    """
    return PART.sub(lambda match: f"{match[1]}\n{PARTS[match[2]]()}\n{match[3]}", text)


# -- errors


def render_tree() -> str:
    lines = [f"{'    ' * depth}{kind.__name__}" for kind, depth in walk(BecketError)]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def walk(kind: type[BecketError], depth: int = 0) -> Iterator[tuple[type[BecketError], int]]:
    """Yields a class and those below it, in the order of the files."""
    yield kind, depth
    for below in kind.__subclasses__():
        if below.__module__ in (errors.__name__, host_errors.__name__):
            yield from walk(below, depth + 1)


def render_protocol_errors() -> str:
    return render_classes([kind for kind, _ in walk(ProtocolError)])


def render_response_errors() -> str:
    return render_classes([kind for kind, _ in walk(RpcError)])


def render_outcomes() -> str:
    elsewhere = {kind for root in (ProtocolError, RpcError) for kind, _ in walk(root)} | {BecketError}
    return render_classes([kind for kind, _ in walk(BecketError) if kind not in elsewhere])


def render_classes(kinds: list[type[BecketError]]) -> str:
    rows = [f"| {name_of(kind)} | {describe_fields(kind)} | {describe_class(kind)} |" for kind in kinds]
    return "\n".join(["| class | fields | meaning |", "|---|---|---|", *rows, ""])


def name_of(kind: type[BecketError]) -> str:
    also = [other.__name__ for other in kind.__bases__ if not issubclass(other, BecketError)]
    name = f"`{kind.__name__}`" if kind.__name__ in becket.__all__ else f"`errors.{kind.__name__}`"
    if not also or kind is BecketError:
        return name
    return f"{name}, also {'an' if also[0][0] in 'AEIOU' else 'a'} `{also[0]}`"


def describe_fields(kind: type[BecketError]) -> str:
    """Returns the fields of a class: its own, and the name of the class that it has the others from."""
    own = ", ".join(fields_of(kind))
    for base in kind.__mro__[1:]:
        if issubclass(base, BecketError) and fields_of(base):
            return f"{own}; those of `{base.__name__}`" if own else f"those of `{base.__name__}`"
    return own


def fields_of(kind: type[BecketError]) -> list[str]:
    """Returns the attributes that the constructor of a class itself sets."""
    if "__init__" not in vars(kind):
        return []
    tree = ast.parse(dedent(inspect.getsource(kind.__init__)))
    return [
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    ]


def describe_class(kind: type[BecketError]) -> str:
    return " ".join((kind.__doc__ or "").split())


# -- numbers, reasons, children


def render_codes() -> str:
    rows = [f"| {number} | `{meaning.name}` | {meaning.value} |" for meaning, number in ERROR_CODES.items()]
    assert set(ERROR_CODES) == set(Meaning)
    return "\n".join(["| code | `Meaning` | default message |", "|---|---|---|", *rows, ""])


def render_reasons() -> str:
    rows = [f"| `{reason.name}` | {reason.value} |" for reason in DisconnectReason]
    return "\n".join(["| `DisconnectReason` | meaning |", "|---|---|", *rows, ""])


def render_children() -> str:
    rows = [f"| `{name}` | {does} |" for name, does in CHILDREN.items()]
    return "\n".join(["| name | what it does |", "|---|---|", *rows, ""])


PARTS: dict[str, Callable[[], str]] = {
    "tree of errors": render_tree,
    "protocol errors": render_protocol_errors,
    "error responses": render_response_errors,
    "outcomes": render_outcomes,
    "codes": render_codes,
    "reasons": render_reasons,
    "children": render_children,
}
for tables in (
    architecture_tables,
    cli_tables,
    conformance_tables,
    contract_tables,
    dialect_tables,
    host_tables,
    manifest_tables,
):
    assert not PARTS.keys() & tables.PARTS.keys(), "two parts have one name"
    PARTS |= tables.PARTS


def write_pages(pages: list[Path]) -> list[Path]:
    """Writes the generated parts of these pages and returns those that have changed."""
    changed: list[Path] = []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        after = render_page(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            changed.append(page)
    return changed
