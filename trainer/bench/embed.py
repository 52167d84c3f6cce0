"""Word vectors of trainer beside gensim and the fastText program, in turn.

usage: embed.py TRAINER TEXT.gz WORK WORDS [--runs N] [--threads N]
  TRAINER  the program
  TEXT.gz  a text, one sentence per line
  WORK     a folder; the cleaned text and the last vectors of each are kept there
  WORDS    a folder of word-similarity sets: EN-WS-353-ALL.txt, EN-MEN-TR-3k.txt, EN-SIMLEX-999.txt

All three train 100 dimensions, window 5, 5 negative samples, minimum count 5, 5 epochs, on the same cleaned text, with
another seed in each run. Words per second are tokens times epochs over the whole command: reading, counting, training
and saving. Requires gensim and fasttext.
"""

import argparse
import gzip
import json
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
from gensim.models import Word2Vec
text, out, threads, seed = sys.argv[1:]
model = Word2Vec(corpus_file=text, vector_size=100, window=5, negative=5, min_count=5, epochs=5, sg=1,
                 workers=int(threads), seed=int(seed))
model.wv.save_word2vec_format(out, binary=True)
"""
FASTTEXT = """
import sys
import fasttext
text, out, threads, seed = sys.argv[1:]
model = fasttext.train_unsupervised(text, model="skipgram", dim=100, ws=5, neg=5, minCount=5, epoch=5, lr=0.025, t=1e-3,
                                    minn=0, maxn=0, thread=int(threads), verbose=0)
model.save_model(out)
"""


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trainer")
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("words")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = arguments.work / "cleaned.txt"
    if not text.exists():
        clean(arguments.text, text)
    n_tokens = 5 * sum(len(line.split()) for line in text.open())
    seconds: dict[str, list[float]] = {}
    scores: dict[str, list[list[float]]] = {}
    for seed in range(1, 1 + arguments.runs):
        for name, command, out in commands(arguments, text, seed):
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            scores.setdefault(name, []).append(similarity(arguments, out))
    print("| program | seconds | words/s | times as fast | " + " | ".join(SETS) + " |")
    print("|---" * (4 + len(SETS)) + "|")
    ours = statistics.median(seconds["trainer"])
    for name, of in seconds.items():
        median = statistics.median(of)
        ratio = f"{median / ours:.1f}" if name != "trainer" else ""
        cells = [f"{statistics.mean(one):.4f} ({min(one):.4f}–{max(one):.4f})" for one in zip(*scores[name])]
        spread = f"{median:.1f} ({min(of):.1f}–{max(of):.1f})"
        print(f"| {name} | {spread} | {n_tokens / median:,.0f} | {ratio} | " + " | ".join(cells) + " |")


def clean(source: str, to: Path) -> None:
    """Writes lines of words in lower case. The trainer's own cleaning leaves them unchanged."""
    with gzip.open(source, "rt", encoding="utf-8") as lines, to.open("w") as out:
        for line in lines:
            words = re.findall("[a-z']+", line.lower().replace("’", "'"))
            words = [stripped for word in words if (stripped := word.strip("'"))]
            if words:
                out.write(" ".join(words) + "\n")


def commands(arguments, text: Path, seed: int):
    threads, work = str(arguments.threads), arguments.work
    ours = work / "trainer"
    shutil.rmtree(ours, ignore_errors=True)
    embed = [arguments.trainer, "embed", "--input", str(text), "--out", str(ours)]
    yield "trainer", [*embed, "--threads", threads, "--seed", str(seed)], ours
    for name, script, out in (("gensim", GENSIM, work / "gensim.w2v"), ("fastText", FASTTEXT, work / "fasttext.bin")):
        yield name, [sys.executable, "-c", script, str(text), str(out), threads, str(seed)], out


def similarity(arguments, model: Path) -> list[float]:
    files = [f"{arguments.words}/{name}.txt" for name in SETS]
    command = [arguments.trainer, "vectors", "similarity", str(model), *files]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line)["spearman"] for line in done.stdout.splitlines()]


main()
