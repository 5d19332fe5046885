# onlinegp: `make help` lists the targets. Everything is installed into .venv; nothing else is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= out
DATA   ?= $(ONLINEGP_DATA)

# BLAS on one thread: the tests run two processes, the benchmarks compare one core with one core.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# What runs Spark; empty where it is missing.
JAVA = $(shell java -version 2>&1 | grep -E 'version "(1[7-9]|[2-9][0-9])')

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-spark attack check lint types coverage hooks bench accuracy docs sanitize clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/installed ## Install, then run the demonstration: the paper's filters and Auto on a channel that changes
	$(BIN)/onlinegp demo --out $(OUT)

test: $(VENV)/tested ## Install, then run every test but the slow ones
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

test-slow: $(VENV)/tested ## Run the slow tests too: millions of steps, whole experiments
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m "not attack"

test-spark: $(if $(JAVA),$(VENV)/sparked) ## Run the tests of Spark, where there is Java 17 or later; installs Spark, half a gigabyte
	$(if $(JAVA),$(ONE_THREAD) $(BIN)/python -m pytest tests/spark,@echo "No Java 17 or later was found: Spark's tests were not run.")

attack: $(VENV)/tested ## Run the long attacks: files, tables, threads, signals, kills, memory, extremes; with their counts
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m attack -s tests/attack tests/cli/test_crash.py tests/fleet tests/laws tests/state

check: lint types test test-spark ## Lint, types, tests, those of Spark too

lint: $(VENV)/developed ## Check style, format and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/developed ## Check types
	$(BIN)/mypy

coverage: $(VENV)/developed ## Run the tests and tell which lines of the package they run
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-report=html:$(OUT)/coverage

hooks: $(VENV)/developed ## Check and format what is committed from now on (pre-commit)
	$(BIN)/pre-commit install

bench: $(VENV)/installed ## Measure against NumPy and against the machine's limits
	$(ONE_THREAD) $(BIN)/python benchmarks/run.py --out $(OUT)

accuracy: $(VENV)/installed ## Measure errors, densities and coverage on real streams: set ONLINEGP_DATA, or DATA=folder
	$(ONE_THREAD) $(BIN)/python benchmarks/accuracy.py --data $(DATA)
	$(ONE_THREAD) $(BIN)/python benchmarks/fresh_coverage.py --data $(DATA)

docs: $(VENV)/documented ## Build the documentation; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

sanitize: $(VENV)/tested ## Run the engine's tests under the address and undefined behavior sanitizers
	native/sanitize.sh $(BIN)/python -n 2

clean: ## Remove the environment and what was built
	rm -rf $(VENV) build dist $(OUT) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp per set of packages. The install is editable, so that tests run what is edited; the engine is built in build/,
# so that only what changed is compiled again.
SOURCES := pyproject.toml CMakeLists.txt $(shell find native -type f -name '*.?pp')
INSTALL := $(BIN)/python -m pip install --quiet --no-build-isolation --config-settings=build-dir=build/{wheel_tag} --editable

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# pip 25.1 is the first that reads dependency groups.
$(VENV)/pip: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/buildable: $(VENV)/pip
	$(BIN)/python -m pip install --quiet 'scikit-build-core>=0.10' 'nanobind>=2.4' cmake ninja 'setuptools>=70.1'
	@touch $@

$(VENV)/installed: $(VENV)/buildable $(SOURCES)
	$(INSTALL) '.[plots]'
	@touch $@

$(VENV)/tested: $(VENV)/buildable $(SOURCES)
	$(INSTALL) '.[all]' --group test
	@touch $@ $(VENV)/installed

$(VENV)/sparked: $(VENV)/tested
	$(INSTALL) '.[all,spark]' --group test
	@touch $@

$(VENV)/documented: $(VENV)/buildable $(SOURCES)
	$(INSTALL) '.[all]' --group docs
	@touch $@ $(VENV)/installed

$(VENV)/developed: $(VENV)/buildable $(SOURCES)
	$(INSTALL) '.[all]' --group dev
	@touch $@ $(VENV)/tested $(VENV)/documented $(VENV)/installed
