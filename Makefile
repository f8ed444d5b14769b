# Both main commands set up everything they need in .venv, on a machine with only Python 3.11+, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test fuzz lint bench-solver bench-detection bench-default bench-scaling reproduce-small clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $@

demo: $(VENV)/.installed  ## find planted errors in a shipped table
	$(BIN)/mislabel demo

test: $(VENV)/.installed  ## run the test suite
	$(BIN)/python -m pytest

CASES ?= 20000
fuzz: $(VENV)/.installed  ## attack every reader and writer with damaged files
	$(BIN)/python -m tests.fuzz.run --cases $(CASES)

lint: $(VENV)/.installed  ## style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-solver: $(VENV)/.installed
	$(BIN)/python benchmarks/solver_cost.py

bench-detection: $(VENV)/.installed
	$(BIN)/python benchmarks/known_kernel.py

bench-default: $(VENV)/.installed
	$(BIN)/python benchmarks/default_estimator.py

bench-scaling: $(VENV)/.installed
	$(BIN)/python benchmarks/scaling.py

# The same code as the paper's table and figures, on 500 molecules and a few seeds.
DATA ?= ../shared/data
SMALL = reproduction-small
reproduce-small: $(VENV)/.installed  ## the paper's figures and table, small
	$(BIN)/mislabel reproduce fig1 --out $(SMALL)
	$(BIN)/mislabel reproduce fig2 --out $(SMALL) --seeds 4
	$(BIN)/mislabel reproduce fig3 --out $(SMALL)
	$(BIN)/mislabel reproduce table1 --out $(SMALL)/table1 --work $(SMALL) --data $(DATA) --limit 500 --folds 0

clean:
	rm -rf $(VENV) .venv-ci mislabel-demo $(SMALL)
