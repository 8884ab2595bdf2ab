"""Runs code generators of five languages on the schema bundle, compiles their output, and decodes samples with it.

Each run installs its generator into a cache folder, writes a small program around the generated types, and returns the
samples that this program accepts. Judging the verdicts is the proof's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.sdk.bundle import FILE

__all__ = ["CACHE", "GENERATORS", "Generator", "Value", "Verdicts"]

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".generator_cache"
MAX_STEP: Final = 1800  # seconds; cargo compiles a generator from its sources


class Value(NamedTuple):
    """A JSON value, and the definition of the bundle that it is held against."""

    type: str
    value: Any


class Verdicts(NamedTuple):
    """How many types the generator made, and for each value whether the generated code accepts it."""

    types: int
    accepted: list[bool]


class Generator(NamedTuple):
    """A generator: `program` is the toolchain that it needs, `installed` a file of it, `validates` what is checked.

    Maven installs its own by itself."""

    language: str
    name: str
    version: str
    program: str
    installed: Path | None
    install: Callable[[], None] | None
    run: Callable[[Path, list[Value]], Verdicts]
    validates: str


def execute(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs a program and returns its stdout; one that fails raises with its output."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=MAX_STEP,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def decode_with(program: list[str | Path], folder: Path, values: list[Value]) -> list[bool]:
    """Returns the verdicts of a program that reads lines `{"type", "value"}` from a file and prints `true` or
    `false` for each."""
    lines = folder / "samples.jsonl"
    text = "".join(json.dumps({"type": value.type, "value": value.value}) + "\n" for value in values)
    lines.write_text(text, encoding="utf-8")
    verdicts = [line == "true" for line in execute(*program, lines, cwd=folder).split()]
    assert len(verdicts) == len(values)
    return verdicts


def names() -> list[str]:
    return list(json.loads(FILE.read_text(encoding="utf-8"))["$defs"])


# -- TypeScript: the compiler judges literals of the types

NODE: Final = CACHE / "node"


def install_typescript() -> None:
    packages = ("json-schema-to-typescript@16.0.0", "typescript@5")
    CACHE.mkdir(exist_ok=True)
    execute("npm", "install", "--prefix", NODE, "--no-audit", "--no-fund", "--silent", *packages, cwd=CACHE)


def run_typescript(folder: Path, values: list[Value], tools: Path = NODE) -> Verdicts:
    programs = tools / "node_modules" / ".bin"
    types = folder / "becket.ts"
    execute(programs / "json2ts", "--unreachableDefinitions", "-i", FILE, "-o", types, cwd=folder)
    lines = ['import type * as becket from "./becket";']
    lines += [f"export const s{at}: becket.{one.type} = {json.dumps(one.value)};" for at, one in enumerate(values)]
    (folder / "samples.ts").write_text("\n".join(lines), encoding="utf-8")
    checked = [programs / "tsc", "--strict", "--noEmit", "--target", "es2022", "--skipLibCheck"]
    execute(*checked, "becket.ts", cwd=folder)
    done = subprocess.run([*checked, "samples.ts"], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    refused = {int(line) for line in re.findall(r"^samples\.ts\((\d+),", done.stdout, flags=re.MULTILINE)}
    made = re.findall(r"^export (?:interface|type) (\w+)", types.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Verdicts(len(set(made) & {*names()}), [at + 2 not in refused for at in range(len(values))])


# -- Go

GO_JSONSCHEMA: Final = CACHE / "bin" / "go-jsonschema"
GO_MAIN: Final = """package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"samples/becket"
)

var decoders = map[string]func([]byte) error{
%s
}

func decode[T any](data []byte) error {
	var value T
	return json.Unmarshal(data, &value)
}

func main() {
	file, _ := os.Open(os.Args[1])
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var sample struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &sample); err != nil {
			panic(err)
		}
		fmt.Println(decoders[sample.Type](sample.Value) == nil)
	}
}
"""


def install_go() -> None:
    CACHE.mkdir(exist_ok=True)
    package = "github.com/atombender/go-jsonschema@v0.24.1"
    execute("go", "install", package, cwd=CACHE, GOBIN=str(GO_JSONSCHEMA.parent))


def run_go(folder: Path, values: list[Value]) -> Verdicts:
    (folder / "becket").mkdir()
    types = folder / "becket" / "becket.go"
    execute("go", "mod", "init", "samples", cwd=folder)
    execute(GO_JSONSCHEMA, "--package", "becket", "--output", types, FILE, cwd=folder)
    table = "\n".join(f'\t"{name}": decode[becket.{name}],' for name in names())
    (folder / "main.go").write_text(GO_MAIN % table, encoding="utf-8")
    execute("go", "mod", "tidy", cwd=folder)
    execute("go", "vet", "./...", cwd=folder)
    execute("go", "build", "-o", "samples", cwd=folder)
    made = re.findall(r"^type (\w+) ", types.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Verdicts(len(set(made) & {*names()}), decode_with([folder / "samples"], folder, values))


# -- Rust

TYPIFY: Final = CACHE / "bin" / "cargo-typify"
CARGO_MANIFEST: Final = """[package]
name = "samples"
version = "0.1.0"
edition = "2021"

[dependencies]
regress = "0.10"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
"""
RUST_MAIN: Final = """#[allow(dead_code, clippy::all)]
mod becket;

fn decode<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> bool {
    serde_json::from_value::<T>(value).is_ok()
}

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    for line in text.lines() {
        let mut sample: serde_json::Value = serde_json::from_str(line).unwrap();
        let value = sample["value"].take();
        let accepted = match sample["type"].as_str().unwrap() {
%s
            other => panic!("{other}"),
        };
        println!("{accepted}");
    }
}
"""


def install_rust() -> None:
    CACHE.mkdir(exist_ok=True)
    execute("cargo", "install", "--quiet", "cargo-typify@0.8.0", "--root", CACHE, cwd=CACHE)


def run_rust(folder: Path, values: list[Value]) -> Verdicts:
    (folder / "src").mkdir()
    types = folder / "src" / "becket.rs"
    execute(TYPIFY, "typify", "--no-builder", "--output", types, FILE, cwd=folder)
    (folder / "Cargo.toml").write_text(CARGO_MANIFEST, encoding="utf-8")
    table = "\n".join(f'            "{name}" => decode::<becket::{name}>(value),' for name in names())
    (folder / "src" / "main.rs").write_text(RUST_MAIN % table, encoding="utf-8")
    execute("cargo", "build", "--quiet", cwd=folder, CARGO_TARGET_DIR=str(CACHE / "target"))
    made = re.findall(r"^pub (?:struct|enum) (\w+)", types.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Verdicts(len(set(made) & {*names()}), decode_with([CACHE / "target" / "debug" / "samples"], folder, values))


# -- Java

JAVA_MAIN: Final = """import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;

public class Samples {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            JsonNode sample = json.readTree(line);
            System.out.println(decodes(json, sample.get("type").asText(), sample.get("value")));
        }
    }

    private static boolean decodes(ObjectMapper json, String type, JsonNode value) {
        try {
            json.treeToValue(value, Class.forName("becket." + type));
            return true;
        } catch (ClassNotFoundException absent) {
            return true;
        } catch (Exception refused) {
            return false;
        }
    }
}
"""


def run_java(folder: Path, values: list[Value]) -> Verdicts:
    sources = folder / "src" / "main" / "java"
    sources.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "other_languages" / "java" / "pom.xml", folder)
    (sources / "Samples.java").write_text(JAVA_MAIN, encoding="utf-8")
    execute("mvn", "-q", "-B", f"-Dbecket.schema={FILE}", "package", cwd=folder)
    made = [file.stem for file in (folder / "target").rglob("becket/*.java")]
    jars = ":".join(str(jar) for jar in (folder / "target").rglob("*.jar"))
    return Verdicts(len(set(made) & {*names()}), decode_with(["java", "-cp", jars, "Samples"], folder, values))


# -- Python

PYTHON: Final = CACHE / "venv" / "bin" / "python"
PYTHON_MAIN: Final = """import json
import sys

import becket_types
from pydantic import TypeAdapter, ValidationError

for line in open(sys.argv[1], encoding="utf-8"):
    sample = json.loads(line)
    try:
        TypeAdapter(getattr(becket_types, sample["type"])).validate_json(json.dumps(sample["value"]), strict=True)
        print("true")
    except ValidationError:
        print("false")
"""


def install_python() -> None:
    venv.create(CACHE / "venv", with_pip=True)
    packages = ("datamodel-code-generator==0.89.0", "pydantic>=2.7")
    execute(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, cwd=CACHE)


def run_python(folder: Path, values: list[Value]) -> Verdicts:
    types = folder / "becket_types.py"
    options = ["--input-file-type", "jsonschema", "--output-model-type", "pydantic_v2.BaseModel"]
    options += ["--formatters", "builtin", "--disable-timestamp"]
    execute(PYTHON.with_name("datamodel-codegen"), "--input", FILE, "--output", types, *options, cwd=folder)
    (folder / "samples.py").write_text(PYTHON_MAIN, encoding="utf-8")
    made = re.findall(r"^(?:class )?(\w+)(?:\(| ?[:=])", types.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Verdicts(len(set(made) & {*names()}), decode_with([PYTHON, "samples.py"], folder, values))


GENERATORS: Final = (
    Generator(
        "TypeScript",
        "json-schema-to-typescript",
        "16.0.0",
        "npm",
        NODE / "node_modules" / "json-schema-to-typescript" / "package.json",
        install_typescript,
        run_typescript,
        "`tsc --strict`: members, types and tags; no bounds and patterns",
    ),
    Generator(
        "Go",
        "go-jsonschema",
        "0.24.1",
        "go",
        GO_JSONSCHEMA,
        install_go,
        run_go,
        "members, types, bounds, patterns and values of enumerations; a union is an `interface{}`, a tag a string",
    ),
    Generator(
        "Rust",
        "cargo-typify",
        "0.8.0",
        "cargo",
        TYPIFY,
        install_rust,
        run_rust,
        "members, types, patterns and enumerations; a union is an enum",
    ),
    Generator(
        "Java",
        "jsonschema2pojo",
        "1.3.3",
        "mvn",
        None,
        None,
        run_java,
        "types and enumerations, not which members are required; a union is an `Object`",
    ),
    Generator(
        "Python",
        "datamodel-code-generator",
        "0.89.0",
        "python3",
        PYTHON,
        install_python,
        run_python,
        "members, types, bounds, patterns and tags",
    ),
)
