# The project's commands. `make help` lists them.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
.PHONY: help setup build demo hadoop-demo test prove fuzz sanitize mutations bench hadoop-bench check deny sbom dist gpu-bundle gpu-bundle-test clean

TARGET := $(or $(CARGO_TARGET_DIR),target)
# A developer's change of Cargo.toml may change Cargo.lock; CI's and a release's may not.
LOCKED := $(if $(CI),--locked)
# no: without the two packages that need PyTorch, and without its download, 0.5 GB, or 2.4 GB for the tests.
TORCH ?= yes
ifeq ($(TORCH),yes)
TORCH_SET := torch
WORKSPACE := --workspace
else ifneq ($(TORCH),no)
$(error TORCH=$(TORCH): neither yes nor no)
else ifdef CI
$(error TORCH=no: CI builds and tests everything, so take it out of the environment)
else
WORKSPACE := --workspace --exclude c10d --exclude ranks --exclude trainer
LEFT_OUT = @echo "make $@: left out c10d, trainer and ranks, which need PyTorch; to have them, leave out TORCH=no"
endif
# The stages of a Hadoop job, and what reads their shards.
STAGES := mapper combiner reducer merge
# What is released and has its size and symbols tested.
PROGRAMS := sentimill $(STAGES)
# Amazon Linux 2023 has this glibc; Ubuntu 22.04 and Debian 12 have newer ones.
GLIBC := 2.34

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo "  TORCH=no leaves out c10d, trainer and ranks, and the download of PyTorch that they need."

setup: ## what building and testing need, below .deps/
	@bootstrap/laptop.sh build test
	@bootstrap/laptop.sh hadoop || \
		{ [ -z "$(CI)" ] && echo "SKIPPED Hadoop: it could not be installed; the lines above say why"; }
	@bootstrap/laptop.sh browser || \
		{ [ -z "$(CI)" ] && echo "SKIPPED the browser: it could not be installed; the lines above say why"; }

build: ## the programs, into target/release/
	@bootstrap/laptop.sh build $(TORCH_SET)
	cargo build --release $(LOCKED) $(WORKSPACE) --bins
	$(LEFT_OUT)

demo: build ## a small corpus, all the way to a dataset
	cargo build --release $(LOCKED) $(WORKSPACE) --example demo-corpus
	tests/demo.sh $(TARGET)/release

# Without PyTorch, which the Python packages for tests would bring.
hadoop-demo: ## the same as a job of Hadoop, on two nodes of this machine
	@TORCH=no bootstrap/laptop.sh build test hadoop
	cargo build --release $(LOCKED) $(STAGES:%=-p %) -p sentimill --bins --example demo-corpus
	tests/hadoop-demo.sh $(TARGET)/release .deps/s3/bin/moto_server

# Which packages, all of them if none is named, and a command to run beside the tests.
ONLY :=
BESIDE :=
test: setup ## all tests, or those of some packages; ONLY="reducer store"
	$(if $(ONLY),,.deps/test/bin/python -m unittest discover --start-directory tests/oracle --pattern selftest.py)
	tests/run.py $(if $(ONLY),--only "$(ONLY)") $(if $(BESIDE),--beside "$(BESIDE)") $(LOCKED) $(WORKSPACE)
	$(if $(ONLY),,tests/programs.sh $(TARGET)/debug any $(PROGRAMS))
	$(if $(ONLY),,$(if $(TORCH_SET),$(MAKE) --no-print-directory gpu-bundle-test PROFILE=))
	$(LEFT_OUT)

prove: dist ## all tests with their full counts, the released programs, fuzz for a minute, sanitize and mutations
	PROVE=1 $(MAKE) test
	$(MAKE) fuzz sanitize mutations

# Which targets, all of them if none is named, and how long each.
FUZZ :=
SECONDS := 6
fuzz: ## what reads bytes from elsewhere, by libFuzzer; FUZZ="json clean" SECONDS=1200
	@bootstrap/laptop.sh build
	@if bootstrap/laptop.sh fuzz; \
	then fuzz/run.sh .deps/bin/cargo-fuzz $(TARGET)/fuzz $(SECONDS) $(FUZZ); \
	else echo "SKIPPED fuzz: cargo-fuzz could not be installed; the lines above say why"; fi

# A compiler that is no nightly takes the flag by RUSTC_BOOTSTRAP. Of it build scripts make the C compiler's, so that HDF5,
# zlib and libdeflate are watched too. Leaks are not looked for, since that needs ptrace; nor globals that are there twice,
# which libdeflate's equal tables are to the sanitizer.
sanitize: ## the tests of what reads bytes from elsewhere, under AddressSanitizer
	@bootstrap/laptop.sh build
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 cargo test $(LOCKED) \
		-p corpus -p dataset --lib --tests --target "$$(rustc -vV | sed -n 's/^host: //p')" --target-dir $(TARGET)/sanitizer

# Groups of tests/mutants.py; none: all. The group `training` needs PyTorch. MUTANTS="--every 6" takes a sample.
MUTANTS := $(if $(TORCH_SET),,verification ledger commit folding batches)
mutations: ## code broken in one place after the other: does a test notice? Hours; MUTANTS="ledger commit"
	@bootstrap/laptop.sh build test mutations $(TORCH_SET)
	tests/mutations.py $(TARGET)/mutations
	tests/mutants.py .deps/bin/cargo-mutants $(TARGET)/mutants $(MUTANTS)

# Datasets besides that the training is measured on.
REVIEWS :=
bench: ## 1 GB through each stage, through sentimill, and through other engines; store, reading, all-reduces and training beside others
	@bootstrap/laptop.sh build test bench $(TORCH_SET)
	cargo build --release $(LOCKED) $(WORKSPACE) --bins --example demo-corpus --example s3-server --example read --example copy
	python3 tests/bench.py $(TARGET)/release .deps/bench/bin/python
	python3 sentimill/bench/compare.py $(TARGET)/release .deps/bench/bin/python
	.deps/test/bin/python crates/dataset/bench/compare.py $(TARGET)/release/examples/read $(TARGET)/release/bench/reviews.h5
	python3 crates/store/bench/throughput.py $(TARGET)/release .deps/bench/bin/aws
ifeq ($(TORCH),yes)
	@bootstrap/laptop.sh --cuda
	cargo build --release $(LOCKED) $(WORKSPACE) --example all_reduce --example step
	python3 crates/c10d/bench/compare.py $(TARGET)/release/examples/all_reduce .deps/torch/bin/python
	$(TARGET)/release/examples/step 1 && $(TARGET)/release/examples/step 2
	python3 trainer/bench/generated.py 60000 >$(TARGET)/release/bench/generated.jsonl
	$(TARGET)/release/sentimill --profile original --input $(TARGET)/release/bench/generated.jsonl --out $(TARGET)/release/bench/generated.h5
	python3 trainer/bench/compare.py $(TARGET)/release/trainer .deps/torch/bin/python 5 $(TARGET)/release/bench/generated.h5 $(REVIEWS)
endif
	$(LEFT_OUT)

hadoop-bench: ## 1 GB through the job on Hadoop, beside the same in Python
	@TORCH=no bootstrap/laptop.sh build test bench hadoop
	cargo build --release $(LOCKED) $(STAGES:%=-p %) -p sentimill --bins --example demo-corpus
	python3 tests/hadoop_bench.py $(TARGET)/release .deps/bench/bin/python

check: ## format, lints, documentation, licences, lists of what is built in, scripts
	@bootstrap/laptop.sh build check $(TORCH_SET)
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy $(LOCKED) $(WORKSPACE) --all-targets -- -D warnings
	cargo clippy --release $(LOCKED) --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) $(WORKSPACE) --no-deps --document-private-items --quiet
	.deps/bin/shellcheck $$(git ls-files -- '*.sh' bootstrap/cmake .ci/run)
	$(MAKE) --no-print-directory deny sbom
	$(LEFT_OUT)

sbom: ## what each program is built of, as CycloneDX, into target/sbom/
	@bootstrap/laptop.sh sbom
	python3 bootstrap/sbom.py $(TARGET)/sbom $(PROGRAMS) trainer

deny:
	@bootstrap/laptop.sh check
	.deps/bin/cargo-deny check bans licenses sources
	@if GIT_TERMINAL_PROMPT=0 timeout 60 .deps/bin/cargo-deny fetch db >.deps/advisories.log 2>&1; \
	then .deps/bin/cargo-deny check advisories; \
	else echo "SKIPPED advisories: their database could not be fetched; .deps/advisories.log says why"; fi

# zig links against the symbols of the older glibc; its target folder is its own.
dist: export CARGO_ZIGBUILD_ZIG_PATH := $(CURDIR)/.deps/bin/zig
dist: export CARGO_ZIGBUILD_CACHE_DIR := $(CURDIR)/.deps/zig-cache
dist: export ZIG_GLOBAL_CACHE_DIR := $(CURDIR)/.deps/zig-cache
dist: ## the programs for other machines (glibc 2.34 and newer), into dist/
	@bootstrap/laptop.sh build dist
	.deps/bin/cargo-zigbuild zigbuild --release --locked $(PROGRAMS:%=-p %) --bins --target x86_64-unknown-linux-gnu.$(GLIBC)
	rm -rf dist && mkdir dist
	cp $(PROGRAMS:%=$(TARGET)/x86_64-unknown-linux-gnu/release/%) dist/
	@bootstrap/laptop.sh sbom
	python3 bootstrap/sbom.py dist $(PROGRAMS)
	cd dist && sha256sum $(PROGRAMS) *.cdx.json >SHA256SUMS
	tests/programs.sh dist $(GLIBC) $(PROGRAMS)

# Measured as what is shipped; `make test` takes what it has built.
PROFILE := --release
gpu-bundle: ## what checks a machine with NVIDIA GPUs, into target/gpu-bundle/, to be copied there
	@bootstrap/laptop.sh build test
	cargo build $(PROFILE) $(LOCKED) --workspace --bin sentimill
	cargo test $(PROFILE) $(LOCKED) --workspace --test cuda --test collectives --test gpu --no-run --message-format=json >$(TARGET)/gpu-bundle.json
	.deps/torch/bin/python bootstrap/gpu/bundle.py $(TARGET)/gpu-bundle $(TARGET)/gpu-bundle.json

gpu-bundle-test: gpu-bundle
	tests/gpu_bundle.py $(TARGET)/gpu-bundle .deps/torch/bin/python

clean: ## remove what was built; .deps/ stays
	cargo clean
	rm -rf dist
