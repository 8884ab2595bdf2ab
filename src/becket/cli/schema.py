"""`becket schema`: lists and prints the JSON Schemas and the OpenRPC document."""

from __future__ import annotations

import click
import msgspec
from click.shell_completion import CompletionItem

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.output import json_option, print_json, print_line, print_message
from becket.json_schema.files import schema_folder, schema_names

__all__ = ["schema"]

OPENRPC = "openrpc"


def complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in all_names() if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@json_option
def schema(name: str | None, as_json: bool) -> ExitCode | None:
    """List the JSON Schemas of the contract, or print the one with this NAME.

    \b
    becket schema
    becket schema manifest > manifest.schema.json
    """
    names = all_names()
    if name is None:
        if as_json:
            print_json(names)
        for one in () if as_json else names:
            print_line(one)
        return None
    if name not in names:  # so that an arbitrary name never becomes a path
        print_message(f"error: no schema `{name}`; schemas: {', '.join(names)}")
        return ExitCode.NOT_FOUND
    file = f"{name}.json" if name == OPENRPC else f"{name}.schema.json"
    data = schema_folder().joinpath(file).read_bytes()
    print_line((msgspec.json.format(data, indent=-1) if as_json else data).decode().rstrip("\n"))
    return None


def all_names() -> list[str]:
    return sorted([*schema_names(), OPENRPC])
