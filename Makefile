# steadygpu.host: `make up` shows it on a lab host, `make test` proves it. `make` alone lists every target.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# molecule calls ansible-config and testinfra calls ansible by name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

# In the order `make test` runs them: what fails fast comes first.
LANES := lint types unit docs sanity molecule integration

.PHONY: help deps up down test $(LANES) sweep bench agent build installed readmes locks clean

help: ## list the targets
	@sed -n 's/^\([a-z][a-z ]*\): [^#]*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | sort | expand -t 14
	@echo "The lanes of make test, each also alone: $(LANES)"

deps: ## everything a developer's machine needs: system packages (as root), .venv, collections
	@.ci/system-packages
	@.ci/venv .venv requirements-dev.lock 3.11 3.13
	@.venv/bin/python .ci/unpack_collections.py build/collections
	@mkdir -p build/collections/ansible_collections/steadygpu
	@ln -sfn "$$PWD" build/collections/ansible_collections/steadygpu/host

up: deps agent ## boot a lab host, run site.yml on it, and report
	@python3 tests/lab setup
	@python3 tests/lab start lab --suite trixie --profile dgx-a100
	@STEADYGPU_LAB_HOSTS=lab ansible-playbook -i inventories/lab site.yml
	@printf '\nThe GPUs and the NVIDIA packages of this host are a SIMULATION (docs/lab.md); all else is real.\n'
	@printf 'Log in: python3 tests/lab ssh lab    End it: make down\n'

down: ## stop every lab host; nothing is left running
	@python3 tests/lab stop --all

test: deps ## run every lane, then sum up; a lane alone: make lint, make unit, …
	@.ci/test $(LANES)

$(LANES): deps
	@.ci/lane $@

sweep: deps ## every cut, and the stories that are longer than a lane may take
	@pytest -q --numprocesses 2 -m sweep tests/cuts tests/unit/bench
	@STEADYGPU_FUZZ_SECONDS=300 pytest -q tests/fuzz
	@STORIES=sweep .ci/lanes/integration
	@SCENARIOS=sweep .ci/lanes/molecule

bench: deps agent ## measure what docs/ states, on lab hosts
	@python3 tests/lab setup
	@for figure in tests/bench/*.py; do python "$$figure"; done

agent: deps ## build build/steadygpu.pyz, what travels to hosts
	@.ci/agent

build: deps ## build the collection artifact, the agent inside
	@.ci/build

installed: deps ## build it and install it under build/installed, as Molecule tests it
	@.ci/build --install

readmes: deps ## write what is generated: the roles' README files, the pages of rules and versions
	@python .ci/role_readme.py
	@python .ci/rule_docs.py

locks: deps ## write every requirements-*.lock anew from its .in file
	@.ci/locks

clean: ## remove everything a build or a run made; lab images stay in the user's cache
	@rm -rf build .venv .ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/output
	@rm -f roles/agent/files/steadygpu.pyz
