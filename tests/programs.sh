#!/usr/bin/env bash
# Reads what programs ask of the machine they are copied to, and fails when it is more than was promised.
#
# usage: tests/programs.sh FOLDER GLIBC PROGRAM...
#   GLIBC   the newest symbol version they may ask for, as 2.34; any: print it only, since a program
#           linked for this machine may ask for what this machine has; such a one may be a quarter larger
set -euo pipefail
export LC_ALL=C

folder=$1 glibc_max=$2
shift 2
# Parts of glibc, and of gcc's run time, which every Linux with glibc has.
machine_has='^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2)$'
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
failed=0

fail() {
    echo "error: $*" >&2
    failed=1
}

printf '%-12s %8s %9s  %s\n' program "" glibc libraries
for name in "$@"; do
    program=$folder/$name
    [ -x "$program" ] || { fail "$program is missing; run \`make build\` or \`make dist\`"; continue; }
    strip -o "$stripped" "$program"
    bytes=$(stat -c %s "$stripped")
    # A task of a Hadoop job copies its mapper and combiner to each machine; HDF5 makes the others larger.
    case $name in mapper | combiner) mib_max=4 ;; *) mib_max=20 ;; esac
    # Those of the tests' profile are optimised less.
    [ "$glibc_max" != any ] || mib_max=$((mib_max * 5 / 4))
    glibc=$(readelf --version-info "$program" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
    libraries=$(readelf --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')

    printf '%-12s %5d KiB %8s  %s\n' "$name" $((bytes / 1024)) "$glibc" "$(tr '\n' ' ' <<<"$libraries")"
    [ "$bytes" -lt $((mib_max << 20)) ] || fail "$program: $bytes bytes stripped, expected under $mib_max MiB"
    [ -n "$glibc" ] || fail "$program: no glibc symbol versions, expected a program linked with glibc"
    [ "$glibc_max" = any ] || [ "$(printf '%s\n' "$glibc" "$glibc_max" | sort -V | tail -n 1)" = "$glibc_max" ] ||
        fail "$program: needs glibc $glibc, expected $glibc_max at most"
    others=$(grep -Ev "$machine_has" <<<"$libraries") &&
        fail "$program: needs ${others//$'\n'/ }, expected parts of glibc and gcc only"
done
exit $failed
