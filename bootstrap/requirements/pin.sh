#!/usr/bin/env bash
# Rewrites each NAME.txt in this folder from NAME.in: every dependency at one version, with the hashes of its files.
# For Python 3.10 and newer; needs `uv` (python3 -m pip install uv). Run it to move to newer versions.
#
# usage: pin.sh [NAME ...]    default: all
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- *.in
for name in "${@%.in}"; do
    case $name in
        # Only files of these wheels are used; Python does not import them, so their dependencies are not needed.
        libtorch) options=(--no-deps) ;;
        # TensorBoard's web server and the Hub client of tokenizers are not used.
        report) options=(--no-deps) ;;
        # pandas is in test, and mlcroissant's reader of ARFF is not used. jsonpath-rw is released as source only.
        tables) options=(--no-deps --no-binary jsonpath-rw) ;;
        # It is released as source only.
        sagemaker) options=(--no-deps --no-binary sagemaker-training) ;;
        # Dependencies of torch that only torch.compile uses: 700 MB, most of it triton.
        torch) options=(--no-emit-package triton --no-emit-package cuda-bindings --no-emit-package cuda-pathfinder) ;;
        *) options=() ;;
    esac
    uv pip compile "$name.in" --output-file "$name.txt" --upgrade --quiet --no-header "${options[@]}" \
        --universal --python-version 3.10 --only-binary :all: --generate-hashes
done
