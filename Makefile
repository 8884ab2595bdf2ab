# Every target does its own set-up in a fresh clone: it needs make, Python 3.11 or newer and a package index.
# PYTHON=/path/to/python chooses the interpreter; ARGS="..." is handed on to pytest, the demo or the benchmarks;
# WORKERS=3 sets how many processes run the tests (two for each core unless given, 0 runs them in one).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Each program that a test starts would compile becket anew, and each worker would rewrite all assertions.
unexport PYTHONDONTWRITEBYTECODE

ARGS ?=
INPUTS ?= 1000000
WORKERS ?= auto
VERSIONS ?= 3.11 3.12 3.13 3.14

# A shim may be on the PATH for a Python that is not activated, and some systems ship one without venv: ask each to start.
starts = "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3.14 python3; do \
	if $(starts); then command -v "$$candidate"; break; fi; done)
# Prints the path of Python $(1), or nothing: what the PATH has, then what pyenv has installed without activating it.
find_python = for candidate in python$(1) \
	"$${PYENV_ROOT:-$$(pyenv root 2>/dev/null || echo /nonexistent)}"/versions/$(1).*/bin/python$(1); do \
	if $(starts); then command -v "$$candidate"; break; fi; done

BIN := .venv/bin
TEST_READY := .venv/.ready-test
DEV_READY := .venv/.ready-dev
# A file that is opened without an encoding reads differently elsewhere: Python warns, and pytest makes it an error.
RUN_PYTEST := -X warn_default_encoding -m pytest
PYTEST := $(BIN)/python $(RUN_PYTEST)
PARALLEL := -n $(WORKERS) --dist worksteal

# What another Python can break: tasks, processes, annotations, imports. The rest is the same code on the same data.
VERSIONED := $(addprefix tests/,blocking extension methods peer test_import_cost.py conversion/test_decode.py)

TYPED := $(wildcard src examples tests/typing tools)
# Pure code has no excuse for a line or a branch that no test reaches.
PURE_OF_HOST := breaker diagnostics events heartbeat lifecycle restart tools \
	$(addprefix starting/,configuration discovery environment grants_file manifest programs start_check start_order \
	becket_toml bundles candidate conflicts manifest_problems manifest_reader paths)
PURE := errors.py limits.py framing/* jsonrpc/* conversion/* methods/* contract/* dialects/* \
	$(addprefix host/,$(addsuffix .py,$(PURE_OF_HOST)))
empty :=
comma := ,
PURE_FILES := $(subst $(empty) $(empty),$(comma),$(addprefix */becket/,$(PURE)))

.PHONY: help chromium docs release-check language-servers node mcp-kit schema-suite demo test tests test-all test-plain sdk sdk-test lint types layers wheel check bench fuzz prove cover clean

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# -- set-up

$(TEST_READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: install one, or run make PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(DEV_READY): $(TEST_READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# One environment for each further Python: .venv-3.12, .venv-3.13
.venv-3.%/.ready-test: pyproject.toml
	@python="$$($(call find_python,3.$*))"; test -x .venv-3.$*/bin/python || "$$python" -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

.venv-bench/.ready: pyproject.toml $(wildcard benchmarks/requirements.txt)
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: run make PYTHON=/path/to/python" >&2; exit 1; }
	"$(PYTHON)" -m benchmarks --install $(if $(filter file,$(origin PYTHON)),,--python "$(PYTHON)")
	@touch $@

.venv-prove/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: run make PYTHON=/path/to/python" >&2; exit 1; }
	test -x .venv-prove/bin/python || "$(PYTHON)" -m venv .venv-prove
	.venv-prove/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[prove]'
	@touch $@

.venv-docs/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: run make PYTHON=/path/to/python" >&2; exit 1; }
	test -x .venv-docs/bin/python || "$(PYTHON)" -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# The site is tested in a browser. That test is skipped where there is none and it cannot be installed.
chromium: .venv-docs/.ready ## Installs a Chromium for the test of the documentation site
	@if command -v chromium chromium-browser google-chrome >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else .venv-docs/bin/playwright install chromium; fi \
		|| echo "Chromium could not be installed: the test that needs it will be skipped" >&2

# One test checks the schemas with a JavaScript validator. It is skipped where that cannot be installed.
.node_cache/node_modules/ajv/package.json:
	npm install --prefix .node_cache --no-audit --no-fund --no-package-lock --silent --fetch-retries=1 ajv@8 \
		|| echo "ajv could not be installed: the test that needs it will be skipped" >&2

# Two tests read the schemas with third-party programs: the parser of OpenRPC, and a generator of TypeScript.
SCHEMA_READERS := @open-rpc/schema-utils-js@2 json-schema-to-typescript@16
.node_cache/node_modules/@open-rpc/schema-utils-js/package.json: | .node_cache/node_modules/ajv/package.json
	npm install --prefix .node_cache --no-audit --no-fund --no-package-lock --silent --fetch-retries=1 $(SCHEMA_READERS) \
		|| echo "readers of schemas could not be installed: the tests that need them will be skipped" >&2

# The official test suite of JSON Schema is in the source of jsonschema. Its test is skipped where it cannot be downloaded.
.schema_cache/.ready: | $(TEST_READY)
	@mkdir -p .schema_cache; $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema \
		--dest .schema_cache jsonschema==4.25.1 && tar -xzf .schema_cache/jsonschema-4.25.1.tar.gz -C .schema_cache --strip-components 1 \
		&& touch $@ || echo "the test suite of JSON Schema could not be downloaded: its test will be skipped" >&2

schema-suite: .schema_cache/.ready ## Downloads the official test suite of JSON Schema

# Some tests use the reference servers of MCP. They are skipped where these cannot be installed.
MCP_SERVERS := $(addprefix @modelcontextprotocol/server-,everything@2026 filesystem@2026 memory@2026)
.node_cache/node_modules/@modelcontextprotocol/server-everything/package.json: | .node_cache/node_modules/@open-rpc/schema-utils-js/package.json
	npm install --prefix .node_cache --no-audit --no-fund --no-package-lock --silent --fetch-retries=1 $(MCP_SERVERS) \
		|| echo "the servers of MCP could not be installed: the tests that need them will be skipped" >&2

# And some with a language server and the JSON-RPC of VS Code. (The compiler of TypeScript 7 is no server any more.)
LSP_OF_NODE := typescript-language-server@5 typescript@5 vscode-jsonrpc@10
.node_cache/node_modules/typescript-language-server/package.json: | .node_cache/node_modules/@modelcontextprotocol/server-everything/package.json
	npm install --prefix .node_cache --no-audit --no-fund --no-package-lock --silent --fetch-retries=1 $(LSP_OF_NODE) \
		|| echo "typescript-language-server could not be installed: the tests that need it will be skipped" >&2

OF_NODE := $(addprefix .node_cache/node_modules/,$(addsuffix /package.json, \
	ajv @open-rpc/schema-utils-js @modelcontextprotocol/server-everything typescript-language-server))
node: $(OF_NODE) ## Installs what the tests need of Node

# Third-party Python programs that some tests use have environments of their own: their versions and warnings are not
# ours, and no code of becket may depend on them. The pip of .venv installs them; what is not used is not compiled.
others = test -x $(1)/bin/python || $(BIN)/python -m venv --without-pip $(1); \
	$(BIN)/python -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check --no-compile $(2) && touch $(1)/.ready \
	|| echo "$(3) could not be installed: the tests that need it will be skipped" >&2

.venv-mcp/.ready: | $(TEST_READY)
	$(call others,.venv-mcp,'mcp>=2.3$(comma)<3',the official kit for MCP)

mcp-kit: .venv-mcp/.ready ## Installs the official client of MCP for the tests

.venv-lsp/.ready: tests/adapters/lsp/requirements.txt | $(TEST_READY)
	$(call others,.venv-lsp,-r $<,a language server)

language-servers: .venv-lsp/.ready ## Installs the language servers for the tests

# -- use

# The demonstration runs the examples in other languages that can be built here. The first builds take a minute or two.
has = $(if $(shell command -v $(1) 2>/dev/null),$(2))
GO_EXAMPLE := sdk/go/example/build/example
RUST_EXAMPLE := sdk/rust/example/build/bin/rust-example
JAVA_EXAMPLE := examples/other_languages/java/target/dependency# the libraries, which are copied last
BUILT_EXAMPLES := $(call has,go,$(GO_EXAMPLE)) $(call has,cargo,$(RUST_EXAMPLE)) $(call has,mvn,$(JAVA_EXAMPLE))
build_example = @echo "Building $@"; output="$$( { $(1); } 2>&1)" && touch $@ \
	|| echo "$@ could not be built: $${output%%$$'\n'*}" >&2

$(GO_EXAMPLE): $(wildcard sdk/go/*.go sdk/go/example/*.go)
	$(call build_example,cd sdk/go/example && go build -o build/ .)

$(RUST_EXAMPLE): $(wildcard sdk/rust/Cargo.* sdk/rust/src/*.rs sdk/rust/example/Cargo.* sdk/rust/example/src/*.rs)
	$(call build_example,$(INSTALL_RUST_EXAMPLE))

$(JAVA_EXAMPLE): examples/other_languages/java/pom.xml $(wildcard examples/other_languages/java/src/main/java/*.java) schemas/becket.schema.json
	$(call build_example,cd examples/other_languages/java && mvn --batch-mode --quiet package)

demo: $(TEST_READY) $(BUILT_EXAMPLES) ## Runs the demonstration
	$(BIN)/python examples/demo.py $(ARGS)

test: tests ## Runs all tests on one Python

# Third-party programs that some tests use are installed first: those of Node where there is one.
tests: $(TEST_READY) .venv-lsp/.ready .venv-mcp/.ready .schema_cache/.ready $(if $(shell command -v npm 2>/dev/null),$(OF_NODE))
	$(PYTEST) $(PARALLEL) $(ARGS)

# The whole suite on 3.11, the part without the slow tests on the others.
test-all: ## Runs the tests on each Python of VERSIONS that is installed
	@ran=""; missing=""; \
	for version in $(VERSIONS); do \
		if [ -z "$$($(call find_python,$$version))" ]; then missing="$$missing $$version"; continue; fi; \
		$(MAKE) --no-print-directory tests-$$version; ran="$$ran $$version"; \
	done; \
	echo "Tests ran on:$${ran:- none}; not installed:$${missing:- none}"; \
	test -n "$$ran"

tests-3.11: .venv-3.11/.ready-test
	.venv-3.11/bin/python $(RUN_PYTEST) $(PARALLEL) $(ARGS)

tests-3.%: .venv-3.%/.ready-test
	.venv-3.$*/bin/python $(RUN_PYTEST) --quick $(VERSIONED) $(ARGS)

.PRECIOUS: .venv-3.%/.ready-test

# docs/architecture.md names the private APIs that these variables switch off, and those that have no switch.
test-plain: $(TEST_READY) ## Runs tests of peer, extension and host with the shortcuts of loop and imports switched off
	BECKET_PLAIN_LOOP=1 BECKET_PLAIN_IMPORTS=1 $(PYTEST) $(PARALLEL) --quick tests/peer tests/extension tests/host $(ARGS)

# -- kits for other languages

# Each kit NAME:PROGRAM has two targets: sdk-ready-NAME installs what its linters and tests need, and fails where that
# cannot be installed; sdk-test-NAME lints and tests it.
KITS := typescript:npm go:go rust:cargo

sdk: $(TEST_READY) ## Writes the schema bundle and the types of all kits
	$(BIN)/python -m tools.sdk
	if [ -e $(NODE_READY) ]; then cd sdk/typescript && npm run --silent build; fi

sdk-test: $(TEST_READY) ## Lints and tests each kit whose toolchain is there, and prints what was skipped
	@ran=""; skipped=""; \
	for kit in $(KITS); do \
		name="$${kit%%:*}"; program="$${kit##*:}"; \
		if ! command -v "$$program" >/dev/null; then skipped="$$skipped $$name ($$program is not installed)"; \
		elif ! $(MAKE) --no-print-directory sdk-ready-$$name; then skipped="$$skipped $$name (its tools cannot be installed)"; \
		else $(MAKE) --no-print-directory sdk-test-$$name; ran="$$ran $$name"; fi; \
	done; \
	echo "Kits tested:$${ran:- none}; skipped:$${skipped:- none}"

NODE_READY := sdk/typescript/node_modules/typescript/package.json
$(NODE_READY): sdk/typescript/package.json
	cd sdk/typescript && npm install --no-package-lock --no-audit --no-fund --silent --fetch-retries=1
	@touch $@

sdk-ready-typescript: $(NODE_READY)

# Ends with a comparison: what is built of the sources is kept in the repository.
sdk-test-typescript: $(TEST_READY)
	cd sdk/typescript && npm run --silent lint && npm test --silent
	$(PYTEST) -q -n 0 tests/sdk/test_typescript.py

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

sdk-ready-go:
	cd sdk/go && go run $(STATICCHECK) -version >/dev/null

# The race detector needs cgo, and a C compiler.
sdk-test-go:
	cd sdk/go && unformatted="$$(gofmt -l .)" && { test -z "$$unformatted" || { echo "not formatted: $$unformatted" >&2; exit 1; }; }
	cd sdk/go && go vet ./... && go run $(STATICCHECK) ./...
	cd sdk/go && go test $$(test "$$(go env CGO_ENABLED)" = 1 && command -v "$$(go env CC)" >/dev/null && echo -race) ./...

# One target folder for all crates of the kit; a host copies the folder of the example, so that it has the program alone.
CARGO := cd sdk/rust && CARGO_TARGET_DIR="$(CURDIR)/sdk/rust/target" cargo
EXAMPLE_CRATE := --manifest-path example/Cargo.toml --locked
INSTALL_RUST_EXAMPLE = $(CARGO) install --quiet --locked --debug --no-track --force --path example --root example/build

sdk-ready-rust:
	$(CARGO) build --quiet --locked --examples
	$(INSTALL_RUST_EXAMPLE)

sdk-test-rust: $(TEST_READY)
	$(CARGO) fmt --check && cargo fmt --check --manifest-path example/Cargo.toml
	$(CARGO) clippy --quiet --locked --all-targets -- -D warnings
	$(CARGO) clippy --quiet $(EXAMPLE_CRATE) -- -D warnings
	RUSTDOCFLAGS="-D warnings" && export RUSTDOCFLAGS && $(CARGO) doc --quiet --locked --no-deps
	$(CARGO) test --quiet --locked
	$(PYTEST) -q -n 0 tests/sdk/test_rust.py

# -- what must hold before a commit

check: lint types layers tests wheel ## Runs all that must pass before a commit

lint: $(DEV_READY) ## Checks style, format and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell

types: $(DEV_READY) ## Checks types with mypy and with pyright, both strict
	$(BIN)/mypy $(TYPED)
	$(BIN)/pyright

layers: $(TEST_READY) ## Checks that modules import only from lower ranks
	$(PYTEST) -q tests/test_layers.py

# Outside the checkout, so that nothing of it can stand in for what the wheel lacks.
wheel: $(DEV_READY) ## Builds the wheel and tests it in an environment of its own
	@work="$$(mktemp -d)"; trap 'rm -rf "$$work"' EXIT; set -x; \
	$(BIN)/python -m build --no-isolation --outdir "$$work/dist" . >"$$work/build.log" 2>&1 || { cat "$$work/build.log" >&2; exit 1; }; \
	$(BIN)/python -m venv "$$work/venv"; \
	"$$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$$(ls "$$work"/dist/*.whl)[test]"; \
	mkdir -p "$$work/outside/tests/json_schema"; \
	cp pyproject.toml "$$work/outside/"; \
	cp tests/conftest.py tests/test_exports.py tests/test_import_cost.py "$$work/outside/tests/"; \
	cp tests/json_schema/test_files.py "$$work/outside/tests/json_schema/"; \
	cd "$$work/outside"; \
	"$$work/venv/bin/python" -I -c 'import becket, becket.json_schema.files as t; print(becket.__version__, t.load_schema("envelope")["$$id"])'; \
	"$$work/venv/bin/python" -m pytest -q

docs: .venv-docs/.ready chromium ## Builds the documentation site, where a warning is an error, and tests it
	.venv-docs/bin/python -m tools.site_pages
	.venv-docs/bin/zensical build --clean --strict --config-file build/mkdocs.yml
	.venv-docs/bin/python $(RUN_PYTEST) -q -rs tests/docs/test_site.py tests/conformance/test_reports.py $(ARGS)

release-check: $(DEV_READY) ## Builds the package and checks all that a release needs
	rm -rf build/dist && mkdir -p build
	$(BIN)/python -m build --no-isolation --outdir build/dist . >build/release.log 2>&1 || { cat build/release.log >&2; exit 1; }
	$(BIN)/twine check --strict build/dist/*
	$(BIN)/python -m tools.release_check build/dist

# -- longer runs

bench: .venv-bench/.ready ## Measures becket beside its peers
	.venv-bench/bin/python -m benchmarks $(ARGS)

fuzz: $(TEST_READY) ## Feeds INPUTS random inputs to the pure parts
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) $(ARGS)

# Tests that make test runs with less: crashes, power cuts, kills, mutants of conformance cases, values that schemas accept.
THOROUGH := BECKET_CRASH_CYCLES=2000 BECKET_POWER_CUTS=500 BECKET_STORE_KILLS=500 BECKET_ALL_MUTANTS=1 BECKET_EXAMPLES=2000
THOROUGH_TESTS := $(addprefix tests/,peer/test_crash_cycles.py stores/sqlite/test_faults.py stores/sqlite/test_store.py \
	conformance/test_mutants.py contract/test_agreement.py host/starting/test_manifest.py host/test_host_config.py)

# An environment of its own: the tool that mutates code needs another pytest.
prove: .venv-prove/.ready ## Runs the long proofs and writes docs/proof.md
	.venv-prove/bin/python -m tests.proofs $(ARGS)
	$(if $(ARGS),,$(THOROUGH) .venv-prove/bin/python $(RUN_PYTEST) -q --timeout 3600 $(THOROUGH_TESTS))

cover: $(TEST_READY) ## Measures coverage; the pure parts must have all of it
	$(BIN)/coverage erase
	$(PYTEST) $(PARALLEL) --cov --cov-report= $(ARGS)
	$(BIN)/coverage report
	$(BIN)/coverage report --include='$(PURE_FILES)' --fail-under=100

clean: ## Removes all that make has made
	rm -rf .venv .venv-* .node_cache .schema_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov dist build sdk/*/target sdk/*/build sdk/*/example/build sdk/typescript/node_modules examples/other_languages/java/target
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
