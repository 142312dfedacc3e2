# Two commands matter: `make demo` and `make test`. Each makes its own environment on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAX_VENV := .venv-jax
JAX_VERSION := 0.10.2
PIP := -m pip install --quiet --disable-pip-version-check
STAMPS := .stamps

.PHONY: demo test lint format bench-overhead clean

demo: $(STAMPS)/demo              ## train a classifier on handwritten digits
	$(BIN)/python examples/digits.py

test: $(STAMPS)/test              ## all tests, and every example in every docstring
	$(BIN)/python -m pytest -n 2 -q

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMPS)/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-overhead: $(STAMPS)/demo $(STAMPS)/jax    ## side by side with JAX, printed as ratios
	$(BIN)/python benchmarks/overhead.py --jax-python $(JAX_VENV)/bin/python

clean:
	rm -rf $(VENV) $(JAX_VENV) $(STAMPS) .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "catena needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo: pyproject.toml $(STAMPS)/venv
	$(BIN)/python $(PIP) --editable '.[demo]'
	@touch $@

$(STAMPS)/test: pyproject.toml $(STAMPS)/venv
	$(BIN)/python $(PIP) --editable '.[test]'
	@touch $@

$(STAMPS)/jax: Makefile
	$(PYTHON) -m venv $(JAX_VENV)
	$(JAX_VENV)/bin/python $(PIP) jax==$(JAX_VERSION) scikit-learn matplotlib
	@mkdir -p $(STAMPS) && touch $@
