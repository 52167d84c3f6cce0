#!/usr/bin/env bash
# EMR bootstrap action: copies log files to S3 that EMR itself does not copy, as soon as they change, until the node ends.
# It uses the AWS CLI and the role of the node. On a node without the AWS CLI it does nothing and reports so. A second run with
# the same options changes nothing; with other options, it replaces the first.
#
# usage: ship-logs.sh --to s3://BUCKET/PREFIX [OPTION ...] FILE ...
#   --to URL         destination; the node's host name and the path of the file are appended
#   --every SECONDS  interval [default: 60]
#   --nodes NAME     every, primary or others; other nodes are not changed [default: every]
#   FILE             absolute path or pattern, such as '/var/log/messages' or '/mnt/var/log/sentimill/*.log'
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 done; 64 usage; 66 --nodes outside
# EMR; 74 the copying process did not start.
set -euo pipefail

ACTION=ship-logs
INFO=/mnt/var/lib/info
STATE=/var/lib/sentimill/ship-logs
UNIT=sentimill-ship-logs.service
# Lines of its own log before it is started anew: an hour of failures at the default interval.
LOG_LINES_MAX=1000

main() {
    [ "${1-}" != --copy ] || copy_until_ended
    local to='' every=60 nodes=every files=()
    while [ $# -gt 0 ]; do
        case $1 in
            # Neither a user name nor a query, which could contain a secret, has this form.
            --to) matching "$1" "${2-}" '^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=/-]*)?$' "s3://BUCKET/PREFIX" && to=${2%/} ;;
            --every) matching "$1" "${2-}" '^[1-9][0-9]{0,5}$' "a whole number of seconds" && every=$2 ;;
            --nodes) matching "$1" "${2-}" '^(every|primary|others)$' "every, primary or others" && nodes=$2 ;;
            /*) files+=("$1") && shift && continue ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    [ -n "$to" ] || fail 64 "--to is missing, expected s3://BUCKET/PREFIX; see --help"
    [ ${#files[@]} -gt 0 ] || fail 64 "no file was passed, expected absolute paths or patterns; see --help"
    is_selected "$nodes" || exit 0
    if ! command -v aws >/dev/null; then
        fact shipping false
        fact reason '"aws was not found on the PATH"'
        exit 0
    fi

    local settings kept=true
    settings=$(printf '%s\n' "$to" "$every" "${files[@]}")
    if [ "$(cat "$STATE/settings" 2>/dev/null)" != "$settings" ] || ! cmp -s "$0" "$STATE/ship-logs.sh" || ! is_running; then
        kept=false
        stop
        as_root mkdir -p "$STATE"
        # EMR deletes the file from which it runs an action.
        as_root install -m 755 "$0" "$STATE/ship-logs.sh"
        echo "$settings" | as_root tee "$STATE/settings" >/dev/null
        start
        is_running || fail 74 "$STATE/log: the copying process did not start; see the log"
    fi
    fact shipping true
    fact kept $kept
    fact to "$(text "$to/$(uname -n)")"
    fact every_s "$every"
    fact files ${#files[@]}
}

# systemd ends the process last and waits for its last round; elsewhere the process runs in the background.
start() {
    if [ -d /run/systemd/system ]; then
        printf '%s\n' '[Unit]' 'Description=Copies log files to S3' 'After=network-online.target' '[Service]' \
            "ExecStart=$STATE/ship-logs.sh --copy" Restart=always TimeoutStopSec=60 '[Install]' 'WantedBy=multi-user.target' |
            as_root tee "/etc/systemd/system/$UNIT" >/dev/null
        as_root systemctl daemon-reload
        as_root systemctl enable --quiet --now "$UNIT"
    else
        # All descriptors are closed: EMR waits until an action closes its output.
        as_root setsid -f "$STATE/ship-logs.sh" --copy </dev/null >/dev/null 2>&1
        # The process writes its id first.
        for _ in {1..50}; do
            ! is_running || return 0
            sleep 0.1
        done
    fi
}

stop() {
    if [ -d /run/systemd/system ]; then
        [ ! -e "/etc/systemd/system/$UNIT" ] || as_root systemctl stop "$UNIT"
    elif is_running; then
        as_root kill "$(cat "$STATE/pid")"
        for _ in {1..100}; do
            is_running || return 0
            sleep 0.1
        done
        fail 74 "$STATE/pid: the process of an earlier run did not end within 10 s; end it and repeat"
    fi
}

is_running() {
    if [ -d /run/systemd/system ]; then
        systemctl is-active --quiet "$UNIT"
    else
        # The number may have been given to another process.
        local pid
        pid=$(cat "$STATE/pid" 2>/dev/null) && grep -qz ship-logs.sh "/proc/$pid/cmdline" 2>/dev/null
    fi
}

# The copying process.
copy_until_ended() {
    local settings to every until is_last is_ending=
    trap - EXIT
    trap 'is_ending=yes' TERM INT
    echo $$ >"$STATE/pid"
    mapfile -t settings <"$STATE/settings"
    to=${settings[0]} every=${settings[1]}
    while :; do
        is_last=$is_ending
        copy_changed "$to/$(uname -n)" "${settings[@]:2}"
        # A file may have changed after this round had passed it, so the last round begins after the signal.
        [ -z "$is_last" ] || exit 0
        until=$((SECONDS + every))
        while [ -z "$is_ending" ] && [ $SECONDS -lt $until ]; do
            # `wait` returns at a signal. A signal just before it delays the end by a second.
            sleep 1 &
            wait $! || true
        done
    done
}

# copy_changed URL PATTERN ...: copies each file whose time or size differs from the last copy.
copy_changed() {
    local to=$1 pattern file found said
    shift
    [ "$(wc -l 2>/dev/null <"$STATE/log" || echo 0)" -lt $LOG_LINES_MAX ] || : >"$STATE/log"
    for pattern in "$@"; do
        # Names with spaces are supported, so only the pattern is expanded.
        while IFS= read -r file; do
            [ -f "$file" ] && [ -r "$file" ] || continue
            found=$(stat --format '%s %y' "$file" 2>/dev/null) || continue
            [ "${copied[$file]-}" != "$found" ] || continue
            if said=$(aws s3 cp --only-show-errors "$file" "$to$file" 2>&1 </dev/null); then
                copied[$file]=$found
            else
                echo "$(date -u +%FT%TZ) $file: not copied: ${said//[[:cntrl:]]/ }" >>"$STATE/log"
            fi
        done < <(compgen -G "$pattern" || true)
    done
}
declare -A copied=()

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
