"""`check_flipped_bits`: checks that a persistent store reports each flipped bit in its files.

A store reports damage if opening or reading raises an error of becket, or if `verify` finds something. What it reads
without a report must be what was stored.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from msgspec import Struct

from becket.contract.memory import Query
from becket.errors import BecketError
from becket.limits import Limits
from becket.stores.store import Store, StoreOpener, now_ms
from becket.testing.checks.assertions import expect, expect_equal

__all__ = ["Flips", "check_flipped_bits"]

ALL = Limits().memory_page


class Flips(Struct):
    """The number of flipped bits that were reported, and of those that changed nothing that can be read."""

    reported: int = 0
    harmless: int = 0


def check_flipped_bits(
    open_store: StoreOpener,
    original: Path,
    folder: Path,
    *,
    name: str,
    extensions: Sequence[str],
    words: Sequence[str] = (),
    seed: int = 0,
    flips: int = 100,
) -> Flips:
    """Checks that no flipped bit of the file `name` goes unnoticed, with `flips` copies of the store `original` /
    `store`.

    Its owner may have closed it or may have been killed. Compared are all data of these extensions, and the results of
    queries for these words.

    Raises:
        AssertionError: with a sentence that says what is wrong.
    """
    random, result = Random(seed), Flips()
    expected = read_copy(open_store, original, folder / "whole", extensions, words)
    expect(expected is not None, "a store that nothing has happened to reports damage")
    size = (original / name).stat().st_size
    for number in range(flips):
        copy = folder / f"flip{number}"
        shutil.copytree(original, copy)
        offset, bit = random.randrange(size), random.randrange(8)
        with open(copy / name, "r+b") as file:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(offset)
            file.write(bytes([byte ^ 1 << bit]))
        found = read_all(open_store, copy, extensions, words)
        if found is None:
            result.reported += 1
        else:
            expect_equal(
                found, expected, f"seed {seed}: bit {bit} of byte {offset} of {name} has flipped, and was not reported"
            )
            result.harmless += 1
        shutil.rmtree(copy)
    return result


def read_copy(
    open_store: StoreOpener, original: Path, copy: Path, extensions: Sequence[str], words: Sequence[str]
) -> list[object] | None:
    shutil.copytree(original, copy)
    return read_all(open_store, copy, extensions, words)


def read_all(
    open_store: StoreOpener, folder: Path, extensions: Sequence[str], words: Sequence[str]
) -> list[object] | None:
    """Returns all data of a store; None if it reports damage."""
    try:
        with closing(open_store(folder / "store", Limits(), now_ms)) as store:
            found = [part for extension in extensions for part in read_extension(store, extension, words)]
            return None if store.verify() else found
    except BecketError:
        return None


def read_extension(store: Store, extension: str, words: Sequence[str]) -> list[object]:
    found: list[object] = [store.query(Query(extension, limit=ALL))]
    found += [store.query(Query(extension, word, limit=ALL)) for word in words]
    return [*found, store.read_config(extension), store.read_changes(extension, 0)]
