# Every routine task of the project. `make` alone lists them.

CARGO ?= cargo
CARGO_DENY_VERSION := 0.20.2
MDBOOK_VERSION := 0.5.4
# Cargo's folder for programs need not be in PATH.
MDBOOK = PATH="$$PATH:$${CARGO_HOME:-$$HOME/.cargo}/bin" mdbook

.DEFAULT_GOAL := help

# Cargo uses every core by itself; two at once only wait for each other's lock.
.NOTPARALLEL:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# GPUS declares GPUs, such as 8xH100: jobs run for real, the GPUs are bookkeeping.
.PHONY: run
run: toolchain portal ## Build Berth and start it on this machine (GPUS=8xH100 declares GPUs)
	$(CARGO) run --release --quiet --locked -p berth -- up $(if $(GPUS),--gpus $(GPUS))

# The Kubernetes programs come first: where they cannot be built, that shows at once and not after
# ten minutes of other work.
.PHONY: test
test: portal kube-tools oidc-tools mlflow-tools dvc-tools fmt-check lint deny unit fuzz-api portal-unit e2e ## Everything a change must pass: format, lints, licences, tests

# A few minutes at most. The script says how it picks.
.PHONY: check
check: components postgres faketime promtool ## What daily work needs: format, lints, and the tests of the crates that changed
	@.ci/check-changed

# What finds faults only when it goes on for long: it changes with the code of every day too little
# to be part of each change.
.PHONY: test-long
test-long: toolchain postgres kube-tools mlflow-large-tools ## The long tests: faults injected, rights revoked, buckets, trainings, the API fuzzed
	$(CARGO) test --workspace --locked --lib -- --ignored state::tests::model::
	$(CARGO) test --workspace --locked --test cluster -- --ignored --test-threads=1
	$(CARGO) test --workspace --locked --test suite -- --ignored bucket:: training:: import_long::
	@$(MAKE) --no-print-directory fuzz-api FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),200)
	@E2E_LONG=yes $(MAKE) --no-print-directory e2e

# All failures of a run are worth seeing at once, hence --no-fail-fast. Tests on a cluster wait for
# its programs most of the time, so more of them run at once than there are cores.
RUST_TEST_THREADS ?= 4
.PHONY: unit
unit: toolchain postgres faketime promtool kube-tools oidc-tools mlflow-tools dvc-tools ## Run the tests alone
	RUST_TEST_THREADS=$(RUST_TEST_THREADS) $(CARGO) test --workspace --locked --no-fail-fast

.PHONY: kube-rbac
kube-rbac: toolchain kube-tools ## Revoke each right of the chart, one at a time, and see what waits
	$(CARGO) test --workspace --locked --test cluster -- --ignored rbac::

# WORLDS says how many, SEED which one is the first. A world runs in seconds.
.PHONY: fuzz-kube
fuzz-kube: toolchain kube-tools ## Schedule random worlds by kube-scheduler and by Berth (WORLDS=200)
	$(CARGO) test --workspace --locked --test cluster -- --ignored --nocapture fuzz::

# SCHEDULER=yes adds kube-scheduler; otherwise pods wait for whoever schedules them.
.PHONY: kube-up
kube-up: toolchain kube-tools ## Start a Kubernetes control plane with simulated nodes (SCHEDULER=yes)
	@$(CARGO) run --quiet --locked -p berth-testbed --bin kube-up -- $(if $(SCHEDULER),--scheduler)

# The pages for browsers, which the program has in it. PORTAL=no leaves them out, of the program too.
.PHONY: portal
portal: ## Build the portal, where its sources have changed (needs Node; PORTAL=no leaves it out)
	@.ci/portal

.PHONY: portal-unit
portal-unit: portal ## Lint the portal and run its own tests
	@.ci/portal-unit

# The program that the tests have just built, a real browser, and a real provider of identities.
.PHONY: e2e
e2e: toolchain portal chromium oidc-tools ## Try the portal in a browser (E2E_LONG=yes for all of it)
	$(CARGO) test --quiet --workspace --locked --no-run
	@.ci/e2e "$${CARGO_TARGET_DIR:-target}/debug/berth"

# An archive for whatever brings images to your registry. IMAGE names it.
IMAGE ?= berth:$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
.PHONY: image
image: toolchain portal ## Make a container image of Berth, without a container engine (IMAGE=NAME:TAG)
	$(CARGO) build --release --locked -p berth
	deploy/image/build "$${CARGO_TARGET_DIR:-target}/release/berth" "$(IMAGE)" \
		"$${CARGO_TARGET_DIR:-target}/image/berth.tar"

# The binary that the tests have just built; FUZZ_EXAMPLES and FUZZ_SEED choose other requests.
.PHONY: fuzz-api
fuzz-api: toolchain ## Send a real server whatever its API allows, and what it does not
	@# As the tests build it: other packages at once would mean other features, and a second build.
	$(CARGO) test --quiet --workspace --locked --no-run
	@.ci/fuzz-api "$${CARGO_TARGET_DIR:-target}/debug/berth" $(FUZZ_EXAMPLES) $(FUZZ_SEED)

.PHONY: fmt
fmt: components ## Format the code
	$(CARGO) fmt --all

.PHONY: fmt-check
fmt-check: components
	$(CARGO) fmt --all --check

.PHONY: lint
lint: components ## Run clippy, with the bans of the pure crates
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Fetching first gets the crates of every platform, which a build does not need
# but cargo-deny and the layering test look at.
.PHONY: deny
deny: cargo-deny ## Check licences, banned crates and sources of dependencies
	$(CARGO) fetch --locked --quiet
	$(CARGO) deny --locked check bans licenses sources

# Apart from `make test`: it needs a git host, and its answer changes without any
# change here, so it would make an old commit fail.
.PHONY: advisories
advisories: cargo-deny ## Check dependencies against the security advisories (needs a network)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(CARGO) deny --locked check advisories >"$$log" 2>&1; status=$$?; \
	cat "$$log"; \
	if grep -q 'failed to fetch advisory database' "$$log"; then \
		echo 'make advisories: NOT CHECKED. The advisory database could not be fetched;' >&2; \
		echo 'nothing is known about advisories. Run this again where its git host can be reached.' >&2; \
	fi; \
	exit $$status

.PHONY: bench
bench: toolchain ## Run the benchmarks
	$(CARGO) bench --workspace --locked

.PHONY: evidence-core
evidence-core: toolchain ## Reproduce the published figures about the core
	$(CARGO) run --release --locked -p berth-evidence -- core

# The program is built first, because it is started as a process of its own. PostgreSQL is stopped
# and started under it.
.PHONY: evidence-machine
evidence-machine: toolchain postgres faketime ## Reproduce the published figures about one machine
	$(CARGO) build --release --locked -p berth
	$(CARGO) run --release --locked -p berth-evidence -- machine

# Nothing else should be busy on the machine: it is all about time. It takes about twelve minutes.
.PHONY: evidence-tracking
evidence-tracking: toolchain postgres ## Reproduce the published figures about tracking, beside MLflow and FastTrackML
	servers=$$(.ci/mlflow-server-tools) && \
	$(CARGO) build --release --locked -p berth -p berth-evidence && \
	"$${CARGO_TARGET_DIR:-target}/release/berth-evidence" tracking --servers "$$servers" $(ARGS)

# Speeds are of the control plane as a whole, so nothing else should be busy on the machine.
# ARGS='--pace N' tells the best pace of this machine, as an earlier run has printed it.
.PHONY: evidence-kube
evidence-kube: toolchain kube-tools ## Reproduce the published figures about Kubernetes
	$(CARGO) build --release --locked -p berth -p berth-evidence
	"$${CARGO_TARGET_DIR:-target}/release/berth-evidence" kube $(ARGS)

# On a machine with an H200, as root, with PyTorch; the script says more. PARTS='mig kills' runs those
# parts, which divide the GPU, and no others.
.PHONY: evidence-gpu
evidence-gpu: toolchain ## Reproduce the published figures about a real GPU
	$(CARGO) build --release --locked -p berth
	tools/gpu/evidence "$${CARGO_TARGET_DIR:-target}/release/berth" docs/evidence $(PARTS)

# TRACES is the folder with the recorded traces; docs/trace-format.md says what is in it.
.PHONY: evidence-sim
evidence-sim: toolchain ## Reproduce the published figures about the simulator (TRACES=FOLDER)
	@test -d "$(TRACES)" || { \
		echo 'make evidence-sim TRACES=FOLDER needs the folder with the recorded traces.' >&2; exit 1; }
	$(CARGO) run --release --locked -p berth-evidence -- sim --traces "$(TRACES)"

# mdBook turns every link to a Markdown file into a link to a page. Those at the top of the repository
# are no pages of the book, so their links are turned back.
.PHONY: docs
docs: mdbook ## Build the pages of docs/ as a book, in book/
	$(MDBOOK) build
	@find book -name '*.html' -exec sed -i -E \
		's#href="((\.\./)+([a-z/]+/)?(ARCHITECTURE|CHANGELOG|CONTRIBUTING|README|STYLE)\.)html#href="\1md#g' {} +

# The tour of the README, run for real on declared GPUs.
.PHONY: readme-picture
readme-picture: toolchain ## Record the README's first five minutes as docs/first-five-minutes.svg
	$(CARGO) build --release --locked -p berth
	tools/terminal-picture "$${CARGO_TARGET_DIR:-target}/release/berth" README.md docs/first-five-minutes.svg

# Nothing else should be busy on the machine: most of it is about time. It takes about a quarter of an
# hour. ONLY=bundle,drawing,rows,streams,live prints some parts alone.
.PHONY: evidence-portal
evidence-portal: toolchain portal chromium ## Reproduce the published figures about the portal
	$(CARGO) build --release --locked -p berth -p berth-history
	@.ci/evidence-portal "$${CARGO_TARGET_DIR:-target}/release"

# Of a server that has a month behind it, by berth-history. ONLY=home,jobs takes these pages alone.
.PHONY: portal-shots
portal-shots: toolchain portal chromium ## Take the pictures of docs/portal anew
	$(CARGO) build --release --locked -p berth -p berth-history
	@.ci/portal-shots "$${CARGO_TARGET_DIR:-target}/release"

# What the targets above need, installed only where it is missing.

.PHONY: toolchain
toolchain:
	@command -v $(CARGO) >/dev/null || { \
		echo 'cargo was not found. Install Rust 1.94 or newer: https://rustup.rs explains how,' >&2; \
		echo 'then open a new shell, or add ~/.cargo/bin to PATH.' >&2; \
		exit 1; }

.PHONY: components
components: toolchain
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || { \
		if command -v rustup >/dev/null; then rustup component add rustfmt clippy; else \
			echo 'rustfmt or clippy is missing, and there is no rustup to add them.' >&2; \
			echo 'Install both from where your Rust toolchain came from.' >&2; \
			exit 1; fi; }

# The store is tested on a real server, which the tests start and stop themselves.
.PHONY: postgres
postgres:
	@.ci/postgres

# Clocks are set for one process alone, by a library that it is started with.
.PHONY: faketime
faketime:
	@.ci/faketime

# Pages are tried in a browser that people have.
.PHONY: chromium
chromium:
	@.ci/chromium

# Alert rules are read, and tried, by Prometheus itself.
.PHONY: promtool
promtool:
	@.ci/promtool

# A provider of identities, for the tests of signing in.
# The real client of DVC, in an environment of its own outside the tree.
.PHONY: dvc-tools
dvc-tools: ## Install the client of DVC for the tests, where it is missing
	@.ci/dvc-tools

.PHONY: oidc-tools
oidc-tools:
	@.ci/oidc-tools

.PHONY: mlflow-tools
mlflow-tools:
	@.ci/mlflow-tools

# The whole of MLflow with PyTorch, Lightning and scikit-learn: about 6 GB.
.PHONY: mlflow-large-tools
mlflow-large-tools:
	@.ci/mlflow-large-tools

# Built once, from Go modules, into a cache outside the tree.
.PHONY: kube-tools
kube-tools: ## Build the programs of the Kubernetes testbed, where they are missing
	@.ci/kube-tools

.PHONY: cargo-deny
cargo-deny: toolchain
	@$(CARGO) deny --version >/dev/null 2>&1 || { \
		echo 'Installing cargo-deny $(CARGO_DENY_VERSION), once; this takes a few minutes.'; \
		$(CARGO) install cargo-deny --version $(CARGO_DENY_VERSION) --locked; }

.PHONY: mdbook
mdbook: toolchain
	@$(MDBOOK) --version 2>/dev/null | grep -q 'v0\.5\.' || { \
		echo 'Installing mdbook $(MDBOOK_VERSION), once; this takes a few minutes.'; \
		$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked; }
