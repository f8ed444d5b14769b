# Both main commands set up everything they need in .venv, on a machine with only Python 3.11+, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test test-lowest fuzz lint bench-solver bench-detection bench-default bench-scaling reproduce-small clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $@

demo: $(VENV)/.installed  ## find planted errors in a shipped table
	$(BIN)/mislabel demo

test: $(VENV)/.installed  ## run the test suite
	$(BIN)/python -m pytest

# The lowest versions that pyproject.toml promises, all extras together, in an environment of their own (of Python 3.11:
# not all have wheels for later ones). The core is tested without what takes long, and without test_set_aside, which compares every
# digit of fits: these libraries do not always round alike. LOWEST_WITHOUT= LOWEST_DESELECTED= tests all of it. The first polars of
# its major version is there for the sake of its frames, which an audit takes.
LOWEST_VENV ?= .venv-lowest
LOWEST_EXTRAS = tables plot chem dask
LOWEST_TESTS ?= $(addprefix tests/,_common linalg kernels likelihoods noise decisions data estimators auditing \
	test_evaluation.py test_plotting.py)
LOWEST_WITHOUT ?= tests/kernels/graphs $(wildcard tests/data/test_molecule*.py) $(patsubst %,tests/estimators/test_%.py, \
	blocked_cross_fit invariance low_rank mean_choice molecules nasty objective_path set_aside)
# Of the audits these take longest.
LOWEST_DESELECTED ?= $(addprefix tests/auditing/,test_dask.py::test_many_rows_are_fitted_by_the_workers \
	test_inputs.py::test_molecules_in_a_list_or_a_set test_dask.py::test_a_table_that_fits_gives_the_very_same_audit)
comma = ,
space = $() $()

$(LOWEST_VENV)/.installed: pyproject.toml .ci/lowest.py
	$(PYTHON) -m venv $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) .ci/lowest.py $(LOWEST_EXTRAS) > $(LOWEST_VENV)/lowest.txt
	$(LOWEST_VENV)/bin/python -m pip install --quiet --constraint $(LOWEST_VENV)/lowest.txt \
		--editable ".[$(subst $(space),$(comma),$(LOWEST_EXTRAS))]" pytest hypothesis "polars==1.0.*"
	touch $@

# Compiled loops are cached apart: versions of numba must not find each other's.
test-lowest: $(LOWEST_VENV)/.installed  ## run the core tests with the lowest versions of all dependencies
	NUMBA_CACHE_DIR=$(abspath $(LOWEST_VENV))/loops $(LOWEST_VENV)/bin/python -m pytest $(LOWEST_TESTS) $(addprefix --ignore=,$(LOWEST_WITHOUT)) \
		$(addprefix --deselect=,$(LOWEST_DESELECTED))

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
	rm -rf $(VENV) .venv-ci $(LOWEST_VENV) mislabel-demo $(SMALL)
