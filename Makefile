# Every target sets up what it needs: a virtual environment in .venv from the pinned constraints.
PYTHON ?= python3
ENV := .venv
BIN := $(ENV)/bin
CONSTRAINTS := constraints.txt
MYPY := $(BIN)/mypy
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)
SOURCES := src tests benchmarks examples tools docs/conf.py

.PHONY: bench-scale demo test test-all audit check quick-tests lowest newest coverage lint bench utility persons probabilities pate label-dp tables papers docs mutants hooks wheels release clean

demo: $(ENV)/.demo
	$(BIN)/tacit demo --out demo --force

# tests run on all cores, so each process computes on one; compiled tests are kept, whatever the environment says
test test-all check quick-tests coverage: export OMP_NUM_THREADS = 1
test test-all check quick-tests coverage: export PYTHONDONTWRITEBYTECODE =

test: lint
	$(BIN)/pytest -n auto --dist worksteal -m "not thorough"

# what `make test` leaves out: the fuzzer, the audit, slow statistics, Flower and FLARE (in environments of their own, which
# are kept), and the mutants
test-all: $(ENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal -m thorough --durations=20
	$(BIN)/python tests/mutants/run.py

# lower bounds on what every method reveals: benchmarks/measure/audit.json
audit: $(ENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/measure/audit.py

check: lint quick-tests

quick-tests: $(ENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

# `make check` with every library at the lower bound of pyproject.toml. Old libraries have other types, so that mypy
# checks types in .venv alone.
LOWEST := ENV=.venv-lowest CONSTRAINTS=.venv-lowest.txt EXTRA='.[dev,mlflow,docs]' MYPY=:
lowest:
	$(PYTHON) tools/lowest.py --out .venv-lowest.txt
	$(MAKE) .venv-lowest/.dev $(LOWEST)
	.venv-lowest/bin/python tools/lowest.py --installed
	$(MAKE) check $(LOWEST)

# tests, then lint, with the newest version of every library that pyproject.toml allows; the last line lists newer ones
NEWEST := ENV=.venv-newest CONSTRAINTS=/dev/null
newest:
	rm -rf .venv-newest
	$(MAKE) quick-tests $(NEWEST)
	$(MAKE) lint $(NEWEST)
	.venv-newest/bin/python -m pip list --outdated --disable-pip-version-check

# lines of src that the tests of `make test` run, in the terminal and in coverage/index.html; kernels that numba compiles
# are not seen
coverage: $(ENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal -m "not thorough" --cov --cov-report=term --cov-report=html

lint: $(ENV)/.dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(MYPY)
	$(BIN)/lint-imports
	$(BIN)/python tools/stub.py --check
	$(BIN)/python tools/tables.py --check
	$(BIN)/python tools/pictures.py --check
	$(BIN)/python benchmarks/papers/page.py --check

mutants: $(ENV)/.dev
	$(BIN)/python tests/mutants/run.py

# ratios are added to benchmarks/history.jsonl, which docs/speed-history.md draws
bench: $(ENV)/.dev
	$(BIN)/python benchmarks/history.py run benchmarks/prototypes.py
	$(BIN)/python benchmarks/history.py run benchmarks/auto.py
	$(BIN)/python benchmarks/history.py run benchmarks/votes.py
	$(BIN)/python benchmarks/history.py run benchmarks/teachers.py
	$(BIN)/python benchmarks/history.py run benchmarks/labels.py
	$(BIN)/python benchmarks/history.py run benchmarks/sweep.py
	$(BIN)/python benchmarks/history.py run benchmarks/encoders.py
	$(BIN)/python benchmarks/history.py run benchmarks/scale.py
	$(BIN)/python benchmarks/history.py run benchmarks/combining.py
	$(BIN)/python benchmarks/history.py draw

# 20 GB of Parquet, made, imported and deleted (SCALE=--quick is a hundredth), and sums of 10^8 streamed rows
# (ROWS=1e6 is a hundredth), whose table goes to benchmarks/streamed.md
bench-scale: $(ENV)/.dev
	$(BIN)/python benchmarks/scale_import.py $(SCALE)
	$(BIN)/python benchmarks/streamed.py $(or $(ROWS),1e8)

# the table of method x budget x imbalance x data set: hours, resumable; EMBEDDINGS holds the stores, NAMES is what
# benchmarks/utility/names.py writes
utility: $(ENV)/.dev
	$(BIN)/python benchmarks/utility/run.py $(EMBEDDINGS) $(if $(NAMES),--names $(NAMES)) --out utility

probabilities: $(ENV)/.dev
	$(BIN)/python benchmarks/probabilities/run.py $(EMBEDDINGS) --out probabilities

persons: $(ENV)/.dev
	$(BIN)/python benchmarks/persons/run.py $(EMBEDDINGS) --out persons

pate: $(ENV)/.dev
	$(BIN)/python benchmarks/pate/run.py $(DATA) --out pate

label-dp: $(ENV)/.dev
	$(BIN)/python benchmarks/label_dp/run.py $(DATA) --out label-dp

# the other tools run in environments of their own, which are made in the user's cache folder
tables: $(ENV)/.dev
	$(BIN)/python benchmarks/tables/run.py $(DATA) --out tables

# the quick plans of the papers, their claims, and the claims in docs/papers.md: minutes, resumable; the shared data is
# beside this folder
PAPERS_DATA ?= ../shared/data
papers: export OMP_NUM_THREADS = 1
papers: $(ENV)/.dev
	$(BIN)/python benchmarks/papers/run.py $(PAPERS_DATA) --work papers

docs: $(ENV)/.docs
	$(BIN)/sphinx-build -W --keep-going docs docs/_build/html

hooks: $(ENV)/.dev
	$(PIP_INSTALL) pre-commit
	$(BIN)/pre-commit install

# the source archive and the wheel, which is installed on its own and tried
wheels: $(ENV)/bin/python
	rm -rf dist .venv/wheel
	$(BIN)/hatchling build
	$(BIN)/python -m venv .venv/wheel
	.venv/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd .venv/wheel && bin/tacit promise noisy-sum --budget rho=0.5
	rm -rf .venv/wheel

# what a tag publishes, and its notes in dist/notes.md: make release TAG=v0.1.0
release: $(ENV)/bin/python
	$(BIN)/python tools/release.py $(TAG)
	$(MAKE) wheels
	$(BIN)/python tools/release.py $(TAG) --notes dist/notes.md

clean:
	rm -rf .venv .venv-lowest .venv-lowest.txt .venv-newest .venv-flower .venv-flare coverage .coverage demo dist docs/_build docs/generated

# hatchling builds tacit, and setuptools PySpark, which comes as an archive of sources
$(ENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tacit needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(ENV)
	$(PIP_INSTALL) hatchling editables setuptools

$(ENV)/.demo: EXTRA := .[experiments]
$(ENV)/.dev: EXTRA := .[dev]
$(ENV)/.docs: EXTRA := .[docs]
$(ENV)/.demo $(ENV)/.dev $(ENV)/.docs: $(ENV)/bin/python pyproject.toml $(CONSTRAINTS)
	$(PIP_INSTALL) --no-build-isolation -e '$(EXTRA)'
	touch $@
