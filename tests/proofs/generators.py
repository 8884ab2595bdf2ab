"""Proves that code generators of five languages read the schema bundle: their output compiles and decodes the samples.

The table is written into docs/schemas.md."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.contract.test_bundle import DEFINITIONS, SAMPLES, is_valid, name_of
from tests.proofs.generator_runs import GENERATORS, Generator, Value
from tests.proofs.proof import Proof

__all__ = ["Row", "bad_values", "good_values", "judge", "prove_generators_read_the_bundle"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "schemas.md"
PART: Final = re.compile(r"(<!-- measured: generators -->\n).*?(<!-- end -->)", re.DOTALL)
MIN_REJECTED: Final = {"TypeScript": 0.85, "Go": 0.8, "Rust": 0.9, "Java": 0.3, "Python": 0.95}
"""The part of the bad samples that the code of each language must reject; `validates` says why it is not all."""


class Row(NamedTuple):
    """The figures of one generator."""

    types: int
    decoded: int
    good: int
    rejected: int
    bad: int


def good_values() -> list[Value]:
    """Returns the good samples, and all examples of the bundle, that are of the one form that is written."""
    samples = [Value(name_of(sample), sample.value) for sample in SAMPLES if sample.is_good]
    examples = [Value(name, value) for name, schema in DEFINITIONS.items() for value in schema.get("examples", ())]
    return [value for value in (*samples, *examples) if is_valid(value.type, value.value)]


def bad_values() -> list[Value]:
    """Returns the bad samples that the bundle rejects."""
    samples = [Value(name_of(sample), sample.value) for sample in SAMPLES if not sample.is_good]
    return [value for value in samples if not is_valid(value.type, value.value)]


def judge(generator: Generator, folder: Path) -> Row:
    """Generates, compiles and decodes; raises where a step fails."""
    good, bad = good_values(), bad_values()
    verdicts = generator.run(folder, [*good, *bad])
    decoded, accepted = verdicts.accepted[: len(good)], verdicts.accepted[len(good) :]
    for value, is_decoded in zip(good, decoded, strict=True):
        if not is_decoded:
            print(f"{generator.language}: a good {value.type} is not decoded: {value.value!r}", flush=True)
    return Row(verdicts.types, sum(decoded), len(good), len(bad) - sum(accepted), len(bad))


def prove_generators_read_the_bundle() -> Proof:
    """Runs each generator whose toolchain is there."""
    lines = [
        "| language | generator | types | good samples decoded | bad samples rejected | what its code checks |",
        "|---|---|--:|--:|--:|---|",
    ]
    holds = True
    for generator in GENERATORS:
        head = f"| {generator.language} | {generator.name} {generator.version} "
        if shutil.which(generator.program) is None:
            lines.append(f"{head}| not measured: there is no `{generator.program}` | | | |")
            holds = False
            continue
        if generator.install is not None and generator.installed is not None and not generator.installed.exists():
            generator.install()
        with TemporaryDirectory() as folder:
            row = judge(generator, Path(folder))
        figures = f"| {row.types} | {row.decoded} of {row.good} | {row.rejected} of {row.bad} "
        lines.append(f"{head}{figures}| {generator.validates} |")
        print(lines[-1], flush=True)
        holds = holds and row.decoded == row.good and row.rejected >= MIN_REJECTED[generator.language] * row.bad
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PART.sub(lambda match: "\n".join([match[1], *lines, "", match[2]]), text), encoding="utf-8")
    return Proof(
        [
            "What five generators make of `schemas/becket.schema.json` compiles, and decodes every good sample of the",
            "tests and every example of the schemas. [Schemas](schemas.md#code-generators) has the same table.",
            "",
            *lines,
        ],
        holds,
    )
