"""Trains an LSTM on the probabilities of an n-gram model for IMDB's unlabelled reviews, and evaluates both.

usage: taught.py DATA PROGRAMS WORK PART [SEEDS [FLAG ...]]
  DATA      folder of train.jsonl.gz and test.jsonl.gz, lines with reviewText and overall, and of unsup.txt.gz,
            unlabelled reviews, one per line
  PROGRAMS  folder of sentimill, ngrams and trainer
  WORK      folder of datasets and models; existing ones are used again
  PART      the rows that are tested: A or B, parts of the training split on which settings are chosen, or test, once
  SEEDS     number of LSTMs; default: 1
  FLAG      flags of `trainer fit` in place of the default ones

Requires numpy, h5py and pyarrow.

Part A has the first 1,250 reviews of each label of the training split, part B the reviews 6,250 to 7,499. Neighbouring
reviews are about the same film, so a random part would be too easy.

The teacher is `ngrams train`: it reads lines with their punctuation. The LSTM reads cleaned texts. `sentimill
--origins` names the lines of each row, by which the probabilities of lines become those of rows. Reviews whose text is in
the tested part are excluded from both trainings.
"""

import gzip
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet

PART_ROWS = 1250
FIRST_OF = {"A": 0, "B": 6250}
TEACHER = ["--format", "fasttext"]
VOCABULARY_SIZE = "30000"
STUDENT = ["--pool", "mean-max", "--layers", "1", "--hidden", "128", "--batch", "64", "--epochs", "3", "--rate", "0.002"]
STUDENT += ["--embedding-std", "1"]
STUDENT += ["--decay", "linear", "--dropout-words", "0.2", "--dropout-head", "0.3", "--validation-fraction", "0"]
LIMIT_S = 14400


def main() -> None:
    if len(sys.argv) < 5 or sys.argv[4] not in ["A", "B", "test"]:
        sys.exit(__doc__)
    data, programs, work, part = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    seeds = range(1, 1 + int(sys.argv[5] if len(sys.argv) > 5 else 1))
    folder = work / part
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(data, folder, part)
    make_datasets(programs, folder)
    teach(programs, folder)
    print(f"teacher on {part}: {of_teacher(folder):.4f}", flush=True)
    found = [of_student(programs, folder, seed, sys.argv[6:] or STUDENT) for seed in seeds]
    deviation = f", deviation {statistics.stdev(found):.4f}" if len(found) > 1 else ""
    print(f"student on {part}: {statistics.mean(found):.4f}{deviation} ({' '.join(f'{one:.4f}' for one in found)})")


def write_lines(data: Path, folder: Path, part: str) -> None:
    """Writes train.txt, test.txt and unlabelled.txt, lines of fastText's format. Labels 1 and 2 are 1 and 5 stars."""
    train = reviews(data / "train.jsonl.gz")
    if part == "test":
        test = reviews(data / "test.jsonl.gz")
    else:
        number, numbers = {1: 0, 2: 0}, []
        for label, _ in train:
            numbers.append(number[label])
            number[label] += 1
        first = FIRST_OF[part]
        is_tested = [first <= number < first + PART_ROWS for number in numbers]
        test = [review for review, tested in zip(train, is_tested) if tested]
        train = [review for review, tested in zip(train, is_tested) if not tested]
    with gzip.open(data / "unsup.txt.gz", "rt", encoding="utf-8", errors="replace", newline="\n") as texts:
        unlabelled = [(1, " ".join(text.split())) for text in texts]
    for name, lines in (("train", train), ("test", test), ("unlabelled", unlabelled)):
        text = "".join(f"__label__{label} {text}\n" for label, text in lines)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def reviews(path: Path) -> list[tuple[int, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [(1 + (review["overall"] >= 4), " ".join(review["reviewText"].split())) for review in found]


def make_datasets(programs: Path, folder: Path) -> None:
    """Makes test.h5 with the vocabulary of labelled.h5, and train.h5 and unlabelled.h5 without its texts."""
    dataset(programs, folder, "labelled", "train", ["--vocabulary-size", VOCABULARY_SIZE])
    shared = ["--vocabulary", str(folder / "labelled.h5")]
    dataset(programs, folder, "test", "test", shared)
    without = [*shared, "--without", str(folder / "test.h5")]
    dataset(programs, folder, "train", "train", without)
    dataset(programs, folder, "unlabelled", "unlabelled", without)


def dataset(programs: Path, folder: Path, name: str, lines: str, flags: list[str]) -> None:
    if not (folder / f"{name}.h5").exists():
        command = [f"{programs}/sentimill", f"{folder}/{lines}.txt", "--format", "fasttext", "--quiet"]
        call([*command, "--out", f"{folder}/{name}.h5", "--origins", f"{folder}/{name}.parquet", *flags])


def teach(programs: Path, folder: Path) -> None:
    """Trains the teacher on the lines of train.h5, and writes its probabilities of all lines and unlabelled.npy."""
    if not (folder / "teacher").exists():
        lines = (folder / "train.txt").read_bytes().split(b"\n")
        _, of_line = rows_of(folder, "train")
        kept = b"".join(lines[line] + b"\n" for line in np.flatnonzero(of_line >= 0))
        (folder / "taught.txt").write_bytes(kept)
        call([f"{programs}/ngrams", "train", "--input", f"{folder}/taught.txt", "--out", f"{folder}/teacher", *TEACHER])
    for name in ("test", "unlabelled"):
        out = folder / f"{name}.npy"
        if not out.exists():
            command = [f"{programs}/ngrams", "predict", f"{folder}/teacher", f"{folder}/{name}.txt", *TEACHER]
            answers = map(json.loads, call(command).splitlines())
            write_soft(folder, name, np.array([probability(answer) for answer in answers]))


def probability(answer: dict) -> float:
    """Returns the probability of label 2, the second one; of a line without a prediction 0.5."""
    return answer.get("probability", 0.5)


def rows_of(folder: Path, name: str) -> tuple[int, np.ndarray]:
    """Returns the number of rows of a dataset, and the row of each line or -1."""
    with h5py.File(folder / f"{name}.h5") as file:
        hashes = file["hash"][:]
    table = pyarrow.parquet.read_table(folder / f"{name}.parquet", columns=["hash", "line"])
    found, lines = table["hash"].to_numpy(), table["line"].to_numpy() - 1
    row = np.searchsorted(hashes, found).clip(max=len(hashes) - 1)
    of_line = np.full(int(lines.max()) + 1, -1)
    known = hashes[row] == found
    of_line[lines[known]] = row[known]
    return len(hashes), of_line


def write_soft(folder: Path, name: str, positive: np.ndarray) -> None:
    """Writes the mean probabilities of each row's lines, with the id digest of the dataset."""
    n_rows, row = rows_of(folder, name)
    positive = positive[: len(row)][row >= 0]
    row = row[row >= 0]
    sums, counts = np.bincount(row, positive, n_rows), np.bincount(row, minlength=n_rows)
    mean = np.float32(sums / counts)
    with h5py.File(folder / f"{name}.h5") as file:
        digest = file.attrs["id_digest"]
    digest = digest.decode() if isinstance(digest, bytes) else str(digest)
    unfinished = folder / f"{name}.npy.unfinished"
    with open(unfinished, "wb") as file:
        np.save(file, np.stack([1 - mean, mean], 1))
        file.write(f"\n{json.dumps({'id_digest': digest})}\n".encode())
    unfinished.rename(folder / f"{name}.npy")


def of_teacher(folder: Path) -> float:
    """Returns the teacher's accuracy on the rows of test.h5."""
    with h5py.File(folder / "test.h5") as file:
        labels = file["label"][:]
    return float(((np.load(folder / "test.npy")[:, 1] > 0.5) == (labels == 1)).mean())


def of_student(programs: Path, folder: Path, seed: int, flags: list[str]) -> float:
    """Trains an LSTM and returns its accuracy on test.h5."""
    out = folder / f"student-{seed}"
    command = [f"{programs}/trainer", "fit", f"{folder}/train.h5", "--unlabelled", f"{folder}/unlabelled.h5"]
    command += ["--soft-labels", f"{folder}/unlabelled.npy", "--test", f"{folder}/test.h5", "--seed", str(seed)]
    call([*command, "--out", str(out), "--force", *flags])
    return json.loads((out / "evaluation.json").read_text())["metrics"]["accuracy"]


def call(command: list[str]) -> str:
    environment = {"OMP_NUM_THREADS": "1"} | os.environ
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout


main()
