# `make book` and `make test` set everything up by themselves; `make help` lists the rest. On Windows, run make in Git
# Bash, which brings sh, rm and cp.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN = $(VENV)/Scripts
else
PYTHON ?= python3
BIN = $(VENV)/bin
endif
VENV := .venv
INSTALLED = $(VENV)/installed
# The lock names every package, so pip resolves nothing: for a requirement with an extra (coverage[toml]), pip 23 would
# take the newest release, which the lock has no hash of.
PACKAGES := --no-deps --require-hashes -r requirements.lock
OLDEST_NUMPY := 2.0
OLDEST_NUMBA := 0.61

# What these tools would otherwise write to the home folder stays in the clone.
CONFIG := $(CURDIR)/_build/config
export IPYTHONDIR := $(CONFIG)/ipython
export JUPYTER_CONFIG_DIR := $(CONFIG)/jupyter
export JUPYTER_DATA_DIR := $(CONFIG)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CONFIG)/jupyter/runtime
export JUPYTER_PREFER_ENV_PATH := 1
export MPLCONFIGDIR := $(CONFIG)/matplotlib
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# pip asks rustc for its version, at which rustup would make itself a folder at home.
export RUSTUP_HOME := $(CONFIG)/rustup
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# The tests of leamvd._support, leamvd.optimizers and leamvd.networks, which `pip install leamvd` is for.
LIBRARY_TESTS := $(patsubst %,tests/test_%.py,checks children compile interrupts threads base baselines checkpoints \
	directions evaluation examples lea_mvd memory messages minimize private_names properties random_streams reading \
	sampling scipys_habits selection contrastive_divergence dbn estimators likelihood rbm torch_backend)

# The tests that run the kernels themselves; uncompiled, the others would take hours and cover nothing more.
KERNEL_TESTS := $(patsubst %,tests/test_%.py,compile random_streams selection directions sampling lea_mvd rbm \
	contrastive_divergence)

# The paper's own experiments, which `make book` runs.
LIVE := esd directions mnist-7x7 mnist-28x28

.DEFAULT_GOAL := help
.PHONY: help book bench test test-library test-torch test-browser test-newest chaos faults quiet quiet-oldest regress \
	accept playground resolve launch lint coverage lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
		"try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PACKAGES)
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

# The bench, which takes a minute by itself, is `make bench`.
book: $(INSTALLED)  ## Run the experiments at a small scale, and render the book
	$(BIN)/leamvd reproduce $(LIVE) --profile quick --output results/quick
	@echo "Rendering the book of the recorded runs ..."
	@page=$$($(BIN)/leamvd book) && \
		echo "Just computed on this machine, on scikit-learn's digits; the book is about the recorded runs on MNIST:" && \
		$(BIN)/leamvd reproduce mnist-7x7 --profile quick --output results/quick && echo "Open the book: $$page"

bench: $(INSTALLED)  ## Measure time and memory here, baselines too where installed (pip install -e '.[bench]')
	$(BIN)/leamvd bench

# The notebooks run in a copy, so that what they write is new each time and lies outside notebooks/. Their figures are
# compared when all have run, and also where something else has failed. Three processes take live runs one by one, and
# whole files of tests, see tests/conftest.py.
test: $(INSTALLED)  ## Run all tests, and every notebook against its stored outputs and figures
	rm -rf _build/nbval && mkdir -p _build/nbval && cp notebooks/*.ipynb _build/nbval
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env \
		--ignore tests/test_figures.py tests _build/nbval; status=$$?; \
	LEAMVD_RESULTS="$(CURDIR)/_build/nbval" $(BIN)/python -m pytest tests/test_figures.py && test $$status = 0

test-library: $(INSTALLED)  ## Run the tests of the optimizers, the networks and what they stand on
	$(BIN)/python -m pytest $(LIBRARY_TESTS)

test-torch: $(INSTALLED)  ## Install PyTorch too, and run the tests of the backend that uses it
	$(BIN)/python -m pip install -e ".[torch]"
	$(BIN)/python -m pytest tests/test_torch_backend.py tests/test_backend_agreement.py

test-browser: $(INSTALLED)  ## Install a driver and JupyterLab too, and walk the book and a notebook in Chromium
	$(BIN)/python -m pip install -e ".[browser]"
	$(BIN)/python -m pytest tests/test_browser.py tests/test_jupyterlab.py

test-newest:  ## Run all tests from nothing, with the newest versions of everything that pyproject.toml allows
	rm -rf _build/newest
	$(MAKE) test VENV=_build/newest PACKAGES="-e '.[dev]'"

chaos: $(INSTALLED)  ## Kill the command, its jobs and kernels a hundred times at random; compare what is stored
	$(BIN)/python tests/chaos.py 100

faults: $(INSTALLED)  ## Plant known faults one at a time (FAULT="NAME ..."); the test of each has to fail
	$(BIN)/python tests/faults.py $(FAULT)

quiet: $(INSTALLED)  ## Run sections without a fault, on other threads and processors; no figure may move (RUNS=1)
	for run in $$(seq $(or $(RUNS),1)); do for way in "1" "2" "2 NUMBA_CPU_NAME=generic"; do \
		rm -rf _build/quiet && echo "run $$run, NUMBA_NUM_THREADS=$$way" && env NUMBA_NUM_THREADS=$$way \
		$(BIN)/leamvd reproduce esd directions --profile quick --output _build/quiet && \
		$(BIN)/python tests/regress.py _build/quiet || exit 1; done; done

quiet-oldest:  ## The same from nothing, with the oldest NumPy and Numba that pyproject.toml allows
	rm -rf _build/oldest
	$(MAKE) quiet VENV=_build/oldest PACKAGES="-e '.[dev]' numpy==$(OLDEST_NUMPY).* numba==$(OLDEST_NUMBA).*"

regress: $(INSTALLED)  ## Show on a page which figures moved in new runs, or in RESULTS=FOLDER
ifdef RESULTS
	@$(BIN)/python tests/regress.py "$(RESULTS)"
else
	rm -rf results/regress
	$(BIN)/leamvd reproduce --profile recorded --output results/regress/recorded
	$(BIN)/leamvd reproduce --profile quick --output results/regress/quick
	@$(BIN)/python tests/regress.py results/regress/recorded results/regress/quick
endif

# FIGURE, REASON and RESULTS reach it through the environment. Other notebooks may quote what is taken.
accept: $(INSTALLED)  ## Take FIGURE=NAME, or all, of new runs or RESULTS as right: REASON="why it moved"
	@$(BIN)/python tests/accept.py
	@$(BIN)/python book/resolve.py

playground: $(INSTALLED)  ## Draw the figure that stands in the playground's place on paper
	$(BIN)/python book/playground.py

resolve: $(INSTALLED)  ## Write into the notebooks what Jupyter shows for their numbers, links and references
	$(BIN)/python book/resolve.py

launch: $(INSTALLED)  ## Write into the notebooks what Colab needs, for the repository that _config.yml names
	$(BIN)/python book/launch.py

lint: $(INSTALLED)  ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

coverage: $(INSTALLED)  ## Measure line coverage, compiled and uncompiled runs together (at least 95 %)
	$(BIN)/python -m pytest --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --cov --cov-append --cov-report= $(KERNEL_TESTS)
	$(BIN)/coverage report --fail-under=95

# Without the extras `torch` and `bench`: what they need is large, and differs by machine and device.
lock: $(INSTALLED)  ## Renew requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-annotate --no-header -o requirements.lock

clean:  ## Remove what the other commands made, except results
	rm -rf .venv _build build *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find leamvd notebooks tests -name __pycache__ -prune -exec rm -rf {} +
