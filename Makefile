PYTHON ?= python3
LOCK ?= locks/dev.txt
UPGRADE ?=
UV_VERSION := 0.13.7

BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE # compiling every module anew in every process would double the time of the tests
STAMP := .venv/.stamp
COMPILE := pip compile pyproject.toml lab/pyproject.toml --no-emit-package fieldfare --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate $(UPGRADE)

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long coverage lint format docs pages serve-docs lock bench bench-c bars pythons soak simulate-cores kills kills-pipeline test-servers soak-nodes soak-load upgrades clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv and install the locked packages and fieldfare in it
	@:

$(STAMP): pyproject.toml lab/pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "fieldfare needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 || true). Try: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "==> setup: .venv from $(LOCK)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r $(LOCK)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e . -e lab
	@$(BIN)/fieldfare warmup
	@touch $@

run: setup ## three nodes, a market and a dashboard: `fieldfare demo`
	@$(BIN)/fieldfare demo

test: lint ## check everything: lint, then the tests, doctests and documentation examples
	@echo "==> pytest" && $(BIN)/python -m pytest -n 2 --dist loadgroup

test-long: setup ## the tests that take minutes by nature, and every property with 2,000 random examples
	@echo "==> pytest, long" && $(BIN)/python -m pytest -m long
	@echo "==> pytest, random" && HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n 2 --dist loadgroup tests

coverage: setup ## which lines the tests run, nodes and workers among them; TESTS=tests/filters measures some of them
	@$(BIN)/coverage erase && $(BIN)/coverage run -m pytest -q -n 2 --dist loadgroup $(TESTS) && $(BIN)/coverage combine -q && $(BIN)/coverage report

lint: setup ## check style, types and the layers of the architecture
	@echo "==> ruff check" && $(BIN)/ruff check
	@echo "==> ruff format" && $(BIN)/ruff format --check
	@echo "==> mypy" && $(BIN)/mypy
	@echo "==> lint-imports" && { out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }; echo "$$out" | grep '^Contracts:'; }

format: setup ## rewrite the code in the house style
	@$(BIN)/ruff check --fix --exit-zero && $(BIN)/ruff format

docs: setup ## build the documentation into site/
	@echo "==> mkdocs" && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pages: setup ## write the generated pages: modules, public names, diagrams
	@$(BIN)/python -m tools.modules && $(BIN)/python -m tools.public_names && $(BIN)/python -m tools.diagrams && $(BIN)/python -m tools.handover_diagram

serve-docs: setup ## show the documentation on localhost, rebuilt as it changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

lock: ## write locks/ anew from pyproject.toml; UPGRADE=--upgrade takes the newest versions
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && mkdir -p locks && $(PYTHON) -m venv "$$tmp" && "$$tmp/bin/pip" install -qq --disable-pip-version-check uv==$(UV_VERSION) \
		&& "$$tmp/bin/uv" $(COMPILE) --all-extras -o locks/all.txt \
		&& "$$tmp/bin/uv" $(COMPILE) --extra dev --constraints locks/all.txt -o locks/dev.txt \
		&& ! grep -nE '://|@ |^-|file:' locks/*.txt && echo "==> lock: $$(grep -c == locks/dev.txt) packages in dev, $$(grep -c == locks/all.txt) in all"

bench: setup ## measure the engine, beside peers where they are installed
	@$(BIN)/fieldfare bench match

bench-c: setup ## measure the engine's kernels beside the same ones in C
	@$(BIN)/python -m tools.c_reference

bars: setup ## measure matching, routing, a node and Spark quickly, against the last entry of benchmarks/history
	@$(BIN)/python -m tools.bars

pythons: setup ## the fast tests under Python 3.11, 3.12 and 3.13, those of them that can be had
	@$(BIN)/python -m tools.pythons

soak: setup ## random runs of simulated networks for MINUTES (5), every strategy judged by the trace checker
	@$(BIN)/python -m tools.simulation.soak $(MINUTES)

simulate-cores: setup ## RUNS (100000) random runs of durable nodes from SEED (0), with kills, moves and broken links, judged by the trace checker
	@$(BIN)/python -m tools.simulation.cores --runs $(or $(RUNS),100000) --seed $(or $(SEED),0) --jobs $(or $(JOBS),1)

kills: setup ## kill real nodes KILLS times (200) while clients publish and subscribe: nothing accepted may be lost
	@$(BIN)/python -m tools.nodes.kills $(or $(KILLS),200)

kills-pipeline: setup ## kill the driver of a Spark stream KILLS times (50): every delivery once, one version a batch
	@$(BIN)/python -m tools.pipeline.kills $(or $(KILLS),50) && $(BIN)/python -m pytest -q -m long tests/pipeline

test-servers: setup ## fetch Apache Kafka, nats-server, versitygw and Spark's jars, then run all tests that need them, with kills on both sides of bridges
	@$(BIN)/python -m tools.servers && $(BIN)/python -m pytest -q -m "long or not long" $$(grep -rlE 'needs\(.*(Kafka|nats-server|jars|Connect|versitygw)' tests --include='test_*.py')

soak-nodes: setup ## real nodes in trouble for MINUTES (10), clients of all kinds, a judge of its own: nothing lost; SEED= makes the same choices
	@$(BIN)/python -m tools.nodes.soak $(or $(MINUTES),10) $(SEED)

upgrades: setup ## upgrade a network of real nodes from REVISION (the last that speaks N-1), node by node and back, ROUNDS times (3), under load
	@$(BIN)/python -m tools.nodes.upgrade $(or $(REVISION),2e55862) $(or $(ROUNDS),3) $(SEED)

soak-load: setup ## real nodes at 70 % of their load for MINUTES (30), with kills: nothing lost, memory flat
	@$(BIN)/python -m tools.nodes.load $(or $(MINUTES),30)

clean: ## remove .venv and everything that was built
	@rm -rf .venv site dist build .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src lab tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
