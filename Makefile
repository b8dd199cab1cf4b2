SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One thread per worker: the runner is what runs in parallel.
export OMP_NUM_THREADS := 1
# The working directory is on no one's path by accident: the editable install puts the checkout there.
export PYTHONSAFEPATH := 1

BIN := .venv/bin
INSTALLED := .venv/.installed
RANGE := build/range
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate $(LOCKFLAGS)

.PHONY: help install engines demo test test-engines test-slow test-range audit mutants gallery tables reproduce bench bench-start bench-one-cluster bench-pass bench-ordered \
	bench-centers bench-analysis bench-sparse bench-groups bench-auto bench-questions bench-scale bench-memory bench-engines docs lint format lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## set everything up in .venv, from the locks

# PYTHON=... picks the interpreter; without it, the first one on the path that is new enough.
$(INSTALLED): requirements-dev.txt pyproject.toml
	@if [ ! -x $(BIN)/python ]; then \
		for python in $${PYTHON:-python3 python3.13 python3.12 python3.11}; do \
			if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
				"$$python" -m venv .venv && break || rm -rf .venv; \
			fi; \
		done; \
		[ -x $(BIN)/python ] || { echo "Shoal needs Python 3.11, 3.12 or 3.13: make install PYTHON=/path/to/python" >&2; exit 1; }; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# A part that cannot be had is named, and its tests are skipped; with CI=true they fail.
engines: install ## fetch what the engine tests run on, once: Flink, its job server, Prism, Airflow, servers of object storage
	-@$(BIN)/python -m tests.engines.fetch

demo: install ## ask several questions about the world's airports, privately
	$(BIN)/shoal demo

test: install ## lint, types, import contracts, documentation, then the fast tests: a few minutes, and no engine
	@$(MAKE) --no-print-directory --jobs 2 lint docs
	$(BIN)/pytest -m "not slow and not engine and not audit" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# These wait for engines most of the time, so CI runs them beside others.
test-engines: engines ## tests of engines and services: Flink, Prism, Airflow, object storage, a browser
	$(BIN)/pytest -m "engine and not audit" tests/engines tests/deploy

test-slow: install ## slow tests that need no engine: an hour, before a change is handed in
	$(BIN)/pytest -m "slow and not engine and not audit" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# LOCK=... picks what is installed, and PYTHON=... the interpreter: by default the oldest Beam, and Python of .venv.
test-range: LOCK = requirements-oldest.txt
test-range: install ## the tests of transforms, runs and calls, and of one run of every task, on the oldest Beam
	rm -rf $(RANGE)
	$(BIN)/uv venv --quiet --python $${PYTHON:-$(BIN)/python} $(RANGE)
	VIRTUAL_ENV=$(RANGE) $(BIN)/uv pip install --quiet --require-hashes -r $(LOCK)
	VIRTUAL_ENV=$(RANGE) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	PYTHONPATH=$(CURDIR) $(RANGE)/bin/python -m pytest -m "not engine and not audit" tests/transforms tests/shoal \
		tests/pipelines/run tests/pipelines/test_systems.py tests/engines/test_golden_embedded.py

audit: install ## long statistical tests of privacy and accuracy
	$(BIN)/pytest -m audit

mutants: install ## plant wrong versions of the code one at a time; the tests must catch each
	$(BIN)/python -m tests.mutants

bench: bench-start bench-one-cluster bench-pass bench-ordered bench-centers bench-analysis bench-sparse bench-groups bench-auto bench-questions bench-scale bench-memory bench-engines ## every benchmark

bench-start: install ## processor time that a command takes before it reads a row
	$(BIN)/python -m tests.benchmarks.start_up

bench-one-cluster: install ## success of the 1-cluster and of its alternatives on planted data
	$(BIN)/python -m tests.benchmarks.one_cluster

bench-pass: install ## cost of one pass against plain numpy, and over prepared rows
	$(BIN)/python -m tests.benchmarks.pass_cost
	$(BIN)/python -m tests.benchmarks.prepared_pass
	$(BIN)/python -m tests.benchmarks.bounding

bench-ordered: install ## quantiles, interior points and ranges against their peers; every column of a file
	$(BIN)/python -m tests.benchmarks.ordered
	$(BIN)/python -m tests.benchmarks.intervals
	$(BIN)/python -m tests.benchmarks.ranges
	$(BIN)/python -m tests.benchmarks.rectangles
	$(BIN)/python -m tests.benchmarks.describe

bench-centers: install ## k-means, k-median and screening against their best without privacy; policies; speed
	$(BIN)/python -m tests.benchmarks.centers
	$(BIN)/python -m tests.benchmarks.lloyd_policies
	$(BIN)/python -m tests.benchmarks.screening
	$(BIN)/python -m tests.benchmarks.center_speed

bench-analysis: install ## medians, graphs and sample-and-aggregate against their peers
	$(BIN)/python -m tests.benchmarks.analysis
	$(BIN)/python -m tests.benchmarks.subsamples

bench-sparse: install ## a histogram of up to a hundred million occupied cells: time beside numpy's unique, and memory
	$(BIN)/python -m tests.benchmarks.sparse_table

bench-groups: install ## statistics by group on real data, beside a baseline by hand and PipelineDP
	$(BIN)/python -m tests.benchmarks.groups

bench-auto: install ## what automatic choices cost, whether promises hold over a grid of settings, and how near solved epsilons are
	$(BIN)/python -m tests.benchmarks.auto
	$(BIN)/python -m tests.benchmarks.real_columns
	$(BIN)/python -m tests.benchmarks.solved

bench-questions: install ## ten questions in one job against ten jobs at the same total: errors, reads, processor time
	$(BIN)/python -m tests.benchmarks.questions

bench-scale: install ## processor time and peak memory of runs as their rows grow: graphs of up to ten million edges
	$(BIN)/python -m tests.benchmarks.scale --check

bench-memory: install ## memory of every kind of job beside what its plan says: about two hours
	$(BIN)/python -m tests.benchmarks.memory --check

bench-engines: engines ## one job embedded, on Flink with one TaskManager and with two
	$(BIN)/python -m tests.benchmarks.engines

gallery: install ## run the examples again, and write their answers and pictures into the documentation
	$(BIN)/python -m examples.gallery

reproduce: install ## draw tables and figures of the papers again, into docs/papers.md: a few minutes
	$(BIN)/python -m tests.benchmarks.papers

tables: install ## write the tables of parameters and promises into the pages of the tasks, from the code
	$(BIN)/python -m examples.tables

docs: install ## build the documentation and the reference into build/docs; a broken link is an error
	$(BIN)/properdocs build --strict

lint: install ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## put the code in its canonical form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: install ## rewrite the locks from pyproject.toml; LOCKFLAGS=--upgrade takes newer versions
	$(COMPILE) --extra demo --extra gcp --extra s3 --extra azure --output-file requirements.txt > /dev/null
	$(COMPILE) --extra demo --extra gcp --extra s3 --extra azure --extra dev --output-file requirements-dev.txt > /dev/null
	cp requirements-dev.txt requirements-oldest.txt
	echo "apache-beam==2.75.0" | $(COMPILE) - --extra demo --extra gcp --extra s3 --extra azure --extra dev \
		--output-file requirements-oldest.txt > /dev/null

clean: ## remove .venv and everything that was made
	rm -rf .venv build demo-out bench-out *.egg-info .*_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
