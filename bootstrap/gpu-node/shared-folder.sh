#!/usr/bin/env bash
# Mounts a folder that all training machines share, by NFS 4.1: an export of one of the machines, or an EFS file system. Datasets
# and trainings are in it, so that each rank finds the same paths. The mount is added to /etc/fstab. A second run changes
# nothing.
#
# Only rank 0 of a training writes into the shared folder; the other ranks read. Lock and checkpoints of `trainer` are made for
# that.
#
# usage: shared-folder.sh --from HOST:/PATH [OPTION ...]
#   --from PLACE  an NFS export, such as 10.0.0.5:/data, or fs-0123456789abcdef0.efs.us-east-1.amazonaws.com:/
#   --at FOLDER   mount point, created if missing [default: /mnt/shared]
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 done; 64 usage and a mount point in use; 69 the
# server is unavailable; 78 the NFS client is missing.
set -euo pipefail

ACTION=shared-folder
FSTAB=/etc/fstab
# AWS's recommendation for EFS. hard: a server that restarts delays a training but causes no I/O error. noresvport: a
# connection that was lost is opened from another port, which EFS requires.
OPTIONS=nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport
# Time limit of one mount. mount itself retries for two minutes and longer.
MOUNT_S=150

main() {
    local from='' at=/mnt/shared mounted kept=true
    while [ $# -gt 0 ]; do
        case $1 in
            --from) matching "$1" "${2-}" '^[A-Za-z0-9][A-Za-z0-9._-]*:/[^[:space:]]*$' "HOST:/PATH" && from=$2 ;;
            --at) matching "$1" "${2-}" '^/[^[:space:]]+$' "an absolute path without spaces" && at=${2%/} ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    [ -n "$from" ] || fail 64 "--from is missing, expected HOST:/PATH; see --help"

    mounted=$(source_of "$at")
    if [ -z "$mounted" ]; then
        kept=false
        mount_now "$from" "$at"
    elif [ "$mounted" != "$from" ]; then
        fail 64 "$at: $mounted is mounted there, expected $from: choose another --at"
    fi
    add_to_fstab "$from" "$at"
    fact from "$(text "$from")"
    fact at "$(text "$at")"
    fact kept $kept
    fact disk_free_bytes "$(df --block-size=1 --output=avail "$at" | tail -n 1 | tr -d ' ')"
}

# source_of FOLDER: prints what is mounted there. The newest mount is the last.
source_of() {
    awk -v at="$1" '$2 == at {found = $1} END {print found}' /proc/self/mounts
}

mount_now() {
    local said
    # mount executes this program for the type nfs4.
    [ -x /sbin/mount.nfs4 ] ||
        fail 78 "/sbin/mount.nfs4: not found, expected the NFS client (nfs-common on Debian and Ubuntu, nfs-utils on Amazon Linux)"
    as_root mkdir -p "$2"
    said=$(as_root timeout "$MOUNT_S" mount -t nfs4 -o "$OPTIONS" "$1" "$2" 2>&1) ||
        fail 69 "$1: could not be mounted: ${said:-no answer within $MOUNT_S s}; check that its security group admits TCP port 2049"
}

# A machine starts even if the server does not answer (nofail), and after its network (_netdev).
add_to_fstab() {
    local line="$1 $2 nfs4 $OPTIONS,_netdev,nofail 0 0"
    grep -qxF "$line" "$FSTAB" 2>/dev/null || echo "$line" | as_root tee -a "$FSTAB" >/dev/null
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
