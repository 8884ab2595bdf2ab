"""The JSON-RPC 2.0 messages as a closed union of frozen structs; ids keep their JSON text.

An id is kept as its JSON text: `1`, `1.0`, `"1"` and `true` are four different texts, so ids are matched with their
type and echoed exactly, without a rule for either. Params and results stay raw until their type is known.

Annotations are evaluated here, as in `contract.handshake` and `contract.tools`: msgspec compiles those that are text
when it first decodes a class, which takes longer than the rest of its decoder.
"""

from typing import Literal

from msgspec import Raw, Struct

from becket.errors import Meaning

__all__ = [
    "NO_ID",
    "NULL_ID",
    "Batch",
    "Envelope",
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
    """An inbound request, whose response must carry this id."""

    id: bytes
    method: str
    params: Raw | None


class NotificationMessage(Struct, frozen=True, gc=False):
    """An inbound notification, which has no response."""

    method: str
    params: Raw | None


class Success(Struct, frozen=True, gc=False):
    """The result of an outbound call."""

    id: bytes
    result: Raw


class Failure(Struct, frozen=True):
    """The error of an outbound call; the null id means that the other peer could not read the request's id."""

    id: bytes
    code: int
    message: str
    data: object


class Malformed(Struct, frozen=True):
    """A message that is neither a request nor a valid response; a waiter for its id must be settled.

    With a result or an error it counts as a response, to which no error is sent: two peers that did so would never
    stop."""

    id: bytes
    problem: str
    is_response: bool = True


class Invalid(Struct, frozen=True):
    """Not a message. The error response carries this id, the null id if none can be read."""

    id: bytes
    meaning: Meaning
    problem: str


SingleMessage = Request | NotificationMessage | Success | Failure | Malformed | Invalid


class Batch(Struct, frozen=True):
    """Several messages in one frame."""

    members: list[SingleMessage]


Message = SingleMessage | Batch


# -- as decoded, before their kind is known


ABSENT = Raw(b"")
NO_ID = -1  # the null id: a frame that has it is longer than one without an id


class Envelope(Struct, gc=False):
    """The members of most messages. A numeric id is decoded as a number, at a third of the cost of its text."""

    jsonrpc: Literal["2.0"]
    id: int | str = NO_ID
    method: str = ""
    params: Raw = ABSENT
    result: Raw = ABSENT
