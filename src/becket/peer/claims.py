"""Which notifications belong to which call of a link, and what takes them.

A call claims its notifications before its request leaves, so none can be missed. All calls that have claimed one
receive it, and so does its handler. Where there is one receiver alone, it is called without looking for others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from becket.dialects import ProgressForm
from becket.errors import BadReply
from becket.methods.registry import describe, read_signature, underlying
from becket.rpc.records import Call, Cancelling
from becket.rpc.runs import Listening
from becket.typed.decoding import UNDECODABLE, result_decoder

__all__ = ["NULL", "Claim", "Claims", "Listener"]

FIRST_TOKEN = 2**30  # a caller that asks for progress with a token of its own begins at 1

NULL = Raw(b"null")


class Claim:
    """The notifications of one kind that belong to one call.

    `accept` tells which of them do. Without it they do unless they bear the mark of another call. `put_own` takes those
    that bear the mark of this one: they have used up its credit. `listening` is what `put` does, in its parts."""

    __slots__ = ("accept", "call", "listening", "put", "put_own")

    def __init__(
        self,
        put: Callable[[Raw | None], None],
        *,
        put_own: Callable[[Raw | None], None] | None = None,
        accept: Callable[[Raw], bool] | None = None,
        call: Call | None = None,
        listening: Listening | None = None,
    ) -> None:
        self.put = put
        self.put_own = put_own or put
        self.accept = accept
        self.call = call
        self.listening = listening

    def take(self, params: Raw | None, owner: bytes | None) -> bool:
        """Takes a notification that bears the mark of the call `owner`, or no mark, if it is for this one."""
        is_own = owner is not None and self.call is not None and self.call.id == owner
        if self.accept is not None:
            if not self.accept(NULL if params is None else params):
                return False
        elif owner is not None and not is_own:
            return False
        (self.put_own if is_own else self.put)(params)
        return True


class Claims:
    """Who waits for which notification on one link."""

    __slots__ = (
        "_by_method",
        "_by_token",
        "_cancel",
        "_has_handler",
        "_last_token",
        "_progress",
        "_tokens",
        "is_marked",
        "listening",
        "puts",
    )

    def __init__(self, progress: ProgressForm | None, cancelling: Cancelling | None, *, is_marked: bool) -> None:
        self._progress = progress
        self._cancel = None if cancelling is None else cancelling.method  # the connection's own, whoever claims it
        self._by_method: dict[str, list[Claim]] = {}
        self._by_token: dict[bytes, Claim] = {}
        self._tokens: dict[bytes, bytes] = {}  # of the calls whose token is not their id
        self._last_token = FIRST_TOKEN
        self._has_handler: Callable[[str], bool] | None = None
        self.is_marked = is_marked  # notifications may say which call they belong to
        self.puts: dict[str, Callable[[Raw | None], None]] = {}  # of the methods that one call receives alone
        self.listening: dict[str, Listening] = {}  # those of them that a function takes at once

    def add(self, method: str, claim: Claim) -> None:
        self._by_method.setdefault(method, []).append(claim)
        self._sort(method)

    def next_token(self) -> bytes:
        """Returns a token that no call of this link has."""
        self._last_token += 1
        return b"%d" % self._last_token

    def add_progress(self, id: bytes, claim: Claim, token: bytes | None = None) -> None:
        """Claims the progress of the call with this id, which is told under that, or under the token."""
        if token is not None:
            self._tokens[id] = token
        self._by_token[token or id] = claim

    def remove(self, method: str, claim: Claim) -> None:
        claims = self._by_method.get(method)
        if claims is not None and claim in claims:
            claims.remove(claim)
            self._sort(method)

    def remove_progress(self, id: bytes) -> None:
        self._by_token.pop(self._tokens.pop(id, id), None)

    def share_with(self, has_handler: Callable[[str], bool]) -> None:
        """Takes what tells whether a notification has a handler, which receives it beside the calls."""
        self._has_handler = has_handler

    def reconsider(self, method: str) -> None:
        """Takes into account that a notification has a handler now, or none any more."""
        if method in self._by_method:
            self._sort(method)

    def _sort(self, method: str) -> None:
        claims = self._by_method[method]
        self.puts.pop(method, None)
        self.listening.pop(method, None)
        if not claims:
            del self._by_method[method]
        elif len(claims) == 1 and self._is_alone(claims[0], method):
            claim = claims[0]
            self.puts[method] = claim.put
            if claim.listening is not None:
                self.listening[method] = claim.listening

    def _is_alone(self, claim: Claim, method: str) -> bool:
        """Returns whether all notifications of a method are for this claim, and for nothing else."""
        if claim.accept is not None or self.is_marked or method == self._cancel:
            return False
        return self._has_handler is None or not self._has_handler(method)

    def take(self, method: str, params: Raw | None, owner: bytes | None) -> bool:
        """Hands a notification to the calls that claimed it and returns whether there was one."""
        form = self._progress
        if form is not None and self._by_token and method == form.method and self._take_progress(params, form):
            return True
        takers = [claim for claim in tuple(self._by_method.get(method, ())) if claim.take(params, owner)]
        return bool(takers)

    def _take_progress(self, params: Raw | None, form: ProgressForm) -> bool:
        if params is None:
            return False
        try:
            members = msgspec.json.decode(params, type=dict[str, Raw])
            claim = self._by_token.get(bytes(members[form.token]))
        except (*UNDECODABLE, KeyError):
            return False
        if claim is not None:
            claim.put_own(members.get(form.value) if form.asked is None else params)
        return claim is not None


class Listener:
    """A function that takes the events of a call, and the type that it asks for."""

    __slots__ = ("arity", "decode", "function", "is_async")

    def __init__(self, function: Callable[..., Any]) -> None:
        annotation: Any = Any
        self.arity, self.is_async = 1, False
        if hasattr(underlying(function)[0], "__code__"):  # else it is built in: the `append` of a list
            self.arity, annotation, self.is_async = read_signature(function)
        if self.arity > 1:
            raise TypeError(f"{describe(function)} must take `()` or `(event)`")
        self.function = function
        self.decode = result_decoder(annotation)

    def decode_with_self(self, raw: Raw) -> tuple[Listener, Any]:
        """Returns who wants the event, and the event."""
        return self, self.decode(raw)

    def claim(self, call: Call, fail: Callable[[Exception], None]) -> Claim:
        """Returns a claim that calls the function at once; what goes wrong with it or with the event goes to `fail`."""
        function = self.function
        decode: Callable[[Any], Any] = self.decode
        take: Callable[[Any], Any] = function if self.arity else drop_argument(function)

        def put(raw: Raw | None) -> None:
            try:
                take(decode(raw))  # which fails for the few without params
            except Exception as error:
                find_out(raw, error)

        def find_out(raw: Raw | None, error: Exception) -> None:
            """The function has failed, unless the event was none for it."""
            if raw is None:
                put(NULL)
                return
            try:
                decode(raw)
            except UNDECODABLE as problem:
                error = BadReply(method=call.method, problem=f"an event: {problem}")
            fail(error)

        return Claim(put, call=call, listening=Listening(decode, take, find_out))


def drop_argument(function: Callable[[], Any]) -> Callable[[Any], Any]:
    def call(_: object) -> Any:
        return function()

    return call
