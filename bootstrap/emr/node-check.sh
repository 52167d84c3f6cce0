#!/usr/bin/env bash
# EMR bootstrap action: checks that a node can run Sentimill's programs, before a step is paid for. Changes nothing.
#
# usage: node-check.sh [OPTION ...]
#   --glibc-min VERSION  oldest glibc [default: 2.34, for which `make dist` links the programs]
#   --arch NAME          processor architecture [default: x86_64]
#   --memory-min SIZE    physical memory, such as 8GiB or 16GB
#   --disk-min SIZE      free space in --tmpdir
#   --tmpdir FOLDER      folder for temporary files [default: TMPDIR, else /tmp]
#   --clock-max SECONDS  largest offset of the clock; a clock that is not synchronized is refused too
#   --nodes NAME         every, primary or others; other nodes are not checked [default: every]
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 the node meets all minimums;
# 64 usage; 66 --nodes outside EMR; 74 --tmpdir cannot be written; 78 a minimum is not met.
set -euo pipefail

ACTION=node-check
INFO=/mnt/var/lib/info

main() {
    local glibc_min=2.34 arch=x86_64 memory_min=0 disk_min=0 tmpdir=${TMPDIR:-/tmp} clock_max='' nodes=every
    while [ $# -gt 0 ]; do
        case $1 in
            --glibc-min) matching "$1" "${2-}" '^[0-9]+\.[0-9]+$' "a version such as 2.34" && glibc_min=$2 ;;
            --arch) matching "$1" "${2-}" '^[a-z0-9_]+$' "a name such as x86_64" && arch=$2 ;;
            --memory-min) bytes "$1" "${2-}" && memory_min=$size ;;
            --disk-min) bytes "$1" "${2-}" && disk_min=$size ;;
            --tmpdir) matching "$1" "${2-}" '^/' "an absolute path" && tmpdir=$2 ;;
            --clock-max) matching "$1" "${2-}" '^[0-9]+(\.[0-9]+)?$' "a number of seconds" && clock_max=$2 ;;
            --nodes) matching "$1" "${2-}" '^(every|primary|others)$' "every, primary or others" && nodes=$2 ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    is_selected "$nodes" || exit 0

    check_system "$arch" "$glibc_min"
    check_memory "$memory_min"
    check_clock "$clock_max"
    # Last, because its exit code differs.
    check_disk "$tmpdir" "$disk_min"
    [ -z "$refused" ] || fail 78 "$refused"
}

refused=
# refuse MESSAGE: adds a minimum that is not met; all are reported together.
refuse() {
    refused="${refused:+$refused; }$1"
}

check_system() {
    local found
    found=$(uname -m)
    fact arch "$(text "$found")"
    [ "$found" = "$1" ] || refuse "architecture $found, expected $1: choose an instance type with $1 processors"
    found=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || found=
    fact glibc "$(text "$found")"
    at_least "$2" "${found:-0}" ||
        refuse "glibc ${found:-missing}, expected $2 or newer: choose EMR release 7.0 or newer"
}

check_memory() {
    local found
    found=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))
    fact memory_bytes "$found"
    fact cores "$(getconf _NPROCESSORS_ONLN)"
    [ "$found" -ge "$1" ] ||
        refuse "memory $(mib "$found"), expected at least $(mib "$1"): choose a larger instance type or lower --memory-min"
}

# An offset is known if chrony runs, which EMR's images start. Otherwise systemd may know whether the clock is synchronized.
check_clock() {
    local offset=null synchronized=null answer
    if answer=$(chronyc -c -n tracking 2>/dev/null); then
        # Fields of `tracking` as CSV: the 5th is the offset in seconds, the last the leap status.
        offset=$(echo "$answer" | awk -F, 'NR == 1 && $5 ~ /^-?[0-9.]+$/ {printf "%.6f", $5 < 0 ? -$5 : $5; found = 1} END {if (!found) printf "null"}')
        case ${answer##*,} in "Not synchronised") synchronized=false ;; *) synchronized=true ;; esac
    elif answer=$(timedatectl show --property NTPSynchronized --value 2>/dev/null); then
        case $answer in yes) synchronized=true ;; no) synchronized=false ;; esac
    fi
    fact clock_synchronized $synchronized
    fact clock_offset_s "$offset"
    [ -n "$1" ] || return 0
    if [ $synchronized != true ]; then
        refuse "the clock is not known to be synchronized, expected an offset of at most $1 s: start chronyd"
    elif [ "$offset" != null ] && awk "BEGIN {exit !($offset > $1)}"; then
        refuse "clock offset $offset s, expected at most $1 s: check chronyd and its time servers"
    fi
}

check_disk() {
    local file free
    fact tmpdir "$(text "$1")"
    file=$(mktemp "$1/node-check.XXXXXX" 2>/dev/null) ||
        fail 74 "${refused:+$refused; }$1: cannot be written; set --tmpdir to a writable folder, or run scratch.sh first"
    rm -f "$file"
    free=$(df --block-size=1 --output=avail "$1" | tail -n 1 | tr -d ' ')
    fact disk_free_bytes "$free"
    [ "$free" -ge "$2" ] ||
        refuse "$1: $(mib "$free") free, expected at least $(mib "$2"): choose larger volumes or lower --disk-min"
}

at_least() {
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

mib() {
    echo "$(($1 / 1048576)) MiB"
}

# bytes FLAG SIZE: sets `size`.
bytes() {
    local unit
    matching "$1" "$2" '^[0-9]{1,9}([KMGT]i?)?B?$' "a size such as 8GiB or 16GB"
    size=${2%%[!0-9]*} unit=${2##*[0-9]}
    size=$((10#$size))
    case ${unit%B} in
        K) size=$((size * 1000)) ;; Ki) size=$((size << 10)) ;;
        M) size=$((size * 1000000)) ;; Mi) size=$((size << 20)) ;;
        G) size=$((size * 1000000000)) ;; Gi) size=$((size << 30)) ;;
        T) size=$((size * 1000000000000)) ;; Ti) size=$((size << 40)) ;;
    esac
}

# --- Nodes: equal in all actions of this folder, because EMR downloads one file per action. ---

# is_selected NODES: whether --nodes selects this node. Records which node this is.
is_selected() {
    local is_primary=null cluster
    if [ -f "$INFO/instance.json" ]; then
        is_primary=false
        grep -Eq '"isMaster"[[:space:]]*:[[:space:]]*true' "$INFO/instance.json" && is_primary=true
        cluster=$(sed -n 's/.*"jobFlowId"[[:space:]]*:[[:space:]]*"\([A-Za-z0-9-]*\)".*/\1/p' "$INFO/job-flow.json" 2>/dev/null | head -n 1) || true
        [ -z "$cluster" ] || fact cluster "$(text "$cluster")"
    elif [ "$1" != every ]; then
        fail 66 "$INFO/instance.json: not found, expected on an EMR node; omit --nodes on other machines"
    fi
    fact is_primary $is_primary
    case $1 in
        primary) [ $is_primary = true ] || { fact skipped true && return 1; } ;;
        others) [ $is_primary = false ] || { fact skipped true && return 1; } ;;
    esac
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
