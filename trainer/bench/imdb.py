"""Accuracy on IMDB's official split: ten seeds of the trainer, ten of PyTorch (pytorch.py) with the same settings.

usage: imdb.py DATA PROGRAMS PYTHON GENSIM WORK [RECIPE ...]
  DATA      the folder with train.jsonl.gz and test.jsonl.gz, lines with reviewText and overall, and unsup.txt.gz,
            unlabelled reviews, one a line
  PROGRAMS  the folder of mapper, reducer, merge and trainer
  PYTHON    a Python that has PyTorch, numpy and h5py
  GENSIM    a Python that has the gensim of vectors.py
  WORK      a folder for datasets, models and results.jsonl; runs whose result is there are not done again
  RECIPE    default, modern; all without any

The settings are chosen on a tenth of the training rows; here all of them are trained on, and the test part is only
tested on. Rows at random are no good tenth: neighbours among the reviews of a label are of one film, so a film's
names would be on both sides. The first 1,250 reviews of each label are. Embeddings begin as word vectors of the
training part and the unlabelled reviews, which both sides share. Each run has one thread, and as many runs go side by
side as there are cores: so the results do not depend on the number of cores.
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
from dataclasses import dataclass
from pathlib import Path

SEEDS = range(1, 11)
# Student's t for 95 % with 18 degrees of freedom: two times ten seeds.
T_95 = 2.101
LIMIT_S = 7200


@dataclass
class Recipe:
    reducer: list[str]
    merge: list[str]
    fit: list[str]


COMMON = ["--pool", "mean-max", "--hidden", "64", "--rate", "0.002", "--decay", "linear"]
COMMON += ["--dropout-embedding", "0.5", "--dropout-words", "0.3"]
RECIPES = {
    # What mapper, reducer, merge and trainer have as defaults: the first 100 words without stop words, 10,000 words.
    "default": Recipe([], [], COMMON + ["--batch", "128", "--epochs", "4"]),
    # All words, the first and the last 200 of a longer review.
    "modern": Recipe(
        ["--profile", "modern"],
        ["--vocabulary-size", "30000"],
        COMMON + ["--tokens", "400", "--batch", "64", "--epochs", "3"],
    ),
}


def main() -> None:
    if len(sys.argv) < 6 or not RECIPES.keys() >= set(sys.argv[6:]):
        sys.exit(__doc__)
    data, programs, python, gensim = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    work = Path(sys.argv[5]).resolve()
    for name in sys.argv[6:] or RECIPES:
        folder = work / name
        folder.mkdir(parents=True, exist_ok=True)
        prepare(data, programs, folder, RECIPES[name])
        make_vectors(data, programs, gensim, folder)
        compare(programs, python, folder, name, RECIPES[name])


def prepare(data: Path, programs: Path, folder: Path, recipe: Recipe) -> None:
    """train.h5, and test.h5 with its vocabulary."""
    for part, vocabulary in (("train", recipe.merge), ("test", ["--vocabulary", str(folder / "train.h5")])):
        if (folder / f"{part}.h5").exists():
            continue
        shutil.rmtree(folder / f"{part}.run", ignore_errors=True)
        reducer = [f"{programs}/reducer", "--run", f"{folder}/{part}.run", "--partition", "0", "--partitions", "1"]
        stages = [
            ["zcat", f"{data}/{part}.jsonl.gz"],
            [f"{programs}/mapper", "--counts", f"{folder}/{part}.counts.json"],
            ["sort"],
            reducer + recipe.reducer,
        ]
        pipe(stages)
        merge = [f"{programs}/merge", "--run", f"{folder}/{part}.run", "--out", f"{folder}/{part}.h5"]
        subprocess.run(merge + ["--counts", f"{folder}/{part}.counts.json"] + vocabulary, check=True)


def make_vectors(data: Path, programs: Path, gensim: str, folder: Path) -> None:
    """vectors.vec, of the training part's texts and of the unlabelled ones, cleaned as the dataset's are."""
    out = folder / "vectors.vec"
    if out.exists():
        return
    reviews = gzip.open(data / "train.jsonl.gz").read()
    with gzip.open(data / "unsup.txt.gz", "rt", encoding="utf-8", errors="replace", newline="\n") as texts:
        # The mapper wants a rating, of which nothing here makes use.
        lines = [json.dumps({"reviewText": text.rstrip("\n"), "overall": 1}) for text in texts]
    mapped = subprocess.run(
        [f"{programs}/mapper"], input=reviews + "\n".join(lines).encode(), stdout=subprocess.PIPE, check=True
    )
    script = str(Path(__file__).with_name("vectors.py"))
    making = [gensim, script, str(folder / "train.manifest.json"), str(out)]
    subprocess.run(making, input=mapped.stdout, check=True, timeout=LIMIT_S)


def pipe(stages: list[list[str]]) -> None:
    processes: list[subprocess.Popen] = []
    for stage in stages:
        source = processes[-1].stdout if processes else subprocess.DEVNULL
        environment = os.environ | {"LC_ALL": "C"}
        processes.append(subprocess.Popen(stage, stdin=source, stdout=subprocess.PIPE, env=environment))
    processes[-1].communicate(timeout=LIMIT_S)
    if any(process.wait() != 0 for process in processes):
        sys.exit(f"{[process.returncode for process in processes]}: exit codes of {stages}")


def compare(programs: Path, python: str, folder: Path, name: str, recipe: Recipe) -> None:
    results = folder / "results.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    accuracies = {(run["by"], run["seed"]): run["accuracy"] for run in done}

    def run(by: str, seed: int) -> None:
        test = ["--init-from", f"{folder}/vectors.vec", "--test", f"{folder}/test.h5", "--seed", str(seed)]
        if by == "trainer":
            out = folder / f"seed-{seed}"
            shutil.rmtree(out, ignore_errors=True)
            call([f"{programs}/trainer", "fit", f"{folder}/train.h5", "--out", str(out)] + recipe.fit + test)
            lines = (out / "metrics.jsonl").read_text()
        else:
            script = Path(__file__).with_name("pytorch.py")
            lines = call([python, str(script), f"{folder}/train.h5"] + recipe.fit + test)
        accuracy = json.loads(lines.splitlines()[-1])["metrics"]["accuracy"]
        accuracies[by, seed] = accuracy
        with results.open("a") as file:
            file.write(json.dumps({"by": by, "seed": seed, "accuracy": accuracy}) + "\n")

    wanted = [(by, seed) for seed in SEEDS for by in ("trainer", "PyTorch") if (by, seed) not in accuracies]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda asked: run(*asked), wanted))

    print(f"{name}: trainer fit train.h5 --test test.h5 --init-from vectors.vec {' '.join(recipe.fit)}")
    ours, theirs = ([accuracies[by, seed] for seed in SEEDS] for by in ("trainer", "PyTorch"))
    for by, found in (("trainer", ours), ("PyTorch", theirs)):
        print(f"  {by}: mean {statistics.mean(found):.4f}, deviation {statistics.stdev(found):.4f}", end="")
        print(f", {min(found):.4f}-{max(found):.4f}: {' '.join(f'{accuracy:.4f}' for accuracy in found)}")
    difference = statistics.mean(ours) - statistics.mean(theirs)
    half = T_95 * math.sqrt((statistics.variance(ours) + statistics.variance(theirs)) / len(SEEDS))
    print(f"  difference {difference:+.4f}, 95 % from {difference - half:+.4f} to {difference + half:+.4f}", flush=True)


def call(command: list[str]) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


main()
