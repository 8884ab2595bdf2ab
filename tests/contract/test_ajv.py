"""A validator of another language compiles all schemas and gives the same verdict on the samples."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.contract.sample_files import load_samples

from becket.json_schema.files import load_schema, schema_names

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".node_cache" / "node_modules"
NODE = shutil.which("node")


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="there is no `node`")
@pytest.mark.skipif(not (MODULES / "ajv").is_dir(), reason="ajv is not installed: run `make node`")
@pytest.mark.timeout(90)  # Node starts slowly on a busy machine
def test_ajv_compiles_all_schemas_and_accepts_every_sample() -> None:
    schemas = [load_schema(name) for name in schema_names()]
    samples = load_samples()
    references = [
        {
            "reference": f"https://becket.dev/schemas/{sample.schema}.schema.json#/$defs/{sample.definition}",
            "value": sample.value,
        }
        for sample in samples
    ]

    done = subprocess.run(
        [NODE or "node", Path(__file__).with_name("check_with_ajv.js")],
        input=msgspec.json.encode({"schemas": schemas, "samples": references}),
        stdout=subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(MODULES)},
        check=True,
        timeout=60,
    )

    output = msgspec.json.decode(done.stdout, type=list[bool])
    misjudged = [sample for sample, is_good in zip(samples, output, strict=True) if sample.is_good != is_good]
    assert misjudged == []
