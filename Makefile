# onlinegp: `make help` lists the targets. Everything is installed into .venv; nothing else is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= out

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check lint types clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/installed ## Install, then run the demonstration: four filters on a channel that changes
	$(BIN)/onlinegp demo --out $(OUT)

test: $(VENV)/tested ## Install, then run every test but the slow ones
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-slow: $(VENV)/tested ## Run the long tests too
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m ""

check: lint types test ## Lint, types, tests

lint: $(VENV)/developed ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/developed ## Check types
	$(BIN)/mypy

clean: ## Remove the environment and what was built
	rm -rf $(VENV) build dist $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp a set of packages: installing again only when the project's own files ask for it.
SOURCES := pyproject.toml $(shell find src -name '*.py')

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[plots]'
	@touch $@

$(VENV)/tested: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[test]'
	@touch $@ $(VENV)/installed

$(VENV)/developed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[dev]'
	@touch $@ $(VENV)/tested $(VENV)/installed
