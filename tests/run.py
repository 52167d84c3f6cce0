#!/usr/bin/env python3
"""Builds the programs under test, and builds and runs the Rust tests and the tests of python/ and bootstrap/. Several test programs
run at the same time: programs that mostly wait run in parallel with programs that compute. The end of the output lists
the ten slowest tests.

usage: tests/run.py [--only PACKAGES] [--beside COMMAND] CARGO_OPTION...
  --only PACKAGES   run only the tests of these packages, separated by commas or spaces
  --beside COMMAND  run this command in parallel with the tests, after the build; it fails like a test
  CARGO_OPTION      options of cargo's selection and build, such as --locked --workspace

All tests are built, even if only some of them run, so that all builds have the same features. For a single package
(-p), cargo would select fewer features, and compile HDF5 and the S3 client again.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent
# Test programs that mostly wait for nodes, time limits and exiting processes run in parallel with the others.
NODES = [("tests", "hadoop")]
WAIT = [("tests", "emr"), ("emr", "jobs"), ("emr", "diagnosed_cluster"), ("trainer", "in_s3"), ("vectors", "train"), ("c10d", "lost_ranks"), ("store", "s3"), ("c10d", "watch"), ("trainer", "out"), ("launch", "launch"), ("tests", "exactly_once")]
# The longest of the others start first, so that the end of the run is parallel too.
LONG = [("trainer", "program"), ("tests", "pipe"), ("trainer", "pytorch"), ("trainer", "crafted"), ("tests", "faults"), ("tests", "sentimill"), ("tests", "documents"), ("trainer", "report")]
N_SLOWEST = 10
# Folders with tests in Python, by their names among packages: where the tests are.
PYTHON = {"python": "python/tests", "bootstrap": "tests/bootstrap", "experiments": "experiments/tests"}
# The native module of `python/`, a link to that of the build.
MODULE = PROJECT / "python/sentimill/_native.abi3.so"
# Property tests have the same cases in each run, so that a run fails because of a change, not by chance. `make prove` has
# other cases in each run.
SEED = {} if "PROVE" in os.environ else {"PROPTEST_RNG_SEED": "1"}
# An unstable option of libtest that reports the duration of each test. It does not affect compilation.
REPORT_TIME = ["-Z", "unstable-options", "--report-time"]
TIMED = re.compile(r"^test (.*?)(?: - should panic)? \.\.\. .*<([0-9.]+)s>$", re.MULTILINE)
# A test that writes to standard error separates its name from its result, so only this line is reliable.
RESULT = re.compile(r"^test result: ", re.MULTILINE)


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1], allow_abbrev=False)
    options.add_argument("--only", type=lambda names: set(re.split(r"[, ]+", names.strip())), default=set())
    options.add_argument("--beside")
    options, arguments = options.parse_known_args()
    only = options.only
    begin = time.monotonic()
    # Of the examples, tests run only these; `make check` compiles all of them. `cargo test` would not give them their names.
    cargo(["build", *arguments, "--bins", "--lib", "--example", "demo-corpus", "--example", "launch-script", "--example", "parameter-server"])
    programs, folders = build(arguments)
    packages = {package for package, _, _, _ in programs} | set(PYTHON)
    folder_of_tests = pathlib.Path(programs[0][3][0]).parent
    if only:
        if unknown := only - packages:
            sys.exit(f"run.py: --only {', '.join(sorted(unknown))}: no such package, expected some of {', '.join(sorted(packages))}")
        programs = [program for program in programs if program[0] in only]
    print(f"built in {time.monotonic() - begin:.0f} s; {len(programs)} test programs\n", flush=True)

    begin = time.monotonic()
    runs = Runs(environment(folders))
    nodes, wait = ([program for name in names for program in programs if program[:2] == name] for names in (NODES, WAIT))
    rank = {name: at for at, name in enumerate(LONG)}
    others = [program for program in programs if program not in nodes + wait]
    others.sort(key=lambda program: rank.get(program[:2], len(LONG)))
    # A lane that has no more programs takes those of another one.
    lists = ((nodes, wait, others), (wait, others), (wait, others), (others, wait), (others, wait))
    lanes = [threading.Thread(target=runs.run_all, args=some) for some in lists]
    libraries = [place[1] for _, _, kind, place in programs if kind == "lib"]
    lanes.append(threading.Thread(target=runs.doctests, args=(libraries, arguments)))
    # Test programs are in target/debug/deps/.
    folder_of_programs = folder_of_tests.parent.absolute()
    if not only or "python" in only:
        MODULE.unlink(missing_ok=True)
        MODULE.symlink_to(folder_of_programs / "libnative.so")
    for name, tests in PYTHON.items():
        if not only or name in only:
            lanes.append(threading.Thread(target=runs.beside, args=(python_tests(tests, folder_of_programs),)))
    if options.beside:
        lanes.append(threading.Thread(target=runs.beside, args=(options.beside,)))
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    runs.tell(time.monotonic() - begin)
    sys.exit(1 if runs.failed else 0)


def python_tests(tests, programs):
    """The command that runs the tests of a folder with the programs of another folder."""
    python = f".deps/test/bin/python -B -m unittest discover --start-directory {tests}"
    return f"SENTIMILL_PROGRAMS={shlex.quote(str(programs))} PYTHONPATH=python {python}"


def cargo(arguments):
    ended = subprocess.run([os.environ.get("CARGO", "cargo"), *arguments], cwd=PROJECT).returncode
    if ended != 0:
        sys.exit(ended)


def build(arguments):
    """Returns the test programs as (package, target, kind, (file, folder of the package)), and the library folders of build scripts."""
    targets = ["--lib", "--bins", "--tests"]
    command = [os.environ.get("CARGO", "cargo"), "test", *arguments, *targets, "--no-run", "--message-format=json-render-diagnostics"]
    programs, folders = [], []
    cargo = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    for line in cargo.stdout:
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            target, folder = message["target"], pathlib.Path(message["manifest_path"]).parent
            # `…/crates/corpus#0.1.0`, or `…/folder#name@0.1.0` if the folder has another name.
            package = message["package_id"].split("#")[1].split("@")[0] if "@" in message["package_id"] else folder.name
            programs.append((package, target["name"], target["kind"][0], (message["executable"], folder)))
        if message["reason"] == "build-script-executed":
            folders += [path.removeprefix("native=") for path in message["linked_paths"] if path.startswith("native=")]
    if cargo.wait() != 0:
        sys.exit(cargo.returncode)
    return programs, folders


def environment(folders):
    """Returns the environment that cargo sets for tests, including the library folders of build scripts."""
    paths = [*dict.fromkeys(folders), os.environ.get("LD_LIBRARY_PATH", "")]
    # Tests do not build the programs again (tests/src/programs.rs).
    return SEED | os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, paths)), "PROGRAMS_ARE_BUILT": "1", "RUSTC_BOOTSTRAP": "1"}


class Runs:
    """Runs test programs and collects their results."""

    def __init__(self, environment):
        self.environment, self.lock = environment, threading.Lock()
        self.failed, self.tests, self.seconds = [], [], []

    def run_all(self, *lists):
        """Runs programs from the first list that has some, until all are empty; other lanes share the lists."""
        while True:
            with self.lock:
                programs = next(filter(None, lists), None)
                if programs is None:
                    return
                program = programs.pop(0)
            self.run(*program)

    def run(self, package, target, kind, place):
        file, folder = place
        begin = time.monotonic()
        environment = self.environment | {"CARGO_MANIFEST_DIR": str(folder), "CARGO_PKG_NAME": package}
        with subprocess.Popen([file, *REPORT_TIME], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as ended:
            output = ended.stdout.read().decode(errors="replace")
            _, status, used = os.wait4(ended.pid, 0)
            ended.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        # Of the processes that the program waited for, too.
        cpu = used.ru_utime + used.ru_stime
        name = package if kind in ("lib", "bin", "proc-macro") and package == target else f"{package}/{target}"
        if kind == "bin":
            name += " (bin)"
        with self.lock:
            self.seconds.append((seconds, cpu, name))
            self.tests += [(float(took), f"{name}: {test}") for test, took in TIMED.findall(output)]
            # A program that exits with 0 and prints no result has not run its tests.
            if ended.returncode != 0 or not RESULT.search(output):
                self.failed.append(f"{name}: exit code {ended.returncode}; to repeat: make test ONLY={package}")
            print(f"     Running {name}, {seconds:.1f} s, CPU {cpu:.1f} s\n{output}", flush=True)

    def doctests(self, folders, arguments):
        """Runs the documentation tests of these folders with cargo."""
        if not folders:
            return
        only = [f"{folder.relative_to(PROJECT)}/src" for folder in folders]
        command = [os.environ.get("CARGO", "cargo"), "test", *arguments, "--doc", "--no-fail-fast", "--", *only]
        ended = subprocess.run(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with self.lock:
            if ended.returncode != 0:
                self.failed.append("documentation tests; to repeat: cargo test --doc")
            print(ended.stdout.decode(errors="replace"), flush=True)

    def beside(self, command):
        """Runs another command and prints its whole output."""
        begin = time.monotonic()
        ended = subprocess.run(command, shell=True, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with self.lock:
            if ended.returncode != 0:
                self.failed.append(f"{command}: exit code {ended.returncode}")
            print(f"     In parallel: {command}, {time.monotonic() - begin:.0f} s\n{ended.stdout.decode(errors='replace')}", flush=True)

    def tell(self, seconds):
        alone, cpu = (sum(place[at] for place in self.seconds) for at in (0, 1))
        print(f"\nThe tests took {seconds:.0f} s, in sequence {alone:.0f} s, CPU {cpu:.0f} s. The {N_SLOWEST} programs with the most CPU time:")
        for took, cpu, name in sorted(self.seconds, key=lambda place: place[1], reverse=True)[:N_SLOWEST]:
            print(f"{cpu:8.1f} s  {name} ({took:.1f} s)")
        print(f"The {N_SLOWEST} slowest tests:")
        for took, test in sorted(self.tests, reverse=True)[:N_SLOWEST]:
            print(f"{took:8.1f} s  {test}")
        for failed in self.failed:
            print(f"FAILED {failed}")


if __name__ == "__main__":
    main()
