# Every target works as the first command on a fresh clone: it makes .venv from the lock file first, if need be.
# PYTHON=/path/to/python chooses the interpreter; EPICAST_PURE=1 installs without the compiled engine.

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check -qq
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
LOCK_VENV := $(VENV)-lock
# Tests of live nodes spend much of their time waiting: one worker more than there are cores keeps these busy.
CORES_AND_ONE = $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1 ))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check reproduce bench bench-live bench-pipeline soak lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## simulate flooding and BRISA on Spark, check their guarantees, write a report
	@$(VENV)/bin/epicast demo

test: $(INSTALLED) ## run all tests (WORKERS=number of processes)
	@$(PY) -m pytest -q -n $(or $(WORKERS),$(CORES_AND_ONE)) --dist loadgroup

check: $(INSTALLED) ## run the formatter, the linter, the type checker and the tidy tests
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy --strict src
	@$(PY) -m pytest -q tests/tidy

reproduce: $(INSTALLED) ## run all experiments (six hours; QUICK=1 for smaller ones, OUT=folder)
	@for name in $$($(PY) -c 'from epicast.experiments.catalog import names; print(*names())'); do \
		$(VENV)/bin/epicast run $$name $(if $(QUICK),--quick) --out $(or $(OUT),results)/$$name || failed="$$failed $$name"; \
	done; if [ -n "$$failed" ]; then echo "not as promised:$$failed" >&2; exit 1; fi

bench: $(INSTALLED) ## measure the engine on this machine
	@$(VENV)/bin/epicast bench engine

bench-pipeline: $(INSTALLED) ## measure the pipeline on a trace of 50 million rows
	@$(VENV)/bin/epicast bench pipeline

bench-live: $(INSTALLED) ## compare live nodes with NATS, Redis, mosquitto and zenoh
	@$(VENV)/bin/epicast bench live

soak: $(INSTALLED) ## let nodes suffer for long: kills, halts, partitions, hostile bytes, jumping clocks, 9,000 storms
	@EPICAST_SOAK=1 $(PY) -m pytest -q -s tests/live/test_chaos.py tests/live/test_order_chaos.py tests/live/test_fuzz.py \
		tests/sim/test_epto_under_faults.py
	@EPICAST_SOAK=1 $(PY) -m pytest -q -s tests/live/test_flood_latency.py
	@EPICAST_SOAK=1 $(PY) -m pytest -q tests/live/test_newcomers.py tests/pipeline/test_check_engines.py
	@EPICAST_SOAK=1 $(PY) -m pytest -q -n auto tests/sim/test_storms.py

lock: ## pin the dependencies again (UPGRADE=1: to their newest versions)
	@$(call find_python); "$$python" -m venv $(LOCK_VENV) && $(LOCK_VENV)/bin/python -m pip install -qq uv
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(LOCK_VENV)/bin/uv pip compile -q --universal --python-version 3.11 \
		--generate-hashes $(if $(UPGRADE),--upgrade) --extra bench --extra live --extra pipeline --extra dev \
		pyproject.toml requirements/lock.in -o requirements/lock.txt
	@rm -rf $(LOCK_VENV)
	@echo "requirements/lock.txt is up to date"

clean: ## remove the environment, what was built and all caches
	@rm -rf $(VENV) $(LOCK_VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +
	@rm -f src/epicast/*/_*.so src/epicast/*/_*.c

$(INSTALLED): requirements/lock.txt pyproject.toml setup.py $(wildcard src/epicast/*/*.pyx src/epicast/*/*.pxd)
	@if ! $(PY) -c 'import sys, pip; sys.exit(sys.prefix == sys.base_prefix)' >/dev/null 2>&1; then \
		$(find_python); \
		echo "Making $(VENV) with $$("$$python" --version); a minute or so, this once."; \
		"$$python" -m venv --clear $(VENV); \
	fi
	@$(PIP) install --require-hashes -r requirements/lock.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(PY) -c "import importlib.util as util; \
		print('Engine:', 'compiled' if util.find_spec('epicast.sim._engine') else 'pure Python')"
	@touch $@

# Sets $python in the recipe's shell to the first candidate that runs, is new enough and can make environments.
define find_python
python=; for candidate in $(CANDIDATES); do \
	if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		python="$$candidate"; break; \
	fi; \
done; \
if [ -z "$$python" ]; then \
	echo "epicast needs Python 3.11 or newer with its venv module; none among: $(CANDIDATES). Try: make PYTHON=<path>" >&2; \
	exit 1; \
fi
endef
