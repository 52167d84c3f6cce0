#!/usr/bin/env bash
# Installs below .deps/ what building and testing need beyond a Rust toolchain, a C++ compiler and
# Python 3. Nothing is written outside .deps/. A second run changes nothing and takes well under a second.
#
# usage: bootstrap/laptop.sh build|test|check|dist ...
#   build   a cmake new enough for HDF5: the system's, or PyPI's
#   test    the Python packages of the oracle, which knows none of the project's code
#   check   cargo-deny and shellcheck
#   dist    zig, which links programs for an older glibc
set -euo pipefail

CMAKE_AT_LEAST=3.26
PYTHON_AT_LEAST=3.10
CARGO_DENY=0.20.2
PYTHON=${PYTHON:-python3}

main() {
    root=$(cd "$(dirname "$0")/.." && pwd)
    [ $# -gt 0 ] || usage
    mkdir -p "$root/.deps/bin"
    deps=$(cd "$root/.deps" && pwd -P)
    cd "$deps"
    # Two makes at once take turns.
    exec 9>"$deps/lock"
    flock 9
    for set in "$@"; do
        case $set in
            build) compilers; cmake_for_hdf5 ;;
            test) python_set test ;;
            check) python_set check; link_tool shellcheck check/bin/shellcheck; cargo_deny ;;
            dist) python_set dist; link_zig ;;
            *) usage ;;
        esac
    done
}

usage() {
    sed -n '/^# usage/,/^set /s/^# \{0,1\}//p' "$root/bootstrap/laptop.sh" >&2
    exit 64
}

compilers() {
    need cargo "a Rust toolchain (rustup.rs)"
    need c++ "a C++ compiler (apt-get install build-essential)"
    need make "make (apt-get install build-essential)"
}

cmake_for_hdf5() {
    local system version
    if system=$(command -v cmake) && version=$(cmake --version | sed -n 's/^cmake version //p') &&
        at_least "$CMAKE_AT_LEAST" "$version"; then
        ln -sfn "$system" "$deps/bin/cmake"
        return
    fi
    python_set build
    # The program itself: the wheel's bin/cmake starts Python first, for each of HDF5's many calls.
    link_tool cmake build/lib/python3.*/site-packages/cmake/data/bin/cmake
}

link_zig() {
    link_tool zig dist/lib/python3.*/site-packages/ziglang/zig
    link_tool cargo-zigbuild dist/bin/cargo-zigbuild
}

cargo_deny() {
    [ "$("$deps/bin/cargo-deny" --version 2>/dev/null)" = "cargo-deny $CARGO_DENY" ] && return
    need cargo "a Rust toolchain (rustup.rs)"
    say "compiling cargo-deny $CARGO_DENY, once, in a few minutes"
    # It reads one lock file: its own speed is nothing beside the time to optimise it.
    CARGO_TARGET_DIR="$deps/cargo-deny-target" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install cargo-deny --version "=$CARGO_DENY" --locked --root "$deps" --force --quiet
    rm -rf "$deps/cargo-deny-target"
}

# python_set NAME: requirements/NAME.txt in a virtual environment of its own, .deps/NAME.
python_set() {
    local wanted="$root/bootstrap/requirements/$1.txt" stamp version
    need "$PYTHON" "Python $PYTHON_AT_LEAST or newer (apt-get install python3 python3-venv)"
    version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    stamp="Python $version, $(sha256sum <"$wanted")"
    [ "$(cat "$deps/$1/stamp" 2>/dev/null)" = "$stamp" ] && return
    at_least "$PYTHON_AT_LEAST" "$version" ||
        fail "$PYTHON is Python $version, and the pinned packages need $PYTHON_AT_LEAST or newer; name another with PYTHON=..."
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$PYTHON cannot make virtual environments: apt-get install python3-venv"
    say "installing the Python packages of bootstrap/requirements/$1.txt"
    rm -rf "${deps:?}/$1"
    "$PYTHON" -m venv "$deps/$1"
    "$deps/$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --require-hashes --only-binary :all: -r "$wanted"
    # Last, so that an interrupted install is done again.
    echo "$stamp" >"$deps/$1/stamp"
}

# link_tool NAME PATH: .deps/bin/NAME, a relative link, so that .deps may move.
link_tool() {
    [ -x "$2" ] || fail "$deps/$2 is missing; remove $deps and run this again"
    ln -sfn "../$2" "$deps/bin/$1"
}

# at_least WANTED FOUND, both dotted numbers.
at_least() {
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

need() {
    command -v "$1" >/dev/null || fail "$1 was not found: install $2"
}

say() {
    echo "bootstrap: $*" >&2
}

fail() {
    echo "bootstrap: error: $*" >&2
    exit 1
}

main "$@"
