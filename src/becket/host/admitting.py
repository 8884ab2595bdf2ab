"""Who comes in: decides whether an extension may start, asks a person where it takes one, and writes the answer down.

What may be decided is the gate's (`host.gate`); here it is brought to the files, the grants and the people of one host.
Starting what may start is the supervisor's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import anyio.to_thread

from becket.dialects import DIALECTS
from becket.host.connecting import required_by
from becket.host.diagnostics import Diagnostic
from becket.host.discovery import Candidate
from becket.host.environment import clean_path
from becket.host.gate import Admission, Admitted, NeedsConsent, Skipped, decide_admission, look_at
from becket.host.grants_file import GrantEntry
from becket.host.kept import Kept
from becket.host.launching import LaunchSettings, read_config
from becket.host.programs import list_program_folders
from becket.methods.permissions import PERMISSIONS, Decision, Grants
from becket.peer.admission import is_async

__all__ = ["Doorkeeper"]

CONSENT_PATIENCE: Final = 60.0  # seconds for a person to agree; no answer is no


class Doorkeeper:
    """Lets extensions into one host. `given` are the grants of the host's own program, `configured` its values for the
    configuration of extensions, and `complain` takes what an operator should know of."""

    def __init__(
        self,
        kept: Kept,
        settings: LaunchSettings,
        *,
        given: Mapping[str, Grants],
        configured: Mapping[str, Mapping[str, object]],
        in_development: bool,
        complain: Callable[[Diagnostic], None],
    ) -> None:
        self._kept = kept
        self._settings = settings
        self._given = given
        self._configured = configured
        self._in_development = in_development
        self._complain = complain

    def decide(self, candidate: Candidate) -> Admission:
        """Returns whether an extension may start, as things are. It reads all of its files: not for a loop."""
        settings = self._settings
        findings = look_at(
            candidate,
            variables=settings.variables,
            program_folders=list_program_folders(clean_path(settings.variables.get("PATH", ""))),
            config=read_config(candidate, settings, self._configured.get(candidate.id)),
            limits=settings.limits,
        )
        return decide_admission(
            candidate.manifest,
            findings,
            entry=self._kept.grants_of(candidate.id),
            given=self._given.get(candidate.id),
            in_development=self._in_development,
            known=PERMISSIONS | required_by(settings.methods),
            dialects=frozenset(DIALECTS),
        )

    async def admit(self, candidate: Candidate) -> tuple[tuple[str, ...], Grants]:
        """Returns the command and the grants of an extension that may start; a person is asked where it takes one.

        Raises:
            ExtensionRefused: it may not, and why.
        """
        outcome = await anyio.to_thread.run_sync(self.decide, candidate)
        match outcome:
            case Skipped():
                raise outcome.error
            case NeedsConsent():
                if not await self._has_agreed(outcome):
                    raise outcome.refusal.error
                agreed = await self.change_grants(candidate.id, lambda _: outcome.agreed_to())
                return outcome.command, agreed.grants
            case Admitted():
                if outcome.entry is not None and outcome.entry != self._kept.grants_of(candidate.id):
                    written = outcome.entry
                    await self.change_grants(candidate.id, lambda _: written)
                return outcome.command, outcome.grants

    async def _has_agreed(self, consent: NeedsConsent) -> bool:
        """Asks a person whether an extension may run with all that it asks for; no answer in time is no."""
        ask = self._settings.ask
        if ask is None:
            return False
        decision = Decision(consent.extension, "start", None, None, "it is to be agreed to")
        with anyio.move_on_after(CONSENT_PATIENCE):
            try:
                if is_async(ask):
                    answer: Any = ask(consent.question, decision)
                    return await answer is True
                return await anyio.to_thread.run_sync(ask, consent.question, decision) is True
            except Exception as error:
                self._complain(Diagnostic(extension=consent.extension, problem=f"asking has failed: {error}"))
        return False

    async def change_grants(self, id: str, change: Callable[[GrantEntry], GrantEntry]) -> GrantEntry:
        """Changes what stands in the file of grants for an extension, and returns it.

        Raises:
            BadFile: the file cannot be read or written; nothing has changed.
        """
        return await anyio.to_thread.run_sync(self._kept.change_grants, id, change)
