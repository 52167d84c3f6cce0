#!/usr/bin/env python3
"""Breaks the code of the exactly-once commit in one place at a time and checks that the named test fails. A mutation that
its test does not detect, or whose code no longer exists, is an error.

usage: tests/mutations.py FOLDER [NAME ...]
  FOLDER  a copy of the project is changed and built here, and kept for the next run
  NAME    mutations to run; default: all
"""

import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass

PROJECT = pathlib.Path(__file__).resolve().parent.parent


@dataclass
class Mutation:
    """A piece of code, its replacement, and the binary and name of the test that must detect it."""

    name: str
    file: str
    old: str
    new: str
    test: tuple[str, str]


# Includes compilation. A test that times out counts as failed.
TIME_LIMIT_S = 1800
SIMULATOR = ("exactly_once", "simulator::every_schedule_of_attempts_gives_the_same_dataset")
MUTATIONS = [
    Mutation(
        "the record is put before the objects",
        "reducer/src/lib.rs",
        """    let etag = put_objects(report, store, &commit, folder.path())?;
    match elect(store, Commit { etag, ..commit }, &task.scratch)? {
""",
        """    let elected = elect(store, commit.clone(), &task.scratch)?;
    put_objects(report, store, &commit, folder.path())?;
    match elected {
""",
        SIMULATOR,
    ),
    Mutation(
        "a committed partition is committed again",
        "reducer/src/lib.rs",
        "    let before = earlier(store, task.partition)?;\n",
        "    let before = earlier(store, task.partition)?.filter(|_| false);\n",
        ("pipe", "exactly_once::a_restarted_reducer_finds_its_commit"),
    ),
    Mutation(
        "a repeated reducer does not compare rows",
        "reducer/src/lib.rs",
        "            agree(store, &unplaced(store, task, &collection), &before, &task.scratch)?;\n",
        "",
        SIMULATOR,
    ),
    Mutation(
        "a losing attempt does not compare rows",
        "reducer/src/commit.rs",
        "            agree(store, &commit, &elected, scratch)?;\n",
        "",
        ("exactly_once", "races::exactly_one_attempt_wins_in_a_folder"),
    ),
    Mutation(
        "any existing record is accepted as the attempt's",
        "crates/store/src/lib.rs",
        "            (_, Some(there)) if there == record => Ok(Recorded::AsGiven),\n",
        "            (_, Some(_)) => Ok(Recorded::AsGiven),\n",
        SIMULATOR,
    ),
    Mutation(
        "a record damaged by the store is accepted",
        "crates/store/src/lib.rs",
        "            (_, Some(there)) if there == record => Ok(Recorded::AsGiven),\n",
        "            (Put::Stored(_), Some(_)) => Ok(Recorded::AsGiven),\n",
        ("exactly_once", "damaged::a_damaged_commit_record_is_reported_as_a_failure"),
    ),
    Mutation(
        "the object that an elected record names is not verified",
        "reducer/src/commit.rs",
        "        None => check_objects(store, ours, elected, scratch),\n",
        "        None => Ok(()),\n",
        ("refused", "reducer::a_damaged_commit_record_stops_the_next_attempt"),
    ),
    Mutation(
        "any existing object is accepted as the attempt's",
        "reducer/src/commit.rs",
        "if there.bytes() == object.bytes && sha256 == object.sha256 {",
        "if there.bytes() == object.bytes || sha256 != object.sha256 {",
        ("pipe", "exactly_once::a_restarted_attempt_with_the_same_name_reuses_its_object"),
    ),
    Mutation(
        "the name of a shard does not contain the attempt",
        "crates/dataset/src/commit.rs",
        'format!("{DATA_PREFIX}part-{partition:05}.{host}.{attempt}.{}", self.extension())',
        'format!("{DATA_PREFIX}part-{partition:05}.{host}{}.{}", &attempt[..0], self.extension())',
        SIMULATOR,
    ),
    Mutation(
        "a put into a folder overwrites",
        "crates/store/src/naming.rs",
        "RenameFlags::NOREPLACE",
        "RenameFlags::empty()",
        ("exactly_once", "races::exactly_one_attempt_wins_in_a_folder"),
    ),
    Mutation(
        "a put into S3 overwrites",
        "crates/store/src/s3/upload.rs",
        '.key(name).if_none_match("*");\n        let request = request\n            .metadata(MARK, mark)\n            .content_length',
        '.key(name);\n        let request = request\n            .metadata(MARK, mark)\n            .content_length',
        ("s3", "a_bucket_meets_the_contract"),
    ),
    Mutation(
        "merge ignores a missing partition",
        "merge/src/commits.rs",
        ".filter(|(_, n, _)| *n > 0)",
        ".filter(|(_, n, _)| *n > 1)",
        SIMULATOR,
    ),
    Mutation(
        "merge does not verify a shard's SHA-256",
        "merge/src/verify.rs",
        "    if found != commit.sha256 {\n",
        "    if found.len() != commit.sha256.len() {\n",
        ("pipe", "exactly_once::an_object_that_differs_from_its_commit_is_refused"),
    ),
    Mutation(
        "merge does not compare with the run's manifest",
        "merge/src/seal.rs",
        "in now.shards.iter().zip(&sealed.shards).enumerate() {",
        "in now.shards.iter().zip(&sealed.shards).enumerate().take(0) {",
        ("pipe", "merge_again::a_merged_run_refuses_another_commit"),
    ),
    Mutation(
        "merge compares with the run's manifest only when it would put one",
        "merge/src/lib.rs",
        "        check_sealed(store, sealed, &seal)?;\n",
        "        let _ = sealed;\n",
        ("refused", "seal::a_commit_changed_after_the_run_manifest_is_refused"),
    ),
    Mutation(
        "leftovers are deleted while a partition is missing",
        "merge/src/gc.rs",
        "            Some(Error::StillRunning { run, found, partitions })\n",
        "            Some(Error::StillRunning { run, found, partitions }).filter(|_| false)\n",
        ("pipe", "exactly_once::gc_deletes_nothing_while_a_partition_is_missing"),
    ),
]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    folder = pathlib.Path(sys.argv[1]).resolve()
    named = set(sys.argv[2:])
    chosen = [mutation for mutation in MUTATIONS if not named or mutation.name in named]
    if not chosen:
        sys.exit("mutations: none of that name, expected one of: " + "; ".join(each.name for each in MUTATIONS))
    tree = copy_of_the_project(folder / "tree")
    environment = os.environ | {"CARGO_TARGET_DIR": str(folder / "target")}

    def passes(test):
        build = ["cargo", "build", "--bins", "--quiet"]
        if subprocess.run(build, cwd=tree, env=environment).returncode != 0:
            sys.exit("mutations: does not compile; see the lines above")
        binary, name = test
        command = ["cargo", "test", "--quiet", "--test", binary, "--", "--exact", name]
        try:
            ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            return False
        if "1 passed" not in ran.stdout and "1 failed" not in ran.stdout:
            sys.exit(f"mutations: {binary} {name} did not run:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return ran.returncode == 0

    for test in sorted({mutation.test for mutation in chosen}):
        if not passes(test):
            sys.exit(f"mutations: {' '.join(test)} fails without any mutation")
    survivors = []
    for mutation in chosen:
        path = tree / mutation.file
        whole = path.read_text()
        if whole.count(mutation.old) != 1:
            sys.exit(f"mutations: {mutation.name}: {mutation.file} contains the code to replace {whole.count(mutation.old)} times, expected 1")
        path.write_text(whole.replace(mutation.old, mutation.new))
        survived = passes(mutation.test)
        path.write_text(whole)
        print(f"{'SURVIVED' if survived else 'detected'} {mutation.name}: {' '.join(mutation.test)}", flush=True)
        if survived:
            survivors.append(mutation.name)
    if survivors:
        sys.exit(f"mutations: not detected: {'; '.join(survivors)}")


def copy_of_the_project(tree):
    """Copies all files tracked by git, in their present state; unchanged files keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True, text=True).stdout
    names = set(filter(None, listed.split("\0")))
    for path in tree.rglob("*"):
        name = path.relative_to(tree)
        if path.is_file() and str(name) not in names and name.parts[0] != ".deps":
            path.unlink()
    for name in sorted(names):
        source, target = PROJECT / name, tree / name
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    if not (tree / ".deps").exists():
        (tree / ".deps").symlink_to(PROJECT / ".deps")
    return tree


if __name__ == "__main__":
    main()
