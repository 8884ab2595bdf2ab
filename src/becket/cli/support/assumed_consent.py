"""`--yes` of commands that change nothing: treats extensions as if consent were given, and writes no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from becket.host.host import HostSurvey
from becket.host.host_config import ExtensionConfig
from becket.host.starting.start_check import NeedsConsent, StartAllowed, StartDecision, StartRefused
from becket.permissions.grants import Grants

__all__ = ["assume_consent", "give_assumed"]


def assume_consent(survey: HostSurvey) -> HostSurvey:
    """Returns a survey in which every extension that needs consent has it."""
    return replace(survey, start_decisions={id: assume(one) for id, one in survey.start_decisions.items()})


def assume(decision: StartDecision) -> StartDecision:
    match decision:
        case NeedsConsent():
            return StartAllowed(
                extension=decision.extension,
                command=decision.command,
                cwd=decision.cwd,
                digest=decision.digest,
                grants=Grants(frozenset(decision.held).union(decision.permissions)),
            )
        case StartAllowed(undecided=undecided, grants=grants):
            return replace(decision, grants=Grants(grants.allow.union(undecided), grants.deny), undecided=())
        case StartRefused():
            return decision


def give_assumed(arguments: Mapping[str, Any], survey: HostSurvey) -> dict[str, Any]:
    """Returns arguments for a `Host` that starts extensions as with consent, for this run only.

    Grants in arguments are never written to the grants file."""
    grants: dict[str, Grants] = dict(arguments.get("grants") or {})
    extensions: dict[str, ExtensionConfig] = dict(arguments.get("extensions") or {})
    for id, decision in survey.start_decisions.items():
        assumed = assume(decision)
        if not isinstance(assumed, StartAllowed):
            continue
        before = grants.get(id, Grants())
        grants[id] = Grants(before.allow | assumed.grants.allow, before.deny | assumed.grants.deny)
        if requested := survey.variables[id].requested:
            config = extensions.get(id, ExtensionConfig())
            extensions[id] = replace(config, allow_variables=(*config.allow_variables, *requested))
    return {"grants": grants, "extensions": extensions, "ask": None}
