"""`becket list`: lists extensions and whether each would start, without starting any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from becket.cli.support.assumed_consent import assume_consent
from becket.cli.support.options import HostOptions, host_options
from becket.cli.support.output import json_option, pluralize, print_json, print_message, print_table
from becket.host.hook_plan import describe_order
from becket.host.redaction import redact_command
from becket.host.starting.candidate import Candidate
from becket.host.starting.start_check import NeedsConsent, StartAllowed, StartDecision, StartRefused

__all__ = ["list_extensions", "refusal_reason"]

HEADERS = ("extension", "version", "dialect", "starts", "permissions", "variables", "folder")


@click.command("list")
@host_options(roots="argument")
@json_option
def list_extensions(options: HostOptions, as_json: bool) -> None:
    """List the extensions in ROOTS, or in the current folder, and whether each would start.

    The variables are those that an extension would see in addition to the base list. Extensions that are skipped or
    would not start are listed on stderr with the reason. This command neither starts extensions nor prompts; --yes
    assumes consent for all extensions.

    \b
    becket list extensions
    becket list --config host.toml --json
    """
    survey = options.build_host().survey()
    if options.yes:
        survey = assume_consent(survey)
    found = [
        (candidate, survey.start_decisions[candidate.id], survey.variables[candidate.id].names)
        for candidate in survey.report.candidates
    ]
    if as_json:
        print_json([build_object(*one, survey.hook_order) for one in found])
    else:
        if found:
            print_table(HEADERS, [row_of(*one) for one in found])
        if len(survey.hook_order) > 1:
            print_message(describe_order(survey.hook_order))
    for diagnostic in survey.report.diagnostics:
        print_message(f"skipped: {diagnostic}")
    for candidate, decision, _ in found:
        if would_start(decision) == "no":
            print_message(f"does not start: {candidate.id}: {refusal_reason(decision)}")
    broken = survey.report.invalid
    if broken or not found:
        doctor = options.command_lines().look("doctor")
        print_message(f"{pluralize(len(found), 'extension')}, {pluralize(broken, 'invalid manifest')} (try: {doctor})")


def row_of(candidate: Candidate, decision: StartDecision, variables: Sequence[str]) -> tuple[str, ...]:
    manifest = candidate.manifest
    requested = (", ".join(manifest.permissions), ", ".join(variables))
    return candidate.id, manifest.version, manifest.dialect, would_start(decision), *requested, candidate.folder


def build_object(
    candidate: Candidate, decision: StartDecision, variables: Sequence[str], hook_order: Sequence[str]
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
        "granted": sorted(decision.grants.allow) if isinstance(decision, StartAllowed) else [],
        "starts": would_start(decision),
        "because": refusal_reason(decision),
        "hooks": [hook.hook for hook in manifest.hooks],
        "required_hooks": [hook.hook for hook in manifest.hooks if hook.required],
        "hook_position": hook_order.index(candidate.id) + 1 if candidate.id in hook_order else None,
    }


def would_start(decision: StartDecision) -> str:
    """Returns whether an extension would start: `yes`, `no`, or `ask` (after consent)."""
    match decision:
        case StartAllowed():
            return "yes"
        case NeedsConsent(is_refused=False):
            return "ask"
        case NeedsConsent() | StartRefused():
            return "no"


def refusal_reason(decision: StartDecision) -> str:
    """Returns why an extension would not start; an empty string if it would."""
    match decision:
        case StartAllowed():
            return ""
        case NeedsConsent():
            return decision.build_refusal.because
        case StartRefused():
            return decision.because
