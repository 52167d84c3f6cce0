"""Accuracy, time and memory of `ngrams train`, `trainer fit` and `trainer fit --with-ngrams` with default settings.

Run `ngrams train` first: on real reviews it is the most accurate in the least time. The LSTM is worth its time where the order
of words decides. `--with-ngrams` is more accurate than the LSTM alone if there are few rows or long texts; its n-grams lack
punctuation and digits, unless the dataset is made with `sentimill --punctuation`.

`ngrams train` reads the lines. The time of `trainer fit` includes `sentimill`, which makes the datasets of the training and
of the test rows. Two threads, no GPU. Test rows are the official ones of IMDB, every tenth review of the others, and 10,000
of the generated ones. *Punctuation*: the datasets are made with `--punctuation`; `ngrams train` always reads it. *Word
order*: 12 words of 200; the label is which of two planted words comes first. *Unlabelled*: also the 50,000 unlabelled
reviews of IMDB. *Stars* are five classes of Amazon. In Amazon and the generated reviews many texts occur several times:
`ngrams train` counts each copy and `trainer fit` each text once, so their accuracies there are not comparable. One seed; of
1,000 rows, medians and ranges of three.

To compare both on your reviews, hold out the same texts: `ngrams train --input reviews.json --test-fraction 0.1`,
`sentimill reviews.json --max-tokens 0` and `trainer fit reviews.h5 --test-fraction 0.1`. Then `ngrams evaluate reviews.ngrams
reviews.json --test-fraction 0.1` and `trainer evaluate reviews.model reviews.json --test-fraction 0.1` count each copy of them.
"""

import gzip
import json
import random
import statistics
from pathlib import Path

from chart import Chart
from machine import GENERATED, Machine, Run, spread
from result import Result

TITLE = "Which model"
ROWS = [1_000, 10_000, 1_000_000]
STARS = ["--labels", "1=one,2=two,3=three,4=four,5=five"]
MODELS = {"ngrams train": None, "trainer fit": [], "trainer fit --with-ngrams": ["--with-ngrams"]}
PUNCTUATION = "--punctuation"
TAUGHT = {"trainer fit --with-ngrams --unlabelled": ["--with-ngrams"]}


def run(machine: Machine) -> Result:
    result = Result(["data", "training rows", "command", "accuracy", "wall s", "peak MiB"])
    points: dict[str, dict[str, list]] = {}
    for name, rows, flags, train, test, unlabelled in tasks(machine):
        seeds = machine.rounds() if rows <= 1_000 and not unlabelled else 1
        for command, more in models(flags, unlabelled).items():
            runs = [measured(machine, command, more, flags, train, test, unlabelled, seed) for seed in range(1, 1 + seeds)]
            accuracies, used = zip(*runs)
            cells = [spread(list(accuracies), 4), spread([one.wall_s for one in used], 1), f"{statistics.median(one.peak_mib for one in used):.0f}"]
            result.rows.append([name, f"{rows:,}", command, *cells])
            if not unlabelled:
                points.setdefault(name, {}).setdefault(command, []).append((rows, statistics.median(accuracies)))
    of_sizes = {name: of for name, of in points.items() if machine.small or len(next(iter(of.values()))) > 1}
    result.charts = [Chart(f"{name}: accuracy by training rows", "training rows", "accuracy", of, is_log=True) for name, of in of_sizes.items()]
    return result


def models(flags: list, unlabelled: Path | None) -> dict:
    """The commands of a task and their flags, `None` for n-grams."""
    if unlabelled:
        return TAUGHT
    return {name: more for name, more in MODELS.items() if more is not None or PUNCTUATION not in flags}


def measured(machine: Machine, command: str, more: list | None, flags: list, train: Path, test: Path, unlabelled: Path | None, seed: int) -> tuple[float, Run]:
    """The accuracy of a model of the training lines on the test lines, and what its training used."""
    out = machine.folder("which")
    if more is None:
        used = machine.run("ngrams", "train", "--input", train, "--test", test, "--out", out, "--threads", 2, "--seed", seed, "--quiet", "--json", *flags)
        return json.loads(used.output)["evaluation"]["accuracy"], used
    datasets = [machine.work / f"which.{part}.h5" for part in ("train", "test", "unlabelled")]
    made = [machine.run("sentimill", train, "--out", datasets[0], "--force", "--quiet", *flags)]
    # The other datasets take over --punctuation.
    flags = [flag for flag in flags if flag != PUNCTUATION]
    shared = ["--quiet", "--force", "--vocabulary", datasets[0]]
    made.append(machine.run("sentimill", test, "--out", datasets[1], *shared, "--without", datasets[0], *flags))
    if unlabelled:
        made.append(machine.run("sentimill", unlabelled, "--out", datasets[2], *shared, "--without", datasets[1], "--format", "fasttext", "--class-ratings", "1=1"))
        more = [*more, "--unlabelled", datasets[2]]
    if machine.small:
        more = [*more, "--epochs", 1, "--hidden", 16]
    used = machine.run("trainer", "fit", datasets[0], "--test", datasets[1], "--out", out, "--quiet", "--json", "--device", "cpu", "--seed", seed, *more)
    used.wall_s += sum(one.wall_s for one in made)
    return json.loads(used.output)["evaluation"]["accuracy"], used


def tasks(machine: Machine):
    """Names, numbers of training rows, flags of the reader, training and test lines, and unlabelled lines of each task."""
    lines = machine.folder("which.lines")
    lines.mkdir()

    def task(name, rows, flags, reviews, test, unlabelled=None, title=None):
        train = lines / "train"
        train.write_text("".join(reviews[:rows]), encoding="utf-8", errors="surrogateescape")
        (lines / "test").write_text("".join(test), encoding="utf-8", errors="surrogateescape")
        return title or name, min(rows, len(reviews)), flags, train, lines / "test", unlabelled

    if machine.data and not machine.small:
        train, test = (read(machine.data / "imdb" / f"{part}.jsonl.gz") for part in ("train", "test"))
        machine.use("IMDB")
        for rows in (1_000, 10_000, len(train)):
            yield task("IMDB", rows, [], train, test)
        texts = (line.strip() for line in gzip.open(machine.data / "imdb" / "unsup.txt.gz", "rt", encoding="utf-8"))
        unlabelled = lines / "unlabelled"
        unlabelled.write_text("".join(f"__label__1 {text}\n" for text in texts), encoding="utf-8")
        for rows in (1_000, len(train)):
            yield task("IMDB", rows, [], train, test, unlabelled, "IMDB, unlabelled")
        yield task("IMDB, punctuation", len(train), [PUNCTUATION], train, test)
        yield task("IMDB, punctuation, unlabelled", len(train), [PUNCTUATION], train, test, unlabelled)
        yelp = ["--format", "polarity-csv", "--class-ratings", "1=1,2=5"]
        machine.use("Yelp")
        train, test = held_out(read(machine.data / "yelp" / "sentences_polarity.csv.gz"))
        for rows in (1_000, 10_000, len(train)):
            yield task("Yelp", rows, yelp, train, test)
        machine.use("Amazon")
        train, test = held_out([line for path in sorted((machine.data / "amazon").glob("*.json.gz")) for line in read(path)])
        yield task("Amazon, stars", len(train), STARS, train, test)
    train, test = held_out(ordered(2_000 if machine.small else 11_112))
    yield task("word order", len(train), ["--format", "fasttext", "--class-ratings", "0=1,1=5"], train, test)
    path = lines / "generated"
    n_rows, n_test = (1_000, 100) if machine.small else (ROWS[-1], 10_000)
    machine.use(GENERATED)
    machine.generate(path, n_rows + n_test)
    reviews = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    reviews = [f"{line}\n" for line in reviews[:-1]]
    yield task(GENERATED, n_rows, [], reviews, reviews[n_rows:])


def read(path: Path) -> list[str]:
    """The lines of a file, in a random order."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line if line.endswith("\n") else f"{line}\n" for line in file]
    random.Random(1).shuffle(lines)
    return lines


def held_out(lines: list[str]) -> tuple[list[str], list[str]]:
    """Training lines, and every tenth line."""
    return [line for at, line in enumerate(lines) if at % 10], lines[::10]


def ordered(n_lines: int) -> list[str]:
    """Lines of fastText's format, with 12 words of 200: the label is 1 if `alpha` comes before `omega`."""
    choose, names = random.Random(1), [f"w{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(200)]
    lines = []
    for _ in range(n_lines):
        words = choose.choices(names, k=12)
        first, second = sorted(choose.sample(range(12), 2))
        label = choose.randrange(2)
        words[first], words[second] = ("alpha", "omega") if label else ("omega", "alpha")
        lines.append(f"__label__{label} {' '.join(words)}\n")
    return lines
