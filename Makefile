# Everything a person or CI does with Weir. `make help` lists it.
#
# build/       release, hardened: what is installed and measured
# build-asan/  AddressSanitizer + UBSan: what the tests run on
# build-tsan/  ThreadSanitizer: the threaded parts
# build-fuzz/  clang + libFuzzer
.DEFAULT_GOAL := build
SHELL   := /bin/sh
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# Debian's own: another python may come first in PATH.
PYTHON  := /usr/bin/python3
MESON   := /usr/bin/meson
export PYTHONDONTWRITEBYTECODE := 1
comma   := ,

.PHONY: help setup setup-run build run test test-quick test-long check bench conformance install install-service clean fmt fmt-check precommit fuzz mutate \
        build-asan build-quick build-cuts build-tsan build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: setup-run ## install the Debian packages that are missing (tools/packages.txt, packages-test.txt)
	@tools/setup tools/packages-test.txt

setup-run: # what building and running needs
	@tools/setup tools/packages.txt

build: setup-run build/build.ninja ## release binary: build/weir
	@ninja -C build -j $(JOBS) --quiet weir

run: build ## build, then serve on 127.0.0.1:8080 with data in ./data (ARGS=... adds flags)
	@exec build/weir serve --data ./data $(ARGS)

test: setup ## every test at commit size, quick checks and conformance; table of stages at the end
	@$(PYTHON) tools/run_tests.py $(STAGES)

test-quick: setup ## checks, unit tests of the rules and a look at the API: under two minutes
	@$(PYTHON) tools/run_tests.py --quick

test-long: setup ## the same at night size (WEIR_TEST_LONG=1)
	@WEIR_TEST_LONG=1 $(PYTHON) tools/run_tests.py $(STAGES)

check: setup ## format, static analysis, layers, sizes, words, contracts
	@tools/check

conformance: setup ## which requirement is proved by which test; fails when docs/conformance is stale
	@$(PYTHON) tools/conformance.py

bench: build ## Weir and its peers, measured on the release build (bench/README.md)
	@[ "$(PEERS)" = none ] || bench/setup build
	@ninja -C build -j $(JOBS) --quiet weir $$($(PYTHON) tools/targets.py build --under bench)
	@bench/run $(ARGS)

fuzz: setup build-fuzz ## every fuzz target for FUZZ_SECONDS (default 60) from its saved corpus
	@$(PYTHON) tools/fuzz.py --seconds $(or $(FUZZ_SECONDS),60)

mutate: setup ## does a test fail when a rule is changed? ARGS="--count 300 --seed 7 --resume" (tools/mutate.py)
	@$(PYTHON) tools/mutate.py $(ARGS)

fmt: setup ## format every C file
	@find src tests bench -name '*.[ch]' -print0 | xargs -0 clang-format -i

fmt-check: setup ## is every C file as `make fmt` would leave it?
	@tools/check_format

precommit: test-quick ## the same, before a commit: format and doc gates, conformance, build with warnings as errors, tests

install-service: install ## the same, and the systemd unit and its user (deploy/README.md)
	@install -D -m 644 deploy/systemd/weir.sysusers '$(DESTDIR)$(PREFIX)/lib/sysusers.d/weir.conf'
	@install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	@sed 's|^ExecStart=/usr/local/|ExecStart=$(PREFIX)/|' deploy/systemd/weir.service \
	    > '$(DESTDIR)$(PREFIX)/lib/systemd/system/weir.service'
	@chmod 644 '$(DESTDIR)$(PREFIX)/lib/systemd/system/weir.service'
	@echo 'installed $(DESTDIR)$(PREFIX)/lib/systemd/system/weir.service'

install: build ## copy build/weir to $(DESTDIR)$(PREFIX)/bin
	@install -D -m 755 build/weir '$(DESTDIR)$(PREFIX)/bin/weir'
	@echo 'installed $(DESTDIR)$(PREFIX)/bin/weir'

clean: ## remove all build directories; ./data stays
	@rm -rf build build-asan build-tsan build-fuzz build-check build-mutate

# The sanitizer builds. -O1: several times faster than -O0 and stacks stay readable; -g1: lines are enough for them.
build-asan: setup build-asan/build.ninja
	@ninja -C build-asan -j $(JOBS) --quiet
# Of it what make test-quick runs.
build-quick: setup build-asan/build.ninja
	@ninja -C build-asan --quiet build.ninja >/dev/null
	@ninja -C build-asan -j $(JOBS) --quiet weir $$($(PYTHON) tools/targets.py build-asan --quick)
# The tests of the suite `cuts` are too slow with a sanitizer.
build-cuts: setup build
	@$(MESON) configure build -Dtests=true && ninja -C build --quiet build.ninja >/dev/null
	@ninja -C build -j $(JOBS) --quiet $$($(PYTHON) tools/targets.py build --suite cuts)
build-tsan: setup build-tsan/build.ninja
	@ninja -C build-tsan --quiet build.ninja >/dev/null
	@ninja -C build-tsan -j $(JOBS) --quiet weir $$($(PYTHON) tools/targets.py build-tsan --suite tsan)
build-fuzz: setup build-fuzz/build.ninja
	@ninja -C build-fuzz --quiet build.ninja >/dev/null
	@names=$$($(PYTHON) tools/targets.py build-fuzz --under tests/fuzz) && [ -n "$$names" ] && \
	    ninja -C build-fuzz -j $(JOBS) --quiet $$names

# $(1) directory, $(2) compiler, $(3) options, $(4) linker. Test programs are many; gold needs half the time for them.
define configure
	@CC=$(2) $(if $(4),CC_LD=$(4)) $(MESON) setup $(1) $(3) >/dev/null || { tail -n 3 $(1)/meson-logs/meson-log.txt >&2; exit 1; }
endef
SANITIZED := -Dbuildtype=debug -Doptimization=1 -Db_lundef=false -Dc_args=-g1

build/build.ninja:
	$(call configure,build,gcc,-Dtests=false)
build-asan/build.ninja:
	$(call configure,build-asan,gcc,$(SANITIZED) -Db_sanitize=address$(comma)undefined,gold)
build-tsan/build.ninja:
	$(call configure,build-tsan,gcc,$(SANITIZED) -Db_sanitize=thread,gold)
build-fuzz/build.ninja:
	$(call configure,build-fuzz,clang,$(SANITIZED) -Db_sanitize=address$(comma)undefined -Dfuzz=true -Dwerror=false)
