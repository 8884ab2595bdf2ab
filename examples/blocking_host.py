"""A host without an event loop, and a child that counts words for it: `python blocking_host.py`.

The child has no files. It requests each text from the host in the middle of its own call, and reports progress.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from becket import Meaning, RemoteError, RpcError
from becket.blocking import connect_process

CHILD = Path(__file__).with_name("blocking_child.py")
LIBRARY = {"poem": "the quick brown fox", "song": "la la la", "letter": "see you soon"}


class Title(Struct):
    title: str


def main() -> None:
    with connect_process([sys.executable, CHILD]) as peer:

        @peer.handle("library/read")  # runs while this thread waits for a response, and between its calls
        def read(params: Title) -> str:
            if params.title not in LIBRARY:
                raise RpcError(Meaning.INVALID_PARAMS, f"no such title: {params.title}")
            return LIBRARY[params.title]

        words: int = peer.call("count", {"text": "to be or not to be"}, returns=int)
        print(f"One call: {words} words.")

        calls = [peer.begin("count", {"text": "la " * number}, returns=int) for number in (1, 2, 3)]
        print(f"Three calls on their way at once, from one thread: {[call.result() for call in calls]} words.")

        print("One call and its events:")
        with peer.stream("countAll", {"titles": list(LIBRARY)}, returns=int) as run:
            for title in run:
                print(f"  {title} is counted")
            print(f"  {run.result()} words in all")

        try:
            peer.call("countAll", {"titles": ["novel"]})
        except RemoteError as error:
            print(f"A call that fails: {error.message} ({error.code}).")


if __name__ == "__main__":
    main()
