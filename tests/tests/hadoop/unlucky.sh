#!/usr/bin/env bash
# A task of a test: runs the program of a Hadoop task with the fault in the file FOLDER/TASK.ATTEMPT.
#
# usage: unlucky.sh FOLDER PROGRAM [ARGUMENT ...]
#   dies-reading  the program is killed after reading 100 kB, which is part of its input
#   dies-writing  the program is killed when its shard starts to exist
#   dies-after S  the program is killed after S seconds, if it is still running
#   waits         the program starts once FOLDER/go exists
#   twin          the program continues when attempts 0 and 1 have both read 100 kB, and the task ends when both have exited
# All write their process id, environment and the arguments of all processes into FOLDER. Hadoop may start a speculative
# attempt of any slow task. Such an attempt waits until the previous one has exited, except for twins, and except after an
# attempt that waits on a lost node.
set -uo pipefail

BYTES=100000
# Hadoop starts a speculative attempt only long after similar tasks have completed, and the machine may be busy.
LIMIT_S=400

# shellcheck disable=SC2154 # Hadoop sets these variables.
folder=$1 attempt=${mapreduce_task_attempt_id##*_} task=$mapreduce_task_partition
shift
mine=$folder/$task.$attempt
luck=$(cat "$mine" 2>/dev/null)

await() {
    local begin=$SECONDS
    until "$@"; do
        [ $((SECONDS - begin)) -lt $LIMIT_S ] || exit 1
        sleep 0.1
    done
}

# Whether the previous attempt has exited. An exited process has no arguments, even before its parent has waited for it.
has_ended() {
    [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$(cat "$folder/$task.pid")/cmdline")" ]
}

former=$(cat "$folder/$task.$((attempt - 1))" 2>/dev/null)
[ "$luck" = twin ] || [ "$former" = waits ] || [ ! -e "$folder/$task.pid" ] || await has_ended
echo $$ >"$folder/$task.pid"
env >"$mine.environment"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >"$mine.arguments"

# More than the capacity of a pipe, so that most of it has been read once it is written.
begin_of_input() {
    head -c $BYTES
    touch "$mine.reads"
}

# exec keeps the process id.
case $luck in
    dies-reading)
        exec "./$1" "${@:2}" < <(begin_of_input && kill -9 $$)
        ;;
    dies-writing)
        while kill -0 $$; do
            for shard in "$TMPDIR"/.sentimill-unfinished-*/shard.h5; do
                if [ -s "$shard" ]; then
                    kill -9 $$
                    stat -c %s "$shard" >"$mine.written"
                fi
            done
        done </dev/null >/dev/null 2>&1 &
        exec "./$1" "${@:2}"
        ;;
    dies-after*)
        (sleep "${luck#* }"; kill -9 $$) </dev/null >/dev/null 2>&1 &
        exec "./$1" "${@:2}"
        ;;
    waits)
        echo "$SENTIMILL_NODE" >"$mine.node.part" && mv "$mine.node.part" "$mine.node"
        await test -e "$folder/go"
        exec "./$1" "${@:2}"
        ;;
    twin)
        other=$folder/$task.$((1 - attempt))
        "./$1" "${@:2}" < <(begin_of_input && await test -e "$other.reads" && cat)
        code=$?
        touch "$mine.ended"
        await test -e "$other.ended"
        exit $code
        ;;
    *)
        exec "./$1" "${@:2}"
        ;;
esac
