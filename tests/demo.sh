#!/usr/bin/env bash
# The whole job on 20,000 made-up reviews, on one machine and as a pipe, stage by stage: what goes in, what comes out.
#
# usage: tests/demo.sh PROGRAMS   (the folder of the programs; all other files lie in a temporary folder)
# shellcheck disable=SC2016 # Commands are shown as one types them, and expanded when they run.
set -euo pipefail

programs=$(cd "$1" && pwd)
PATH=$programs:$programs/examples:$PATH
width=$({ tput cols || echo 100; } 2>/dev/null)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export run=file://$folder
printf '$ run=%s\n' "$run"

# What a stage does, and the command as one would type it; then it runs.
step() {
    printf '\n# %s\n$ %s\n' "$1" "$2"
    bash -e -o pipefail -c "$2" || {
        code=$?
        echo "demo.sh: that command ended with exit code $code" >&2
        exit "$code"
    }
}

# Size of a file of lines and its first two, cut to the terminal.
show() {
    printf '  %s: %d lines, %d bytes\n' "$1" "$(wc -l < "$1")" "$(wc -c < "$1")"
    head -n 2 "$1" | LC_ALL=C cut -c "1-$((width - 5))" | LC_ALL=C tr '\t' '|' | sed 's/^/    /'
}

step "Twenty thousand reviews, a few of them awkward." \
    'demo-corpus --reviews 20000 --seed 1 > reviews.json'
show reviews.json

step "On one machine, one program makes the dataset; it prints the ledger of all lines, and a card." \
    'sentimill --input reviews.json --out reviews.h5'

step "The same as a pipe of the programs that run on Hadoop. Each review becomes its cleaned text and one vote." \
    'mapper --counts mapper.json < reviews.json > mapped && cat mapper.json && echo'
show mapped

step "Equal texts come together." \
    'LC_ALL=C sort mapped > sorted'
show sorted

step "Their votes add up; optional, it only saves bytes on the way." \
    'combiner < sorted > combined'
show combined

step "Each text becomes a row: its words, the rating most gave it, a hash. One reducer, one shard." \
    'reducer --run $run/one --partition 0 --partitions 1 < combined > committed'
show committed

step "The shards of the run become one dataset; the ledger must balance." \
    'merge --run $run/one --counts mapper.json --out one.h5 > card'

step "The same again with three reducers and no combiner, as a pipe." \
    'mapper --counts again.json < reviews.json 2> log | LC_ALL=C sort > sorted
  for partition in 0 1 2; do
      reducer --select --run $run/three --partition $partition --partitions 3 < sorted
  done > committed 2> log'
show committed
step "Three shards, one dataset." \
    'merge --run $run/three --counts again.json --out three.h5 > card'

step "However it was cut, it is the same file, byte for byte." \
    'cmp one.h5 three.h5 && cmp one.h5 reviews.h5 && ls -l *.h5'

command -v trainer > /dev/null || {
    printf '\nSKIPPED training: the trainer was left out of this build (TORCH=no)\n'
    exit
}

step "An LSTM learns which texts are positive, on two ranks of this machine; a tenth of the rows is for testing." \
    'trainer launch --nproc 2 -- fit reviews.h5 --out sentiment --device cpu'

step "The same rows again, from the saved model: every row counted once." \
    'trainer evaluate sentiment reviews.h5 --test-fraction 0.1 --device cpu'

step "Three sentences that it has not seen." \
    "printf '%s\n' 'What a magnificent knife, it works great!' 'It broke after a week, what a waste of money!' 'It is what it is' |
      trainer predict sentiment/model --format text --device cpu"
