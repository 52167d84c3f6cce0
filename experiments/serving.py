"""Speed and memory of `predict`: files of a million reviews, and one text at a time.

The files are generated reviews with all their columns, in CSV and Parquet with those of the answers too. `--out` writes the
format of the input. *One at a time*: each of 2,000 reviews of IMDB waits for the answer to the one before,
through a pipe, or by HTTP, each in a connection of its own, through the server of [Serve predictions](serving.md). Two
threads, no GPU.
"""

import itertools
import json
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Callable

from chart import Bars
from machine import PROJECT, Machine
from result import Result
from which import read

TITLE = "Predictions"
ROWS, ROWS_SMALL = 1_000_000, 1_000
TEXTS, TEXTS_SMALL = 2_000, 20
TRAINED = 50_000


def run(machine: Machine) -> Result:
    result = Result(["command", "input", "rows", "rows/s", "peak MiB", "p50 ms", "p99 ms"])
    rows, texts = (ROWS_SMALL, TEXTS_SMALL) if machine.small else (ROWS, TEXTS)
    lines = machine.work / "serving.json"
    machine.use("generated")
    machine.generate(lines, rows)
    speeds: dict[str, list] = {"rows/s": []}
    models = trained(machine)
    for command, (program, model) in models.items():
        inputs = [lines]
        # The answers in one format are the input in the same format.
        for extension in ("csv", "parquet") if program == "ngrams" else ():
            inputs.append(machine.work / f"serving.{extension}")
            machine.run(program, "predict", model, lines, "--out", inputs[-1], "--quiet")
        for path in inputs:
            out = machine.work / f"serving.out{path.suffix}"
            out.unlink(missing_ok=True)
            used = machine.run(program, "predict", model, path, "--out", out, "--quiet")
            result.rows.append([command, path.suffix[1:], f"{rows:,}", f"{rows / used.wall_s:.0f}", f"{used.peak_mib:.0f}", "–", "–"])
            speeds["rows/s"].append(rows / used.wall_s)
    result.charts = [Bars("Predictions of files", "rows/s", [f"{row[0]}, {row[1]}" for row in result.rows], speeds)]
    spoken = reviews(machine, texts)
    for command, (program, model) in models.items():
        for name, ask in {"one at a time, pipe": by_pipe, "one at a time, HTTP": by_http}.items():
            milliseconds = sorted(ask(machine, program, model, spoken))
            p50, p99 = (milliseconds[len(milliseconds) * percent // 100] for percent in (50, 99))
            result.rows.append([command, name, f"{texts:,}", f"{1000 / statistics.mean(milliseconds):.0f}", "–", f"{p50:.2f}", f"{p99:.2f}"])
    return result


def trained(machine: Machine) -> dict[str, tuple[str, Path]]:
    """The program and the model of each command, with default settings."""
    training, dataset, few = machine.work / "serving.train", machine.work / "serving.h5", ["--epochs", 1, "--hidden", 16]
    machine.generate(training, ROWS_SMALL if machine.small else TRAINED, seed=2)
    machine.run("sentimill", training, "--out", dataset, "--quiet")
    models = {"ngrams predict": ("ngrams", machine.folder("serving.ngrams"))}
    machine.run("ngrams", "train", "--input", training, "--out", models["ngrams predict"][1], "--quiet")
    for name, more in {"trainer predict": [], "trainer predict, --with-ngrams": ["--with-ngrams"]}.items():
        models[name] = ("trainer", machine.folder(name.replace(" ", "-")))
        machine.run("trainer", "fit", dataset, "--out", models[name][1], "--quiet", "--device", "cpu", *more, *(few if machine.small else []))
    return models


def reviews(machine: Machine, count: int) -> list[bytes]:
    """Texts of reviews, each one line."""
    if machine.data and not machine.small:
        machine.use("IMDB")
        lines = read(machine.data / "imdb" / "test.jsonl.gz")
        lines = lines[:: len(lines) // count]
    else:
        lines = (machine.work / "serving.json").read_text(encoding="utf-8", errors="replace").split("\n")
    texts = (json.loads(line).get("reviewText") or "-" for line in lines if line.startswith("{"))
    return [" ".join(text.split()).encode() + b"\n" for text in itertools.islice(texts, count)]


def by_pipe(machine: Machine, program: str, model: Path, texts: list[bytes]) -> list[float]:
    command = [machine.programs / program, "predict", model, "--format", "text"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as predict:

        def ask(text: bytes) -> bytes:
            predict.stdin.write(text)
            predict.stdin.flush()
            return predict.stdout.readline()

        return timed(ask, texts)


def by_http(machine: Machine, program: str, model: Path, texts: list[bytes]) -> list[float]:
    page = (PROJECT / "docs" / "serving.md").read_text(encoding="utf-8")
    server = machine.work / "serve.py"
    server.write_text(re.search(r"^```python serve.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL).group(1))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, server, machine.programs / program, model, str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            ask = lambda text: urllib.request.urlopen(f"http://127.0.0.1:{port}", text).read()
            for _ in range(300):
                try:
                    ask(b"ready?")
                    break
                except urllib.error.URLError:
                    time.sleep(0.1)
            return timed(ask, texts)
        finally:
            process.kill()


def timed(ask: Callable[[bytes], bytes], texts: list[bytes]) -> list[float]:
    """Milliseconds of each answer. The first one includes the start of the program, and is not among them."""
    ask(texts[0])
    found = []
    for text in texts:
        begin = time.perf_counter()
        answer = ask(text)
        found.append(1000 * (time.perf_counter() - begin))
        if not answer.startswith(b"{"):
            sys.exit(f"found {answer!r}, expected an answer")
    return found
