"""`becket grant` and `becket revoke`: edit `grants.toml` and record the change in the audit log."""

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
from becket.host.host_settings import HostSettings
from becket.host.starting.approvals import Approval, find_changes, load_approval, save_approval
from becket.host.starting.candidate import Candidate
from becket.host.starting.consent_request import describe_request
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
@click.option(
    "--root", "-r", "roots", multiple=True, type=ROOT, metavar="PATH", help="Folder to search for the extension."
)
@click.option("--variable", "variables", multiple=True, metavar="NAME", help="Pass this variable to it; repeatable.")
@click.option("--yes", "-y", is_flag=True, help="Grant everything that the extension requests, without a prompt.")
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
    """Grant EXTENSION these PERMISSIONS, for its current files.

    Without PERMISSIONS and --variable, grant everything that its manifest requests, after a prompt. The extension is
    searched for in the given roots, in those of the configuration, or in the current folder; if it is not found, the
    grant applies to the files that it has at its next start. A running host applies the change, and starts an extension
    that it has refused before.

    \b
    becket grant notes memory.read memory.write
    becket grant notes --variable NOTES_DIR
    becket grant notes --root extensions
    """
    names = [parse_permission(name) for name in permissions]
    data_dir = options.data_dir()
    candidate = find_candidate(options, roots, extension)
    consent = None if candidate is None else describe_consent(candidate, data_dir)
    approval = None if candidate is None or consent is None else describe_approval(candidate, consent, data_dir)
    if not (names or variables):
        if consent is None or approval is None:
            print_message(f"error: {extension} was not found: name the permissions, or its folder with --root")
            return ExitCode.NOT_FOUND
        if not (yes or prompt_consent(consent, approval, data_dir)):
            print_message(f"{extension}: nothing was granted")
            return ExitCode.DENIED
        names = [parse_permission(name) for name in consent.permissions]
        variables = consent.variables.requested
    digest = "" if consent is None else consent.digest
    entry = edit_permissions(data_dir, extension, names, is_granted=True, digest=digest, variables=variables)
    if approval is not None:
        save_approval(data_dir.approval_of(extension), approval)
    print_entry(extension, entry, data_dir, as_json)
    return None


@click.command()
@click.argument("extension")
@PERMISSIONS
@data_dir_options
@json_option
def revoke(options: DataDirOptions, extension: str, permissions: tuple[str, ...], as_json: bool) -> ExitCode | None:
    """Deny EXTENSION these PERMISSIONS, even if the configuration grants them.

    Without PERMISSIONS, remove its approval or refusal, so that its next start needs consent again. A running host
    applies the change, and ends calls and streams that depend on revoked permissions.

    \b
    becket revoke notes memory.write
    becket revoke notes
    """
    names = [parse_permission(name) for name in permissions]
    data_dir = options.data_dir()
    if names:
        entry = edit_permissions(data_dir, extension, names, is_granted=False)
    else:
        before = load_grants(data_dir.grants).get(extension)
        if before is None:
            print_message(f"error: nothing was granted to {extension} in {data_dir.grants}")
            return ExitCode.NOT_FOUND
        edit_grants(data_dir.grants, extension, lambda _: None)
        data_dir.approval_of(extension).unlink(missing_ok=True)
        record_change(data_dir, extension, before.allow, is_granted=False, withdraws=bool(before.refused))
        entry = GrantEntry()
    print_entry(extension, entry, data_dir, as_json)
    return None


def find_candidate(options: DataDirOptions, roots: tuple[Path, ...], extension: str) -> Candidate | None:
    """Returns the extension as a host would find it, with its entry in the configuration."""
    config = options.load_config()
    if config is None:
        host = Host(roots or (Path(),), data=None)
    else:
        found_in = roots or config.roots or (Path(),)
        host = Host(
            found_in, data=None, settings=HostSettings(discovery=config.discovery, extensions=config.extensions)
        )
    return next((candidate for candidate in host.discover().candidates if candidate.id == extension), None)


def describe_consent(candidate: Candidate, data_dir: DataDir) -> NeedsConsent:
    """Returns the consent that is needed to grant everything an extension requests.

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
        digest=digest_candidate(candidate, without=[str(data_dir.folder)]),
        permissions=manifest.permissions,
        variables=variables_of(candidate),
        programs=found.programs,
    )


def describe_approval(candidate: Candidate, consent: NeedsConsent, data_dir: DataDir) -> Approval:
    return consent.approval(list_files(candidate, consent.digest, without=[str(data_dir.folder)]))


def prompt_consent(consent: NeedsConsent, approval: Approval, data_dir: DataDir) -> bool:
    """Prompts for consent; returns False if there is no terminal."""
    from becket.cli.support.terminal_prompt import is_interactive

    last = load_grants(data_dir.grants).get(consent.extension, GrantEntry()).digest
    before = load_approval(data_dir.approval_of(consent.extension))
    consent = replace(consent, approved_digest=last if last != consent.digest else "")
    question = describe_request(consent.request(find_changes(before, approval, digest=last)))
    if not is_interactive():
        print_message(f"{question}\ncannot prompt without a terminal: review this, then add --yes")
        return False
    print_message(question)
    return click.confirm("yes", err=True)


def variables_of(candidate: Candidate) -> ExtensionVariables:
    """Returns the variables that an extension requests and sets, in its manifest and in the host's configuration."""
    manifest, operator = candidate.manifest, candidate.operator
    dialect = DIALECTS.get(manifest.dialect)
    return list_variables(
        manifest.environment if candidate.is_operator_defined else declared_environment(manifest),
        configured_variables(manifest),
        operator.environment,
        allowed=operator.allow_variables,
        defaults=STANDARD_HOST_DEFAULTS if dialect is None else dialect.host_defaults,
    )


def edit_permissions(
    data_dir: DataDir,
    extension: str,
    names: Iterable[str],
    *,
    is_granted: bool,
    digest: str = "",
    variables: Iterable[str] = (),
) -> GrantEntry:
    """Changes the entry of an extension, records that in the audit log, and returns the new entry."""
    names = list(names)
    refused: list[str] = []

    def edit(entry: GrantEntry) -> GrantEntry:
        changed = entry.with_grants(names, digest, variables) if is_granted else entry.with_denials(names)
        refused.append("" if changed.refused else entry.refused)
        return changed

    entry = edit_grants(data_dir.grants, extension, edit)
    record_change(data_dir, extension, names, is_granted=is_granted, withdraws=any(refused))
    return entry or GrantEntry()


def record_change(
    data_dir: DataDir, extension: str, names: Iterable[str], *, is_granted: bool, withdraws: bool
) -> None:
    """Records changed grants in the audit log, and whether this `withdraws` a refusal."""
    file = AuditFile(data_dir.audit)  # a running host may write to it at the same time
    try:
        if withdraws:
            file.write(ConsentRefused(extension, OPERATOR, withdrawn=True), now_ms())
        for name in names:
            file.write(GrantChanged(extension, name, is_granted, OPERATOR), now_ms())
    finally:
        file.close()


def print_entry(extension: str, entry: GrantEntry, data_dir: DataDir, as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {"extension": extension, "allow": entry.allow, "deny": entry.deny}
        shown |= {"variables": entry.variables, "digest": entry.digest, "refused": bool(entry.refused)}
        print_json({**shown, "file": str(data_dir.grants)})
        return
    allowed, denied = (", ".join(names) or "nothing" for names in (entry.allow, entry.deny))
    variables = f"; variables: {', '.join(entry.variables)}" if entry.variables else ""
    refused = "; consent was refused" if entry.refused else ""
    print_line(f"{extension}: allowed: {allowed}; denied: {denied}{variables}{refused}")
