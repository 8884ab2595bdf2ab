"""Frames made to take long: the largest at the default limits, and the outcome of each.

`python -m tests.jsonrpc.hostile_frames` prints how long each holds up a loop, the slowest first.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from becket.conversion.decode import get_params_decoder
from becket.errors import RpcError
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.messages import Request
from becket.limits import DEFAULT_LIMITS

__all__ = ["FRAMES", "Verdict", "judge"]

Verdict = str  # "taken", "refused unread" or "refused"
HEAD = b'{"jsonrpc":"2.0","id":1,"method":"m","params":'
ROOM = DEFAULT_LIMITS.frame - len(HEAD) - 8
MANY = DEFAULT_LIMITS.nodes - 100


def request(params: bytes) -> bytes:
    return HEAD + params + b"}"


def full_of(element: bytes) -> bytes:
    """Returns an array of as many as a frame holds."""
    return b"[" + b",".join([element] * (ROOM // (len(element) + 1))) + b"]"


def many(element: bytes, values: int = 1) -> bytes:
    """Returns an array of as many as the limit of values allows."""
    return b"[" + b",".join([element] * (MANY // values)) + b"]"


def string_of(text: bytes) -> bytes:
    return b'["' + text * ((ROOM - 8) // len(text)) + b'"]'


# Built on request: together they would take 100 MiB.
FRAMES: dict[str, tuple[Callable[[], bytes], Verdict]] = {
    "empty objects": (lambda: request(full_of(b"{}")), "refused unread"),
    "small objects": (lambda: request(full_of(b'{"a":{}}')), "refused unread"),
    "numbers": (lambda: request(full_of(b"1")), "refused unread"),
    "empty strings": (lambda: request(full_of(b'""')), "refused unread"),
    "strings of 40 bytes": (lambda: request(full_of(b'"' + b"x" * 38 + b'"')), "refused unread"),
    "brackets that never close": (lambda: HEAD + b"[" * ROOM, "refused unread"),
    "names that never end": (lambda: HEAD + b'{"a":' * (ROOM // 5), "refused unread"),
    "a hundred thousand levels": (lambda: request(b"[" * 100_000 + b"]" * 100_000), "refused unread"),
    "levels within the limit": (lambda: request(many(b"[" * 60 + b"]" * 60, 62)), "taken"),
    "integers of 4,300 digits": (lambda: request(full_of(b"9" * 4_300)), "refused unread"),
    "one integer of a frame": (lambda: request(b"[" + b"9" * (ROOM - 2) + b"]"), "refused unread"),
    "fractions of 700 digits": (lambda: request(full_of(b"0." + b"1" * 700)), "refused unread"),
    "numbers close to zero": (lambda: request(many(b"5e-324")), "refused unread"),
    "numbers of 80 digits": (lambda: request(many(b"9" * 80)), "taken"),
    "numbers of 128 digits": (lambda: request(full_of(b"9" * 128)), "taken"),
    "strings of digits": (lambda: request(full_of(b'"' + b"9" * 200 + b'"')), "taken"),
    "as many values as allowed": (lambda: request(many(b"1")), "taken"),
    "as many objects as allowed": (lambda: request(many(b'{"a":1}', 3)), "taken"),
    "as many names as allowed": (
        lambda: request(b"{" + b",".join(b'"k%d":1' % n for n in range(MANY)) + b"}"),
        "taken",
    ),
    "long strings": (lambda: request(many(b'"' + b"x" * 80 + b'"')), "taken"),
    "strings of other letters": (lambda: request(many(b'"' + "é".encode() * 40 + b'"')), "taken"),
    "escapes": (lambda: request(many(b'"' + b"\\u00e9" * 13 + b'"')), "taken"),
    "one string": (lambda: request(string_of(b"x")), "taken"),
    "one string of escapes": (lambda: request(string_of(b"\\n")), "taken"),
    "one string of quotes": (lambda: request(string_of(b'\\"')), "taken"),
    "one string of brackets": (lambda: request(string_of(b"[")), "taken"),
    "one string of commas": (lambda: request(string_of(b",")), "taken"),
    "one string of digits": (lambda: request(string_of(b"9")), "taken"),
    "white space": (lambda: request(b"[" + b" " * (ROOM - 2) + b"]"), "taken"),
    "white space around": (lambda: b" " * ROOM + b'{"jsonrpc":"2.0","id":1,"method":"m"}', "taken"),
    "unknown members": (
        lambda: HEAD + b"[]," + b",".join(b'"k%d":1' % n for n in range(MANY)) + b"}",
        "refused unread",
    ),
    "the same member": (lambda: HEAD + b"[]" + b',"params":[]' * 10_000 + b"}", "refused unread"),
    "a large batch": (lambda: many(b'{"jsonrpc":"2.0"}', 3), "refused unread"),
    "no JSON in the end": (lambda: HEAD + many(b"1") + b",", "refused unread"),
}

CODEC = JsonCodec()
DECODE_PARAMS = get_params_decoder(Any)


def judge(frame: bytes) -> Verdict:
    """Returns the verdict on a frame: all the work that it makes for the loop is done here."""
    message = CODEC.decode(frame)
    if not isinstance(message, Request):
        return "refused unread"
    try:
        DECODE_PARAMS(message.params)
    except RpcError:
        return "refused"
    return "taken"


def measure(frame: bytes) -> float:
    """Returns the milliseconds that a frame takes, in the quickest of three runs."""
    times: list[float] = []
    for _ in range(3):
        began = perf_counter()
        judge(frame)
        times.append(perf_counter() - began)
    return min(times) * 1_000


def main() -> None:
    figures = {name: (measure(frame := build()), len(frame), verdict) for name, (build, verdict) in FRAMES.items()}
    for name, (taken, size, verdict) in sorted(figures.items(), key=lambda item: -item[1][0]):
        print(f"{name:30} {size / 2**20:6.2f} MiB {taken:8.1f} ms  {verdict}")


if __name__ == "__main__":
    main()
