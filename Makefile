# Everything a person types. Needs Python 3.11 or later and nothing else; no root.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.celeus-ready
ARGS ?=
WORKERS ?= 2
EVALDATA ?= ../shared/evaldata
OUT ?= study

.DEFAULT_GOAL := help
.PHONY: help env demo serve style lint test claims attack bench bench-labels study lock

help: ## Say what there is to type
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(READY) ## Make .venv from requirements.lock and install the project in it

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: env ## Certify a real classifier's score from few labels, on this machine
	$(BIN)/celeus demo $(ARGS)

serve: env ## Serve on 127.0.0.1:8000 with a private PostgreSQL (options: ARGS="--port 9000")
	$(BIN)/celeus serve $(ARGS)

style: env ## Check style and import directions, which takes seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

lint: style ## Check style, import directions and types
	$(BIN)/mypy

# Types are checked beside the tests and told after them: without a cache they take a minute.
test: style ## All checks and all tests (options: ARGS="-k cache", WORKERS=0 for one process)
	@types=$$(mktemp); $(BIN)/mypy >$$types 2>&1 & mypy=$$!; \
	trap "kill $$mypy 2>/dev/null; rm -f $$types" EXIT; \
	echo "$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)"; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS); tests=$$?; \
	echo "$(BIN)/mypy"; wait $$mypy; typed=$$?; cat $$types; \
	test $$tests -eq 0 || exit $$tests; exit $$typed

claims: env ## The statistical claims with their full counts; takes long
	CELEUS_CLAIMS=full $(BIN)/pytest tests/claims --timeout=0 $(ARGS)

attack: env ## Attack a real server much longer than the tests do
	CELEUS_ATTACKS=full $(BIN)/pytest tests/attacks --timeout=0 $(ARGS)

bench: env ## Measure time, and print it beside its goals (options: ARGS="--quick")
	$(BIN)/python -m tests.bench $(ARGS)

bench-labels: env ## Labels every policy needs on real pools: EVALDATA=folder
	$(BIN)/celeus study labels --evaldata $(EVALDATA) --out $(OUT) $(ARGS)

study: env ## All studies into one folder, resumable: EVALDATA=folder OUT=folder ARGS="--quick"
	$(BIN)/celeus study all --evaldata $(EVALDATA) --out $(OUT) $(ARGS)

lock: env ## Resolve the dependencies anew into requirements.lock
	$(BIN)/pip-compile --quiet --upgrade --all-extras --strip-extras --no-header --no-annotate \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file=requirements.lock pyproject.toml
