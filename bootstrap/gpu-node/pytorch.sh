#!/usr/bin/env bash
# Installs the pinned PyTorch into a virtual environment, from a folder of wheels and never from the network, and writes an
# environment file with which `trainer` finds its libraries. A second run changes nothing.
#
# On a machine with access to PyPI, and with the same version of Python, the folder is made by
#   python3 -m pip download --require-hashes --no-deps --only-binary :all: -r bootstrap/requirements/torch.txt -d wheelhouse
#   cp bootstrap/requirements/torch.txt wheelhouse/requirements.txt
#
# usage: pytorch.sh --wheelhouse FOLDER|s3://BUCKET/PREFIX [OPTION ...]
#   --wheelhouse PLACE  wheels and requirements.txt, which lists them with their SHA-256; s3:// requires the AWS CLI
#   --sha256 DIGEST     refuse another requirements.txt
#   --into FOLDER       virtual environment [default: /opt/sentimill/torch]
#   --env FILE          environment file [default: /etc/sentimill/torch.env]
#   --python PROGRAM    Python with the module venv [default: python3]
#
# Use: set -a; . /etc/sentimill/torch.env; set +a; /opt/sentimill/torch/bin/torchrun ...
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 done; 64 usage; 66 the wheels are missing or
# do not match; 69 S3 is unavailable; 78 Python is missing or has no venv.
set -euo pipefail

ACTION=pytorch
# As in bootstrap/requirements/torch.txt, with which trainer is linked.
TORCH=2.11.0

main() {
    local wheelhouse='' sha256='' into=/opt/sentimill/torch env=/etc/sentimill/torch.env python=python3
    while [ $# -gt 0 ]; do
        case $1 in
            --wheelhouse) matching "$1" "${2-}" '^(/|s3://[a-z0-9.-]+/)[^?@]*$' "an absolute path or s3://BUCKET/PREFIX" && wheelhouse=${2%/} ;;
            --sha256) matching "$1" "${2-}" '^[0-9a-f]{64}$' "64 hexadecimal digits" && sha256=$2 ;;
            --into) matching "$1" "${2-}" '^/..*' "an absolute path" && into=$2 ;;
            --env) matching "$1" "${2-}" '^/..*' "an absolute path" && env=$2 ;;
            --python) matching "$1" "${2-}" '.' "a program" && python=$2 ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    [ -n "$wheelhouse" ] || fail 64 "--wheelhouse is missing, expected a folder or s3://BUCKET/PREFIX; see --help"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail 78 "$python has no module venv: install it (python3-venv on Debian and Ubuntu), or choose another with --python"

    local kept=true url='' stamp
    case $wheelhouse in
        s3://*)
            url=$wheelhouse
            make_folder "$into"
            wheelhouse=$fetched
            # The wheels are fetched only if they are not installed.
            fetch "$url/requirements.txt" "$fetched/requirements.txt"
            ;;
    esac
    check_wheelhouse "$wheelhouse" "$sha256"
    stamp="$("$python" --version), $(sha256sum <"$wheelhouse/requirements.txt")"
    if [ "$(cat "$into/stamp" 2>/dev/null)" != "$stamp" ]; then
        kept=false
        [ -z "$url" ] || fetch --recursive --exclude requirements.txt "$url/" "$fetched/"
        install_wheels "$wheelhouse" "$into" "$python"
        # Last, so that an interrupted installation is repeated.
        echo "$stamp" | as_root tee "$into/stamp" >/dev/null
    fi
    check_torch "$into"
    write_env "$into" "$env"
    fact into "$(text "$into")"
    fact env "$(text "$env")"
    fact kept $kept
}

# make_folder FOLDER: sets `fetched` to a new folder on the disk of FOLDER, because /tmp may be too small. It is deleted when the
# action ends.
make_folder() {
    command -v aws >/dev/null || fail 78 "aws was not found on the PATH, expected the AWS CLI: pass a folder to --wheelhouse"
    as_root mkdir -p "$(dirname "$1")"
    fetched=$(as_root mktemp -d "$1.wheels.XXXXXX")
    trap 'code=$?; as_root rm -rf "$fetched"; report $code' EXIT
    as_root chmod 755 "$fetched"
}

# fetch [--recursive] URL TARGET
fetch() {
    as_root aws s3 cp --only-show-errors "$@" >&2 ||
        fail 69 "${*: -2:1}: could not be read; see the lines above, and check the role of this machine"
}

# check_wheelhouse FOLDER DIGEST
check_wheelhouse() {
    local found
    [ -f "$1/requirements.txt" ] || fail 66 "$1/requirements.txt: not found; copy bootstrap/requirements/torch.txt there"
    found=$(sha256sum <"$1/requirements.txt")
    [ -z "$2" ] || [ "${found%% *}" = "$2" ] ||
        fail 66 "$1/requirements.txt: its SHA-256 is ${found%% *}, expected $2; copy bootstrap/requirements/torch.txt there, or pass its digest"
    found=$(sed -n 's/^torch==\([^ ;]*\).*/\1/p' "$1/requirements.txt")
    [ "$found" = "$TORCH" ] ||
        fail 66 "$1/requirements.txt: torch ${found:-missing}, expected $TORCH: make the folder again with bootstrap/requirements/torch.txt"
}

install_wheels() {
    as_root rm -rf "$2"
    as_root mkdir -p "$(dirname "$2")"
    as_root "$3" -m venv "$2"
    as_root "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-cache-dir --no-index \
        --find-links "$1" --require-hashes --no-deps --only-binary :all: -r "$1/requirements.txt" >&2 ||
        fail 66 "$1: a wheel is missing or its SHA-256 differs (see the lines above); make the folder again with $("$3" --version)"
}

check_torch() {
    local found
    found=$("$1/bin/python" -c 'import torch; print(torch.__version__, torch.version.cuda or "none", torch.cuda.is_available())') ||
        fail 66 "$1: PyTorch cannot be imported (see the lines above); delete the folder and repeat"
    [ "${found%%[+ ]*}" = "$TORCH" ] || fail 66 "$1: PyTorch ${found%% *}, expected $TORCH; delete the folder and repeat"
    fact torch "$(text "${found%% *}")"
    found=${found#* }
    fact cuda "$(text "${found% *}")"
    case $found in *True) fact gpu_usable true ;; *) fact gpu_usable false ;; esac
}

# trainer looks for libtorch where it was built; other machines set LD_LIBRARY_PATH.
write_env() {
    local packages folders folder wanted
    packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    folders=$packages/torch/lib
    for folder in "$packages"/nvidia/*/lib; do
        [ ! -d "$folder" ] || folders+=:$folder
    done
    wanted="LD_LIBRARY_PATH=$folders"
    [ "$(cat "$2" 2>/dev/null)" != "$wanted" ] || return 0
    as_root mkdir -p "$(dirname "$2")"
    echo "$wanted" | as_root tee "$2" >/dev/null
}

# --- Privileges: equal in all actions that change the node. ---

# EMR runs actions as the user hadoop, who may use sudo without a password.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# --- Reports: equal in all actions. ---

facts='' error=''
# fact NAME JSON
fact() {
    facts+=",\"$1\":$2"
}

# text STRING: prints it as JSON.
text() {
    local value=${1//[[:cntrl:]]/ }
    value=${value//\\/\\\\}
    printf '"%s"' "${value//\"/\\\"}"
}

# fail CODE MESSAGE
fail() {
    error=$2
    echo "$ACTION: $error" >&2
    exit "$1"
}

# report CODE: prints the facts as the last line, however the action ends. A command that failed without an error message of
# this action is a defect.
report() {
    local code=$1 is_ok=true
    if [ "$code" != 0 ]; then
        is_ok=false
        if [ -z "$error" ]; then
            error="a command failed with code $code; see the lines above"
            echo "$ACTION: $error" >&2
            code=70
        fi
        fact error "$(text "$error")"
    fi
    printf '{"action":"%s","ok":%s%s}\n' "$ACTION" $is_ok "$facts"
    exit "$code"
}
trap 'report $?' EXIT

# matching FLAG VALUE REGEX EXPECTED
matching() {
    [[ $2 =~ $3 ]] || fail 64 "$1 ${2:-without a value}: expected $4; see --help"
}

# other ARGUMENT: prints the help, or refuses the argument.
other() {
    case $1 in
        -h | --help)
            trap - EXIT
            sed -n '/^# usage/,/^set /s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
    esac
    fail 64 "$1: unexpected argument; see --help"
}

main "$@"
