"""Writes `becket/adapters/lsp/methods.py` from lsprotocol's table: `python -m tests.adapters.lsp.write_methods`."""

from __future__ import annotations

from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from lsprotocol import types

from becket.adapters import lsp
from becket.adapters.lsp import descriptors
from becket.adapters.lsp.conversion import params_type, result_type

WIDTH = 120
HEAD = '''"""Lists every LSP method and notification as a descriptor. Generated; do not edit.

Written by `python -m tests.adapters.lsp.write_methods` from lsprotocol's table; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from becket.adapters.lsp.descriptors import build_method, build_notification, build_stream
from becket.adapters.lsp.progress import Progress, WorkDone
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream
'''


def build_module() -> str:
    """Returns the text of the module."""
    named = {value: name for name, value in vars(types).items() if isinstance(value, str) and name.isupper()}
    lines = dict(sorted((named[wire], line_of(wire, named[wire])) for wire in types.METHOD_TO_TYPES))
    listed = "\n".join(f'    "{name}",' for name in lines)
    return f"{HEAD}\n__all__ = [\n{listed}\n]\n\n" + "\n".join(lines.values()) + "\n"


def line_of(wire: str, name: str) -> str:
    params = params_type(wire)
    parts = ["None" if params is None else source(params)]
    if types.METHOD_TO_TYPES[wire][1] is None:
        kind = "notification"
    else:
        parts.append(source(result_type(wire)))
        kind = "method"
        if descriptors.is_stream(wire):
            kind = "stream"
            partial = descriptors.partial_type(wire)
            parts.append("WorkDone" if partial is None else f"Progress[{source(partial)}]")
    made = f"build_{kind}(types.{name})"
    line = f"{name}: {kind.title()}[{', '.join(parts)}] = {made}"
    if len(line) <= WIDTH:
        return line
    if len(parts) == 1:
        return f"{name}: {kind.title()}[{parts[0]}] = build_{kind}(\n    types.{name}\n)"
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{name}: {kind.title()}[\n{inner}] = {made}"


def source(kind: Any) -> str:
    """Returns a type as it is written in a program."""
    if kind is NoneType:
        return "None"
    if kind is Any or isinstance(kind, type):
        return "Any" if kind in (Any, object) else f"types.{kind.__name__}"
    arguments = [source(argument) for argument in get_args(kind)]
    if get_origin(kind) in (Union, UnionType):
        return "Any" if "Any" in arguments else " | ".join(arguments)
    return f"Sequence[{', '.join(arguments)}]"


def path() -> Path:
    """Returns the path of the module."""
    return Path(lsp.__file__).with_name("methods.py")


if __name__ == "__main__":
    path().write_text(build_module(), encoding="utf-8")
