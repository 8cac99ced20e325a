# `make` alone lists what there is. Needs make and Python 3.11 or newer; no git, no account.
# `make test ARGS="-k price"` hands more to pytest; `make demo PYTHON=python3.12` names a Python.

PYTHON ?= python3
ARGS   ?=
STACKS := dev staging prod
PIP    := .venv/bin/python -m pip --quiet --disable-pip-version-check

# Only a Python that somebody asked for (argument or environment) can outdate a working .venv.
ASKED := $(if $(filter file,$(origin PYTHON)),,yes)

.DEFAULT_GOAL := help
.PHONY: help install demo preview pulumi engine rehearsal thorough test coverage check lint fmt bench accuracy docs golden clean FORCE
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## list these commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

install: .venv/.dev ## set up .venv with everything that developing needs

# First with the base package alone, which is all that planning needs; then what deploying needs too.
demo: .venv/.base ## plan the example stacks, check their locks, judge two nodes, review a change, preview
	@set -e; for stack in $(STACKS); do \
	  printf '\n$$ gputier plan %s\n' "$$stack"; .venv/bin/gputier plan "$$stack"; \
	  printf '\n$$ gputier lock %s --check\n' "$$stack"; .venv/bin/gputier lock "$$stack" --check; \
	done; \
	for node in healthy faulty; do \
	  printf '\na %s node judges itself (a recorded machine, replayed)\n' "$$node"; \
	  .venv/bin/python -m gputier.node replay tests/golden/node/$$node \
	    --expect tests/golden/node/$$node/expect.json || test $$? = 20; \
	done
	@printf '\n$$ gputier review change.json --base export.json   (a recorded change of prod)\n'; \
	.venv/bin/gputier review tests/review/samples/prod-change.json \
	  --base tests/review/samples/prod-export.json
	@$(MAKE) --no-print-directory preview

preview: .venv/.aws ## what `pulumi up` would create for the example stacks, without an account
	@.venv/bin/python -m tests.preview $(STACKS)

pulumi: .venv/.dev ## build the real Pulumi command that tests/engine needs, and actionlint: once, with Go
	@.venv/bin/python -m tests.engine.pulumi_cli
	@.venv/bin/python -m tests.ci.actionlint_cli

engine: pulumi ## deploy to stand-ins for AWS and Google on a real Pulumi engine (part of `test` too)
	@.venv/bin/python -m pytest -n auto --dist loadgroup tests/engine $(ARGS)

rehearsal: .venv/.dev ## boot machines in both tiers, as root: those of `test` and of `thorough`
	@.venv/bin/python -m pytest -n 2 --dist loadgroup --thorough tests/rehearsal $(ARGS)

thorough: .venv/.dev ## boot the machines that `test` leaves out because they are slow
	@.venv/bin/python -m pytest -n 2 --dist loadgroup --thorough -m thorough tests/rehearsal $(ARGS)

test: .venv/.dev ## run every test, in random order and without network
	@.venv/bin/python -m pytest -n auto --dist loadgroup $(ARGS)

coverage: .venv/.dev ## what the tests run through, those that boot machines apart: takes twice the time
	@.venv/bin/python -m pytest -n auto --dist loadgroup -m 'not rehearsal' --cov --cov-report=term $(ARGS)

check: demo lint pulumi thorough test ## exactly what continuous integration runs

lint: .venv/.dev ## formatting, lint and types, changing nothing
	@.venv/bin/python -m ruff format --check --quiet .
	@.venv/bin/python -m ruff check --quiet .
	@.venv/bin/python -m pyright --warnings

fmt: .venv/.dev ## format, and fix what lint can fix
	@.venv/bin/python -m ruff format .
	@.venv/bin/python -m ruff check --fix .

bench: .venv/.dev ## time the command line and what it is made of, beside gpuhunt
	@.venv/bin/python tests/bench $(ARGS)

accuracy: .venv/.dev ## how near sizing comes to measured peaks, beside what others reckon with
	@.venv/bin/python -m tests.sizing.accuracy

docs: .venv/.dev ## write the generated parts of the documentation again
	@.venv/bin/python -m pytest -q --update-docs $(ARGS)

golden: .venv/.dev ## write the expected outputs in tests/golden again; read the diff
	@.venv/bin/python -m pytest -q --update-golden $(ARGS)

clean: ## remove .venv and everything that was built
	@rm -rf .venv build dist gputier.egg-info htmlcov .coverage .coverage.* \
	  .hypothesis .pytest_cache .ruff_cache
	@find components policies stacks templates tests -name __pycache__ -prune -exec rm -rf {} +

# --- the virtual environment -------------------------------------------------------------------
# .venv/.python holds the checkout's place: scripts and the editable install carry absolute paths,
# so a copied or moved checkout, like a broken interpreter, gets a new .venv instead of a wrong one.

IDENTITY := import sys; print(sys.base_prefix, sys.version)
READY := $(shell \
  [ "$$(cat .venv/.python 2>/dev/null)" = "$$(pwd -P)" ] \
  && found=$$(.venv/bin/python -c '$(IDENTITY)' 2>/dev/null) \
  && { [ -z "$(ASKED)" ] || [ "$$found" = "$$("$(PYTHON)" -c '$(IDENTITY)' 2>/dev/null)" ]; } \
  && echo yes)

.venv/.base: pyproject.toml .venv/.python
	@echo 'installing gputier into .venv' >&2
	@$(PIP) install --editable .
	@touch $@

.venv/.aws: pyproject.toml .venv/.python
	@test .venv/.dev -nt pyproject.toml || { \
	  echo "installing Pulumi's SDK for AWS into .venv (a minute the first time)" >&2; \
	  $(PIP) install --editable '.[aws]' && touch .venv/.base; }
	@touch $@

.venv/.dev: pyproject.toml .venv/.python
	@echo 'installing gputier and its development tools into .venv (a minute the first time)' >&2
	@$(PIP) install --editable '.[dev]'
	@touch .venv/.base $@

.venv/.python: $(if $(READY),,FORCE)
	@python=$$(command -v "$(PYTHON)") || { \
	  echo 'error: `$(PYTHON)` was not found; gputier needs Python 3.11 or newer' >&2; \
	  $(WAY_OUT); exit 1; }; \
	version=$$("$$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || { \
	  echo "error: \`$(PYTHON)\` ($$python) does not run; gputier needs Python 3.11 or newer" >&2; \
	  $(WAY_OUT); exit 1; }; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: gputier needs Python 3.11 or newer; \`$(PYTHON)\` is $$version ($$python)" >&2; \
	  $(WAY_OUT); exit 1; }; \
	"$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: Python $$version ($$python) lacks the modules venv and ensurepip" >&2; \
	  echo "hint: on Debian and Ubuntu: apt install python$${version%.*}-venv;" \
	    'elsewhere install the whole of Python, not its minimal package' >&2; \
	  exit 1; }; \
	"$$python" -m venv --clear .venv && pwd -P > $@

# Names the newest Python that is there and runs, so that the way out can be copied.
WAY_OUT = for name in python3.14 python3.13 python3.12 python3.11; do \
	    if "$$name" -c '' 2>/dev/null; then \
	      echo "hint: make $(MAKECMDGOALS) PYTHON=$$name" >&2; exit 1; fi; done; \
	  echo 'hint: install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3' >&2
