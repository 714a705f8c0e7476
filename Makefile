# make demo, make test, make bench: all a fresh Debian 12 with a Rust toolchain needs.
CASES = cargo test --release -p outlast-cases

.PHONY: build demo test bench campaign campaign-programs campaign-web evaluation evaluation-rmk evaluation-components evaluation-web soak mutants power oom fuzz licences lint install-deps

build: install-deps
	cargo build --release --workspace

# The main job on real input: an interactive python3 that is killed again and again. Less than a minute.
demo: build
	target/release/outlast-demo

# What hangs is ended, each test binary for itself; the suite has limits of its own.
LIMITED = CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='timeout --kill-after=10 900'

# Everything, within about ten minutes on two cores; says what it skips and why.
test: build
	$(LIMITED) cargo test --release --workspace --exclude outlast-cases --no-fail-fast
	$(CASES) --lib --test oracle
	$(CASES) --test survive

# At least ten thousand kills: every case under every tracker, ring mode and user. Half an hour to an hour.
soak: build
	OUTLAST_PROFILE=soak $(CASES) --test survive

# Switches one mechanism after the other off and shows which test noticed.
mutants: build
	cargo build --release -p outlast --features mutants --target-dir target/mutants
	$(CASES) --test mutants

# Switches virtual machines off in the middle of everything, boots them again and looks what is left; some twenty minutes. Fetches
# two kernels, which take turns, and installs QEMU; POWER="--machines 1 --seed 7", for example, goes to the program.
LATER = --options '--durable 200ms' --repeatable 100000 --within 5 --pages 500 --lines 20000
power: build
	lab/prepare target/lab
	target/release/outlast-lab power --kernel target/lab/kernel.0 --kernel target/lab/kernel.1 $(POWER)
	target/release/outlast-lab power --kernel target/lab/kernel.0 --kernel target/lab/kernel.1 $(LATER) $(POWER)

# Has the kernel of a virtual machine kill programs for lack of memory, in control groups of the second version; some five minutes.
# OOM="--filter storm --kills 100 --seed 7", for example, goes to the program.
oom: build
	lab/prepare target/lab
	target/release/outlast-lab oom --kernel target/lab/kernel.0 $(OOM)

# Feeds hostile bytes to everything that reads some, FUZZ_SECONDS for each target; what it finds lies in fuzz/artifacts.
# Without a sanitizer, because the code under test is safe Rust, which a stable compiler instruments.
FUZZ_SECONDS = 60
FUZZ = cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none
fuzz: install-deps
	command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
	$(FUZZ) store_open -- -max_total_time=$(FUZZ_SECONDS)
	$(FUZZ) archive_read -- -max_len=256 -max_total_time=$(FUZZ_SECONDS)
	$(FUZZ) decode -- -max_len=15 -max_total_time=$(FUZZ_SECONDS)
	$(FUZZ) frame -- -max_len=4096 -max_total_time=$(FUZZ_SECONDS)
	$(FUZZ) plan -- -max_len=512 -dict=plan.dict -max_total_time=$(FUZZ_SECONDS)

# Every number that SPECIFICATION.md promises; BENCH="--filter commit --json", for example, goes to the program.
bench: build
	target/release/outlast-bench $(BENCH)

# Discount Checking's own tables and figures, with outlast beside the paper; some twenty minutes on a quiet machine. Writes
# docs/evaluation; EVALUATION="--quick --out /tmp/evaluation", for example, goes to the program.
EVALUATION = --out docs/evaluation
evaluation: build
	target/release/outlast-bench evaluation discount-checking $(EVALUATION)

# RMK's tables and its figure; two hours, the most of it faults in an HTTP server, whose results lie in target/campaigns, so that what was
# interrupted goes on. RMK="--scale 0.1 --only table-9", for example, goes to the program.
RMK = --out docs/evaluation --campaigns target/campaigns
evaluation-rmk: build
	mkdir -p target/campaigns
	target/release/outlast-bench evaluation rmk $(RMK)

# All campaigns: those below, and faults in components under load, 500 into each service, in eight registers at once and in one, and
# of other kinds into one, by a campaign file; some fifteen minutes. What
# components say as they die lies in target/campaign.log; CAMPAIGN="--faults 50 --seed 7 fs", for example, goes to the program.
campaign: build campaign-programs campaign-web
	target/release/glue-campaign $(CAMPAIGN) 2>target/campaign.log
	target/release/glue-campaign --single $(CAMPAIGN) 2>>target/campaign.log
	PATH="$(CURDIR)/target/release:$$PATH" target/release/outlast inject campaigns/component.toml --out target/campaigns/component

# SuperGlue's Figure 6 and its table of lines: tracking and recovery of each service, glue's and by hand; a minute on a quiet machine.
evaluation-components: build
	target/release/glue-bench lines
	target/release/glue-bench services --rounds 50
	target/release/glue-bench locks --rounds 50
	target/release/glue-bench across --rounds 50

# The web server on components over time, with crashes, beside Apache and nginx: SuperGlue's Figure 7; forty minutes.
# WEB="--runs 20 --keep target/figure-7.jsonl", for example, goes to the program, and can be interrupted.
evaluation-web: build
	target/release/glue-web-bench --svg docs/evaluation/superglue-figure-7.svg $(WEB)
	target/release/glue-web-bench --keep-alive

# Faults in real programs, by themselves and protected; some ten minutes. Results lie in target/campaigns, so that what was interrupted
# goes on; remove that folder to begin anew. Writes docs/evaluation/faults.md; PROGRAMS="gzip dash" takes fewer.
PROGRAMS = gzip sort python3 dash openmp redis
campaign-programs: build
	mkdir -p target/campaigns
	set -e; for program in $(PROGRAMS); do \
		target/release/outlast inject campaigns/$$program.toml --out target/campaigns/$$program >/dev/null; done
	{ cat campaigns/faults.md; target/release/outlast report --markdown $(PROGRAMS:%=target/campaigns/%); } \
		>target/campaigns/faults.md
	mv target/campaigns/faults.md docs/evaluation/faults.md

# RMK's campaigns (Table 7): bits that flip in the main loop of an HTTP server, and hangs in it; an hour. What was interrupted goes on, and
# evaluation-rmk takes what is there.
WEB_CAMPAIGNS = web-flips web-hangs
campaign-web: build
	mkdir -p target/campaigns
	set -e; for campaign in $(WEB_CAMPAIGNS); do \
		target/release/outlast inject campaigns/$$campaign.toml --out target/campaigns/$$campaign >/dev/null; \
		target/release/outlast report target/campaigns/$$campaign; done

# Licences and origins of everything that is linked; `cargo install cargo-deny` where it is missing.
licences:
	cargo deny check licenses bans sources
	cargo deny --manifest-path crates/engine/Cargo.toml --config deny.toml check licenses bans sources
	cargo deny --manifest-path examples/plugins/Cargo.toml --config deny.toml check licenses bans sources

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cd crates/engine && cargo fmt --check && cargo clippy --release -- -D warnings
	cd examples/plugins && cargo fmt --all --check && \
		cargo clippy --release --target wasm32-unknown-unknown --target-dir ../../target/plugins -- -D warnings && \
		cargo clippy --release --package outlast-plugin --target-dir ../../target/plugins -- -D warnings

install-deps:
	@scripts/install-deps
