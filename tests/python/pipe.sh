#!/usr/bin/env bash
# Runs the job in tuned Python: two mappers and two reduce partitions, orjson, one dictionary lookup per word, numpy for
# everything else. It does not count bad lines and has no hashes, splits, digests or commits; its rows are in sort order.
#
# usage: tests/python/pipe.sh PYTHON REVIEWS STOP_WORDS OUT
#   PYTHON needs numpy, h5py and orjson. Temporary files are in the working directory. SORT_MIB (default 2048) is the
#   memory of all four sorts together
set -euo pipefail

python=$1 reviews=$2 stop_words=$3 out=$4
programs=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C PYTHONUTF8=1
# Four sorts of one thread each share the memory.
sort_memory_mib=${SORT_MIB:-2048}
folder=$(mktemp -d ./python-pipe.XXXXXX)
trap 'rm -rf "$folder"' EXIT

map() { # NUMBER: maps half of the lines and sorts each partition, like a map task
    local part pids=()
    for part in 1 2; do
        mkfifo "$folder/records$1$part"
        sort -S "$((sort_memory_mib / 4))M" --parallel=1 -T "$folder" "$folder/records$1$part" >"$folder/sorted$1$part" &
        pids+=($!)
    done
    split -n "l/$1/2" "$reviews" | "$python" "$programs/mapper.py" "$folder/records${1}1" "$folder/records${1}2"
    wait "${pids[0]}"
    wait "${pids[1]}"
}

reduce() { # PARTITION
    sort -m "$folder/sorted1$1" "$folder/sorted2$1" |
        "$python" "$programs/reducer.py" "$stop_words" 100 "$folder/shard$1"
}

for stage in map reduce; do
    "$stage" 1 &
    first=$!
    "$stage" 2 &
    wait "$!"
    wait "$first"
done
"$python" "$programs/merge.py" "$stop_words" 10000 "$out" "$folder/shard1" "$folder/shard2"
