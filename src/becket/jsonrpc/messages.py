"""The JSON-RPC 2.0 messages as a closed union of frozen structs; ids keep their JSON text.

An id is kept as its JSON text: `1`, `1.0`, `"1"` and `true` are four different texts, so ids are matched with their
type and echoed as they came, without a rule for either. Params and results stay raw until somebody knows their type.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from becket.errors import Meaning

__all__ = [
    "NULL_ID",
    "Batch",
    "Failure",
    "Invalid",
    "Malformed",
    "Message",
    "NotificationMessage",
    "Request",
    "Success",
]

NULL_ID = b"null"


class Request(Struct, frozen=True, gc=False):
    """They ask, and wait for an answer that bears this id."""

    id: bytes
    method: str
    params: Raw | None


class NotificationMessage(Struct, frozen=True, gc=False):
    """They tell, and no answer is ever sent."""

    method: str
    params: Raw | None


class Success(Struct, frozen=True, gc=False):
    """The answer to a call of ours."""

    id: bytes
    result: Raw


class Failure(Struct, frozen=True):
    """The error that answers a call of ours; the null id says that they could not tell which."""

    id: bytes
    code: int
    message: str
    data: object


class Malformed(Struct, frozen=True):
    """No request, and no answer that can be understood: whoever waits for that id must learn it.

    What bears a result or an error is an answer all the same, and answers are never answered: two programs that did so
    would never stop."""

    id: bytes
    problem: str
    is_response: bool = True


class Invalid(Struct, frozen=True):
    """No message at all. It is answered with an error under this id, the null id where none can be read."""

    id: bytes
    meaning: Meaning
    problem: str


class Batch(Struct, frozen=True):
    """Several messages in one frame."""

    members: list[Request | NotificationMessage | Success | Failure | Malformed | Invalid]


Message = Request | NotificationMessage | Success | Failure | Malformed | Invalid | Batch
