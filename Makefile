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

# What these tools would otherwise write to the home folder stays in the clone.
CONFIG := $(CURDIR)/_build/config
export IPYTHONDIR := $(CONFIG)/ipython
export JUPYTER_CONFIG_DIR := $(CONFIG)/jupyter
export JUPYTER_DATA_DIR := $(CONFIG)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CONFIG)/jupyter/runtime
export JUPYTER_PREFER_ENV_PATH := 1
export MPLCONFIGDIR := $(CONFIG)/matplotlib
export NUMBA_CACHE_DIR ?= $(CONFIG)/numba
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# pip asks rustc for its version, at which rustup would make itself a folder at home.
export RUSTUP_HOME := $(CONFIG)/rustup
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# The paper's own experiments, which `make book` runs.
LIVE := esd directions mnist-7x7 mnist-28x28
# The book's addresses: make book ADDRESSES="--repository URL --baseurl URL"
ADDRESSES :=

.DEFAULT_GOAL := help
.PHONY: help book article lab test accept test-torch test-browser test-newest book-newest lint lock release clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(INSTALLED): pyproject.toml notebooks/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
		"try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PACKAGES)
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e . -e notebooks
	@touch $@

book: $(INSTALLED)  ## Run the experiments at a small scale, and render the book
	$(BIN)/leamvd reproduce $(LIVE) --profile quick --output results/quick
	@echo "Rendering the book of the recorded runs ..."
	@page=$$($(BIN)/leamvd book $(ADDRESSES)) && \
		echo "Just computed on this machine, on scikit-learn's digits; the book is about the recorded runs on MNIST:" && \
		$(BIN)/leamvd reproduce mnist-7x7 --profile quick --output results/quick && echo "Open the book: $$page"

article: $(INSTALLED)  ## Install Typst too, and make the article, which the next book offers
	$(BIN)/python -c "import typst" || $(BIN)/python -m pip install -e . -e "notebooks[article]"
	$(BIN)/python article/build.py

# Times of cells would be noise in a diff. The front end has its own default for that; this one stands before it.
lab: $(INSTALLED)  ## Install JupyterLab too, and open the notebooks in it; it keeps no times of cells
	$(BIN)/python -m pip install -e . -e "notebooks[lab]"
	mkdir -p $(VENV)/share/jupyter/lab/settings
	echo '{"@jupyterlab/notebook-extension:tracker": {"recordTiming": false}}' \
		> $(VENV)/share/jupyter/lab/settings/overrides.json
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks

# The notebooks run in a copy, so that what they draw is new each time and lies outside notebooks/. Their figures are
# compared when all have run.
NBVAL = _build/nbval
MOVED = $(BIN)/python tests/moved_figures.py $(NBVAL) _build/moved_figures.html
test: $(INSTALLED)  ## Run all tests, and every notebook against its stored outputs and figures
	rm -rf $(NBVAL) && mkdir -p $(NBVAL) && cp notebooks/*.ipynb $(NBVAL)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env \
		--ignore tests/test_figures.py tests $(NBVAL); status=$$?; \
	$(MOVED); LEAMVD_DRAWN="$(CURDIR)/$(NBVAL)" $(BIN)/python -m pytest tests/test_figures.py && test $$status = 0

accept: $(INSTALLED)  ## Take the figures of all notebooks as they are drawn now as right; git shows what has moved
	rm -rf $(NBVAL) && mkdir -p $(NBVAL) && cp notebooks/*.ipynb $(NBVAL)
	-PYTHONPATH=tests $(BIN)/python -m pytest -p conftest -n 3 --dist loadfile --nbval-lax --nbval-current-env -q $(NBVAL)
	-$(MOVED)
	-LEAMVD_DRAWN="$(CURDIR)/$(NBVAL)" $(BIN)/python -m pytest -q --regen-all tests/test_figures.py tests/test_notebooks.py
	git status --short tests/figures

test-torch: $(INSTALLED)  ## Install PyTorch too, and run the tests of the backend that uses it
	$(BIN)/python -m pip install -e ".[torch]"
	$(BIN)/python -m pytest tests/test_torch_backend.py

test-browser: $(INSTALLED)  ## Install a driver too, and walk the book in Chromium
	$(BIN)/python -m pip install -e . -e "notebooks[browser]"
	$(BIN)/python -m pytest tests/test_browser.py

test-newest:  ## Run all tests from nothing, with the newest versions of everything that pyproject.toml allows
	rm -rf _build/newest
	$(MAKE) test VENV=_build/newest PACKAGES="-e . -e 'notebooks[dev]'"

# Jupyter Book 1.0.4 takes these newer ones too, but for its pins.
BOOK_NEWEST := sphinx>=9 sphinx-book-theme>=1.4 myst-parser>=5 myst-nb>=1.4
book-newest: VENV = _build/newest-book
book-newest:  ## Render the book from nothing, with Sphinx 9 and the newest theme and parser
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install "uv>=0.6"
	printf '%s\n' $(patsubst %,'%',$(BOOK_NEWEST)) > $(VENV)/overrides.txt
	$(BIN)/uv pip install --python $(VENV) --override $(VENV)/overrides.txt -e . -e "notebooks[book]"
	$(BIN)/leamvd book

lint: $(INSTALLED)  ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Without the extras `torch`, `browser`, `coco`, `article` and `lab`: what they need is large, or differs by machine and device.
lock: $(INSTALLED)  ## Renew requirements.lock
	$(BIN)/uv pip compile notebooks/pyproject.toml --extra dev --no-emit-package leamvd --no-emit-package leamvd-paper \
		--universal --python-version 3.11 --generate-hashes --no-annotate --no-header -o requirements.lock

release: article book  ## Make what a release attaches, in dist
	$(BIN)/python .ci/release.py

clean:  ## Remove what the other commands made, except results
	rm -rf .venv _build build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find leamvd notebooks tests -name __pycache__ -prune -exec rm -rf {} +
