"""`becket list`: which extensions there are, and whether each would start. Nothing is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from becket.cli.assumed_consent import assume_consent
from becket.cli.hosting import HostOptions, host_options
from becket.cli.output import json_option, print_json, print_table, say
from becket.host.discovery import Candidate
from becket.host.gate import Admission, Admitted, NeedsConsent, Skipped
from becket.host.hook_plan import describe_order
from becket.host.redaction import redact_command

__all__ = ["list_extensions", "why_not"]

HEADERS = ("extension", "version", "dialect", "starts", "permissions", "variables", "folder")


@click.command("list")
@host_options(roots="argument")
@json_option
def list_extensions(options: HostOptions, as_json: bool) -> None:
    """List the extensions in ROOTS, or in the current folder, and whether each would start.

    The variables are those that each would see besides the few that all see. What was found and is not listed, or does
    not start, is named on stderr with the reason. Nothing is started and nobody is asked; with --yes all are listed as
    if consent were given.

    \b
    becket list extensions
    becket list --config host.toml --json
    """
    survey = options.open().survey()
    if options.yes:
        survey = assume_consent(survey)
    found = [
        (candidate, survey.admissions[candidate.id], survey.variables[candidate.id].names)
        for candidate in survey.report.candidates
    ]
    if as_json:
        print_json([describe(*one, survey.hook_order) for one in found])
    else:
        if found:
            print_table(HEADERS, [row_of(*one) for one in found])
        if len(survey.hook_order) > 1:
            say(describe_order(survey.hook_order))
    for diagnostic in survey.report.diagnostics:
        say(f"skipped: {diagnostic}")
    for candidate, admission, _ in found:
        if would_start(admission) == "no":
            say(f"does not start: {candidate.id}: {why_not(admission)}")
    broken = survey.report.invalid
    if broken or not found:
        doctor = options.command_lines().look("doctor")
        say(f"{len(found)} extensions, {broken} manifests that cannot be used (try: {doctor})")


def row_of(candidate: Candidate, admission: Admission, variables: Sequence[str]) -> tuple[str, ...]:
    manifest = candidate.manifest
    asked = (", ".join(manifest.permissions), ", ".join(variables))
    return candidate.id, manifest.version, manifest.dialect, would_start(admission), *asked, candidate.folder


def describe(
    candidate: Candidate, admission: Admission, variables: Sequence[str], hook_order: Sequence[str]
) -> dict[str, Any]:
    manifest = candidate.manifest
    return {
        "id": candidate.id,
        "version": manifest.version,
        "name": manifest.name,
        "description": manifest.description,
        "folder": candidate.folder,
        "manifest": candidate.manifest_path,
        "dialect": manifest.dialect,
        "command": redact_command(manifest.command),
        "permissions": manifest.permissions,
        "variables": variables,
        "granted": sorted(admission.grants.allow) if isinstance(admission, Admitted) else [],
        "starts": would_start(admission),
        "because": why_not(admission),
        "hooks": [hook.hook for hook in manifest.hooks],
        "required_hooks": [hook.hook for hook in manifest.hooks if hook.required],
        "hook_position": hook_order.index(candidate.id) + 1 if candidate.id in hook_order else None,
    }


def would_start(admission: Admission) -> str:
    """Returns whether an extension would start: yes, no, or only after consent that is asked for."""
    match admission:
        case Admitted():
            return "yes"
        case NeedsConsent(is_refused=False):
            return "ask"
        case NeedsConsent() | Skipped():
            return "no"


def why_not(admission: Admission) -> str:
    """Returns why an extension would not start, empty where it would."""
    match admission:
        case Admitted():
            return ""
        case NeedsConsent():
            return admission.refusal.because
        case Skipped():
            return admission.because
