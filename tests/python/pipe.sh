#!/usr/bin/env bash
# The job as it is written in Python by those who need it fast: as many mappers and reduce partitions as this machine has
# cores (two), orjson, one look-up a word in one dictionary, all else in numpy. It knows no bad lines' counts, no hashes,
# splits, digests or commits, and its rows are in no order but the sort's.
#
# usage: tests/python/pipe.sh PYTHON REVIEWS STOP_WORDS OUT
#   PYTHON has numpy, h5py and orjson; all files but OUT lie in the working directory for a while. SORT_MIB (2048) is
#   the memory of all four sorts together
set -euo pipefail

python=$1 reviews=$2 stop_words=$3 out=$4
programs=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C PYTHONUTF8=1
# A quarter of the memory for each of four, which have a thread each.
sort_memory_mib=${SORT_MIB:-2048}
folder=$(mktemp -d ./python-pipe.XXXXXX)
trap 'rm -rf "$folder"' EXIT

map() { # NUMBER: half of the lines, each partition sorted, as a map task's output is
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
