"""Child program that appends to a store from several threads and prints acknowledged ids.

The checks of persistent stores start it, and kill it before it is done. It prints one line for each acknowledgement:
a namespace or `config`, the number of the append or of the value, and its id or revision.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from random import Random
from threading import Thread

from becket.contract.config import ConfigSet
from becket.contract.memory import Append
from becket.limits import Limits
from becket.stores.store import Store, StoreOpener, now_ms

__all__ = ["THREADS", "build_writer_command", "namespace_of"]

THREADS = 4
LARGE = 8_000  # characters of some contents, so that a record spans several pages


def build_writer_command(open_store: StoreOpener, path: Path, round_number: int, count: int) -> list[str]:
    """Returns the command that appends `count` times in each thread to the store at `path`.

    Raises:
        ValueError: another process cannot import `open_store`.
    """
    module, name = open_store.__module__, getattr(open_store, "__qualname__", "")
    if module == "__main__" or not name or "<" in name:
        raise ValueError(
            f"{open_store!r} must be a function or class of a module, for another program opens stores with it"
        )
    return [sys.executable, "-m", __name__, module, name, str(path), str(round_number), str(count)]


def namespace_of(round_number: int, thread: int) -> str:
    return f"round{round_number}-{thread}"


def main() -> None:
    module, name, path, round_number, count = sys.argv[1:]
    open_store: StoreOpener = attrgetter(name)(import_module(module))
    store = open_store(Path(path), Limits(), now_ms)
    threads = [Thread(target=append, args=(store, int(round_number), thread, int(count))) for thread in range(THREADS)]
    threads.append(Thread(target=set_values, args=(store, int(count))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()


def append(store: Store, round_number: int, thread: int, count: int) -> None:
    namespace, random = namespace_of(round_number, thread), Random(thread)
    for number in range(count):
        content = f"{number} {'x' * random.choice([10, 100, LARGE])}"
        print_line(namespace, number, store.append(Append(namespace, content, idem=str(number))).id)


def set_values(store: Store, count: int) -> None:
    for number in range(count):
        print_line("config", number, store.set_config("notes", ConfigSet("n", str(number))).revision)


def print_line(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())  # unbuffered, so that no acknowledgement is lost


if __name__ == "__main__":
    main()
