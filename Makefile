# WaistHeart: run, test, check. Needs make and Python 3.11 to 3.13; everything else is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
LANES ?=

.PHONY: help run test check fix requirements clean base dev

help:
	@echo "make run     the shop with its worker, beat and sandbox in this terminal (PORT=8000)"
	@echo "make test    everything that proves it; LANES='unit-sqlite browser' picks lanes"
	@echo "make check   format, lint, types, import contract, states, migrations, system checks"
	@echo "make fix     let ruff format and repair what it can"

run: base
	@exec $(BIN)/python -m waistheart.run

test: dev
	@exec $(BIN)/python -m tests.lanes $(LANES)

check: dev
	@exec $(BIN)/python -m tests.checks

fix: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

base dev:
	@test -n "$(PYTHON)" || { echo "WaistHeart needs Python 3.11, 3.12 or 3.13, and found none of them." >&2; exit 1; }
	@$(PYTHON) requirements/install.py $@

requirements: dev
	cd requirements && for set in base dev; do ../$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe \
		--strip-extras --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file $$set.txt $$set.in || exit 1; done

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
