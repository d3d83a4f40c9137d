# Every target sets up what it needs: a virtual environment in .venv from the pinned constraints.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := src tests benchmarks examples tools docs/conf.py

.PHONY: demo test test-all check lint bench utility persons probabilities pate label-dp docs mutants hooks wheels release clean

demo: .venv/.demo
	$(BIN)/tacit demo --out demo --force

# tests run on all cores, so each process computes on one; compiled tests are kept, whatever the environment says
test test-all check: export OMP_NUM_THREADS = 1
test test-all check: export PYTHONDONTWRITEBYTECODE =

test: lint
	$(BIN)/pytest -n auto --dist worksteal -m "not thorough"

# what `make test` leaves out: the fuzzer, the audit, slow statistics, and the mutants
test-all: .venv/.dev
	$(BIN)/pytest -n auto --dist worksteal -m thorough --durations=20
	$(BIN)/python tests/mutants/run.py

check: lint
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

lint: .venv/.dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/stub.py --check
	$(BIN)/python tools/tables.py --check
	$(BIN)/python tools/pictures.py --check

mutants: .venv/.dev
	$(BIN)/python tests/mutants/run.py

bench: .venv/.dev
	$(BIN)/python benchmarks/prototypes.py
	$(BIN)/python benchmarks/auto.py
	$(BIN)/python benchmarks/votes.py
	$(BIN)/python benchmarks/teachers.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/encoders.py
	$(BIN)/python benchmarks/scale.py

# the table of method x budget x imbalance x data set: hours, resumable; EMBEDDINGS holds the stores, NAMES is what
# benchmarks/utility/names.py writes
utility: .venv/.dev
	$(BIN)/python benchmarks/utility/run.py $(EMBEDDINGS) $(if $(NAMES),--names $(NAMES)) --out utility

probabilities: .venv/.dev
	$(BIN)/python benchmarks/probabilities/run.py $(EMBEDDINGS) --out probabilities

persons: .venv/.dev
	$(BIN)/python benchmarks/persons/run.py $(EMBEDDINGS) --out persons

pate: .venv/.dev
	$(BIN)/python benchmarks/pate/run.py $(DATA) --out pate

label-dp: .venv/.dev
	$(BIN)/python benchmarks/label_dp/run.py $(DATA) --out label-dp

docs: .venv/.docs
	$(BIN)/sphinx-build -W --keep-going docs docs/_build/html

hooks: .venv/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pre-commit
	$(BIN)/pre-commit install

# the source archive and the wheel, which is installed on its own and tried
wheels: .venv/bin/python
	rm -rf dist .venv/wheel
	$(BIN)/hatchling build
	$(BIN)/python -m venv .venv/wheel
	.venv/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd .venv/wheel && bin/tacit promise noisy-sum --budget rho=0.5
	rm -rf .venv/wheel

# what a tag publishes, and its notes in dist/notes.md: make release TAG=v0.1.0
release: .venv/bin/python
	$(BIN)/python tools/release.py $(TAG)
	$(MAKE) wheels
	$(BIN)/python tools/release.py $(TAG) --notes dist/notes.md

clean:
	rm -rf .venv demo dist docs/_build docs/generated

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tacit needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables

.venv/.demo: EXTRA := .[experiments]
.venv/.dev: EXTRA := .[dev]
.venv/.docs: EXTRA := .[docs]
.venv/.demo .venv/.dev .venv/.docs: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '$(EXTRA)'
	touch $@
