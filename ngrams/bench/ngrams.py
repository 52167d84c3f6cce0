"""Measures `ngrams train` beside the fastText program and Vowpal Wabbit on the same reviews.

usage: ngrams.py NGRAMS PYTHON WORK SEEDS NAME...
  NGRAMS  the program
  PYTHON   Python with the packages of bootstrap/requirements/bench.txt
  WORK     folder of the lines that ngrams_lines.py writes
  SEEDS    number of rounds
  NAME     sets of reviews

The jobs run in turn, once per seed, with two threads. `linear` reads lines as given. All other jobs read lines in lower
case with punctuation between spaces. Prints medians and ranges of accuracy and of wall and CPU seconds of the training,
the peak memory, and the wall seconds relative to `ngrams` with the same settings. The time of `ngrams` is that of the
whole command: it includes the start of the process and the saved model. Those of the others start after the import of
their package and end when the model is trained; it is not saved.

The settings of Vowpal Wabbit are the best on parts A and B of IMDB's training split (see taught.py) among rates of 0.5
to 10, losses logistic and hinge, bigrams and trigrams, and three and six passes.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = "2"
FORMS = ("lines", "words", "vw")


WORDS = {"ngrams": "1", "dim": "10", "epochs": "5", "rate": "0.5"}
BIGRAMS = WORDS | {"ngrams": "2"}


@dataclass
class Job:
    """A training. `script` is that of a peer, and `beside` the job to which its time is compared."""

    name: str
    form: str
    settings: dict = field(default_factory=dict)
    script: str | None = None
    beside: str | None = None
    runs: list = field(default_factory=list)

    def all(self, key: str) -> list[float]:
        return [run[key] for run in self.runs]


def main() -> None:
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    program, python, work, seeds = str(Path(sys.argv[1]).resolve()), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    for name in sys.argv[5:]:
        jobs = [
            Job("ngrams, words", "words", WORDS),
            Job("fastText, words", "words", WORDS, "in_fasttext.py", "ngrams, words"),
            Job("ngrams, bigrams", "words", BIGRAMS),
            Job("fastText, bigrams", "words", BIGRAMS, "in_fasttext.py", "ngrams, bigrams"),
            Job("ngrams, linear", "lines"),
            Job("Vowpal Wabbit, trigrams", "vw", {"ngrams": "3", "passes": "3"}, "in_vw.py", "ngrams, linear"),
        ]
        for seed in range(1, seeds + 1):
            for job in jobs:
                train, test = (str(work / f"{name}.{part}.{job.form}") for part in ("train", "test"))
                if job.script is None:
                    job.runs.append(run_ngrams(program, job.settings, train, test, str(seed), work / "model"))
                else:
                    command = [python, str(HERE / job.script), train, test, THREADS, str(seed), *job.settings.values()]
                    job.runs.append(json.loads(output_of(command)))
        show(f"{name}, {seeds} seeds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", jobs)


def run_ngrams(program: str, settings: dict, train: str, test: str, seed: str, model: Path) -> dict:
    shutil.rmtree(model, ignore_errors=True)
    format = ["--format", "fasttext"]
    flags = ["--model", "fasttext"] * bool(settings) + [
        part for key in settings for part in (f"--{key}", settings[key])
    ]
    command = [program, "train", "--input", train, *format, *flags, "--threads", THREADS, "--seed", seed]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--out", str(model), "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        sys.exit(f"{' '.join(command)}: wait status {status}")
    evaluated = json.loads(output_of([program, "evaluate", str(model), test, *format]))
    return {
        "accuracy": evaluated["accuracy"],
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def output_of(command: list[str]) -> str:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}: {process.stderr}")
    return process.stdout


def show(title: str, jobs: list[Job]) -> None:
    print(f"{title}\n")
    print("| job | accuracy | wall s | CPU s | peak MiB | wall, relative |")
    print("|---|---|---|---|---|---|")
    by_name = {job.name: job for job in jobs}
    for job in jobs:
        pairs = zip(job.all("seconds"), by_name[job.beside or job.name].all("seconds"), strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        cells = [spread(job.all("accuracy"), 4), spread(job.all("seconds"), 2), spread(job.all("cpu_seconds"), 2)]
        print("|", " | ".join([job.name, *cells, f"{max(job.all('peak_mib')):.0f}", f"{ratio:.2f}"]), "|")
    print(flush=True)


def spread(values: list[float], digits: int) -> str:
    low, middle, high = (f"{of(values):.{digits}f}" for of in (min, statistics.median, max))
    return f"{middle} ({low}–{high})"


main()
