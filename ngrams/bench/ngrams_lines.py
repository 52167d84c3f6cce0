"""Writes reviews as lines, for ngrams.py and experiments/ngrams.py.

usage: ngrams_lines.py WORK [DATA | COUNT]
  WORK   folder to write to
  DATA   folder with imdb/train.jsonl.gz, imdb/test.jsonl.gz and yelp/sentences_polarity.csv.gz
  COUNT  number of generated reviews, on which only the times mean something; default: 60000

For each set and part there are three files: NAME.PART.lines and NAME.PART.words, in fastText's format, with the text as
given and in lower case with punctuation between spaces; and NAME.PART.vw, the same words in Vowpal Wabbit's format.
"""

import csv
import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\s\w]|_")
BREAK = re.compile("<br */?>")
# Every tenth sentence of Yelp is a test sentence.
YELP_TEST = 10


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    work = Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    source = sys.argv[2] if len(sys.argv) == 3 else "60000"
    if source.isdigit():
        write(work / "generated", *generated(int(source)))
        return
    data = Path(source)
    write(work / "IMDB", *imdb(data))
    write(work / "Yelp", *yelp(data))


def imdb(data: Path) -> tuple[list, list]:
    def reviews(path: Path) -> list:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines]
        return [(int(review["overall"] > 3), review.get("reviewText", "")) for review in found]

    return shuffled(reviews(data / "imdb/train.jsonl.gz")), reviews(data / "imdb/test.jsonl.gz")


def yelp(data: Path) -> tuple[list, list]:
    with gzip.open(data / "yelp/sentences_polarity.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        found = [(int(label) - 1, text) for label, text in csv.reader(lines)]
    train = [one for number, one in enumerate(found) if number % YELP_TEST]
    return shuffled(train), found[::YELP_TEST]


def generated(count: int) -> tuple[list, list]:
    command = [sys.executable, str(HERE.parents[1] / "trainer" / "bench" / "generated.py"), str(count)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    rows = [(int(review["overall"] > 3), review["reviewText"]) for review in found]
    return rows[count // 10 :], rows[: count // 10]


def shuffled(rows: list) -> list:
    """Shuffles the rows: both programs learn in the order of the file."""
    random.Random(1).shuffle(rows)
    return rows


def write(start: Path, train: list, test: list) -> None:
    for part, rows in (("train", train), ("test", test)):
        for form in ("lines", "words", "vw"):
            path = start.with_name(f"{start.name}.{part}.{form}")
            with path.open("w", encoding="utf-8") as out:
                out.writelines(line(form, label, text) + "\n" for label, text in rows)


def line(form: str, label: int, text: str) -> str:
    if form == "lines":
        return f"__label__{label} {' '.join(text.split())}"
    words = " ".join(TOKEN.findall(BREAK.sub(" ", text.lower())))
    if form == "words":
        return f"__label__{label} {words}"
    # A colon and a bar have a meaning in this format.
    return f"{2 * label - 1} | {words.replace(':', 'COLON').replace('|', 'BAR')}"


main()
