# The project's commands. `make help` lists them.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
.PHONY: help setup build demo hadoop-demo test prove fuzz sanitize mutations bench hadoop-bench experiments screenshots check deny sbom dist gpu-bundle gpu-bundle-test clean

TARGET := $(or $(CARGO_TARGET_DIR),target)
# CI and releases refuse a Cargo.lock that does not match Cargo.toml; a developer's build updates it.
LOCKED := $(if $(CI),--locked)
# A build that nobody continues is a sixth faster without the files that the next one would reuse.
ifdef CI
export CARGO_INCREMENTAL := 0
endif
# TORCH=no excludes the packages that need PyTorch, and its download: 0.5 GB to build, 2.4 GB to test.
TORCH ?= yes
ifeq ($(TORCH),yes)
TORCH_SET := torch
WORKSPACE := --workspace
else ifneq ($(TORCH),no)
$(error TORCH=$(TORCH): expected yes or no)
else ifdef CI
$(error TORCH=no: CI builds and tests everything; unset TORCH)
else
WORKSPACE := --workspace --exclude c10d --exclude ranks --exclude trainer
EXCLUDED = @echo "make $@: TORCH=no excluded c10d, trainer and ranks"
endif
# The stages of a Hadoop job, and merge.
STAGES := mapper combiner reducer merge
# The released programs, whose sizes and symbols are tested.
PROGRAMS := sentimill $(STAGES) emr ngrams vectors
# Amazon Linux 2023 has this glibc; Ubuntu 22.04 and Debian 12 have newer ones.
GLIBC := 2.34

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo "  TORCH=no excludes c10d, trainer and ranks, and the download of PyTorch that they need."

setup: ## install into .deps/ what building and testing need
	@bootstrap/laptop.sh build test
	@bootstrap/laptop.sh hadoop emr || \
		{ [ -z "$(CI)" ] && echo "SKIPPED Hadoop and EMR: installation failed; see the lines above"; }
	@bootstrap/laptop.sh browser || \
		{ [ -z "$(CI)" ] && echo "SKIPPED browser: installation failed; see the lines above"; }
	@bootstrap/laptop.sh root sagemaker || \
		{ [ -z "$(CI)" ] && echo "SKIPPED bootstrap: installation failed; see the lines above"; }

# The commit that --version prints, in the programs that users run.
build hadoop-demo bench hadoop-bench experiments dist: export SENTIMILL_COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)

build: ## build the programs into target/release/
	@bootstrap/laptop.sh build $(TORCH_SET)
	cargo build --release $(LOCKED) $(WORKSPACE) --bins --example demo-corpus
	$(EXCLUDED)

# Without optimisation, which takes longer than the demo. Named programs of the whole workspace have the features with which
# `make test` builds all programs next, so it compiles nothing twice; PyTorch is not downloaded yet.
demo: ## build what it shows without optimisation, and run all stages on 20,000 synthetic reviews
	@bootstrap/laptop.sh build
	cargo build $(LOCKED) $(WORKSPACE) --bin sentimill --bin ngrams $(STAGES:%=--bin %) --example demo-corpus
	tests/demo.sh $(TARGET)/debug

# TORCH=no: the group `test` would download PyTorch.
hadoop-demo: ## run the demo as a Hadoop job, on two nodes on this machine
	@TORCH=no bootstrap/laptop.sh build test hadoop
	cargo build --release $(LOCKED) $(STAGES:%=-p %) -p sentimill --bins --example demo-corpus
	tests/hadoop-demo.sh $(TARGET)/release .deps/s3/bin/moto_server

# ONLY: packages to test, default all. BESIDE: a command that runs in parallel with the tests.
ONLY :=
BESIDE :=
test: setup ## run all tests, or with ONLY="reducer store" those of these packages
	$(if $(ONLY),,.deps/test/bin/python -m unittest discover --start-directory tests/oracle --pattern selftest.py)
	tests/run.py $(if $(ONLY),--only "$(ONLY)") $(if $(BESIDE),--beside "$(BESIDE)") $(LOCKED) $(WORKSPACE)
	$(if $(ONLY),,tests/programs.sh $(TARGET)/debug any $(PROGRAMS))
	$(if $(ONLY),,$(if $(TORCH_SET),$(MAKE) --no-print-directory gpu-bundle-test PROFILE=))
	$(EXCLUDED)

prove: dist build ## run all tests with full case counts, build the container, fuzz, sanitize, mutations
	PROVE=1 $(MAKE) test
	tests/container_build.py
	$(MAKE) fuzz sanitize mutations

# FUZZ: targets, default all. SECONDS: time per target.
FUZZ :=
SECONDS := 6
fuzz: ## fuzz the parsers of untrusted bytes; FUZZ="json clean" SECONDS=1200
	@bootstrap/laptop.sh build
	@if bootstrap/laptop.sh fuzz; \
	then fuzz/run.sh .deps/bin/cargo-fuzz $(TARGET)/fuzz $(SECONDS) $(FUZZ); \
	else echo "SKIPPED fuzz: installing cargo-fuzz failed; see the lines above"; fi

# RUSTC_BOOTSTRAP makes a stable compiler accept -Z flags. Build scripts derive the C compiler's flags from RUSTFLAGS, so
# HDF5, zlib and libdeflate are instrumented too. detect_leaks=0: leak detection requires ptrace. detect_odr_violation=0:
# the sanitizer reports libdeflate's identical tables as duplicate globals.
sanitize: ## test corpus and dataset under AddressSanitizer
	@bootstrap/laptop.sh build
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 cargo test $(LOCKED) \
		-p corpus -p dataset --lib --tests --target "$$(rustc -vV | sed -n 's/^host: //p')" --target-dir $(TARGET)/sanitizer

# MUTANTS: groups of tests/mutants.py, default all; `training` requires PyTorch. MUTANTS="--every 6" takes a sample.
MUTANTS := $(if $(TORCH_SET),,verification ledger commit folding batches)
mutations: ## mutation tests, for hours; MUTANTS="ledger commit"
	@bootstrap/laptop.sh build test mutations $(TORCH_SET)
	tests/mutations.py $(TARGET)/mutations
	tests/mutants.py .deps/bin/cargo-mutants $(TARGET)/mutants $(MUTANTS)

# REVIEWS: more datasets for the training benchmark. DATA: a folder of IMDB's and Yelp's reviews for the n-gram benchmark;
# its layout is in ngrams/bench/ngrams_lines.py. With text/gutenberg_14_books.txt.gz and words/ also for word vectors.
REVIEWS :=
DATA :=
bench: ## measure the stages, sentimill, store, reading, n-grams, all-reduce and training
	@bootstrap/laptop.sh build test bench redis $(TORCH_SET)
	cargo build --release $(LOCKED) $(WORKSPACE) --bins --lib --example demo-corpus --example s3-server --example read --example copy --example pushes --example parameter-server
	python3 tests/bench.py $(TARGET)/release .deps/bench/bin/python
	python3 sentimill/bench/compare.py $(TARGET)/release .deps/bench/bin/python
	.deps/test/bin/python crates/dataset/bench/compare.py $(TARGET)/release/examples/read $(TARGET)/release/bench/reviews.h5
	ln -sf $(abspath $(TARGET))/release/libnative.so python/sentimill/_native.abi3.so
	PYTHONPATH=python .deps/test/bin/python -B python/bench/compare.py $(TARGET)/release/bench/reviews.h5
	python3 crates/store/bench/throughput.py $(TARGET)/release .deps/bench/bin/aws
	python3 crates/parameters/bench/redis.py $(TARGET)/release/examples/pushes .deps/redis $(TARGET)/release/bench/parameters
	python3 ngrams/bench/ngrams_lines.py $(TARGET)/release/bench/ngrams $(DATA)
	python3 ngrams/bench/ngrams.py $(TARGET)/release/ngrams .deps/bench/bin/python $(TARGET)/release/bench/ngrams 5 $(if $(DATA),IMDB Yelp,generated)
	.deps/ngrams/bin/python -B vectors/bench/train.py $(TARGET)/release/vectors $(if $(DATA),$(DATA)/text/gutenberg_14_books.txt.gz,generated) \
		$(TARGET)/release/bench/embed $(if $(DATA),$(DATA)/words,none)
	python3 vectors/bench/stream.py $(TARGET)/release/vectors $(TARGET)/release/bench/stream
	python3 vectors/bench/served.py $(TARGET)/release/vectors $(TARGET)/release/bench/embed/cleaned.txt $(TARGET)/release/bench/served none --dims 50
ifeq ($(TORCH),yes)
	@bootstrap/laptop.sh --cuda
	cargo build --release $(LOCKED) $(WORKSPACE) --example all_reduce --example step
	python3 crates/c10d/bench/compare.py $(TARGET)/release/examples/all_reduce .deps/torch/bin/python
	$(TARGET)/release/examples/step 1 && $(TARGET)/release/examples/step 2
	python3 trainer/bench/generated.py 60000 >$(TARGET)/release/bench/generated.jsonl
	$(TARGET)/release/sentimill --profile original --input $(TARGET)/release/bench/generated.jsonl --out $(TARGET)/release/bench/generated.h5
	python3 trainer/bench/compare.py $(TARGET)/release/trainer .deps/torch/bin/python 5 $(TARGET)/release/bench/generated.h5 $(REVIEWS)
endif
	$(EXCLUDED)

hadoop-bench: ## measure the Hadoop job on 1 GB against the same job in Python
	@TORCH=no bootstrap/laptop.sh build test bench hadoop
	cargo build --release $(LOCKED) $(STAGES:%=-p %) -p sentimill --bins --example demo-corpus
	python3 tests/hadoop_bench.py $(TARGET)/release .deps/bench/bin/python

# EXPERIMENTS: names, default all. DATA: a folder of Amazon's, IMDB's and Yelp's reviews, default generated reviews.
EXPERIMENTS :=
experiments: build ## measure the tables of docs/experiments.md; DATA=folder EXPERIMENTS="epochs steps"
	@bootstrap/laptop.sh test bench hadoop
	.deps/test/bin/python -B experiments/run.py --programs $(TARGET)/release --peers .deps/bench/bin/python $(if $(DATA),--data $(DATA)) $(EXPERIMENTS)
	python3 -B experiments/run.py --page

screenshots: build ## make the pictures of docs/training.md; DATA=folder
	@bootstrap/laptop.sh test browser
	cargo build --release $(LOCKED) -p trainer --example report-picture
	.deps/test/bin/python -B experiments/screenshots.py --programs $(TARGET)/release --data $(DATA)

check: ## check format, lints, the release profile, documentation, licences, scripts, workflows, figures
	@bootstrap/laptop.sh build check $(TORCH_SET)
	cargo fmt --all --check
	cargo clippy $(LOCKED) $(WORKSPACE) --all-targets --features fuzz/targets -- -D warnings
	# As `make build` compiles this workspace; dependencies are those of the line above.
	cargo check $(LOCKED) $(WORKSPACE) --bins --example demo-corpus --config profile.dev.debug-assertions=false --config profile.dev.overflow-checks=false
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) $(WORKSPACE) --no-deps --document-private-items --quiet
	.deps/bin/shellcheck $$(git ls-files -- '*.sh' bootstrap/cmake .ci/run)
	.deps/bin/hadolint bootstrap/container/Dockerfile
	@if bootstrap/laptop.sh workflows; \
	then .deps/bin/actionlint -shellcheck .deps/bin/shellcheck; \
	else [ -z "$(CI)" ] && echo "SKIPPED actionlint: installation failed; see the lines above"; fi
	python3 -B experiments/run.py --page --check
	.deps/check/bin/ruff check --quiet --no-cache python
	.deps/check/bin/ruff format --check --quiet --no-cache python
	cd python && ../.deps/check/bin/python -m mypy --cache-dir=/dev/null --no-error-summary
	$(MAKE) --no-print-directory deny sbom
	$(EXCLUDED)

sbom: ## list the packages linked into each program, as CycloneDX, in target/sbom/
	@bootstrap/laptop.sh sbom
	python3 bootstrap/sbom.py $(TARGET)/sbom $(PROGRAMS) trainer native

deny:
	@bootstrap/laptop.sh check
	.deps/bin/cargo-deny check bans licenses sources
	@if GIT_TERMINAL_PROMPT=0 timeout 60 .deps/bin/cargo-deny fetch db >.deps/advisories.log 2>&1; \
	then .deps/bin/cargo-deny check advisories; \
	else echo "SKIPPED advisories: fetching their database failed; see .deps/advisories.log"; fi

# zig links against the symbols of an older glibc, in its own target folder.
dist: export CARGO_ZIGBUILD_ZIG_PATH := $(CURDIR)/.deps/bin/zig
dist: export CARGO_ZIGBUILD_CACHE_DIR := $(CURDIR)/.deps/zig-cache
dist: export ZIG_GLOBAL_CACHE_DIR := $(CURDIR)/.deps/zig-cache
dist: ## build programs for other machines (glibc 2.34 or newer) into dist/
	@TORCH=no bootstrap/laptop.sh test
	@bootstrap/laptop.sh build dist $(TORCH_SET)
	.deps/bin/cargo-zigbuild zigbuild --release --locked $(PROGRAMS:%=-p %) --bins --target x86_64-unknown-linux-gnu.$(GLIBC)
	rm -rf dist && mkdir dist
	cp $(PROGRAMS:%=$(TARGET)/x86_64-unknown-linux-gnu/release/%) dist/
	@bootstrap/laptop.sh sbom
	python3 bootstrap/sbom.py dist $(PROGRAMS) native
	mv dist/native.cdx.json dist/sentimill-python.cdx.json
	cd python && SOURCE_DATE_EPOCH=315532800 ../.deps/dist/bin/maturin build --zig --release --locked --target x86_64-unknown-linux-gnu \
		--compatibility manylinux_$(subst .,_,$(GLIBC)) --out ../dist
	.deps/test/bin/python tests/wheel.py dist/*.whl $(GLIBC)
	cargo build $(LOCKED) $(WORKSPACE) --example pages $(if $(TORCH_SET),--example trainer-pages)
	$(TARGET)/debug/examples/pages dist
	$(if $(TORCH_SET),$(TARGET)/debug/examples/trainer-pages dist)
	cd dist && sha256sum $(PROGRAMS) *.cdx.json *.whl man/* completions/* >SHA256SUMS
	tests/programs.sh dist $(GLIBC) $(PROGRAMS)
	$(EXCLUDED)

# The bundle measures release builds; `make test` uses the dev builds that it already has.
PROFILE := --release
gpu-bundle: ## build target/gpu-bundle/, the tests for a machine with NVIDIA GPUs
	@bootstrap/laptop.sh build test
	cargo build $(PROFILE) $(LOCKED) --workspace --bin sentimill
	cargo test $(PROFILE) $(LOCKED) --workspace --test cuda --test collectives --test gpu --no-run --message-format=json >$(TARGET)/gpu-bundle.json
	.deps/torch/bin/python bootstrap/gpu/bundle.py $(TARGET)/gpu-bundle $(TARGET)/gpu-bundle.json

gpu-bundle-test: gpu-bundle
	tests/gpu_bundle.py $(TARGET)/gpu-bundle .deps/torch/bin/python

clean: ## delete build results; .deps/ is kept
	cargo clean
	rm -rf dist
