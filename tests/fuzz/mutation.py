"""Makes inputs out of other inputs, and feeds them to a target."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter

from tests.fuzz.target import Target

__all__ = ["Failure", "Report", "fuzz", "mutate"]

LONGEST = 200  # bytes of one input: enough for a few frames at the small limits that targets use
KEPT = 2_000  # inputs in a corpus


class Failure(Exception):
    """The target raised an exception; `data` is the input that caused it."""

    def __init__(self, target: str, data: bytes) -> None:
        self.target = target
        self.data = data
        super().__init__(f"{target} failed on {data!r}")


@dataclass(frozen=True)
class Report:
    """How much one target has seen."""

    name: str
    inputs: int
    seconds: float
    outcomes: int

    def __str__(self) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0.0
        return f"{self.name:24} {self.inputs:10,} inputs {rate:9,.0f}/s {self.outcomes:6,} outcomes"


def fuzz(target: Target, inputs: int, seed: int) -> Report:
    """Feeds a number of inputs to one target, its corpus first.

    Raises:
        Failure: with the input, caused by what the target raised.
    """
    random = Random(f"{seed} {target.name}")
    corpus = list(target.corpus)
    outcomes: set[Hashable] = set()
    began = perf_counter()
    for number in range(inputs):
        data = target.corpus[number] if number < len(target.corpus) else mutate(corpus, target.tokens, random)
        try:
            outcome = target.run(data, random)
        except Exception as cause:
            raise Failure(target.name, data) from cause
        if outcome not in outcomes:
            outcomes.add(outcome)
            if len(corpus) < KEPT:
                corpus.append(data)
    return Report(target.name, inputs, perf_counter() - began, len(outcomes))


def mutate(corpus: Sequence[bytes], tokens: Sequence[bytes], random: Random) -> bytes:
    """Returns one of the corpus with one to four changes."""
    # `random.random` alone, because `randrange` takes longer than most of what is being tested.
    draw = random.random
    data = bytearray(corpus[int(draw() * len(corpus))])
    for _ in range(1 + int(draw() * 4)):
        at = int(draw() * (len(data) + 1))
        end = at + int(draw() * 16)
        change = draw()
        if change < 0.2:
            data[at:at] = tokens[int(draw() * len(tokens))]
        elif change < 0.4:
            data[at : at + 1] = bytes((int(draw() * 256),))
        elif change < 0.55:
            del data[at:end]
        elif change < 0.7:
            data[at:at] = data[at:end]
        elif change < 0.8:
            data[at:at] = random.randbytes(end - at)
        elif change < 0.9:
            other = corpus[int(draw() * len(corpus))]
            data[at:] = other[int(draw() * len(other)) :]
        else:
            data += corpus[int(draw() * len(corpus))]
    return bytes(data[:LONGEST])
