#!/usr/bin/env bash
# The whole job on a corpus made here: raw reviews, records, two shards, one dataset.
#
# usage: tests/demo.sh TARGET   (the folder that holds release/)
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

target=$(cd "$1" && pwd)
demo=$target/demo
run=file://$demo/run
PATH=$target/release:$PATH
rm -rf "$demo"
mkdir -p "$demo"

step() {
    printf '\n== %s\n' "$*"
}

step "raw reviews: $demo/reviews.jsonl"
demo-corpus --seed 1 --reviews 20000 >"$demo/reviews.jsonl"
head -n 1 "$demo/reviews.jsonl"

step "records, one line a text: $demo/records"
mapper --counts "$demo/mapper.json" <"$demo/reviews.jsonl" | sort | combiner >"$demo/records"
head -n 1 "$demo/records"

step "shards: $demo/run"
for partition in 0 1; do
    reducer --run "$run" --select --partition $partition --partitions 2 <"$demo/records" >/dev/null
done
(cd "$demo/run" && find . -type f | sort)

step "dataset: $demo/reviews.h5"
merge --run "$run" --counts "$demo/mapper.json" --out "$demo/reviews.h5"
