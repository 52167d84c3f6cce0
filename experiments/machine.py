"""The machine, the programs and the reviews of an experiment."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
CHILD = PROJECT / "experiments" / "child.py"
# Generated reviews: of an experiment, and of a test of it.
LINES, LINES_SMALL = 1_280_000, 2_000
MIB = 1 << 20
GENERATED = "generated"


@dataclass
class Run:
    """A command that has ended."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    output: str


@dataclass
class Corpus:
    """Reviews of one source. Without `test`, rows are held out."""

    name: str
    train: list[Path]
    test: Path | None
    flags: list[str]


class Machine:
    """Runs programs and finds reviews."""

    def __init__(self, programs: Path, data: Path | None, peers: Path | None, work: Path, small: bool):
        self.programs, self.data, self.peers, self.work, self.small = programs, data, peers, work, small
        self.generator = programs / "examples" / "demo-corpus"
        # Names of the sources that the experiment has used.
        self.used: list[str] = []

    def run(self, program: str, *arguments, environment: dict[str, str] | None = None) -> Run:
        """Runs a program to its end and returns what it used; a failure ends the experiment."""
        executable = self.programs / program
        path = str(executable) if executable.exists() else program
        command, used = [path, *map(str, arguments)], self.work / "used"
        used.unlink(missing_ok=True)
        child = [sys.executable, "-I", "-S", CHILD, used, *command]
        with open(self.work / "stderr", "w+b") as errors:
            output = subprocess.run(child, stdout=subprocess.PIPE, stderr=errors, env=os.environ | (environment or {})).stdout
            wall_s, cpu_s, peak_kib, code = map(float, used.read_text().split())
            if code:
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                sys.exit(f"{' '.join(command)}: exit code {code:.0f}: {' '.join(last)}")
        return Run(wall_s, cpu_s, peak_kib * 1024 / MIB, output.decode())

    def bench(self, script: str, *arguments, environment: dict[str, str]) -> list[dict]:
        """Runs a script that measures, and returns the lines of figures that it writes."""
        figures = self.work / "figures"
        figures.write_text("")
        self.run(sys.executable, PROJECT / script, *arguments, environment=environment | {"FIGURES": str(figures)})
        return [json.loads(line) for line in figures.read_text().splitlines()]

    def rounds(self) -> int:
        """Number of runs of which a figure is the median."""
        return 1 if self.small else 3

    def generated(self) -> Path:
        """Generated reviews."""
        self.use(GENERATED)
        path = self.work / "generated.json"
        if not path.exists():
            self.generate(path, LINES_SMALL if self.small else LINES)
        return path

    def generated_corpus(self) -> Corpus:
        """The source of generated reviews."""
        return Corpus(GENERATED, [self.generated()], None, [])

    def generate(self, path: Path, n_reviews: int, seed: int = 1) -> None:
        """Writes generated reviews, which are others with another seed."""
        with path.open("wb") as file:
            subprocess.run([self.generator, "--reviews", str(n_reviews), "--seed", str(seed)], stdout=file, check=True)

    def use(self, name: str) -> None:
        """Notes the name of a source."""
        if name not in self.used:
            self.used.append(name)

    def corpora(self) -> list[Corpus]:
        """The sources of reviews."""
        for corpus in self.sources:
            self.use(corpus.name)
        return self.sources

    @cached_property
    def sources(self) -> list[Corpus]:
        """The sources of reviews, of which an experiment uses some."""
        if self.small or self.data is None:
            return [self.generated_corpus()]
        amazon = sorted((self.data / "amazon").glob("*.json.gz"))
        imdb = self.data / "imdb"
        yelp = self.data / "yelp" / "sentences_polarity.csv.gz"
        return [
            Corpus("Amazon", amazon, None, []),
            Corpus("IMDB", [imdb / "train.jsonl.gz"], imdb / "test.jsonl.gz", []),
            Corpus("Yelp", [yelp], None, ["--format", "polarity-csv", "--class-ratings", "1=1,2=5"]),
        ]

    def corpus(self, name: str) -> Corpus:
        """The source with this name, or the generated one."""
        found = next((corpus for corpus in self.sources if corpus.name == name), self.sources[0])
        self.use(found.name)
        return found

    def dataset(self, corpus: Corpus, *flags: str) -> tuple[Path, Path | None]:
        """The dataset of a source, and that of its test split."""
        name = "".join(character for character in "-".join([corpus.name, *flags]) if character.isalnum() or character == "-")
        train = self.work / f"{name}.h5"
        if not train.exists():
            self.run("sentimill", *corpus.train, "--out", train, "--quiet", *corpus.flags, *flags)
        if corpus.test is None:
            return train, None
        test = self.work / f"{name}.test.h5"
        if not test.exists():
            self.run("sentimill", corpus.test, "--out", test, "--quiet", "--vocabulary", train, *corpus.flags)
        return train, test

    def folder(self, name: str) -> Path:
        """A path in the work folder at which nothing exists."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    def description(self) -> str:
        """The number of cores, and the processor."""
        lines = [line.split(":") for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line]
        found = {name.strip(): value.strip() for name, value in reversed(lines)}
        name = found.get("model name", "unknown processor")
        return f"{os.cpu_count()} cores, {name}, model {found.get('model', 'unknown')}"

    def version(self) -> str:
        """Version and commit of the programs."""
        return self.run("sentimill", "--version").output.splitlines()[0]

    def data_name(self) -> str:
        """Names of the sources that the experiment has used."""
        return ", ".join(self.used)


def missing(required: dict[Path, str]) -> list[str]:
    """Messages about the files that do not exist, of required ones and what installs them."""
    return [f"{path} is missing; {remedy}" for path, remedy in required.items() if not path.exists()]


def spread(values: list[float], digits: int) -> str:
    """The median and, of several values, the range."""
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) < 2 else f"{middle} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def threads_named(threads: int) -> str:
    """This number of threads, as in a legend."""
    return f"{threads} thread{'s' * (threads > 1)}"


def epochs_of(training: Path) -> list[dict]:
    """The epochs of a training folder, as they are logged."""
    lines = map(json.loads, (training / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == "epoch"]
