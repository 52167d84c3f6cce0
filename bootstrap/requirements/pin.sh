#!/usr/bin/env bash
# Rewrites each NAME.txt here from NAME.in: every dependency at one version, with the hashes of its files.
# For Python 3.10 and newer; needs `uv` (python3 -m pip install uv). Run it to move to newer versions.
#
# usage: pin.sh [NAME ...]    none: all of them
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- *.in
for name in "${@%.in}"; do
    case $name in
        # Files are taken out of these; what Python would need to run them is not.
        libtorch) options=(--no-deps) ;;
        # The server of TensorBoard's pages and tokenizers' way to a hub are not used.
        report) options=(--no-deps) ;;
        # Asked for by torch, and used by torch.compile alone: 700 MB, most of it triton.
        torch) options=(--no-emit-package triton --no-emit-package cuda-bindings --no-emit-package cuda-pathfinder) ;;
        *) options=() ;;
    esac
    uv pip compile "$name.in" --output-file "$name.txt" --upgrade --quiet --no-header "${options[@]}" \
        --universal --python-version 3.10 --only-binary :all: --generate-hashes
done
