"""A server and two clients over TCP, in one program: `python tcp_server.py`. Each connection is a peer like any other.

The server responds to calls, and forwards each message to all other clients.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from becket import Context, Peer, Registry, serve_tcp


class Name(Struct):
    name: str


class Line(Struct):
    text: str


class Said(Struct):
    who: str
    text: str


def build_methods() -> Registry:
    methods = Registry()
    names: dict[Peer, str] = {}

    @methods.handle("join")
    def join(params: Name, ctx: Context) -> int:
        names[ctx.peer] = params.name
        return len(names)

    @methods.handle("say")
    async def say(params: Line, ctx: Context) -> int:
        others = [peer for peer in names if peer is not ctx.peer and not peer.is_closed]
        for peer in others:
            await peer.notify("said", Said(names[ctx.peer], params.text))
        return len(others)

    return methods


async def main() -> None:
    async with serve_tcp(build_methods()) as server:
        ada = await Peer.connect_tcp("127.0.0.1", server.port)
        grace = await Peer.connect_tcp("127.0.0.1", server.port)
        inbox: asyncio.Queue[Said] = asyncio.Queue()

        @grace.on("said")
        def on_said(params: Said) -> None:
            inbox.put_nowait(params)

        await ada.call("join", Name("Ada"))
        present = await grace.call("join", Name("Grace"), returns=int)
        print(f"The server has {present} clients.")

        reached = await ada.call("say", Line("good morning"), returns=int)
        print(f"Ada's message reached {reached} other client.")
        line = await inbox.get()
        print(f"Grace received from {line.who}: {line.text}")

    print(f"The server is gone. Ada's link ended: {await ada.wait_closed()}")
    for client in (ada, grace):
        await client.aclose()


if __name__ == "__main__":
    asyncio.run(main())
