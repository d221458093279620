# What one does with this checkout. Every target installs what it needs into .venv first.

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# pyright is pinned like everything else: it must not ask the network for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Else every process that a test starts compiles all of it anew, and so does every collection.
unexport PYTHONDONTWRITEBYTECODE

DEMO := .venv/.installed-demo
DEV := .venv/.installed-dev
SDKS := .venv/.installed-sdks
CHROMIUM := /usr/bin/chromium
TMUX := /usr/bin/tmux

.PHONY: demo test test-services lint lint-mypy lint-pyright bench explore kills chaos clean

demo: $(DEMO)  ## the main job for real: two processes, a lost reply, a kill, one table
	$(BIN)/landed demo story

test: lint  ## everything that needs no service or browser, at most ten minutes
	$(PYTEST) -n 2 -m "not services" --cov --session-timeout=700

test-services: $(DEV) $(SDKS) $(CHROMIUM) $(TMUX)  ## what needs services, a browser or minutes, at most an hour
	@$(PYTEST) -n 3 --dist worksteal -m services --session-timeout=3500 || { code=$$?; [ $$code -eq 5 ] || exit $$code; \
	echo "test-services: NO TEST RAN, because none is marked 'services'."; }

lint: $(DEV)  ## style, types, arrows; the two that check types at the same time
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(MAKE) --no-print-directory -j 2 lint-mypy lint-pyright

lint-mypy:
	$(BIN)/mypy src tests examples bench scripts

lint-pyright:
	$(BIN)/pyright

bench: $(DEV)  ## speed against a hand-written floor, as ratios
	$(BIN)/python -m bench.run

explore: $(DEV)  ## the long walk through every state of the pure core
	$(BIN)/python -m landed.testing.explorer --deep

kills: $(DEV)  ## real processes, killed at each point and again at each point of the recovery
	LANDED_KILL_STRIDE=1 $(PYTEST) -m services tests/test_kill.py tests/test_kill_revisions.py

chaos: $(DEV)  ## ten thousand operations through kills, pauses and restarts of Postgres
	$(BIN)/python -m landed.testing.chaos --store postgres --operations 10000 --lanes 64

# The browser that the tests of the console drive: Debian's own, at the place they look for it.
$(CHROMIUM):
	@{ apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } || { \
	echo "The tests of the console need Chromium at $@; as root: apt-get install chromium" >&2; exit 1; }

# The terminal in which the tests of `landed chat` type.
$(TMUX):
	@{ apt-get update -qq && apt-get install -qq -y --no-install-recommends tmux; } || { \
	echo "The tests of the chat need tmux at $@; as root: apt-get install tmux" >&2; exit 1; }

clean:  ## the venv and every cache
	rm -rf .venv dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO): EXTRAS := demo
$(DEV): EXTRAS := test,lint
$(SDKS): EXTRAS := anthropic,openai
$(DEMO) $(DEV) $(SDKS): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@
