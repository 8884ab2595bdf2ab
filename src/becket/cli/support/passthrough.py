"""click command class that takes another program's command line after `--`."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["PassthroughCommand"]

SEPARATOR = "--"


class PassthroughCommand(click.Command):
    """A command whose function gets the words after `--` as `program`, without parsing them."""

    def __init__(self, *arguments: Any, needs_program: bool = True, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.needs_program = needs_program

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Splits off the words after `--`, then parses the rest."""
        own, program = args, list[str]()
        if SEPARATOR in args:
            at = args.index(SEPARATOR)
            own, program = args[:at], args[at + 1 :]
        if (
            not program
            and (self.needs_program or SEPARATOR in args)
            and not ctx.resilient_parsing
            and not wants_help(ctx, own)
        ):
            raise click.UsageError("A program is missing after `--`, such as: ... -- python3 notes.py", ctx)
        left = super().parse_args(ctx, own)
        ctx.params["program"] = tuple(program)
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Returns the words of the usage line after the command's name."""
        parts = [part for part in super().collect_usage_pieces(ctx) if part]  # an argument may have no name
        return [*parts, "-- CMD..." if self.needs_program else "[-- CMD...]"]


def wants_help(ctx: click.Context, words: list[str]) -> bool:
    return any(word in ctx.help_option_names for word in words)
