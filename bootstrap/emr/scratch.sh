#!/usr/bin/env bash
# EMR bootstrap action: makes a folder for temporary files on the disk with the most free space, and a link to it that has
# the same path on every node: /var/lib/sentimill/scratch. Login shells get it as TMPDIR. A second run keeps the folder.
#
# Tasks of a Hadoop job do not need it: Hadoop sets their TMPDIR to a folder of the task, below yarn.nodemanager.local-dirs,
# and deletes that folder with the task. EMR lists all disks there. To use only the scratch folder, set that property of
# yarn-site to /var/lib/sentimill/scratch/yarn when the cluster is created. For `merge` and other programs that run as a step:
# `env TMPDIR=/var/lib/sentimill/scratch merge ...`.
#
# usage: scratch.sh [OPTION ...]
#   --free-min SIZE  free space that the disk must have, such as 20GiB or 100GB
#   --nodes NAME     every, primary or others; other nodes are not changed [default: every]
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 done; 64 usage; 66 --nodes outside
# EMR; 74 no disk can be written; 78 too little free space.
set -euo pipefail

ACTION=scratch
INFO=/mnt/var/lib/info
LINK=/var/lib/sentimill/scratch
PROFILE=/etc/profile.d/sentimill-scratch.sh
# In memory, read-only by design, or of another machine.
NOT_DISKS='tmpfs devtmpfs ramfs squashfs iso9660 efivarfs proc sysfs nfs nfs4 fuse'

main() {
    local free_min=0 nodes=every disk free folder is_kept=true
    while [ $# -gt 0 ]; do
        case $1 in
            --free-min) bytes "$1" "${2-}" && free_min=$size ;;
            --nodes) matching "$1" "${2-}" '^(every|primary|others)$' "every, primary or others" && nodes=$2 ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    is_selected "$nodes" || exit 0

    folder=$(readlink "$LINK" || true)
    # A link to a disk that was detached is replaced.
    if [ -z "$folder" ] || ! is_writable "$folder"; then
        is_kept=false
        disk=$(largest_disk)
        [ -n "$disk" ] || fail 74 "no disk can be written by root, expected at least one; see df"
        folder=${disk%/}/sentimill/scratch
        [ "$disk" != / ] || folder=/var/tmp/sentimill-scratch
        make_folder "$folder"
    fi
    set_profile
    free=$(df --block-size=1 --output=avail "$folder" | tail -n 1 | tr -d ' ')
    fact scratch "$(text "$LINK")"
    fact folder "$(text "$folder")"
    fact kept $is_kept
    fact disk_free_bytes "$free"
    [ "$free" -ge "$free_min" ] || fail 78 "$folder: $(mib "$free") free, expected at least $(mib "$free_min"): choose larger volumes or lower --free-min"
}

# largest_disk: prints the mount point with the most free space for all users among those that root can write.
largest_disk() {
    local excluded=() name disk probe
    for name in $NOT_DISKS; do
        excluded+=("--exclude-type=$name")
    done
    # Without a local file system, df fails.
    { df --local --block-size=1 --output=avail,target "${excluded[@]}" 2>/dev/null || true; } | tail -n +2 | sort -k 1,1nr |
        while read -r _ disk; do
            # A file may be mounted too, as in containers.
            [ -d "$disk" ] || continue
            case $disk in /boot* | /dev* | /proc* | /sys* | /run*) continue ;; esac
            if probe=$(as_root mktemp "${disk%/}/.scratch.XXXXXX" 2>/dev/null); then
                as_root rm -f "$probe"
                echo "$disk"
                break
            fi
        done
}

# Sticky and writable by all, as /tmp: tasks run as the users yarn and hadoop.
make_folder() {
    as_root mkdir -p "$1" "$(dirname "$LINK")"
    as_root chmod 1777 "$1"
    as_root ln -sfn "$1" "$LINK"
}

is_writable() {
    local probe
    probe=$(mktemp "$1/.scratch.XXXXXX" 2>/dev/null) && rm -f "$probe"
}

set_profile() {
    local wanted="export TMPDIR=$LINK"
    [ "$(cat "$PROFILE" 2>/dev/null)" = "$wanted" ] || echo "$wanted" | as_root tee "$PROFILE" >/dev/null
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

# --- Privileges: equal in all actions that change the node. ---

# EMR runs actions as the user hadoop, who may use sudo without a password.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
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
