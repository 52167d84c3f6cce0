"""Word vectors of `vectors train` beside gensim and the fastText program, in turn.

usage: train.py VECTORS TEXT.gz WORK WORDS [--runs N] [--threads N] [--epochs N] [--char-ngrams]
  VECTORS  the program
  TEXT.gz  a text, one sentence per line; generated: a synthetic one
  WORK     a folder; the cleaned text and the last vectors of each are kept there
  WORDS    a folder of word-similarity sets: EN-WS-353-ALL.txt, EN-MEN-TR-3k.txt, EN-SIMLEX-999.txt; none: no similarity

All three train 100 dimensions, window 5, 5 negative samples, minimum count 5, 5 epochs, on the same cleaned text, with
another seed in each run. With --char-ngrams, words have character n-grams of 3 to 6 characters in 2,000,000 rows, and
gensim's model is FastText. Words per second are tokens times epochs over the whole command: reading, counting, training
and saving. Requires gensim and fasttext.
"""

import argparse
import gzip
import itertools
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

SETS = ["EN-WS-353-ALL", "EN-MEN-TR-3k", "EN-SIMLEX-999"]

GENSIM = """
import sys
from gensim.models import FastText, Word2Vec
text, out, threads, seed, epochs, longest = sys.argv[1:]
more = {"min_n": 3, "max_n": int(longest), "bucket": 2_000_000} if longest != "0" else {}
model = (FastText if more else Word2Vec)(corpus_file=text, vector_size=100, window=5, negative=5, min_count=5,
                                         epochs=int(epochs), sg=1, workers=int(threads), seed=int(seed), **more)
model.wv.save_word2vec_format(out, binary=True)
"""
FASTTEXT = """
import sys
import fasttext
text, out, threads, seed, epochs, longest = sys.argv[1:]
model = fasttext.train_unsupervised(text, model="skipgram", dim=100, ws=5, neg=5, minCount=5, epoch=int(epochs), lr=0.025,
                                    t=1e-3, minn=3 if longest != "0" else 0, maxn=int(longest), thread=int(threads),
                                    verbose=0)
model.save_model(out)
"""


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("vectors")
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("words")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--char-ngrams", action="store_true")
    arguments = parser.parse_args()
    sets = SETS if arguments.words != "none" else []
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = arguments.work / "cleaned.txt"
    if not text.exists():
        generate(text) if arguments.text == "generated" else clean(arguments.text, text)
    n_tokens = arguments.epochs * sum(len(line.split()) for line in text.open())
    seconds: dict[str, list[float]] = {}
    scores: dict[str, list[list[float]]] = {}
    for seed in range(1, 1 + arguments.runs):
        for name, command, out in commands(arguments, text, seed):
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            scores.setdefault(name, []).append(similarity(arguments, sets, out))
    print("| program | seconds | words/s | times as fast | " + " | ".join(sets) + " |")
    print("|---" * (4 + len(sets)) + "|")
    ours = statistics.median(seconds["vectors"])
    for name, of in seconds.items():
        median = statistics.median(of)
        ratio = f"{median / ours:.1f}" if name != "vectors" else ""
        cells = [f"{statistics.mean(one):.4f} ({min(one):.4f}–{max(one):.4f})" for one in zip(*scores[name])]
        spread = f"{median:.1f} ({min(of):.1f}–{max(of):.1f})"
        print(f"| {name} | {spread} | {n_tokens / median:,.0f} | {ratio} | " + " | ".join(cells) + " |")


def clean(source: str, to: Path) -> None:
    """Writes lines of words in lower case. The cleaning of vectors leaves them unchanged."""
    with gzip.open(source, "rt", encoding="utf-8") as lines, to.open("w") as out:
        for line in lines:
            words = re.findall("[a-z']+", line.lower().replace("’", "'"))
            words = [stripped for word in words if (stripped := word.strip("'"))]
            if words:
                out.write(" ".join(words) + "\n")


def generate(to: Path) -> None:
    """Writes 2 million words by Zipf's law: for speed, not for similarity."""
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(60_000)]
    weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(words))))
    with to.open("w") as out:
        for _ in range(100_000):
            out.write(" ".join(draw.choices(words, cum_weights=weights, k=20)) + "\n")


def commands(arguments, text: Path, seed: int):
    threads, work = str(arguments.threads), arguments.work
    ours = work / "vectors"
    shutil.rmtree(ours, ignore_errors=True)
    embed = [arguments.vectors, "train", "--input", str(text), "--out", str(ours)]
    embed += ["--epochs", str(arguments.epochs), *(["--char-ngrams", "3-6"] if arguments.char_ngrams else [])]
    yield "vectors", [*embed, "--threads", threads, "--seed", str(seed)], ours
    more = [threads, str(seed), str(arguments.epochs), "6" if arguments.char_ngrams else "0"]
    for name, script, out in (("gensim", GENSIM, work / "gensim.w2v"), ("fastText", FASTTEXT, work / "fasttext.bin")):
        yield name, [sys.executable, "-c", script, str(text), str(out), *more], out


def similarity(arguments, sets: list[str], model: Path) -> list[float]:
    if not sets:
        return []
    files = [f"{arguments.words}/{name}.txt" for name in sets]
    command = [arguments.vectors, "similarity", str(model), *files]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line)["spearman"] for line in done.stdout.splitlines()]


main()
