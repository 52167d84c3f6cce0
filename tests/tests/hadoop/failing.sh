#!/usr/bin/env bash
# A task of a test that fails in the way that its first argument names.
#
# usage: failing.sh hungry            uses more memory than its container has
#        failing.sh silent            makes no progress
#        failing.sh counting          writes more counters than Hadoop allows
#        failing.sh killed            is killed
#        failing.sh hasty             exits before it has read its input
#        failing.sh full PROGRAM ...  runs a program with a TMPDIR of 64 kB
set -uo pipefail

case $1 in
    hungry) memory=$(head -c 300000000 /dev/zero | tr '\0' x) && sleep 60 && echo "${#memory}" ;;
    silent) sleep 300 ;;
    counting)
        for number in $(seq 200); do echo "reporter:counter:words,word$number,1" >&2; done
        cat
        ;;
    killed) kill -9 $$ ;;
    hasty) exit 0 ;;
    full)
        # shellcheck disable=SC2016 # Expanded by the inner shell.
        exec unshare --user --map-root-user --mount \
            bash -c 'mount -t tmpfs -o size=64k tmpfs "$TMPDIR" && exec ./"$@"' bash "${@:2}"
        ;;
esac
