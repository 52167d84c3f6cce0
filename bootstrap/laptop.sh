#!/usr/bin/env bash
# Installs below .deps/ what building and testing need beyond a Rust toolchain, a C++ compiler and
# Python 3 (and, for Hadoop, Java and Maven; for a browser, npm). Nothing is written outside .deps/. A second run changes nothing and takes well under a second.
#
# usage: bootstrap/laptop.sh build|torch|--cuda|test|hadoop|browser|bench|check|sbom|dist|fuzz|mutations ...
#   build   a cmake new enough for HDF5: the system's, or PyPI's
#   torch   the part of PyTorch that c10d and trainer are compiled with, for a CPU: 0.5 GB
#   --cuda  torch, and all of PyTorch for a GPU: 4 GB
#   test    the Python packages of the oracle, which knows none of the project's code, and of what reads the trainer's
#           files; an S3 server; and --cuda, unless the environment has TORCH=no
#   hadoop  Hadoop's jars, of which bootstrap/hadoop/cluster.sh makes a cluster on this machine: 93 MB
#   browser Chromium without a screen, in which the trainer's report is opened: 70 MB
#   bench   the Python packages of the job in Python and in other engines, and the AWS CLI, beside which it is measured:
#           1.4 GB
#   check   cargo-deny and shellcheck
#   sbom    cargo-sbom, which lists what a program is built of
#   dist    zig, which links programs for an older glibc
#   fuzz    cargo-fuzz
#   mutations  cargo-mutants
set -euo pipefail

CMAKE_AT_LEAST=3.26
PYTHON_AT_LEAST=3.10
PYTHON_AT_MOST=3.14
JAVA_AT_LEAST=11
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
CARGO_MUTANTS=27.1.0
CARGO_SBOM=0.10.0
PYTHON=${PYTHON:-python3}
# In site-packages, what a program that uses PyTorch on a CPU is linked with and loads.
LIBTORCH_FILES=(torch/lib/lib{torch_cpu,c10}.so torch/lib/libgomp.so.1 nvidia/cu13/lib/lib{cudart,cupti}.so.13)

main() {
    root=$(cd "$(dirname "$0")/.." && pwd)
    [ $# -gt 0 ] || usage
    local set torch=
    mkdir -p "$root/.deps/bin"
    deps=$(cd "$root/.deps" && pwd -P)
    cd "$deps"
    # Two makes at once take turns.
    exec 9>"$deps/lock"
    flock 9
    trap 'rm -rf "$deps/downloads"' EXIT
    for set in "$@"; do
        case $set in
            build) compilers; cmake_for_hdf5 ;;
            torch) torch=${torch:-part} ;;
            --cuda) torch=whole ;;
            # The Python peer in tests of groups of ranks does not start without its CUDA libraries.
            test) python_set test; python_set s3; python_set report; [ "${TORCH:-yes}" = no ] || torch=whole ;;
            hadoop) hadoop ;;
            browser) browser ;;
            bench) python_set bench "1.4 GB" ;;
            check) python_set check; link_tool shellcheck check/bin/shellcheck; cargo_tool cargo-deny "$CARGO_DENY" ;;
            sbom) cargo_tool cargo-sbom "$CARGO_SBOM" ;;
            dist) python_set dist; link_zig ;;
            fuzz) cargo_tool cargo-fuzz "$CARGO_FUZZ" ;;
            mutations) cargo_tool cargo-mutants "$CARGO_MUTANTS" ;;
            *) usage ;;
        esac
    done
    # Last, so that who asks for the part and the whole downloads it once.
    [ -z "$torch" ] || pytorch "$torch"
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

# .deps/hadoop/jars, as bootstrap/hadoop/pom.xml has them. Maven holds each file against the repository's checksum, and
# the list of what they were when they were chosen says whether that repository is to be believed.
hadoop() {
    local wanted="$root/bootstrap/hadoop" stamp
    need java "Java $JAVA_AT_LEAST or newer (apt-get install openjdk-17-jre-headless)"
    stamp=$(cat "$wanted/pom.xml" "$wanted/jars.sha256" | sha256sum)
    [ "$(cat hadoop/stamp 2>/dev/null)" = "$stamp" ] && return
    at_least "$JAVA_AT_LEAST" "$(java_version)" ||
        fail "java is version $(java_version), and Hadoop needs $JAVA_AT_LEAST or newer: apt-get install openjdk-17-jre-headless"
    need mvn "Maven (apt-get install maven)"
    say "installing Hadoop's jars from bootstrap/hadoop/pom.xml, a download of 93 MB"
    rm -rf hadoop
    # Quiet but for errors. Its own repository would be outside of .deps/.
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$wanted/pom.xml" -Dmaven.repo.local="$deps/downloads/maven" \
        -DoutputDirectory="$deps/hadoop/jars" -DincludeScope=runtime dependency:copy-dependencies >&2 ||
        fail "Maven could not install bootstrap/hadoop/pom.xml, and says why above. It needs Maven Central or a mirror of" \
            "it (~/.m2/settings.xml)"
    (cd hadoop/jars && sha256sum --check --strict --quiet "$wanted/jars.sha256" >&2) ||
        fail "$deps/hadoop/jars does not hold what bootstrap/hadoop/jars.sha256 lists; is Maven's mirror to be trusted?"
    # Last, so that an interrupted install is done again.
    echo "$stamp" >hadoop/stamp
}

java_version() {
    java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.specification.version = //p'
}

# .deps/browser/chromium, as the package of bootstrap/browser/ has it: npm holds it against the digest in
# package-lock.json. Beside it lie a font, what draws without a GPU, and in lib/ what a minimal system lacks.
browser() {
    local wanted="$root/bootstrap/browser" stamp from=downloads/npm/node_modules/@sparticuz/chromium/bin name
    need npm "npm (apt-get install npm)"
    stamp=$(cat "$wanted/package.json" "$wanted/package-lock.json" | sha256sum)
    [ "$(cat browser/stamp 2>/dev/null)" = "$stamp" ] && return
    say "installing Chromium from bootstrap/browser/package.json, a download of 70 MB"
    rm -rf browser
    mkdir -p browser downloads/npm
    cp "$wanted"/package*.json downloads/npm
    # No package's own program is run. npm's own cache would be outside of .deps/.
    npm ci --prefix downloads/npm --cache "$deps/downloads/npm-cache" --ignore-scripts --no-audit --no-fund \
        --loglevel error >&2 ||
        fail "npm could not install bootstrap/browser/package.json, and says why above. It needs npm's registry or a mirror" \
            "of it (npm_config_registry=...)"
    for name in chromium al2023.tar fonts.tar swiftshader.tar; do
        node -e 'process.stdin.pipe(require("zlib").createBrotliDecompress()).pipe(process.stdout)' \
            <"$from/$name.br" >"browser/$name" || fail "$from/$name.br could not be inflated"
    done
    for name in al2023.tar fonts.tar swiftshader.tar; do
        tar -xf "browser/$name" -C browser && rm "browser/$name"
    done
    chmod +x browser/chromium
    # The package's own looks for fonts where its users have them. A font of its own makes pictures alike.
    echo '<?xml version="1.0"?><fontconfig><dir prefix="relative">fonts</dir><dir>/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>' \
        >browser/fonts.conf
    # Last, so that an interrupted install is done again.
    echo "$stamp" >browser/stamp
}

# cargo_tool NAME VERSION: .deps/bin/NAME, compiled from the package of that name.
cargo_tool() {
    # One that cargo starts may know its version only under its name there.
    [[ $'\n'"$("$deps/bin/$1" --version 2>/dev/null; "$deps/bin/$1" "${1#cargo-}" --version 2>/dev/null)"$'\n' == *$'\n'"$1 $2"$'\n'* ]] && return
    need cargo "a Rust toolchain (rustup.rs)"
    say "compiling $1 $2, once, in a few minutes"
    # It reads a few files: its own speed is nothing beside the time to optimise it.
    CARGO_TARGET_DIR="$deps/$1-target" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install "$1" --version "=$2" --locked --root "$deps" --force --quiet
    rm -rf "$deps/$1-target"
}

# pytorch part|whole: .deps/libtorch, laid out as PyTorch's own download for C++ is, and for the whole
# .deps/torch. Where there is a whole, site-packages/ in libtorch is a link to its; where there is none, it has
# what is needed of it.
pytorch() {
    local wanted="$root/bootstrap/requirements/libtorch.txt" whole=torch/stamp stamp file
    if [ "$1" = whole ] || [ -e "$whole" ]; then
        python_set torch "a download of 2.4 GB"
        stamp="of .deps/torch, $(cat "$whole")"
    else
        stamp="of its own, $(sha256sum <"$wanted")"
    fi
    [ "$(cat libtorch/stamp 2>/dev/null)" = "$stamp" ] && return
    rm -rf libtorch
    mkdir -p libtorch/lib
    if [ -e "$whole" ]; then
        ln -s "../$(echo torch/lib/python3.*/site-packages)" libtorch/site-packages
    else
        say "installing PyTorch's library for C++ from bootstrap/requirements/libtorch.txt, a download of 0.5 GB"
        virtual_environment downloads/pip
        pip downloads/pip download libtorch --dest downloads/wheels
        unzip_libtorch downloads/wheels/*.whl
    fi
    ln -s site-packages/torch/include libtorch/include
    for file in "${LIBTORCH_FILES[@]}"; do
        [ -f "libtorch/site-packages/$file" ] || fail "no package of bootstrap/requirements/libtorch.txt has $file"
        ln -s "../site-packages/$file" libtorch/lib/
    done
    # torch-sys links with torch. The wheel's own needs CUDA, and does nothing but name the others.
    echo "INPUT(libtorch_cpu.so)" >libtorch/lib/libtorch.so
    # torch-sys compares it with the version that it was written for.
    sed -n 's/^torch==\([^ ]*\).*/\1/p' "$wanted" >libtorch/build-version
    # Last, so that an interrupted install is done again.
    echo "$stamp" >libtorch/stamp
}

# unzip_libtorch WHEEL ...: the headers and libraries alone, which are a third of it.
unzip_libtorch() {
    "$PYTHON" - "${#LIBTORCH_FILES[@]}" "${LIBTORCH_FILES[@]}" "$@" <<'END'
import sys, zipfile
count, *names = sys.argv[1:]
files, wheels = names[: int(count)], names[int(count) :]
for wheel in wheels:
    with zipfile.ZipFile(wheel) as members:
        wanted = [name for name in members.namelist() if name in files or name.startswith("torch/include/")]
        members.extractall("libtorch/site-packages", wanted)
END
}

# python_set NAME [NOTE]: requirements/NAME.txt in a virtual environment of its own, .deps/NAME.
python_set() {
    local wanted="$root/bootstrap/requirements/$1.txt" stamp
    need "$PYTHON" "Python $PYTHON_AT_LEAST or newer (apt-get install python3 python3-venv)"
    stamp="Python $(python_version), $(sha256sum <"$wanted")"
    [ "$(cat "$deps/$1/stamp" 2>/dev/null)" = "$stamp" ] && return
    say "installing the Python packages of bootstrap/requirements/$1.txt${2:+, $2}"
    virtual_environment "$1"
    pip "$1" install "$1"
    # Last, so that an interrupted install is done again.
    echo "$stamp" >"$deps/$1/stamp"
}

# virtual_environment FOLDER: a new one, in place of what is there.
virtual_environment() {
    local version
    need "$PYTHON" "Python $PYTHON_AT_LEAST or newer (apt-get install python3 python3-venv)"
    version=$(python_version)
    at_least "$PYTHON_AT_LEAST" "$version" ||
        fail "$PYTHON is Python $version, and the pinned packages need $PYTHON_AT_LEAST or newer; name another with PYTHON=..."
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$PYTHON cannot make virtual environments: apt-get install python3-venv"
    rm -rf "${deps:?}/$1"
    "$PYTHON" -m venv "$deps/$1"
}

python_version() {
    "$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# pip ENVIRONMENT COMMAND NAME [OPTION ...]: requirements/NAME.txt lists every package that is wanted.
pip() {
    local environment=$1 command=$2 name=$3 remedy=
    shift 3
    case $name in
        *torch) remedy=", or leave out what needs PyTorch: make TORCH=no ..." ;;
    esac
    mkdir -p downloads
    # /tmp may be small, and in memory.
    TMPDIR="$deps/downloads" "$environment/bin/python" -m pip "$command" --quiet --disable-pip-version-check \
        --no-input --no-cache-dir --require-hashes --no-deps --only-binary :all: \
        -r "$root/bootstrap/requirements/$name.txt" "$@" ||
        fail "pip did not $command bootstrap/requirements/$name.txt, and says why above. It needs PyPI or a mirror of" \
            "it (PIP_INDEX_URL=...) and Python $PYTHON_AT_LEAST to $PYTHON_AT_MOST (PYTHON=...)$remedy"
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
