#!/usr/bin/env python3
"""Tests a GPU bundle as on another machine: runs a copy of it without this project's environment.

usage: gpu_bundle.py BUNDLE PYTHON
  BUNDLE  folder made by `make gpu-bundle`
  PYTHON  Python with PyTorch

The report must contain each check that the bundle lists, none may fail, and without a GPU only checks that need one may be
skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_S = 1800
OWN = ["libraries", "programs-start", "gpu"]
SPEEDS = [f"speed/{model} {precision}" for model in ("small", "large") for precision in ("f32", "bf16")]
# Checks that must pass on a machine without a GPU.
ON_PROCESSORS = [
    "libraries",
    "programs-start",
    "c10d-cuda/a_missing_gpu_is_reported",
    "trainer-gpu/a_training_has_the_processors_losses",
    "trainer-gpu/a_pretraining_has_the_processors_losses",
    "trainer-gpu/a_training_that_was_ended_goes_on_as_if_it_was_not",
    "trainer-gpu/evaluations_and_predictions_are_the_processors",
    "trainer-gpu/two_ranks_over_gloo_have_the_losses_of_one",
    "speed/small f32",
]


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # Not resolved: the Python of a virtual environment is a link.
    bundle, python = Path(sys.argv[1]), Path(sys.argv[2]).absolute()
    n_bytes = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = Path(folder, "elsewhere")
        shutil.copytree(bundle, elsewhere)
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=elsewhere, check=True)
        out = Path(folder, "out")
        done = run(elsewhere, python, out, "--limit", str(LIMIT_S))
        report = json.loads((out / "results.json").read_text())
        assert (out / "results.log").stat().st_size > 0
        check(report, done, json.loads((elsewhere / "bundle.json").read_text())["tests"])
        reports_what_it_did_not_run(elsewhere, python, Path(folder, "ended"))
        if not report["machine"]["gpus"]:
            refuses_without_gpu(elsewhere, python, Path(folder, "required"))
    print(f"the GPU bundle: {n_bytes / 2**20:.1f} MiB, {len(report['checks'])} checks, none failed")


def run(bundle: Path, python: Path, out: Path, *more: str) -> subprocess.CompletedProcess:
    """Runs the bundle without access to the project: neither its folder nor its environment variables."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(out.parent), "TMPDIR": str(out.parent), "LANG": "C"}
    # The machine selects the GPUs.
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("CUDA_", "NVIDIA_"))}
    command = [str(python), str(bundle / "run"), "--out", str(out), *more]
    return subprocess.run(
        command, cwd=out.parent, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )


def check(report: dict, done: subprocess.CompletedProcess, tests: dict[str, list[str]]) -> None:
    found = {check["name"]: check for check in report["checks"]}
    assert len(found) == len(report["checks"]), "two checks have one name"
    failed = {name: check["reason"] for name, check in found.items() if check["status"] == "failed"}
    assert not failed and done.returncode == 0, f"{failed}\n{done.stdout}\n{done.stderr}"
    assert len(tests) == 3 and all(len(names) >= 4 for names in tests.values()), tests
    listed = OWN + SPEEDS + [f"{Path(program).name}/{name}" for program, names in tests.items() for name in names]
    assert sorted(found) == sorted(listed), f"{sorted(set(found) ^ set(listed))}"
    for name in ON_PROCESSORS:
        assert found[name]["status"] == "passed", found[name]
    for name, one in found.items():
        if one["status"] == "skipped":
            assert "GPU" in one["reason"], one
            assert not name.startswith("c10d-collectives/"), one
    if not report["machine"]["gpus"]:
        assert found["gpu"]["status"] == "skipped" and found["speed/large bf16"]["status"] == "skipped"
    losses = found["trainer-gpu/a_training_has_the_processors_losses"]["measured"]
    assert len(losses) == 4 and all(0 <= loss["found"] <= loss["bound"] for loss in losses), losses
    speeds = found["speed/small f32"]["measured"]
    assert {"trainer", "PyTorch"} <= {speed["what"] for speed in speeds}, speeds


def reports_what_it_did_not_run(bundle: Path, python: Path, out: Path) -> None:
    """A time limit ends the checks, and --only selects some. The report has the others that were selected."""
    done = run(bundle, python, out, "--limit", "0", "--only", "speed/")
    assert done.returncode == 1, done.stdout
    checks = {check["name"]: check for check in json.loads((out / "results.json").read_text())["checks"]}
    assert sorted(checks) == sorted(OWN + SPEEDS), checks
    assert checks["libraries"]["reason"].startswith("not run: 0 s had passed"), checks["libraries"]


def refuses_without_gpu(bundle: Path, python: Path, out: Path) -> None:
    """With --require-gpu, a missing GPU is a failure, and the other checks are not run."""
    done = run(bundle, python, out, "--require-gpu")
    assert done.returncode == 1, done.stdout
    checks = json.loads((out / "results.json").read_text())["checks"]
    failed = {check["name"]: check["reason"] for check in checks if check["status"] == "failed"}
    assert "--require-gpu is set" in failed["gpu"], failed
    assert len(checks) > len(OWN + SPEEDS)


main()
