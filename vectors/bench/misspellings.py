"""Neighbours of misspelled words: char-lstm beside fastText's subwords.

usage: misspellings.py VECTORS TEXT WORK [--count N] [--seed N] [--epochs N] [--threads N] [--flags FLAGS] [--list]
  VECTORS  the program
  TEXT     a cleaned text, one sentence per line: cleaned.txt of train.py
  WORK     a folder, in which the models of a first run are kept for the next one

Draws words of at least five letters among the 2,000 most frequent ones, and changes each by one edit: two neighbouring
letters swapped, a letter dropped, doubled or replaced, each a quarter. A result that is a word of the text is drawn again.
A model finds the word if it is among the ten nearest words of its misspelling. Both train 100 dimensions, window 5,
5 negative samples, minimum count 5, on the same text. Requires fasttext.
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import time
from pathlib import Path

MIN_COUNT = 5
TOP = 10

FASTTEXT = """
import sys
import fasttext
text, out, threads, epochs = sys.argv[1:]
model = fasttext.train_unsupervised(text, model="skipgram", dim=100, ws=5, neg=5, minCount=5, epoch=int(epochs), lr=0.05,
                                    t=1e-3, minn=3, maxn=6, thread=int(threads), verbose=0)
model.save_model(out)
"""


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("vectors")
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flags", default="", help="further flags of vectors train")
    parser.add_argument("--list", action="store_true", help="print the misspellings and end")
    arguments = parser.parse_args()
    pairs = misspellings(arguments.text, arguments.count, arguments.seed)
    if arguments.list:
        for word, wrong in pairs:
            print(word, wrong)
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    print("| model | seconds of training | among the ten nearest | nearest |\n|---|---|---|---|")
    for name, out, command in commands(arguments):
        seconds = "kept"
        if not out.exists():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = f"{time.perf_counter() - began:.1f}"
        ranks = [rank for rank in ranks_of(arguments.vectors, out, pairs) if rank is not None]
        first = sum(rank == 0 for rank in ranks)
        print(f"| {name} | {seconds} | {len(ranks)} of {len(pairs)} | {first} |", flush=True)


def misspellings(text: Path, count: int, seed: int) -> list[tuple[str, str]]:
    counts = collections.Counter(word for line in text.open(encoding="utf-8") for word in line.split())
    known = {word for word, n in counts.items() if n >= MIN_COUNT}
    frequent = sorted(known, key=lambda word: (-counts[word], word))
    long = [word for word in frequent if len(word) >= 5 and word.isalpha()][:2000]
    letters = sorted({letter for word in long for letter in word})
    draw = random.Random(seed)
    pairs = []
    for number, word in enumerate(draw.sample(long, count)):
        wrong = word
        while wrong == word or wrong in counts:
            wrong = changed(word, number % 4, letters, draw)
        pairs.append((word, wrong))
    return pairs


def changed(word: str, edit: int, letters: list[str], draw: random.Random) -> str:
    at = draw.randrange(len(word) - 1) if edit == 0 else draw.randrange(len(word))
    match edit:
        case 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case _:
            return word[:at] + draw.choice(letters) + word[at + 1 :]


def commands(arguments):
    text, threads, seed = str(arguments.text), str(arguments.threads), str(arguments.seed)
    epochs, work = str(arguments.epochs), arguments.work
    ours, theirs = work / "char-lstm", work / "subwords.bin"
    embed = [arguments.vectors, "train", "--model", "char-lstm", "--input", text, "--out", str(ours), "--epochs", epochs]
    yield "char-lstm", ours, [*embed, "--threads", threads, "--seed", seed, *arguments.flags.split()]
    yield "fastText, subwords", theirs, [sys.executable, "-c", FASTTEXT, text, str(theirs), threads, epochs]


def ranks_of(vectors: str, model: Path, pairs: list[tuple[str, str]]) -> list[int | None]:
    """The place of each right word among the nearest ones."""
    wrong = [wrong for _, wrong in pairs]
    command = [vectors, "neighbours", str(model), *wrong, "--top", str(TOP), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    ranks = []
    for (word, _), line in zip(pairs, done.stdout.splitlines(), strict=True):
        near = [neighbour["word"] for neighbour in json.loads(line)["neighbours"]]
        ranks.append(near.index(word) if word in near else None)
    return ranks


main()
