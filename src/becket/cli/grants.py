"""`becket grant` and `becket revoke`: edit `grants.toml` and record it in the audit."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import ROOT, DataDirOptions, data_dir_options, permission_names
from becket.cli.support.output import json_option, print_json, print_line, print_message
from becket.contract.audit import ConsentRefused, GrantChanged
from becket.dialects import DIALECTS
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS
from becket.host.audit_log import AuditFile
from becket.host.data_dir import DataDir
from becket.host.host import Host
from becket.host.starting.approvals import Approval, find_changes, load_approval, save_approval
from becket.host.starting.consent_request import describe_request
from becket.host.starting.discovery import Candidate
from becket.host.starting.environment import ExtensionVariables, list_variables, prefer_own_python
from becket.host.starting.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.starting.programs import list_program_folders
from becket.host.starting.start_check import (
    NeedsConsent,
    configured_variables,
    declared_environment,
    digest_candidate,
    list_files,
    run_preflight,
)
from becket.permissions.names import parse_permission
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
@data_dir_options
@json_option
def grant(
    options: DataDirOptions,
    extension: str,
    permissions: tuple[str, ...],
    roots: tuple[Path, ...],
    variables: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> ExitCode | None:
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
    places = options.data_dir()
    candidate = find_candidate(options, roots, extension)
    consent = None if candidate is None else describe_consent(candidate, places)
    approval = None if candidate is None or consent is None else describe_approval(candidate, consent, places)
    if not (names or variables):
        if consent is None or approval is None:
            print_message(f"error: {extension} was not found: name the permissions, or say where it is with --root")
            return ExitCode.NOT_FOUND
        if not (yes or prompt_consent(consent, approval, places)):
            print_message(f"{extension}: nothing was granted")
            return ExitCode.DENIED
        names = [parse_permission(name) for name in consent.permissions]
        variables = consent.variables.requested
    digest = "" if consent is None else consent.digest
    entry = edit_permissions(places, extension, names, given=True, digest=digest, variables=variables)
    if approval is not None:
        save_approval(places.approval_of(extension), approval)
    print_entry(extension, entry, places, as_json)
    return None


@click.command()
@click.argument("extension")
@PERMISSIONS
@data_dir_options
@json_option
def revoke(options: DataDirOptions, extension: str, permissions: tuple[str, ...], as_json: bool) -> ExitCode | None:
    """Take these PERMISSIONS away from EXTENSION, whoever else gives them.

    Without PERMISSIONS: forget all that was agreed to or refused, so that consent is asked for anew when it starts
    next. A running host takes it over, and ends what runs on them.

    \b
    becket revoke notes memory.write
    becket revoke notes
    """
    names = [parse_permission(name) for name in permissions]
    places = options.data_dir()
    if names:
        entry = edit_permissions(places, extension, names, given=False)
    else:
        before = load_grants(places.grants).get(extension)
        if before is None:
            print_message(f"error: nothing was granted to {extension} in {places.grants}")
            return ExitCode.NOT_FOUND
        edit_grants(places.grants, extension, lambda _: None)
        places.approval_of(extension).unlink(missing_ok=True)
        record_change(places, extension, before.allow, given=False, withdraws=bool(before.refused))
        entry = GrantEntry()
    print_entry(extension, entry, places, as_json)
    return None


def find_candidate(options: DataDirOptions, roots: tuple[Path, ...], extension: str) -> Candidate | None:
    """Returns the extension as a host would find it, with what the configuration says of it."""
    config = options.load_config()
    if config is None:
        host = Host(roots or (Path(),), data=None)
    else:
        found_in = roots or config.roots or (Path(),)
        host = Host(found_in, data=None, discovery=config.discovery, extensions=config.extensions)
    return next((candidate for candidate in host.discover().candidates if candidate.id == extension), None)


def describe_consent(candidate: Candidate, places: DataDir) -> NeedsConsent:
    """Returns what a consent to an extension with all that it asks for is about.

    Raises:
        BadFile: its files cannot be read.
    """
    manifest = candidate.manifest
    path = prefer_own_python(os.environ).get("PATH", "")
    found = run_preflight(candidate, variables=os.environ, program_folders=list_program_folders(path))
    return NeedsConsent(
        extension=manifest.id,
        version=manifest.version,
        command=found.command or manifest.command,
        runs_in=found.runs_in,
        digest=digest_candidate(candidate, without=[str(places.folder)]),
        permissions=manifest.permissions,
        variables=variables_of(candidate),
        programs=found.programs,
    )


def describe_approval(candidate: Candidate, consent: NeedsConsent, places: DataDir) -> Approval:
    return consent.approval(list_files(candidate, consent.digest, without=[str(places.folder)]))


def prompt_consent(consent: NeedsConsent, approval: Approval, places: DataDir) -> bool:
    """Asks the person at the terminal; where there is none, it is no."""
    from becket.cli.support.prompt import is_interactive

    last = load_grants(places.grants).get(consent.extension, GrantEntry()).digest
    before = load_approval(places.approval_of(consent.extension))
    consent = replace(consent, approved_digest=last if last != consent.digest else "")
    question = describe_request(consent.request(find_changes(before, approval, digest=last)))
    if not is_interactive():
        print_message(f"{question}\nthere is nobody to ask: look at it, then add --yes")
        return False
    print_message(question)
    return click.confirm("yes", err=True)


def variables_of(candidate: Candidate) -> ExtensionVariables:
    """Returns the variables that an extension asks for and sets, by itself and by what the operator says of it."""
    manifest, operator = candidate.manifest, candidate.operator
    dialect = DIALECTS.get(manifest.dialect)
    return list_variables(
        manifest.environment if candidate.is_operator_defined else declared_environment(manifest),
        configured_variables(manifest),
        operator.environment,
        allowed=operator.allow_variables,
        habits=STANDARD_HOST_DEFAULTS if dialect is None else dialect.host_defaults,
    )


def edit_permissions(
    places: DataDir,
    extension: str,
    names: Iterable[str],
    *,
    given: bool,
    digest: str = "",
    variables: Iterable[str] = (),
) -> GrantEntry:
    """Changes the entry of an extension and writes that into the audit; returns what holds now."""
    names = list(names)
    refused: list[str] = []

    def edit(entry: GrantEntry) -> GrantEntry:
        changed = entry.with_grants(names, digest, variables) if given else entry.with_denials(names)
        refused.append("" if changed.refused else entry.refused)
        return changed

    entry = edit_grants(places.grants, extension, edit)
    record_change(places, extension, names, given=given, withdraws=any(refused))
    return entry or GrantEntry()


def record_change(places: DataDir, extension: str, names: Iterable[str], *, given: bool, withdraws: bool) -> None:
    """Writes into the audit which grants have changed, and whether this `withdraws` a refusal."""
    file = AuditFile(places.audit)  # a host that runs may write to it as well
    try:
        if withdraws:
            file.write(ConsentRefused(extension, OPERATOR, withdrawn=True), now_ms())
        for name in names:
            file.write(GrantChanged(extension, name, given, OPERATOR), now_ms())
    finally:
        file.close()


def print_entry(extension: str, entry: GrantEntry, places: DataDir, as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {"extension": extension, "allow": entry.allow, "deny": entry.deny}
        shown |= {"variables": entry.variables, "digest": entry.digest, "refused": bool(entry.refused)}
        print_json({**shown, "file": str(places.grants)})
        return
    allowed, denied = (", ".join(names) or "nothing" for names in (entry.allow, entry.deny))
    variables = f"; variables: {', '.join(entry.variables)}" if entry.variables else ""
    refused = "; consent was refused" if entry.refused else ""
    print_line(f"{extension}: allowed: {allowed}; denied: {denied}{variables}{refused}")
