"""Generators that are installed here read the bundle. `make prove ARGS=generators` runs them all."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.proofs.generator_runs import GENERATORS, ROOT, Generator, run_typescript
from tests.proofs.generators import MIN_REJECTED, judge

NODE = ROOT / ".node_cache"
QUICK = [generator for generator in GENERATORS if generator.language in ("TypeScript", "Go", "Python")]


def here(generator: Generator) -> Generator:
    """Returns the generator as the tests have it: that of TypeScript is among the other programs of Node."""
    if generator.language != "TypeScript":
        return generator
    return generator._replace(
        installed=NODE / "node_modules" / "json-schema-to-typescript" / "package.json",
        run=partial(run_typescript, tools=NODE),
    )


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(200)  # compilers start slowly on a busy machine
@pytest.mark.parametrize("generator", [here(each) for each in QUICK], ids=lambda each: each.language)
def test_generated_code_compiles_decodes_good_samples_and_rejects_bad_ones(
    generator: Generator, tmp_path: Path
) -> None:
    if generator.installed is None or not generator.installed.exists():
        pytest.skip(f"{generator.name} is not installed: run `make node`, or `make prove ARGS=generators`")

    row = judge(generator, tmp_path)

    assert row.decoded == row.good > 400
    assert row.rejected >= MIN_REJECTED[generator.language] * row.bad
