# Commands for a fresh machine with Python 3.11 or newer, make and a package index:
#   make run        environment, dependencies, then the adapter learner over the generated stream
#   make install    environment and dependencies alone
#   make test       environment, dependencies, every test: what README.md promises
#   make test-fast  the tests of every package that start no whole program; between commits
#   make docs       the documentation as a site, in build/site; executes the notebooks
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A file's tests share runs of the program, so one process gets the whole file.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

.PHONY: run install test test-fast check figures docs lock clean

run: $(VENV)/.run
	$(BIN)/python run_stream.py experiment=first_run learner=adapter learner.lr=5e-3

install: $(VENV)/.run

test: $(VENV)/.dev
	$(PYTEST)

test-fast: $(VENV)/.dev
	$(PYTEST) -m "not slow"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright

# Tables, figures and sentences of the comparison, from the records in results/evidence.
figures: $(VENV)/.dev
	$(BIN)/python -m benchmarks.evidence tables --out results/evidence --figures docs/evidence \
		README.md docs/paper.md docs/protocol.md docs/ablations.md
	$(BIN)/python -m benchmarks.older.table results docs/methods.md

docs: $(VENV)/.docs
	$(BIN)/python -m benchmarks.docs.site

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	f"Python 3.11 or newer is needed, {sys.executable} is {v.major}.{v.minor}: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(BIN)/task-stream learners --json >/dev/null  # remembers them, so that the first start is fast
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@

$(VENV)/.docs: requirements-docs.lock $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	@touch $@

# Write the exact versions of a fresh environment; run the checks and the tests before committing.
lock:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet torch==2.13.0 '.[report]'
	$(BIN)/python -m pip freeze --exclude task-stream-simulator | sed 's/+cpu$$//' > requirements.lock
	$(BIN)/python -m pip install --quiet -r requirements.lock --group dev
	$(BIN)/python -m pip freeze --exclude task-stream-simulator | sed 's/+cpu$$//' > requirements-dev.lock
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock --group docs
	$(BIN)/python -m pip freeze --exclude task-stream-simulator | sed 's/+cpu$$//' > requirements-docs.lock
	$(BIN)/python -m pip uninstall --quiet --yes task-stream-simulator
	rm -rf build *.egg-info
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $(VENV)/.run $(VENV)/.dev $(VENV)/.docs

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache build *.egg-info
