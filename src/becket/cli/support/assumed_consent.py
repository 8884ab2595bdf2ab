"""What `--yes` means where nothing is to change: extensions are looked at as if consent were given, and no file is
written."""

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
    """Returns a survey in which every extension that waits for consent has it."""
    return replace(survey, start_decisions={id: assume(one) for id, one in survey.start_decisions.items()})


def assume(admission: StartDecision) -> StartDecision:
    match admission:
        case NeedsConsent():
            return StartAllowed(
                extension=admission.extension,
                command=admission.command,
                cwd=admission.cwd,
                digest=admission.digest,
                grants=Grants(frozenset(admission.held).union(admission.permissions)),
            )
        case StartAllowed(undecided=undecided, grants=grants):
            return replace(admission, grants=Grants(grants.allow.union(undecided), grants.deny), undecided=())
        case StartRefused():
            return admission


def give_assumed(arguments: Mapping[str, Any], survey: HostSurvey) -> dict[str, Any]:
    """Returns arguments of `Host` with which it starts what it would start with consent, for this run alone.

    What is given by arguments is never written to the file of grants."""
    grants: dict[str, Grants] = dict(arguments.get("grants") or {})
    extensions: dict[str, ExtensionConfig] = dict(arguments.get("extensions") or {})
    for id, admission in survey.start_decisions.items():
        agreed = assume(admission)
        if not isinstance(agreed, StartAllowed):
            continue
        before = grants.get(id, Grants())
        grants[id] = Grants(before.allow | agreed.grants.allow, before.deny | agreed.grants.deny)
        if requested := survey.variables[id].requested:
            config = extensions.get(id, ExtensionConfig())
            extensions[id] = replace(config, allow_variables=(*config.allow_variables, *requested))
    return {"grants": grants, "extensions": extensions, "ask": None}
