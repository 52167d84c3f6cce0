"""Word vectors from standard input: words/s, memory and skipped lines over time.

usage: stream.py VECTORS WORK [--words N] [--minutes M] [--minutes-above M] [--threads N] [--words-max N] [--char-ngrams MIN-MAX]
  VECTORS        the program
  WORK           a folder for the trainings
  --words        words of the stream at full speed (default 20 million)
  --minutes      duration of the stream at 80 % of this rate (default 0.5)
  --minutes-above  duration of each stream above it (default: the same)

The stream is synthetic: lines of 20 words by Zipf's law, a block of which is repeated with other rare words, so that new
words never end. Four streams in turn: at full speed; at 80 % of this rate from a source that cannot wait (--if-slow skip);
at 150 % from one that can, which is held back; and at 150 % from one that cannot, whose skipped lines are compared with the
tokens that were trained on.
"""

import argparse
import itertools
import json
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

LINE_WORDS = 20
BLOCK_LINES = 200_000
# Words that each block has, and rare words that change from block to block: their marks are replaced by letters.
COMMON, RARE = 60_000, 60_000
RARE_SHARE = 0.03
MARK = b"zzzz"
PIECE_LINES = 500
ROWS = 12


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("vectors")
    parser.add_argument("work", type=Path)
    parser.add_argument("--words", type=float, default=20e6)
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--minutes-above", type=float)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words-max", type=int, default=1_000_000)
    parser.add_argument("--char-ngrams")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    block = block_of_lines()
    seconds = 60 * arguments.minutes
    rate = stream(arguments, block, "full speed", n_words=arguments.words)
    stream(arguments, block, "80 %, cannot wait", rate=0.8 * rate, seconds=seconds, skips=True)
    seconds = 60 * (arguments.minutes_above or arguments.minutes)
    stream(arguments, block, "150 %, held back", rate=1.5 * rate, seconds=seconds)
    stream(arguments, block, "150 %, cannot wait", rate=1.5 * rate, seconds=seconds, skips=True)


def block_of_lines() -> list[bytes]:
    """Pieces of lines. Rare words contain MARK."""
    draw = random.Random(1)
    common = [name(number) for number in range(COMMON)]
    weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(COMMON)))
    words = draw.choices(common, cum_weights=weights, k=LINE_WORDS * BLOCK_LINES)
    for place in range(len(words)):
        if draw.random() < RARE_SHARE:
            words[place] = name(draw.randrange(RARE)) + MARK.decode()
    lines = [" ".join(words[at : at + LINE_WORDS]) for at in range(0, len(words), LINE_WORDS)]
    pieces = range(0, BLOCK_LINES, PIECE_LINES)
    return [("\n".join(lines[at : at + PIECE_LINES]) + "\n").encode() for at in pieces]


def name(number: int) -> str:
    """A number in letters, without the letter of the mark."""
    letters = "q"
    number += 25
    while number:
        number, digit = divmod(number, 25)
        letters += chr(ord("a") + digit)
    return letters


def pieces_without_end(block: list[bytes]):
    for repetition in itertools.count():
        letters = "".join(chr(ord("a") + repetition // 25**place % 25) for place in range(len(MARK)))
        for piece in block:
            yield piece.replace(MARK, letters.encode())


def stream(arguments, block, what: str, n_words=None, rate=None, seconds=None, skips=False) -> float:
    """Trains on a stream of `n_words`, or of some words per second for some seconds. Returns the words per second."""
    out = arguments.work / "stream.vectors"
    shutil.rmtree(out, ignore_errors=True)
    command = [arguments.vectors, "train", "--input", "-", "--out", str(out), "--json", "--quiet"]
    command += ["--threads", str(arguments.threads), "--words-max", str(arguments.words_max)]
    command += ["--checkpoint-every", "0", "--if-slow", "skip" if skips else "wait"]
    if arguments.char_ngrams:
        command += ["--char-ngrams", arguments.char_ngrams]
    print(f"\n{what}: " + (f"{n_words:,.0f} words" if n_words else f"{rate:,.0f} words/s for {seconds:.0f} s"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    samples, written = [], [0]
    ended = threading.Event()
    watch = threading.Thread(target=sample, args=(process.pid, written, samples, ended))
    watch.start()
    began = time.perf_counter()
    for piece in pieces_without_end(block):
        if n_words and written[0] >= n_words:
            break
        elapsed = time.perf_counter() - began
        if seconds and elapsed >= seconds:
            break
        if rate and (ahead := written[0] / rate - elapsed) > 0:
            time.sleep(ahead)
        process.stdin.write(piece)
        written[0] += LINE_WORDS * PIECE_LINES
    process.stdin.close()
    # Before the model is written.
    words_per_s = written[0] / (time.perf_counter() - began)
    ended.set()
    watch.join()
    summary = json.loads(process.stdout.read())
    if process.wait() != 0:
        sys.exit(f"{what}: exit code {process.returncode}")
    report(samples, words_per_s, written[0], summary)
    return words_per_s


def sample(pid: int, written: list[int], samples: list, ended: threading.Event) -> None:
    began = time.perf_counter()
    while not ended.wait(0.2):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        samples.append((time.perf_counter() - began, written[0], pages * 4096 / 2**20))


def report(samples: list, words_per_s: float, n_written: int, summary: dict) -> None:
    print("| seconds | words/s | MiB |\n|---|---|---|")
    step = max(1, len(samples) // ROWS)
    for (begin, before, _), (end, after, mib) in itertools.pairwise(samples[::step]):
        print(f"| {end:.0f} | {(after - before) / (end - begin):,.0f} | {mib:.0f} |")
    n_lines, skipped = n_written // LINE_WORDS, summary["skipped_lines"]
    trained = summary["tokens"] // LINE_WORDS
    verdict = "agrees" if trained + skipped == n_lines else f"DIFFERS by {n_lines - trained - skipped}"
    print(
        f"{words_per_s:,.0f} words/s; {n_lines:,} lines written, {trained:,} trained, {skipped:,} skipped: {verdict}; "
        f"{summary['words']:,} words, {summary['evicted_words']:,} evicted"
    )


main()
