"""`becket grant` and `becket revoke`: change `grants.toml`, with a record in the audit of the host."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from becket.cli.exits import Exit
from becket.cli.hosting import ROOT, PlaceOptions, permission_names, place_options
from becket.cli.output import json_option, print_json, print_line, say
from becket.contract.audit import GrantChanged
from becket.dialects import DIALECTS
from becket.dialects.habits import DEFAULT_HABITS
from becket.host.audit_log import AuditFile
from becket.host.discovery import Candidate, discover_extensions
from becket.host.environment import ExtensionVariables, list_variables, with_own_programs
from becket.host.gate import NeedsConsent, configured_variables, declared_environment, digest_candidate, look_at
from becket.host.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.places import Places
from becket.host.programs import list_program_folders
from becket.methods.permissions import parse_permission
from becket.stores.store import now_ms

__all__ = ["grant", "revoke"]

OPERATOR = "operator"


def complete_permission(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in permission_names() if name.startswith(incomplete)]


PERMISSIONS = click.argument("permissions", nargs=-1, shell_complete=complete_permission)


@click.command()
@click.argument("extension")
@PERMISSIONS
@click.option("--root", "-r", "roots", multiple=True, type=ROOT, metavar="PATH", help="Look for the extension here.")
@click.option("--variable", "variables", multiple=True, metavar="NAME", help="Let it see this variable; repeatable.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before all is granted that the extension asks for.")
@place_options
@json_option
def grant(
    options: PlaceOptions,
    extension: str,
    permissions: tuple[str, ...],
    roots: tuple[Path, ...],
    variables: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> Exit | None:
    """Give EXTENSION these PERMISSIONS, for the files that it has now.

    Without PERMISSIONS and variables: all that its manifest asks for, once you have agreed. The extension is looked for
    in the roots that were given, in those of the configuration, or in the current folder; where it is not found, what
    is named holds for the files that it has when it starts next. A running host takes them over, and starts an
    extension that it has refused before.

    \b
    becket grant notes memory.read memory.write
    becket grant notes --variable NOTES_DIR
    becket grant notes --root extensions
    """
    names = [parse_permission(name) for name in permissions]
    places = options.places()
    candidate = find_candidate(options, roots, extension)
    digest = "" if candidate is None else digest_candidate(candidate, without=[str(places.folder)])
    if not (names or variables):
        if candidate is None:
            say(f"error: {extension} was not found: name the permissions, or say where it is with --root")
            return Exit.NOT_FOUND
        if not (yes or has_agreed(candidate, digest)):
            say(f"{extension}: nothing was granted")
            return Exit.DENIED
        names = [parse_permission(name) for name in candidate.manifest.permissions]
        variables = variables_of(candidate).requested
    entry = change(places, extension, names, given=True, digest=digest, variables=variables)
    show(extension, entry, places, as_json)
    return None


@click.command()
@click.argument("extension")
@PERMISSIONS
@place_options
@json_option
def revoke(options: PlaceOptions, extension: str, permissions: tuple[str, ...], as_json: bool) -> Exit | None:
    """Take these PERMISSIONS away from EXTENSION, whoever else gives them.

    Without PERMISSIONS: forget all that was agreed to, so that it has to be agreed to anew when it starts next. A
    running host takes it over, and ends what runs on them.

    \b
    becket revoke notes memory.write
    becket revoke notes
    """
    names = [parse_permission(name) for name in permissions]
    places = options.places()
    if names:
        entry = change(places, extension, names, given=False)
    else:
        before = load_grants(places.grants).get(extension)
        if before is None:
            say(f"error: nothing was granted to {extension} in {places.grants}")
            return Exit.NOT_FOUND
        edit_grants(places.grants, extension, lambda _: None)
        record(places, extension, before.allow, given=False)
        entry = GrantEntry()
    show(extension, entry, places, as_json)
    return None


def find_candidate(options: PlaceOptions, roots: tuple[Path, ...], extension: str) -> Candidate | None:
    config = options.load_config()
    if config is None:
        report = discover_extensions(roots or (Path(),))
    else:
        report = discover_extensions(roots or config.roots or (Path(),), settings=config.discovery)
    return next((candidate for candidate in report.candidates if candidate.id == extension), None)


def has_agreed(candidate: Candidate, digest: str) -> bool:
    """Asks the person at the terminal; where there is none, it is no."""
    from becket.cli.asking import can_ask

    manifest = candidate.manifest
    path = with_own_programs(os.environ).get("PATH", "")
    found = look_at(candidate, variables=os.environ, program_folders=list_program_folders(path))
    asked = NeedsConsent(
        extension=manifest.id,
        version=manifest.version,
        command=found.command or manifest.command,
        runs_in=found.runs_in,
        digest=digest,
        permissions=manifest.permissions,
        variables=variables_of(candidate),
    )
    if not can_ask():
        say(f"{asked.question}\nthere is nobody to ask: look at it, then add --yes")
        return False
    say(asked.question)
    return click.confirm("yes", err=True)


def variables_of(candidate: Candidate) -> ExtensionVariables:
    """Returns the variables outside the base list that a manifest asks for and sets."""
    manifest = candidate.manifest
    dialect = DIALECTS.get(manifest.dialect)
    habits = DEFAULT_HABITS if dialect is None else dialect.habits
    return list_variables(declared_environment(manifest), configured_variables(manifest), habits=habits)


def change(
    places: Places,
    extension: str,
    names: Iterable[str],
    *,
    given: bool,
    digest: str = "",
    variables: Iterable[str] = (),
) -> GrantEntry:
    """Changes the entry of an extension and writes that into the audit; returns what holds now."""
    names = list(names)
    entry = edit_grants(
        places.grants,
        extension,
        lambda entry: entry.granting(names, digest, variables) if given else entry.denying(names),
    )
    record(places, extension, names, given=given)
    return entry or GrantEntry()


def record(places: Places, extension: str, names: Iterable[str], *, given: bool) -> None:
    file = AuditFile(places.audit)  # a host that runs may write to it as well
    try:
        for name in names:
            file.write(GrantChanged(extension, name, given, OPERATOR), now_ms())
    finally:
        file.close()


def show(extension: str, entry: GrantEntry, places: Places, as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {"extension": extension, "allow": entry.allow, "deny": entry.deny}
        print_json({**shown, "variables": entry.variables, "digest": entry.digest, "file": str(places.grants)})
        return
    allowed, denied = (", ".join(names) or "nothing" for names in (entry.allow, entry.deny))
    variables = f"; variables: {', '.join(entry.variables)}" if entry.variables else ""
    print_line(f"{extension}: allowed: {allowed}; denied: {denied}{variables}")
