#!/usr/bin/env bash
# Checks the size of programs and the glibc and libraries that they require from a machine.
#
# usage: tests/programs.sh FOLDER GLIBC PROGRAM...
#   GLIBC   newest permitted symbol version, such as 2.34. Programs built for this machine may require its glibc: release
#           for the release profile; any for the dev profile, whose programs may be half larger
set -euo pipefail
export LC_ALL=C

folder=$1 glibc_max=$2
shift 2
# Libraries of glibc and gcc's runtime, which every Linux with glibc has.
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
    # Hadoop copies mapper and combiner to each machine of a job; the others contain HDF5. sentimill, ngrams and vectors also
    # contain the readers of all inputs; the last two also the report and the client of parameter servers.
    case $name in mapper | combiner) mib_max=4 ;; sentimill | ngrams | vectors) mib_max=30 ;; *) mib_max=20 ;; esac
    # Programs of the dev profile are less optimised.
    [ "$glibc_max" != any ] || mib_max=$((mib_max * 3 / 2))
    glibc=$(readelf --version-info "$program" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
    libraries=$(readelf --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')

    printf '%-12s %5d KiB %8s  %s\n' "$name" $((bytes / 1024)) "$glibc" "$(tr '\n' ' ' <<<"$libraries")"
    [ "$bytes" -lt $((mib_max << 20)) ] || fail "$program: $bytes bytes stripped, expected under $mib_max MiB"
    [ -n "$glibc" ] || fail "$program: no glibc symbol versions, expected a program linked with glibc"
    [[ $glibc_max =~ ^(any|release)$ ]] || [ "$(printf '%s\n' "$glibc" "$glibc_max" | sort -V | tail -n 1)" = "$glibc_max" ] ||
        fail "$program: requires glibc $glibc, expected at most $glibc_max"
    others=$(grep -Ev "$machine_has" <<<"$libraries") &&
        fail "$program: requires ${others//$'\n'/ }, expected libraries of glibc and gcc only"
done
exit $failed
