# Everything a person types. Needs Python 3.11 or later and nothing else; no root.

PYTHON ?= python3
# Another one for another interpreter: make test PYTHON=python3.13 VENV=.venv-python3.13
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.celeus-ready
ARGS ?=
# Some tests wait: three keep two cores busy
WORKERS ?= 3
EVALDATA ?= ../shared/evaldata
OUT ?= studies
PICTURES ?= pictures

.DEFAULT_GOAL := help
.PHONY: help env demo serve ruff style lint lint-js bundle wheel check test nightly bench bench-labels study pictures imports size ecosystem lock generate generated release

help: ## Say what there is to type
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# requirements.lock is for developers and has everything; demo.lock, server.lock (the image) and
# build.lock (what builds the package) are parts of it
LOCKS := requirements

env: $(READY) ## Make .venv from requirements/requirements.lock and install the project in it

# $(1): the lock file
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement $(1)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(READY): $(LOCKS)/requirements.lock pyproject.toml
	$(call install,$(LOCKS)/requirements.lock)

# What the demonstration needs and no tools of development, unless they are there already
RUNNABLE := $(if $(wildcard $(READY)),$(READY),$(VENV)/.celeus-demo)

$(VENV)/.celeus-demo: $(LOCKS)/demo.lock pyproject.toml
	$(call install,$(LOCKS)/demo.lock)

demo: $(RUNNABLE) ## Certify a real classifier's score from few labels, on this machine
	$(BIN)/celeus demo $(ARGS)

serve: $(RUNNABLE) ## Serve on 127.0.0.1:8000 with a private PostgreSQL (options: ARGS="--port 9000")
	$(BIN)/celeus serve $(ARGS)

ruff: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

style: ruff generated ## Check style and import directions, which takes seconds
	$(BIN)/lint-imports --no-logo

generate: env ## Write the contract and what is made from it anew (openapi.json, the client's results)
	$(BIN)/celeus dev openapi --out openapi/openapi.json
	$(BIN)/python -m tests.generate

generated: env
	$(BIN)/python -m tests.generate --check

lint: style ## Check style, import directions and types
	$(BIN)/mypy

# Nobody needs Node to change the service; the build server, which sets CI, has to have it.
ifneq ($(shell command -v npm),)
WEB := app/celeus/web

lint-js: $(WEB)/types/api.d.ts ## Check style and types of the pages' scripts, where Node is there
	npm --prefix $(WEB) run --silent lint

bundle: $(WEB)/node_modules/.package-lock.json ## Make one script for each page, where Node is there
	npm --prefix $(WEB) run --silent bundle

wheel: env bundle ## Build the wheel of a release into dist, with the bundle
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The list of parts is made by a tool of its own, which nobody else needs
.venv-release/.celeus-ready: $(LOCKS)/release.lock
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement $<
	@touch $@

release: env bundle .venv-release/.celeus-ready ## All of a release but the upload, into dist: KEY=ssh-key
	$(BIN)/python -m tests.release --key $(KEY) --sbom .venv-release/bin/cyclonedx-py $(ARGS)

$(WEB)/types/api.d.ts: openapi/openapi.json $(WEB)/node_modules/.package-lock.json
	npm --prefix $(WEB) run --silent types

$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	npm --prefix $(WEB) ci --silent
	@touch $@
else
lint-js:
	@echo "The pages' scripts are not checked: there is no npm here."
	@test "$(CI)" != true

bundle wheel release:
	@echo "A release needs npm, for one script for each page."
	@false
endif

# Tests start many processes, and each would compile anew whatever it imports
unexport PYTHONDONTWRITEBYTECODE

# $(call tested,targets,options of pytest,before): the targets are made beside the tests and shown
# after them, as types alone take half a minute without a cache; `before` comes before the tests
define tested
@shown=$$(mktemp); $(MAKE) --no-print-directory $(1) >$$shown 2>&1 & beside=$$!; \
	trap "kill $$beside 2>/dev/null; rm -f $$shown" EXIT; $(3) \
	echo "$(BIN)/pytest -n $(WORKERS) --dist worksteal $(2)"; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(2); tests=$$?; \
	wait $$beside; others=$$?; cat $$shown; \
	test $$tests -eq 0 || exit $$tests; exit $$others
endef

# Where the fast tests and the smoke test are (tests/kinds.py chooses among them): to look for them
# everywhere takes longer than to run them
QUICK := tests/core tests/golden tests/api/test_certificates.py

check: WORKERS := 3
check: ruff ## What to run before a commit: style, types, and the tests that take no time
	$(call tested,lint lint-js,$(QUICK) -m "fast and not nightly or smoke and not nightly" $(ARGS))

# Else all workers of a first run compile all modules, each for itself and at the same time
COMPILED := $(VENV)/.celeus-compiled
compile = test $(COMPILED) -nt $(READY) || { $(BIN)/pytest --collect-only -q >/dev/null && touch $(COMPILED); };

test: ruff ## All checks, and all tests but the long ones (options: ARGS="-k cache", WORKERS=0)
	$(call tested,lint,-m "not nightly" $(ARGS),$(compile))

nightly: env ## What takes long, job after job, and a table of them (options: JOBS="claims faults")
	$(BIN)/python -m tests.nightly $(JOBS)

bench: env ## Measure time, and print it beside its goals (options: ARGS="--quick")
	$(BIN)/python -m tests.bench $(ARGS)

bench-labels: env ## Labels every policy needs on real pools: EVALDATA=folder
	$(BIN)/python -m study labels --evaldata $(EVALDATA) --out $(OUT) $(ARGS)

study: env ## All studies into one folder, resumable: EVALDATA=folder OUT=folder ARGS="--quick"
	$(BIN)/python -m study all --evaldata $(EVALDATA) --out $(OUT) $(ARGS)

pictures: env ## Take a picture of every page: into PICTURES, and docs/pictures/pages (needs Chromium)
	$(BIN)/python -m tests.pictures --out $(PICTURES) --keep $(ARGS)

size: env ## Count lines by room, functions, files and words of docs, beside their aims
	$(BIN)/python -m tests.size

imports: env ## Draw the picture of the imports in docs/evidence/architecture.md
	$(BIN)/python -m tests.docs.imports docs/pictures/imports.svg

# The tools our users live in, in environments of their own: they need what we must not, and not
# what each other does
ECOSYSTEM := .venv-ecosystem
ONLY ?= $(patsubst tests/ecosystem/%/requirements.lock,%,$(wildcard tests/ecosystem/*/requirements.lock))

# What a package brings to build itself, and what it can do without, is left out
MODULES := npm --silent --ignore-scripts --omit=optional --omit=peer

$(ECOSYSTEM)/%/.celeus-ready: tests/ecosystem/%/requirements.lock
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement $<
	test ! -f $(<D)/package.json || { cp $(<D)/package*.json $(@D) && cd $(@D) && $(MODULES) install; }
	@touch $@

ecosystem: env $(ONLY:%=$(ECOSYSTEM)/%/.celeus-ready) ## Try the real tools of our users (options: ONLY="evaluations")
	@for name in $(ONLY); do echo "$$name:"; CELEUS_ECOSYSTEM=$$name \
		HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 $(ECOSYSTEM)/$$name/bin/python -m pytest \
		-c tests/ecosystem/pytest.ini --rootdir . tests/ecosystem/$$name $(ARGS) || exit; done

COMPILE = $(BIN)/pip-compile --quiet --upgrade --strip-extras --generate-hashes --no-header \
	--no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	--no-emit-options --unsafe-package celeus

# $(1): an extra; the versions of requirements.lock
part = $(COMPILE) --constraint .venv/constraints.txt --extra $(1)

lock: env ## Resolve the dependencies anew into requirements/*.lock
	$(COMPILE) --extra dev --output-file=$(LOCKS)/requirements.lock pyproject.toml
	sed 's/ \\$$//; /--hash/d' $(LOCKS)/requirements.lock > .venv/constraints.txt
	$(call part,build) --extra demo --output-file=$(LOCKS)/demo.lock pyproject.toml
	$(call part,build) --output-file=$(LOCKS)/build.lock pyproject.toml
	$(call part,server) --extra otel --output-file=$(LOCKS)/server.lock pyproject.toml
	$(COMPILE) --output-file=$(LOCKS)/release.lock $(LOCKS)/release.in
	for folder in $(dir $(wildcard tests/ecosystem/*/requirements.in)); do $(COMPILE) --allow-unsafe \
		--output-file=$$folder/requirements.lock $$folder/requirements.in || exit; done
	for folder in $(dir $(wildcard tests/ecosystem/*/package.json)); do npm --prefix $$folder update \
		--silent --package-lock-only --omit-lockfile-registry-resolved || exit; done
	awk '/^[^ ]/ { heavy = /^(cuda-|nvidia-|torch|triton)/ } !heavy' \
		tests/ecosystem/helm/requirements.lock > .venv/helm.lock
	mv .venv/helm.lock tests/ecosystem/helm/requirements.lock
