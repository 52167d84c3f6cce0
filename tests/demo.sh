#!/usr/bin/env bash
# Runs the job on 20,000 synthetic reviews twice, by sentimill and by the pipe, and shows input and output of each stage.
#
# usage: tests/demo.sh PROGRAMS   (folder of the programs; all other files are in a temporary folder)
# shellcheck disable=SC2016 # Commands are printed as typed, and expanded when they run.
set -euo pipefail

programs=$(cd "$1" && pwd)
PATH=$programs:$programs/examples:$PATH
width=$({ tput cols || echo 100; } 2>/dev/null)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export run=file://$folder
printf '$ run=%s\n' "$run"

# step TEXT COMMAND: prints what a stage does and its command, then runs it.
step() {
    printf '\n# %s\n$ %s\n' "$1" "$2"
    bash -e -o pipefail -c "$2" || {
        code=$?
        echo "demo.sh: this command exited with code $code" >&2
        exit "$code"
    }
}

# show FILE: prints the size of a file and its first two lines, cut to the terminal's width.
show() {
    printf '  %s: %d lines, %d bytes\n' "$1" "$(wc -l < "$1")" "$(wc -c < "$1")"
    head -n 2 "$1" | LC_ALL=C cut -c "1-$((width - 5))" | LC_ALL=C tr '\t' '|' | sed 's/^/    /'
}

step "Generate 20,000 reviews, some of them invalid." \
    'demo-corpus --reviews 20000 --seed 1 > reviews.json'
show reviews.json

step "On one machine, sentimill makes the dataset and prints the ledger of all lines and the data card." \
    'sentimill --input reviews.json --out reviews.h5'

step "The same as a pipe of the Hadoop programs. The mapper turns each review into its cleaned text and one vote." \
    'mapper --counts mapper.json < reviews.json > mapped && cat mapper.json && echo'
show mapped

step "sort groups equal texts." \
    'LC_ALL=C sort mapped > sorted'
show sorted

step "The combiner adds up their votes. It is optional and only saves bytes." \
    'combiner < sorted > combined'
show combined

step "The reducer turns each text into a row: words, label, hash. One reducer writes one shard." \
    'reducer --run $run/one --partition 0 --partitions 1 < combined > committed'
show committed

step "merge makes one dataset of the shards of the run; the ledger must balance." \
    'merge --run $run/one --counts mapper.json --out one.h5 > card'

step "The same with three reducers and without the combiner." \
    'mapper --counts again.json < reviews.json 2> log | LC_ALL=C sort > sorted
  for partition in 0 1 2; do
      reducer --select --run $run/three --partition $partition --partitions 3 < sorted
  done > committed 2> log'
show committed
step "Three shards, one dataset." \
    'merge --run $run/three --counts again.json --out three.h5 > card'

step "All three datasets are the same file, byte for byte." \
    'cmp one.h5 three.h5 && cmp one.h5 reviews.h5 && ls -l *.h5'

step "Train a classifier of n-grams; a tenth of the texts is the test split." \
    'ngrams train --input reviews.h5 --test-fraction 0.1 --out sentiment'

step "Predict three new sentences." \
    "printf '%s\n' 'What a magnificent knife, it works great!' 'It broke after a week, what a waste of money!' 'It is what it is' |
      ngrams predict sentiment --format text"
