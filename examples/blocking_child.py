"""The other half of blocking_host.py: plain functions, no event loop. It starts faster than a child that has one."""

from __future__ import annotations

from msgspec import Struct

from becket import Meaning, Registry, RemoteError, RpcError
from becket.blocking import BlockingContext, connect_stdio

methods = Registry()


class Text(Struct):
    text: str


class Titles(Struct):
    titles: list[str]


@methods.handle("count")
def count(params: Text) -> int:
    return len(params.text.split())


@methods.handle("countAll")
def count_all(params: Titles, ctx: BlockingContext) -> int:
    total = 0
    for title in params.titles:
        try:
            text: str = ctx.call("library/read", {"title": title}, returns=str)
        except RemoteError as error:
            # Uncaught, the caller would get a fixed sentence: the text for the caller is chosen on purpose.
            raise RpcError(Meaning.INVALID_PARAMS, f"cannot count {title}: {error.message}") from error
        total += len(text.split())
        ctx.progress(title)
    return total


with connect_stdio(methods=methods) as peer:
    peer.serve()
