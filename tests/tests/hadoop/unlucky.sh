#!/usr/bin/env bash
# A task of a test: runs the program that Hadoop would run, with the luck that the file FOLDER/TASK.ATTEMPT has for it.
#
# usage: unlucky.sh FOLDER PROGRAM [ARGUMENT ...]
#   dies-reading  the program is killed when it has read 100 kB, which is not all
#   dies-writing  the program is killed when its shard begins to be there
#   dies-after S  the program is killed after so many seconds, if it is still there
#   waits         nothing happens until somebody makes FOLDER/go
#   twin          the program reads on when attempts 0 and 1 have both read 100 kB, and its end counts when both have ended
# All leave what can be seen of them: process, node, environment, and everybody's arguments. Hadoop may try any slow task a
# second time beside itself; but for twins, and after one that waits on a node that is lost, that attempt waits until the one
# before it has ended.
set -uo pipefail

BYTES=100000
# Hadoop speculates on a task when its like have long been done, and a machine may be busy.
LIMIT_S=400

# shellcheck disable=SC2154 # Hadoop's own.
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

# The attempt before. What has ended has no arguments, also where nobody has waited for it.
has_ended() {
    [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$(cat "$folder/$task.pid")/cmdline")" ]
}

former=$(cat "$folder/$task.$((attempt - 1))" 2>/dev/null)
[ "$luck" = twin ] || [ "$former" = waits ] || [ ! -e "$folder/$task.pid" ] || await has_ended
echo $$ >"$folder/$task.pid"
env >"$mine.environment"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >"$mine.arguments"

# More than a pipe holds, so that most of it was read when it is written.
begin_of_input() {
    head -c $BYTES
    touch "$mine.reads"
}

# What is exec'ed keeps the number of this process.
case $luck in
    dies-reading)
        exec "./$1" "${@:2}" < <(begin_of_input && kill -9 $$)
        ;;
    dies-writing)
        while kill -0 $$; do
            for shard in "$TMPDIR"/reducer-*/shard.h5; do
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
