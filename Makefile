# make demo, make test, make bench: all a fresh Debian 12 with a Rust toolchain needs.
CASES = cargo test --release -p outlast-cases

.PHONY: build test bench soak mutants lint install-deps

build: install-deps
	cargo build --release --workspace

# Everything, within about ten minutes on two cores; says what it skips and why.
test: build
	cargo test --release --workspace --exclude outlast-cases
	$(CASES) --lib --test oracle
	$(CASES) --test survive

# At least ten thousand kills: every case under every tracker, ring mode and user. About an hour.
soak: build
	OUTLAST_PROFILE=soak $(CASES) --test survive

# Switches one mechanism after the other off and shows which test noticed.
mutants: build
	$(CASES) --test mutants

# Every number that SPECIFICATION.md promises; BENCH="--filter commit --json", for example, goes to the program.
bench: build
	target/release/outlast-bench $(BENCH)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

install-deps:
	@scripts/install-deps
