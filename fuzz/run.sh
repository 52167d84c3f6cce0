#!/usr/bin/env bash
# Runs fuzz targets in sequence, starting from the inputs in fuzz/corpus/ and those that earlier runs found. A failing
# input is saved in fuzz/artifacts/; the end of the log has the command that repeats it.
#
# usage: fuzz/run.sh CARGO_FUZZ FOLDER SECONDS [TARGET ...]   (default: all targets)
#   FOLDER   build results, logs and new inputs
#   SECONDS  time per target
set -euo pipefail

usage() {
    sed -n '/^# usage/,/^set /s/^# \{0,1\}//p' fuzz/run.sh >&2
    exit 64
}

cd "$(dirname "$0")/.."
[ $# -ge 3 ] && [[ $3 =~ ^[1-9][0-9]*$ ]] || usage
cargo_fuzz=$1 seconds=$3
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 3
all=(json literal chunk commit manifest clean record polarity_csv fasttext fasttext_model lines entries npy word2vec safetensors
    watch tables server)
[ $# -gt 0 ] || set -- "${all[@]}"
for target in "$@"; do
    [[ " ${all[*]} " = *" $target "* ]] ||
        { echo "fuzz/run.sh: $target: unknown target, expected one of ${all[*]}" >&2; exit 64; }
done

# cargo-fuzz passes flags that only nightly compilers accept; this makes a stable compiler accept them.
export RUSTC_BOOTSTRAP=1
# The release profile, with lines in the reports.
export CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
# Inputs have a few kilobytes, so an input that takes seconds or much memory is an error. Leak detection requires ptrace,
# which containers forbid.
options=(-max_total_time="$seconds" -timeout=10 -malloc_limit_mb=64 -detect_leaks=0 -print_final_stats=1)
failed=()
for target in "$@"; do
    mkdir -p "$folder/corpus/$target"
    log=$folder/$target.log
    if "$cargo_fuzz" run --features targets --target-dir "$folder" "$target" "$folder/corpus/$target" \
        "fuzz/corpus/$target" -- -dict="fuzz/dictionaries/$target" "${options[@]}" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        places=$(sed -n 's/.*DONE *cov: \([0-9]*\) .*/\1/p' "$log")
        echo "fuzz $target: $runs runs in $seconds s, $places places of the code reached, no error"
    else
        tail -n 40 "$log"
        echo "fuzz $target: FAILED, see $log"
        failed+=("$target")
    fi
done
[ ${#failed[@]} -eq 0 ] || { echo "fuzz/run.sh: failed: ${failed[*]}" >&2; exit 1; }
