# The commands of the project. `make` alone lists them.

CARGO ?= cargo
CACHE := .cache
BINARY := target/release/curt
PREFIX ?= $(shell [ "$$(id -u)" = 0 ] && echo /usr/local || echo "$$HOME/.local")
# Offline once fetched: cargo asks the registry only when the lock file names something that is not here yet.
LOCKED := --locked
# What is checked has every engine, those that are off by default, too. Asked for when it is used: `engines` comes before.
FEATURES = --features $(shell scripts/features.sh)
# All but examples in comments, of which there are none: looking for them compiles every library once more.
TARGETS := --lib --bins --tests --examples
# Every test binary has a time limit, and fails when it leaves a process or a mount behind.
RUNNER := --config "target.'cfg(all())'.runner=['$(CURDIR)/scripts/test-runner.sh']"
# Tests that could not run here add a line to it.
export SKIPPED_TESTS_LIST := $(CURDIR)/target/skipped-tests

.DEFAULT_GOAL := help
.PHONY: help run build install test engines lint lint-without-engines format-check tidy unit api-fuzz api-clients soak bench bench-check geoip clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build the release binary and serve on http://127.0.0.1:8080 with data in ./data
	@echo "==> serving; stop with Ctrl-C"
	@exec ./target/release/curt serve

build: need-rust ## Build the release binary: target/release/curt
	@echo "==> building target/release/curt (the first time takes a few minutes)"
	@$(CARGO) build --release $(LOCKED) -p curt

install: build ## Build and install curt into PREFIX/bin: ~/.local, or /usr/local as root
	@install -d "$(DESTDIR)$(PREFIX)/bin"
	@install -m 755 "$(BINARY)" "$(DESTDIR)$(PREFIX)/bin/curt"
	@echo "==> installed $(DESTDIR)$(PREFIX)/bin/curt"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; \
	  *) echo "    $(PREFIX)/bin is not on your PATH: export PATH=\"$(PREFIX)/bin:\$$PATH\"";; esac

test: need-rust engines format-check tidy unit lint-without-engines api-fuzz api-clients ## Everything a change must pass: format, lints, all tests
	@if [ -s "$$SKIPPED_TESTS_LIST" ]; then \
	  sed 's/^SKIPPED /    skipped: /' "$$SKIPPED_TESTS_LIST"; \
	  echo "==> all tests passed, $$(wc -l <"$$SKIPPED_TESTS_LIST") skipped: see above"; \
	else echo "==> all tests passed, none skipped"; fi

engines: ## Install the databases, queues and other engines that tests start
	@scripts/engines.sh

lint: format-check tidy lint-without-engines ## Formatting, lints and the rules of the repository, warnings are errors
	@echo "==> clippy"
	@$(CARGO) clippy $(LOCKED) $(FEATURES) --workspace --all-targets -- -D warnings

# Not from the build of the tests: what only tests use must be found here.
lint-without-engines: need-rust
	@echo "==> clippy, without engines"
	@$(CARGO) clippy $(LOCKED) -p curt --no-default-features -- -D warnings

format-check:
	@echo "==> rustfmt"
	@$(CARGO) fmt --all --check

tidy: need-rust ## Rules that the compiler does not know: crate direction, names, sizes, licences
	@echo "==> tidy"
	@$(CARGO) xtask tidy

# Tests are built and linted in one pass. What comes after them runs the binary that they have built.
unit api-fuzz api-clients: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/lint-rustc.sh

unit: need-rust ## Lints and the Rust tests
	@echo "==> lints and tests"
	@rm -f "$$SKIPPED_TESTS_LIST"
	@$(CARGO) test $(LOCKED) $(FEATURES) $(RUNNER) --workspace $(TARGETS)

api-fuzz: need-rust ## Fuzz the served OpenAPI with schemathesis
	@scripts/api-fuzz.sh

api-clients: need-rust ## Generated Python and TypeScript clients against a real server
	@scripts/api-clients.sh

soak: need-rust engines ## The same tests at full length: millions of keys, many kills and guesses (about an hour)
	@scripts/soak.sh

bench: build ## Measure against nginx and SQLite alone; writes bench/RESULTS.md, fails on a broken promise
	@scripts/bench.sh

bench-check: need-rust engines ## Judge the times that are promised; fails on a broken one (by hand, on an idle machine)
	@scripts/bench-check.sh

geoip: ## Fetch the list of countries for clicks (CC0) into data/countries.mmdb
	@scripts/geoip.sh

clean: ## Remove what was built and cached
	@rm -rf target $(CACHE) bench/work

need-rust:
	@scripts/need.sh cargo "Rust 1.95 or newer (rustup installs it)"
	@scripts/need.sh cc "a C compiler (Debian: apt-get install gcc libc6-dev)"
.PHONY: need-rust
