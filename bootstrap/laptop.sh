#!/usr/bin/env bash
# Installs into .deps/ the tools and packages that building and testing need, except a Rust toolchain, a C++ compiler
# and Python 3 (hadoop and emr also require Java and Maven, browser npm, root dpkg-deb, workflows Go). Writes nothing outside
# .deps/. A second run changes nothing and takes less than a second.
#
# usage: bootstrap/laptop.sh build|torch|--cuda|test|hadoop|emr|browser|root|redis|sagemaker|bench|check|workflows|sbom|dist|fuzz|mutations ...
#   build   CMake for HDF5: the system's if it is new enough, otherwise from PyPI
#   torch   the headers and CPU libraries of PyTorch that c10d and trainer are compiled with: 0.5 GB
#   --cuda  torch, and the whole of PyTorch with CUDA: 4 GB
#   test    Python packages for tests/oracle, python/, the notebook and readers of Parquet and of the trainer's files;
#           fastText; an S3 server; shellcheck and hadolint; --cuda, unless TORCH=no is set in the environment
#   hadoop  Hadoop's jars, from which bootstrap/hadoop/cluster.sh starts a cluster on this machine: 93 MB
#   emr     jars that an EMR node has in addition: S3A and the job history server, 10 MB
#   browser headless Chromium, which opens the trainer's report in a test: 70 MB
#   root    a Debian file tree, in which the tests of bootstrap/ run the actions for nodes: 29 MB
#   redis   a Redis server, which a benchmark compares with the parameter server: 2 MB
#   sagemaker  the source of sagemaker-training, with which the tests compare the entry of the container: 63 KB
#   bench   Python packages of the engines in the benchmarks, and the AWS CLI: 1.4 GB
#   check   cargo-deny, shellcheck, hadolint, mypy and ruff
#   workflows  actionlint, which needs Go
#   sbom    cargo-sbom, which lists the packages linked into a program
#   dist    zig, which links programs for an older glibc, and maturin, which builds the wheel of python/
#   fuzz    cargo-fuzz
#   mutations  cargo-mutants
#   KEPT=FOLDER in the environment: move what was installed into another .deps/ from there, instead of installing it again
#   --json  as the last line of standard output, a JSON object: groups, folder, and whether anything was installed
set -euo pipefail

CMAKE_AT_LEAST=3.26
PYTHON_AT_LEAST=3.10
PYTHON_AT_MOST=3.14
JAVA_AT_LEAST=11
GO_AT_LEAST=1.25
# The version and its checksum in Go's checksum database: the SHA-256 of the module's files, in base64.
ACTIONLINT=v1.7.12
ACTIONLINT_SUM=h1:vQ4GeJN86C0QH+gTUQcs8McmK62OLT3kmakPMtEWYnY=
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
CARGO_MUTANTS=27.1.0
CARGO_SBOM=0.10.0
# Debian's archive, and its state on a day after the newest package of bootstrap/root/packages.sha256, where old versions
# remain available.
DEBIAN=${DEBIAN:-http://deb.debian.org/debian}
DEBIAN_SNAPSHOT=http://snapshot.debian.org/archive/debian/20260801T000000Z
PYTHON=${PYTHON:-python3}
# Files in site-packages that a program needs to link and load PyTorch on a CPU.
LIBTORCH_FILES=(torch/lib/lib{torch_cpu,c10}.so torch/lib/libgomp.so.1 nvidia/cu13/lib/lib{cudart,cupti}.so.13)

# Set by --json. Groups, and whether a tool was installed, in JSON.
json='' groups='' installed=false

main() {
    root=$(cd "$(dirname "$0")/.." && pwd)
    [ $# -gt 0 ] || usage
    local set torch=
    case " $* " in *" --json "*) json=yes ;; esac
    mkdir -p "$root/.deps/bin"
    deps=$(cd "$root/.deps" && pwd -P)
    cd "$deps"
    # Concurrent runs of make wait for each other here.
    exec 9>"$deps/lock"
    flock 9
    trap 'rm -rf "$deps/downloads"' EXIT
    for set in "$@"; do
        case $set in
            --json) ;;
            build) compilers; cmake_for_hdf5 ;;
            torch) torch=${torch:-part} ;;
            --cuda) torch=whole ;;
            # Tests of process groups start a Python rank; its PyTorch does not start without its CUDA libraries.
            test) python_set test; torch_for_test; python_set s3; python_set report; python_set ngrams; tables; linters; [ "${TORCH:-yes}" = no ] || torch=whole ;;
            hadoop) jars hadoop "$root/bootstrap/hadoop" "93 MB" ;;
            emr) jars emr "$root/bootstrap/hadoop/emr" "10 MB" ;;
            browser) browser ;;
            root) debian_root ;;
            redis) redis ;;
            sagemaker) sagemaker ;;
            bench) python_set bench "1.4 GB" ;;
            check) linters; cargo_tool cargo-deny "$CARGO_DENY" ;;
            workflows) actionlint ;;
            sbom) cargo_tool cargo-sbom "$CARGO_SBOM" ;;
            dist) python_set dist; link_zig ;;
            fuzz) cargo_tool cargo-fuzz "$CARGO_FUZZ" ;;
            mutations) cargo_tool cargo-mutants "$CARGO_MUTANTS" ;;
            *) usage ;;
        esac
        [ "$set" = --json ] || groups+="${groups:+,}\"${set#--}\""
    done
    # Last, so that `torch test` downloads PyTorch once.
    [ -z "$torch" ] || pytorch "$torch"
    report true "\"installed\":$installed"
}

# report OK FACTS: prints a JSON object, if --json was passed.
report() {
    [ -n "$json" ] || return 0
    printf '{"action":"laptop","ok":%s,"groups":[%s],"folder":%s,%s}\n' "$1" "$groups" "$(text "$deps")" "$2"
}

# text STRING: prints it as JSON.
text() {
    local value=${1//[[:cntrl:]]/ }
    value=${value//\\/\\\\}
    printf '"%s"' "${value//\"/\\\"}"
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
    # The binary: the wheel's bin/cmake is a Python script, which HDF5's build would start many times.
    link_tool cmake build/lib/python3.*/site-packages/cmake/data/bin/cmake
}

linters() {
    python_set check
    link_tool shellcheck check/bin/shellcheck
    link_tool hadolint check/bin/hadolint
}

link_zig() {
    link_tool zig dist/lib/python3.*/site-packages/ziglang/zig
    link_tool cargo-zigbuild dist/bin/cargo-zigbuild
}

# jars NAME WANTED SIZE: installs the jars of WANTED/pom.xml into .deps/NAME/jars. Maven verifies each file against the
# repository's checksum; WANTED/jars.sha256, recorded when the versions were chosen, verifies the repository.
jars() {
    local name=$1 wanted=$2 size=$3 stamp shown
    shown=${wanted#"$root/"}
    need java "Java $JAVA_AT_LEAST or newer (apt-get install openjdk-17-jre-headless)"
    stamp=$(cat "$wanted/pom.xml" "$wanted/jars.sha256" | sha256sum)
    kept "$name"
    [ "$(cat "$name/stamp" 2>/dev/null)" = "$stamp" ] && return
    at_least "$JAVA_AT_LEAST" "$(java_version)" ||
        fail "java is version $(java_version); Hadoop requires $JAVA_AT_LEAST or newer: apt-get install openjdk-17-jre-headless"
    need mvn "Maven (apt-get install maven)"
    say "installing the jars of $shown/pom.xml, a download of $size"
    rm -rf "$name"
    # Prints errors only. Maven's default repository is outside .deps/.
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$wanted/pom.xml" -Dmaven.repo.local="$deps/downloads/maven" \
        -DoutputDirectory="$deps/$name/jars" -DincludeScope=runtime dependency:copy-dependencies >&2 ||
        fail "Maven could not install $shown/pom.xml (see the lines above). It needs Maven Central or a mirror" \
            "(~/.m2/settings.xml)"
    (cd "$name/jars" && sha256sum --check --strict --quiet "$wanted/jars.sha256" >&2) ||
        fail "$deps/$name/jars: SHA-256 differs from $shown/jars.sha256; use another Maven mirror"
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >"$name/stamp"
}

java_version() {
    java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.specification.version = //p'
}

# Installs Chromium from the npm package of bootstrap/browser/ into .deps/browser/chromium; npm verifies the digest in
# package-lock.json. The same folder contains a font, a software renderer, and in lib/ libraries that a minimal system
# does not have.
browser() {
    local wanted="$root/bootstrap/browser" stamp from=downloads/npm/node_modules/@sparticuz/chromium/bin name
    need npm "npm (apt-get install npm)"
    stamp=$(cat "$wanted/package.json" "$wanted/package-lock.json" | sha256sum)
    kept browser
    [ "$(cat browser/stamp 2>/dev/null)" = "$stamp" ] && return
    say "installing Chromium from bootstrap/browser/package.json, a download of 70 MB"
    rm -rf browser
    mkdir -p browser downloads/npm
    cp "$wanted"/package*.json downloads/npm
    # --ignore-scripts: no package's install script is run. npm's default cache is outside .deps/.
    npm ci --prefix downloads/npm --cache "$deps/downloads/npm-cache" --ignore-scripts --no-audit --no-fund \
        --loglevel error >&2 ||
        fail "npm could not install bootstrap/browser/package.json (see the lines above). It needs npm's registry or a mirror" \
            "(npm_config_registry=...)"
    for name in chromium al2023.tar fonts.tar swiftshader.tar; do
        node -e 'process.stdin.pipe(require("zlib").createBrotliDecompress()).pipe(process.stdout)' \
            <"$from/$name.br" >"browser/$name" || fail "$from/$name.br could not be decompressed"
    done
    for name in al2023.tar fonts.tar swiftshader.tar; do
        tar -xf "browser/$name" -C browser && rm "browser/$name"
    done
    chmod +x browser/chromium
    # The package's fonts.conf names folders of other systems. A fixed font makes screenshots reproducible.
    echo '<?xml version="1.0"?><fontconfig><dir prefix="relative">fonts</dir><dir>/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>' \
        >browser/fonts.conf
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >browser/stamp
}

# Unpacks the packages of bootstrap/root/packages.sha256 into .deps/root. Their installation scripts are not run, so no
# privileges are needed; what the tests need of them is done here.
debian_root() {
    local wanted="$root/bootstrap/root/packages.sha256" stamp package folder
    # This function determines the content too.
    stamp=$({ declare -f debian_root && cat "$wanted"; } | sha256sum)
    kept root root.stamp
    [ "$(cat root.stamp 2>/dev/null)" = "$stamp" ] && return
    [ "$(uname -m)" = x86_64 ] || fail "bootstrap/root/packages.sha256 lists packages for x86-64, found $(uname -m)"
    need dpkg-deb "dpkg"
    say "installing a Debian file tree from bootstrap/root/packages.sha256, a download of 29 MB"
    rm -rf root root.stamp
    mkdir -p downloads/debian root/{usr/{bin,sbin,lib,lib64},dev,proc,sys,run,tmp,root,mnt}
    for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "root/$folder"
    done
    debian_packages "$wanted"
    for package in downloads/debian/*.deb; do
        # `dpkg-deb --extract` would replace the links to usr/.
        dpkg-deb --fsys-tarfile "$package" | tar --extract --keep-directory-symlink --directory root
    done
    # As the installation scripts of base-passwd, mawk and base-files do.
    cp root/usr/share/base-passwd/passwd.master root/etc/passwd
    cp root/usr/share/base-passwd/group.master root/etc/group
    cp root/usr/share/base-files/profile root/etc/
    ln -sfn mawk root/usr/bin/awk
    chmod 1777 root/tmp
    mkdir -p root/usr/local/bin root/var/tmp && chmod 1777 root/var/tmp
    rm -rf root/usr/share/{doc,man,locale,info}
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >root.stamp
}

# debian_packages LIST: downloads Debian packages into downloads/debian. A line of LIST has the SHA-256 of a package, and its
# path in the archive.
debian_packages() {
    mkdir -p downloads/debian
    "$PYTHON" - "$1" "${1#"$root/"}" downloads/debian "$DEBIAN" "$DEBIAN_SNAPSHOT" <<'END' ||
import concurrent.futures, hashlib, os, sys, urllib.error, urllib.parse, urllib.request
wanted, shown, folder, *archives = sys.argv[1:]

def fetch(line):
    digest, path = line.split()
    said = []
    for archive in archives * 2:
        url = f"{archive}/{urllib.parse.quote(path)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                content = response.read()
        except OSError as error:
            said.append(f"{url}: {error}")
            continue
        if hashlib.sha256(content).hexdigest() == digest:
            with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
                file.write(content)
            return None
        said.append(f"{url}: SHA-256 differs from {shown}")
    return said[0]

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    failed = [why for why in pool.map(fetch, open(wanted).read().splitlines()) if why]
sys.exit("\n".join(failed[:3]) or 0)
END
        fail "packages of Debian could not be downloaded (see the lines above). They need deb.debian.org or a mirror (DEBIAN=...)"
}

# Unpacks Redis and its libraries into .deps/redis.
redis() {
    local wanted="$root/bootstrap/redis/packages.sha256" stamp package
    stamp=$({ declare -f redis && cat "$wanted"; } | sha256sum)
    kept redis
    [ "$(cat redis/stamp 2>/dev/null)" = "$stamp" ] && return
    [ "$(uname -m)" = x86_64 ] || fail "bootstrap/redis/packages.sha256 lists packages for x86-64, found $(uname -m)"
    need dpkg-deb "dpkg"
    say "installing Redis from bootstrap/redis/packages.sha256, a download of 2 MB"
    rm -rf redis downloads/debian
    mkdir -p redis
    debian_packages "$wanted"
    for package in downloads/debian/*.deb; do
        dpkg-deb --extract "$package" redis
    done
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >redis/stamp
}

# Unpacks the source of sagemaker-training into .deps/sagemaker. The tests import it with the packages of .deps/s3. To build it
# would require Python's headers.
sagemaker() {
    local stamp
    stamp=$(cat "$root/bootstrap/requirements/"{setuptools,sagemaker}.txt | sha256sum)
    kept sagemaker
    [ "$(cat sagemaker/stamp 2>/dev/null)" = "$stamp" ] && return
    say "installing the source of sagemaker-training from bootstrap/requirements/sagemaker.txt"
    rm -rf sagemaker
    mkdir -p sagemaker
    virtual_environment downloads/pip
    # For its metadata, pip runs its setup.py.
    pip downloads/pip install setuptools
    pip downloads/pip download sagemaker --no-build-isolation --no-binary sagemaker-training --dest downloads/source
    tar -xzf downloads/source/sagemaker_training-*.tar.gz -C sagemaker --strip-components 2 --wildcards '*/src/sagemaker_training'
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >sagemaker/stamp
}

# cargo_tool NAME VERSION: compiles the package of that name into .deps/bin/NAME.
cargo_tool() {
    kept "bin/$1"
    # Some subcommands of cargo print their version only as `cargo-NAME NAME --version`.
    [[ $'\n'"$("$deps/bin/$1" --version 2>/dev/null; "$deps/bin/$1" "${1#cargo-}" --version 2>/dev/null)"$'\n' == *$'\n'"$1 $2"$'\n'* ]] && return
    need cargo "a Rust toolchain (rustup.rs)"
    say "compiling $1 $2, once, in a few minutes"
    # Unoptimised: the tool reads a few files, and optimising it takes longer than its runs.
    CARGO_TARGET_DIR="$deps/$1-target" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install "$1" --version "=$2" --locked --root "$deps" --force --quiet
    rm -rf "$deps/$1-target"
}

# .deps/bin/actionlint, compiled from its Go module.
actionlint() {
    kept bin/actionlint
    [ "$("$deps/bin/actionlint" -version 2>/dev/null | head -n 1)" = "$ACTIONLINT" ] && return
    local module=github.com/rhysd/actionlint built=downloads/go/bin/actionlint
    need go "Go $GO_AT_LEAST or newer (go.dev/dl)"
    say "compiling actionlint $ACTIONLINT, once, in less than a minute"
    # Without -modcacherw, downloads/ could not be deleted.
    GOPATH="$deps/downloads/go" GOBIN="$deps/downloads/go/bin" GOCACHE="$deps/downloads/go-build" GOFLAGS=-modcacherw \
        go install "$module/cmd/actionlint@$ACTIONLINT" >&2 ||
        fail "Go could not install $module (see the lines above). It needs proxy.golang.org or another proxy (GOPROXY=...)"
    go version -m "$built" | grep -q "^[[:space:]]mod[[:space:]]${module}[[:space:]]${ACTIONLINT}[[:space:]]$ACTIONLINT_SUM" ||
        fail "$module $ACTIONLINT: checksum differs from $ACTIONLINT_SUM in bootstrap/laptop.sh; use another GOPROXY"
    mv "$built" bin/actionlint
}

# pytorch part|whole: installs .deps/libtorch, laid out as PyTorch's download for C++, and for `whole` also .deps/torch.
# If .deps/torch exists, libtorch/site-packages is a link into it; otherwise it contains only the files that are needed.
pytorch() {
    local wanted="$root/bootstrap/requirements/libtorch.txt" whole=torch/stamp stamp file
    kept libtorch
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
        [ -f "libtorch/site-packages/$file" ] || fail "$file: not found in the packages of bootstrap/requirements/libtorch.txt"
        ln -s "../site-packages/$file" libtorch/lib/
    done
    # torch-sys links with libtorch. The wheel's libtorch.so requires CUDA and only refers to the other libraries.
    echo "INPUT(libtorch_cpu.so)" >libtorch/lib/libtorch.so
    # torch-sys compares this version with the one it supports.
    sed -n 's/^torch==\([^ ]*\).*/\1/p' "$wanted" >libtorch/build-version
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >libtorch/stamp
}

# torch_for_test: .deps/test imports PyTorch from .deps/torch if it is installed; packages of .deps/test come first.
torch_for_test() {
    local packages
    packages=lib/python$(python_version)/site-packages
    echo "../../../../torch/$packages" >"test/$packages/torch.pth"
}

# tables: installs readers of Parquet files into .deps/tables, which imports pandas and others from .deps/test.
tables() {
    local stamp packages
    stamp="Python $(python_version), $(cat "$root/bootstrap/requirements/"{setuptools,tables}.txt | sha256sum)"
    kept tables
    [ "$(cat tables/stamp 2>/dev/null)" = "$stamp" ] && return
    say "installing the Python packages of bootstrap/requirements/tables.txt, a download of 80 MB"
    virtual_environment tables
    packages=lib/python$(python_version)/site-packages
    # A package that is released as source only is built by it.
    pip tables install setuptools
    pip tables install tables --no-build-isolation --no-binary jsonpath-rw
    echo "../../../../test/$packages" >"tables/$packages/test.pth"
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >tables/stamp
}

# unzip_libtorch WHEEL ...: extracts headers and libraries only, a third of the wheel.
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

# python_set NAME [NOTE]: installs requirements/NAME.txt into the virtual environment .deps/NAME.
python_set() {
    local wanted="$root/bootstrap/requirements/$1.txt" stamp
    need "$PYTHON" "Python $PYTHON_AT_LEAST or newer (apt-get install python3 python3-venv)"
    stamp="Python $(python_version), $(sha256sum <"$wanted")"
    kept "$1"
    [ "$(cat "$deps/$1/stamp" 2>/dev/null)" = "$stamp" ] && return
    say "installing the Python packages of bootstrap/requirements/$1.txt${2:+, $2}"
    virtual_environment "$1"
    pip "$1" install "$1"
    # Last, so that an interrupted installation is repeated.
    echo "$stamp" >"$deps/$1/stamp"
}

# virtual_environment FOLDER: creates a new virtual environment; an existing one is deleted.
virtual_environment() {
    local version
    need "$PYTHON" "Python $PYTHON_AT_LEAST or newer (apt-get install python3 python3-venv)"
    version=$(python_version)
    at_least "$PYTHON_AT_LEAST" "$version" ||
        fail "$PYTHON is Python $version; the pinned packages require $PYTHON_AT_LEAST or newer; set PYTHON=..."
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$PYTHON cannot create virtual environments: apt-get install python3-venv"
    rm -rf "${deps:?}/$1"
    "$PYTHON" -m venv "$deps/$1"
}

python_version() {
    "$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# pip ENVIRONMENT COMMAND NAME [OPTION ...]: runs pip for requirements/NAME.txt, which lists all packages with hashes.
pip() {
    local environment=$1 command=$2 name=$3 remedy=
    shift 3
    case $name in
        *torch) remedy=", or build without PyTorch: make TORCH=no ..." ;;
    esac
    mkdir -p downloads
    # /tmp may be small or a tmpfs.
    TMPDIR="$deps/downloads" "$environment/bin/python" -m pip "$command" --quiet --disable-pip-version-check \
        --no-input --no-cache-dir --require-hashes --no-deps --only-binary :all: \
        -r "$root/bootstrap/requirements/$name.txt" "$@" ||
        fail "pip could not $command bootstrap/requirements/$name.txt (see the lines above). It needs PyPI or a mirror" \
            "(PIP_INDEX_URL=...) and Python $PYTHON_AT_LEAST to $PYTHON_AT_MOST (PYTHON=...)$remedy"
}

# kept NAME ...: moves files and folders that an earlier run has installed from $KEPT into .deps/.
kept() {
    local name
    for name in "$@"; do
        [ -z "${KEPT:-}" ] || [ ! -e "$KEPT/$name" ] || [ -e "$deps/$name" ] || mv "$KEPT/$name" "$deps/$name"
    done
}

# link_tool NAME PATH: creates .deps/bin/NAME as a relative link, so that .deps can be moved.
link_tool() {
    [ -x "$2" ] || fail "$deps/$2 is missing; delete $deps and run this again"
    ln -sfn "../$2" "$deps/bin/$1"
}

# at_least MINIMUM FOUND: compares two dotted version numbers.
at_least() {
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

need() {
    command -v "$1" >/dev/null || fail "$1 was not found: install $2"
}

say() {
    installed=true
    echo "bootstrap: $*" >&2
}

fail() {
    echo "bootstrap: error: $*" >&2
    report false "\"error\":$(text "$*")"
    exit 1
}

main "$@"
