"""Each experiment runs on few generated reviews and writes a table and charts."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

RUN = Path(__file__).resolve().parent.parent / "run.py"
sys.path.append(str(RUN.parent))
import result

NAMES = ["reviews", "preprocessing", "growth", "engines", "nodes", "hadoop", "epochs", "money", "speed", "steps", "ranks", "mixed", "batches", "ngrams"]
JARS = RUN.parent.parent / ".deps" / "hadoop" / "jars"
if not JARS.exists():
    print(f"SKIPPED nodes, hadoop: {JARS} is missing; run bootstrap/laptop.sh hadoop")
    NAMES = [name for name in NAMES if name not in ("nodes", "hadoop")]
elif not Path("/usr/bin/time").exists():
    print("SKIPPED hadoop: /usr/bin/time is missing; install Debian's package time")
    NAMES.remove("hadoop")


class Experiments(unittest.TestCase):
    def test_each_experiment_writes_a_table_and_charts(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = ["--programs", os.environ["SENTIMILL_PROGRAMS"]]
            command = [sys.executable, "-B", RUN, "--small", "--out", folder, *programs, *NAMES]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in NAMES:
                with self.subTest(name), open(Path(folder) / f"{name}.csv") as file:
                    columns, *rows = csv.reader(file)
                    self.assertTrue(rows)
                    self.assertTrue(all(len(row) == len(columns) and all(row) for row in rows))
                    about = json.loads((Path(folder) / f"{name}.json").read_text())
                    self.assertEqual(about["data"], "generated")
                    for suffix in ["", "-dark"]:
                        picture = xml.parse(Path(folder) / f"{name}{suffix}.svg").getroot()
                        self.assertGreater(len(picture.findall("*")), 8)

    def test_a_second_run_keeps_the_table_and_notes_the_differences(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", RUN, "--small", "--out", folder, "--programs", os.environ["SENTIMILL_PROGRAMS"]]
            subprocess.run([*command, "reviews"], check=True, stdout=subprocess.DEVNULL)
            table, about = Path(folder) / "reviews.csv", Path(folder) / "reviews.json"
            n_reviews = next(csv.DictReader(table.read_text().splitlines()))["reviews"]
            changed = table.read_text().replace(f"generated,{n_reviews}", f"generated,{2 * int(n_reviews)}")
            table.write_text(changed)
            subprocess.run([*command, "--again", "reviews"], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(table.read_text(), changed)
            self.assertEqual(json.loads(about.read_text())["again"]["differences"], {"reviews": 50.0})

    def test_differences_are_those_of_numbers_and_medians(self):
        rows, others = [["a", "1,000 (900–1,100)", "0.0", "–"]], [["a", "800", "0.5", "–"]]
        found = result.differences(["name", "speed", "loss", "none"], rows, others)
        self.assertEqual(found, ({"speed": 20.0, "loss": 100.0}, []))
        self.assertEqual(result.differences(["s"], [["5.0 (4.9–5.1)"]], [["5.0 (4.8–5.2)"]]), ({}, []))
        found = result.differences(["seconds"], [["not reached"]], [["87.2"]])
        self.assertEqual(found, ({}, ["seconds: not reached in the first run, 87.2 in the second"]))

    def test_only_a_run_that_can_be_compared_is_started(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", RUN, "--again", "--out", folder, "reviews"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertIn("reviews.csv: not found; --again requires the table of a first run", done.stderr)
            (Path(folder) / "reviews.csv").write_text("data\nIMDB\n")
            (Path(folder) / "reviews.json").write_text('{"machine": "another"}')
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertIn("reviews.csv: machine: another, now ", done.stderr)
            this = done.stderr.split(", now ")[1].split(";")[0]
            (Path(folder) / "reviews.json").write_text(json.dumps({"machine": this, "data": "IMDB"}))
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertIn("reviews.csv: data: IMDB, now generated; pass --data", done.stderr)

    def test_an_unknown_experiment_is_refused(self):
        done = subprocess.run([sys.executable, "-B", RUN, "nothing"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nothing: unknown experiment, expected some of: reviews preprocessing", done.stderr)


if __name__ == "__main__":
    unittest.main()
