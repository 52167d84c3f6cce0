#!/usr/bin/env bash
# Checks that the NVIDIA GPUs and the driver of this machine can run the pinned PyTorch, which is built for CUDA 13.
# Changes nothing.
#
# CUDA 13 has dropped GPUs older than Turing. So EC2's p2 (K80), p3 (V100) and g3 (M60) are refused; g4dn, g5, g6, p4 and
# p5 are accepted.
#
# usage: gpu-check.sh [OPTION ...]
#   --gpus-min N              number of GPUs [default: 1]
#   --capability-min VERSION  oldest compute capability [default: 7.5]
#   --driver-min VERSION      oldest driver [default: 580.65, the first for CUDA 13]
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 the machine meets all minimums;
# 64 usage; 75 the driver does not answer; 78 a minimum is not met.
set -euo pipefail

ACTION=gpu-check

main() {
    local gpus_min=1 capability_min=7.5 driver_min=580.65 answer
    while [ $# -gt 0 ]; do
        case $1 in
            --gpus-min) matching "$1" "${2-}" '^[0-9]{1,3}$' "a whole number" && gpus_min=$2 ;;
            --capability-min) matching "$1" "${2-}" '^[0-9]+\.[0-9]+$' "a version such as 7.5" && capability_min=$2 ;;
            --driver-min) matching "$1" "${2-}" '^[0-9]+(\.[0-9]+)*$' "a version such as 580.65" && driver_min=$2 ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    command -v nvidia-smi >/dev/null ||
        fail 78 "nvidia-smi was not found, expected NVIDIA's driver $driver_min or newer: choose a machine image that has it"
    # One line per GPU; the memory is in MiB.
    answer=$(nvidia-smi --query-gpu=driver_version,compute_cap,memory.total,name --format=csv,noheader,nounits 2>&1) || {
        # Drivers older than 510 do not know the field compute_cap.
        ! [[ $answer == *compute_cap* ]] ||
            fail 78 "the driver is older than 510, expected $driver_min or newer: choose another machine image"
        fail 75 "nvidia-smi failed: $answer; restart the machine, then install the driver again"
    }
    check_gpus "$answer" "$gpus_min" "$capability_min" "$driver_min"
}

check_gpus() {
    local driver capability mib name gpus='' count=0 refused=''
    local found=''
    while IFS=, read -r driver capability mib name; do
        driver=${driver// /} capability=${capability// /} mib=${mib// /} name=${name# }
        # A driver reports `[N/A]` for values that a GPU does not have.
        [[ $mib =~ ^[0-9]+$ ]] || mib=0
        gpus+="${gpus:+,}{\"name\":$(text "$name"),\"capability\":$(text "$capability"),\"memory_bytes\":$((mib << 20))}"
        count=$((count + 1)) found=$driver
        at_least "$3" "$capability" ||
            refused+="${refused:+; }$name has compute capability $capability, expected $3 or newer: choose a g4dn, g5, g6, p4 or p5 instance"
        [ $count -gt 1 ] || at_least "$4" "$driver" ||
            refused+="${refused:+; }driver $driver, expected $4 or newer: choose another machine image"
    done < <(grep , <<<"$1")
    fact driver "$(text "$found")"
    fact gpus "[$gpus]"
    [ $count -ge "$2" ] || refused+="${refused:+; }$count GPUs, expected at least $2: choose a larger instance type"
    [ -z "$refused" ] || fail 78 "$refused"
}

at_least() {
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
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
