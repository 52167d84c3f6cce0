"""Measures accuracy on IMDB's official split: several seeds of the trainer and of PyTorch (pytorch.py) with the same settings.

usage: imdb.py DATA PROGRAMS PYTHON GENSIM WORK [RECIPE[=SEEDS] ...]
  DATA      folder of train.jsonl.gz and test.jsonl.gz, lines with reviewText and overall, and of unsup.txt.gz,
            unlabelled reviews, one per line
  PROGRAMS  folder of mapper, reducer, merge and trainer
  PYTHON    Python with PyTorch, numpy and h5py
  GENSIM    Python with gensim for vectors.py, and scipy
  WORK      folder of datasets, models and results.jsonl; runs with a result are skipped
  RECIPE    original, modern, pretrained; default: original and modern
  SEEDS     1 to 10; default: 10

A linear model of the training split (teacher.py) labels the unlabelled reviews, and both sides train on these and the
training split together. Embeddings start from word vectors of all these reviews, the same for both sides. The vocabulary
is that of the training split. The recipe `pretrained` starts from a pretrained model of the same reviews instead of
vectors, and is not run in PyTorch. Reviews whose text is also in the test split are excluded from training, from the
linear model and from the vectors.

The settings were chosen on a tenth of the training rows; here all training rows are used, and the test split only for
evaluation. A random tenth is not suitable, because adjacent reviews of a label are about one film, whose names would be in
both splits. The first 1,250 reviews of each label are used instead. Each run has one thread, and one run per core runs at a
time, so that the results do not depend on the number of cores.
"""

import gzip
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

SEEDS = 10
# Student's t for 95 % and n seeds on each side, n from 2.
T_95 = [4.303, 2.776, 2.447, 2.306, 2.228, 2.179, 2.145, 2.120, 2.101]
# The interval of the difference must be within one percentage point.
DIFFERENCE_MAX = 0.01
LIMIT_S = 14400
# Keeps large blocks in the process; otherwise they are mapped and unmapped in every step.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
    "THP_MEM_ALLOC_ENABLE": "1",
}


@dataclass
class Recipe:
    reducer: list[str]
    merge: list[str]
    fit: list[str]
    pretrain: list[str] = field(default_factory=list)


COMMON = ["--pool", "mean-max", "--layers", "1", "--hidden", "128", "--rate", "0.002", "--decay", "linear"]
COMMON += ["--dropout-embedding", "0.4", "--dropout-words", "0.1"]
# Defaults of pytorch.py, but not of `trainer fit`.
COMMON += ["--dropout-head", "0", "--validation-fraction", "0"]
WIDE = ["--layers", "1", "--embedding", "128", "--hidden", "256", "--tokens", "400", "--batch", "64"]
RECIPES = {
    # The preparation of the original system: the first 100 words without stop words, a vocabulary of 10,000 words.
    "original": Recipe(["--profile", "original"], [], COMMON + ["--tokens", "100", "--batch", "128", "--epochs", "3"]),
    # All words; of a longer review the first and the last 200.
    "modern": Recipe(
        ["--profile", "modern"],
        ["--vocabulary-size", "30000"],
        COMMON + ["--tokens", "400", "--batch", "64", "--epochs", "2"],
    ),
    "pretrained": Recipe(
        ["--profile", "modern"],
        ["--vocabulary-size", "30000"],
        WIDE
        + ["--pool", "mean-max", "--rate", "0.001", "--decay", "linear", "--epochs", "2", "--dropout-words", "0"]
        + ["--dropout-head", "0", "--validation-fraction", "0"],
        WIDE + ["--rate", "0.002", "--decay", "linear", "--epochs", "4"],
    ),
}
DEFAULT = ["original", "modern"]


def main() -> None:
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    data, programs, python, gensim = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    work = Path(sys.argv[5]).resolve()
    asked = [argument.partition("=") for argument in sys.argv[6:] or DEFAULT]
    seeds = {name: int(count or SEEDS) for name, _, count in asked}
    if not RECIPES.keys() >= seeds.keys() or not all(1 <= count <= SEEDS for count in seeds.values()):
        sys.exit(__doc__)
    work.mkdir(parents=True, exist_ok=True)
    label(data, programs, gensim, work)
    for name, count in seeds.items():
        folder = work / name
        folder.mkdir(exist_ok=True)
        prepare(data, programs, folder, RECIPES[name])
        if RECIPES[name].pretrain:
            pretrain(programs, folder, RECIPES[name])
        else:
            make_vectors(gensim, folder)
        compare(programs, python, folder, name, RECIPES[name], range(1, count + 1))


def label(data: Path, programs: Path, gensim: str, work: Path) -> None:
    """Makes teacher.jsonl, the unlabelled reviews with labels, and the records for it."""
    out = work / "teacher.jsonl"
    if out.exists():
        return
    with gzip.open(data / "unsup.txt.gz", "rt", encoding="utf-8", errors="replace", newline="\n") as texts:
        # The mapper requires a rating, which is not used.
        unlabelled = [json.dumps({"reviewText": text.rstrip("\n"), "overall": 1}) for text in texts]
    reviews = {"training": read(data, "train"), "unlabelled": "\n".join(unlabelled).encode()}
    tested = {text_of(record) for record in records(programs, read(data, "test"))}
    for name, lines in reviews.items():
        kept = [record for record in records(programs, lines) if text_of(record) not in tested]
        (work / f"{name}.records").write_bytes(b"".join(kept))
    script = str(Path(__file__).with_name("teacher.py"))
    making = [gensim, script, f"{work}/training.records", f"{work}/unlabelled.records", str(out)]
    subprocess.run(making, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, timeout=LIMIT_S)


def read(data: Path, part: str) -> bytes:
    return gzip.open(data / f"{part}.jsonl.gz").read()


def records(programs: Path, lines: bytes) -> list[bytes]:
    mapped = subprocess.run([f"{programs}/mapper"], input=lines, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
    return mapped.stdout.splitlines(keepends=True)


def text_of(record: bytes) -> bytes:
    return record.partition(b"\t")[0]


def prepare(data: Path, programs: Path, folder: Path, recipe: Recipe) -> None:
    """Makes labelled.h5, the training split; with its vocabulary test.h5, and train.h5, which includes teacher.jsonl."""
    teacher = folder.with_name("teacher.jsonl").read_bytes()
    shared = ["--vocabulary", str(folder / "labelled.h5")]
    make_dataset(programs, folder / "labelled", read(data, "train"), recipe, recipe.merge)
    make_dataset(programs, folder / "test", read(data, "test"), recipe, shared)
    lines = read(data, "train") + teacher
    make_dataset(programs, folder / "train", lines, recipe, shared + ["--without", str(folder / "test.h5")])


def make_dataset(programs: Path, out: Path, lines: bytes, recipe: Recipe, merge: list[str]) -> None:
    """Makes OUT.h5, OUT.run and OUT.counts.json."""
    if out.with_suffix(".h5").exists():
        return
    shutil.rmtree(f"{out}.run", ignore_errors=True)
    reducer = [f"{programs}/reducer", "--run", f"{out}.run", "--partition", "0", "--partitions", "1"]
    pipe(lines, [[f"{programs}/mapper", "--counts", f"{out}.counts.json"], ["sort"], reducer + recipe.reducer])
    command = [f"{programs}/merge", "--run", f"{out}.run", "--out", f"{out}.h5", "--counts", f"{out}.counts.json"]
    subprocess.run(command + merge, check=True)


def pipe(lines: bytes, stages: list[list[str]]) -> None:
    environment = os.environ | {"LC_ALL": "C"}
    for stage in stages:
        options = {"stdout": subprocess.PIPE, "env": environment, "check": True, "timeout": LIMIT_S}
        lines = subprocess.run(stage, input=lines, **options).stdout


def make_vectors(gensim: str, folder: Path) -> None:
    """Makes vectors.vec from the cleaned texts of the training split and of the unlabelled reviews."""
    out = folder / "vectors.vec"
    if out.exists():
        return
    texts = b"".join(folder.with_name(f"{name}.records").read_bytes() for name in ("training", "unlabelled"))
    script = str(Path(__file__).with_name("vectors.py"))
    making = [gensim, script, str(folder / "train.manifest.json"), str(out)]
    subprocess.run(making, input=texts, check=True, timeout=LIMIT_S)


def pretrain(programs: Path, folder: Path, recipe: Recipe) -> None:
    """Makes words/model from the texts of train.h5."""
    if not (folder / "words/model").exists():
        shutil.rmtree(folder / "words", ignore_errors=True)
        call([f"{programs}/trainer", "pretrain", f"{folder}/train.h5", "--out", f"{folder}/words"] + recipe.pretrain, os.cpu_count())


def compare(programs: Path, python: str, folder: Path, name: str, recipe: Recipe, seeds: range) -> None:
    results = folder / "results.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    accuracies = {(run["by"], run["seed"]): run["accuracy"] for run in done}

    sides = ("trainer",) if recipe.pretrain else ("trainer", "PyTorch")
    begin = "words/model" if recipe.pretrain else "vectors.vec"
    # Words without a vector start as in PyTorch.
    start = [] if recipe.pretrain else ["--embedding-std", "1"]

    def run(by: str, seed: int) -> None:
        test = ["--init-from", f"{folder}/{begin}", "--test", f"{folder}/test.h5", "--seed", str(seed)]
        if by == "trainer":
            out = folder / f"seed-{seed}"
            shutil.rmtree(out, ignore_errors=True)
            call([f"{programs}/trainer", "fit", f"{folder}/train.h5", "--out", str(out)] + recipe.fit + start + test)
            lines = (out / "metrics.jsonl").read_text()
        else:
            script = Path(__file__).with_name("pytorch.py")
            lines = call([python, str(script), f"{folder}/train.h5"] + recipe.fit + test)
        accuracy = json.loads(lines.splitlines()[-1])["metrics"]["accuracy"]
        accuracies[by, seed] = accuracy
        with results.open("a") as file:
            file.write(json.dumps({"by": by, "seed": seed, "accuracy": accuracy}) + "\n")

    wanted = [(by, seed) for seed in seeds for by in sides if (by, seed) not in accuracies]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda asked: run(*asked), wanted))

    print(f"{name}, {len(seeds)} seeds: trainer fit train.h5 --test test.h5 --init-from {begin}", *recipe.fit)
    of_sides = [[accuracies[by, seed] for seed in seeds] for by in sides]
    for by, found in zip(sides, of_sides):
        deviation = f"{statistics.stdev(found):.4f}" if len(found) > 1 else "unknown"
        print(f"  {by}: mean {statistics.mean(found):.4f}, deviation {deviation}", end="")
        print(f", {min(found):.4f}-{max(found):.4f}: {' '.join(f'{accuracy:.4f}' for accuracy in found)}")
    if len(sides) < 2 or len(seeds) < 2:
        return
    ours, theirs = of_sides
    difference = statistics.mean(ours) - statistics.mean(theirs)
    error = math.sqrt((statistics.variance(ours) + statistics.variance(theirs)) / len(seeds))
    low, high = difference - T_95[len(seeds) - 2] * error, difference + T_95[len(seeds) - 2] * error
    is_within = -DIFFERENCE_MAX <= low and high <= DIFFERENCE_MAX
    print(f"  verdict: difference {difference:+.4f}, 95 % from {low:+.4f} to {high:+.4f}", end="")
    print(f", {'within' if is_within else 'NOT within'} one point", flush=True)


def call(command: list[str], threads: int = 1) -> str:
    environment = os.environ | ALLOCATOR | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


main()
