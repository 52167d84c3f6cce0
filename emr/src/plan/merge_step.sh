# shellcheck shell=bash
# usage: RUN_ID PROGRAM SHA256 COMMAND [-- COMMAND]...
# Fetches the program merge, saves the counters of the run's Hadoop job, and runs the commands, which merge the run.
set -euo pipefail
id=$1 program=$2 sha256=$3
shift 3
export TMPDIR=$PWD
hadoop fs -copyToLocal -f "$program" merge
echo "$sha256  merge" | sha256sum --check --status || { echo "$program: the SHA-256 is not $sha256" >&2; exit 66; }
chmod +x merge
job=$(yarn application -list -appStates FINISHED | awk -F '\t' -v id="$id" '
    { gsub(/^ +| +$/, "", $1); gsub(/^ +| +$/, "", $2); gsub(/ /, "", $7) }
    $2 ~ id "$" && $7 == "SUCCEEDED" { print $1 }' | sort -V | tail -n 1 | sed s/^application_/job_/)
[ -n "$job" ] || { echo "$id: no job of this run succeeded" >&2; exit 66; }
for try in 1 2 3 4 5 6; do
    mapred job -status "$job" >counters 2>status.log && grep -q 'lines=' counters && break
    [ $try != 6 ] || { cat status.log >&2; echo "$job: no counters" >&2; exit 69; }
    sleep 5
done
command=()
for word in "$@" --; do
    [ "$word" = -- ] || { command+=("$word"); continue; }
    "${command[@]}"
    command=()
done
