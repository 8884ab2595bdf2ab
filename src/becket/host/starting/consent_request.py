"""The consent request before an extension starts: fields for a program, and the same as lines for a terminal.

`start_check` decides whether consent is needed; `consent` prompts, and stores the outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from becket._text import quote_path
from becket.host.starting.environment import ExtensionVariables, is_secret_name
from becket.host.starting.interpreters import find_code_from_cwd
from becket.peer.permission_check import AskCallback
from becket.permissions.policies import Decision, is_async

__all__ = [
    "DIGEST_PREFIX",
    "START",
    "AskConsent",
    "ConsentChanges",
    "ConsentRequest",
    "answer_for",
    "describe_request",
    "quote_argument",
]

START: Final = "start"
DIGEST_PREFIX: Final = "sha256:"  # of the stored digest of a value that looks like a secret
MAX_FILES: Final = 10  # names of changed files in a prompt; `ConsentChanges` has them all


class ConsentChanges(Struct, frozen=True, kw_only=True):
    """What has changed since the last consent. What has not is empty, or None.

    `command` and `working_directory` are those of the last consent. `variables` are those with another value, with the
    previous value, or its digest if it looks like a secret; None if they were not set. If `is_known` is False, only
    that the files have changed is known."""

    added_files: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    removed_files: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    working_directory: str | None = None
    variables: dict[str, str | None] = {}
    removed_variables: tuple[str, ...] = ()
    added_permissions: tuple[str, ...] = ()
    removed_permissions: tuple[str, ...] = ()
    is_known: bool = True


class ConsentRequest(Decision, frozen=True, kw_only=True):
    """What a person decides: whether an extension may start, or, while it runs, whether it gets a permission.

    Before a start `method` is `start` and `permissions` are all that it requests; later they are the one that `method`
    needs. `held` are those that it has. `command` is what is run, with the absolute path of its program, in
    `working_directory`, and `programs` are those that the host runs for its commands, by the names of these.
    `variables` are those that it gets besides the base list, by origin. `changes` is None if there was no consent
    before. `digest` is that of its files."""

    version: str = ""
    command: tuple[str, ...] = ()
    working_directory: str = ""
    variables: ExtensionVariables = ExtensionVariables()
    permissions: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    programs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    changes: ConsentChanges | None = None
    digest: str = ""

    @property
    def is_start(self) -> bool:
        """Whether the extension waits for this to start."""
        return self.method == START

    def about(self, decision: Decision) -> ConsentRequest:
        """Returns the request for what a running extension needs."""
        needed = decision.permission or decision.method
        return replace(self, **asdict(decision), permissions=(needed,), changes=None)


AskConsent: TypeAlias = Callable[[str, ConsentRequest], bool | Awaitable[bool | None] | None]
"""Prompts a person: gets the request as text, escaped for a terminal, and as fields.

True is consent. False is a refusal, which is stored. All else, an exception too, is no response. A plain function runs
in a thread."""


def answer_for(ask: AskConsent, request: ConsentRequest) -> AskCallback:
    """Returns a callback that prompts for permissions of a running extension, with the fields of its request."""
    if is_async(ask):

        async def wait(question: str, decision: Decision) -> bool:
            verdict: Any = ask(question, request.about(decision))
            return await verdict is True

        return wait
    return lambda question, decision: ask(question, request.about(decision)) is True


# -- as text


def describe_request(request: ConsentRequest) -> str:
    """Returns the prompt before a start: lines escaped for a terminal, with the whole command."""
    lines = [f"{request.extension} {request.version} wants to run: {' '.join(map(quote_argument, request.command))}"]
    if request.working_directory:
        loaded = find_code_from_cwd(request.command)
        loads = "" if loaded is None else f", and loads code from there: {quote_argument(loaded)}"
        lines.append(f"it runs in the folder {quote_argument(request.working_directory)}{loads}")
    lines += [
        f"its command {quote_argument(name)} runs the program: {' '.join(map(quote_argument, words))}"
        for name, words in request.programs
    ]
    if request.changes is not None:
        lines += describe_changes(request.changes)
    lines += [f"it has the permission {name}" for name in request.held]
    lines += [f"it requests the permission {name}" for name in request.permissions]
    if not (request.held or request.permissions):
        lines.append("it requests no permission")
    return "\n".join([*lines, *describe_variables(request.variables), "agree?"])


def describe_changes(changes: ConsentChanges) -> Iterator[str]:
    if not changes.is_known:
        yield "its files have changed since they were approved"
        return
    files = [(name, "changed") for name in changes.changed_files]
    files += [(name, "new") for name in changes.added_files] + [(name, "removed") for name in changes.removed_files]
    if files:
        more = f", and {len(files) - MAX_FILES} more" if len(files) > MAX_FILES else ""
        yield f"since the last consent its files have changed: {join_notes(files[:MAX_FILES])}{more}"
    if changes.command is not None:
        yield f"since the last consent its command has changed, from: {' '.join(map(quote_argument, changes.command))}"
    if changes.working_directory is not None:
        yield f"since the last consent it runs elsewhere, and no longer in {quote_argument(changes.working_directory)}"
    if changes.added_permissions:
        yield f"since the last consent it requests more permissions: {', '.join(changes.added_permissions)}"
    if changes.removed_permissions:
        removed = ", ".join(map(quote_argument, changes.removed_permissions))
        yield f"since the last consent it no longer requests: {removed}"
    values = [(name, describe_value(before)) for name, before in changes.variables.items()]
    values += [(name, "no longer set") for name in changes.removed_variables]
    if values:
        yield f"since the last consent it sets other variables: {join_notes(values)}"


def describe_value(before: str | None) -> str:
    if before is None:
        return "new"
    return "another value" if before.startswith(DIGEST_PREFIX) else f"it was {quote_argument(before)}"


def join_notes(notes: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quote_argument(name)} ({note})" for name, note in notes)


def describe_variables(variables: ExtensionVariables) -> Iterator[str]:
    """Yields a line for each variable that a manifest requests or sets, and one for each kind that the operator gives.

    Values that a manifest sets are shown; those of the host never are."""
    for name in variables.passed:
        yield f"it requests the variable {name}{', which looks like a secret' if is_secret_name(name) else ''}"
    for name, value in variables.set.items():
        loads = ": programs load code by it" if name in variables.dangerous else ""
        yield f"it sets the variable {quote_path(name)} to {quote_argument(value)}{loads}"
    if variables.given:
        yield f"the host's configuration gives it the variables {', '.join(variables.given)}"
    if variables.inherited:
        yield f"inherit_environment gives it the variables {', '.join(variables.inherited)}"


def quote_argument(word: str) -> str:
    """Returns an argument as it is shown in a prompt: escaped, and in quotes if it is empty or has a space."""
    shown = quote_path(word)
    return f"'{shown}'" if not shown or " " in shown else shown
