#!/usr/bin/env bash
# Rewrites each NAME.txt here from NAME.in: every dependency at one version, with the hashes of its files.
# For Python 3.10 and newer; needs `uv` (python3 -m pip install uv). Run it to move to newer versions.
set -euo pipefail
cd "$(dirname "$0")"
for wanted in *.in; do
    uv pip compile "$wanted" --output-file "${wanted%.in}.txt" --upgrade --quiet --no-header \
        --universal --python-version 3.10 --only-binary :all: --generate-hashes
done
