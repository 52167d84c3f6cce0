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
import hadoop
import nodes
import result
from machine import missing

ALL = ["which", "reviews", "preprocessing", "growth", "merging", "engines", "nodes", "hadoop", "epochs", "sizes", "money", "speed", "steps", "ranks", "rounds", "target", "mixed", "gpus", "batches", "ngrams", "recipes", "serving"]
NAMES = list(ALL)
for experiment in (nodes, hadoop):
    if found := missing(experiment.REQUIRED):
        print(f"SKIPPED {experiment.__name__}: {found[0]}")
        NAMES.remove(experiment.__name__)


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

    def test_a_further_run_keeps_the_table_and_notes_the_differences(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", RUN, "--small", "--out", folder, "--programs", os.environ["SENTIMILL_PROGRAMS"]]
            subprocess.run([*command, "reviews"], check=True, stdout=subprocess.DEVNULL)
            table, about = Path(folder) / "reviews.csv", Path(folder) / "reviews.json"
            n_reviews = next(csv.DictReader(table.read_text().splitlines()))["reviews"]
            changed = table.read_text().replace(f"generated,{n_reviews}", f"generated,{2 * int(n_reviews)}")
            table.write_text(changed)
            subprocess.run([*command, "--again", "reviews"], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(table.read_text(), changed)
            [further] = json.loads(about.read_text())["further"]
            self.assertEqual(further["differences"], {"reviews": 50.0})

    def test_differences_are_those_of_numbers_and_medians(self):
        rows, others = [["a", "1,000 (900–1,100)", "0.0", "–"]], [["a", "800", "0.5", "–"]]
        found = result.differences(["name", "speed", "loss", "none"], rows, others)
        self.assertEqual(found, ({"speed": 20.0, "loss": 100.0}, []))
        self.assertEqual(result.differences(["s"], [["5.0 (4.9–5.1)"]], [["5.0 (4.8–5.2)"]]), ({}, []))
        found = result.differences(["seconds"], [["not reached"]], [["87.2"]])
        self.assertEqual(found, ({}, ["seconds: not reached in the table, 87.2 in the other run"]))

    def test_the_page_has_the_largest_difference_of_further_runs(self):
        run = lambda day, **differences: {"date": day, "differences": differences, "texts": []}
        one, less, more = run("Monday", wall=20.0), run("Tuesday", wall=5.0, CPU=0.0), run("Friday", wall=30.0)
        self.assertEqual(result.spread_of([one]), "A second run (Monday) differs by at most 20 % (wall).")
        self.assertEqual(result.spread_of([run("Monday")]), "A second run (Monday) differs by less than 0.05 %.")
        self.assertEqual(result.spread_of([run("Monday") | {"equal": True}]), "A second run (Monday) has the same numbers.")
        self.assertIn("2 further runs (Monday, Tuesday) differ by at most 20 % (wall).", result.spread_of([one, less]))
        self.assertIn("by at most 30 % (wall).", result.spread_of([one, more]))

    def test_the_models_find_the_times_from_which_they_were_made(self):
        import numpy
        import ranks

        cells = [(n_nodes, share, 580 * share) for n_nodes in nodes.NODES for share in nodes.SHARES]
        made = {"start-up": [30.0], "map": [9.0, 0.2], "shuffle": [20.0, 0.02], "reduce": [1.0, 0.04], "merge": [0.3, 0.004]}
        found = [{"times": nodes.predict(made, n_nodes, nodes.MAPS, mb)} for n_nodes, _, mb in cells]
        fitted = nodes.model(cells, found, range(1, len(cells)))
        for phase, coefficients in made.items():
            numpy.testing.assert_allclose(fitted[phase], coefficients, rtol=1e-6, err_msg=phase)

        made = numpy.array([0.8, 5.0, 1.1, 9.0, 4.0, 2.0])
        steps = [{"sent": 0.7 * (ranks_of - 1)} for _, ranks_of, *_ in ranks.SETTINGS]
        for setting, step in zip(ranks.SETTINGS, steps):
            step["step"] = float(made @ ranks.terms(*setting[1:], step["sent"]))
        numpy.testing.assert_allclose(ranks.model(ranks.SETTINGS, steps, range(1, len(steps))), made, rtol=1e-6)
        self.assertAlmostEqual(ranks.left_out(ranks.SETTINGS, steps, 7), steps[7]["step"], 6)
        self.assertIn("by 0 % on average, and by at most 0 %", ranks.error_for_more_ranks(ranks.SETTINGS, steps))
        self.assertIn("by 10 % on average, and by at most 20 %", result.error_of([100.0, 80.0], [100.0, 100.0]))

    def test_a_rank_sends_its_rows_to_owners_and_the_sums_of_its_own_to_all(self):
        import ranks

        # Three of four parts of its rows, which are at most those that one of two sends, and of all rows.
        self.assertAlmostEqual(ranks.sent_mb(4, 1.0, 4.2), 3.9)
        # A rank does not have more rows than there are.
        self.assertAlmostEqual(ranks.sent_mb(64, 5.0, 4.0), 7.875)

    def test_an_epoch_is_divided_in_proportion_to_its_fall_of_the_loss(self):
        import target

        epochs = lambda *losses: [{"seconds": 10.0, "validation": {"loss": loss}} for loss in losses]
        self.assertEqual(target.until(epochs(target.LOSS + 0.1, target.LOSS - 0.1)), (1.5, 15.0))
        self.assertEqual(target.until(epochs(target.LOSS)), (1.0, 10.0))
        self.assertEqual(target.until(epochs(target.LOSS + 0.1)), (float("inf"), float("inf")))
        self.assertEqual(target.shown(1.8, 2), ["1.80", "0.90"])
        self.assertEqual(target.shown(float("nan"), 2), ["–", "–"])

    def test_a_coefficient_that_would_be_negative_is_zero(self):
        import fit

        found = fit.coefficients([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]], [3.0, 2.0, 1.0])
        self.assertEqual(found.tolist(), [2.0, 0.0])

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

    def test_a_missing_file_is_named_before_the_first_experiment(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", RUN, "--out", folder, "--programs", folder], capture_output=True, text=True)
            self.assertEqual(done.stderr, f"run.py: {folder}/examples/demo-corpus is missing; run make build, or pass --programs\n")
            self.assertEqual(done.stdout, "")

    def test_the_peak_of_a_command_is_its_own(self):
        from machine import Machine

        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(Path("/bin"), None, None, Path(folder), True)
            held = bytearray(b"1") * (200 << 20)
            used = machine.run("echo", "said")
            self.assertEqual((used.output, len(held)), ("said\n", 200 << 20))
            self.assertLess(used.peak_mib, 100)
            self.assertLess(0, used.wall_s)
            with self.assertRaisesRegex(SystemExit, "exit code 1: "):
                machine.run("cat", "nothing")

    def test_an_unknown_experiment_is_refused(self):
        done = subprocess.run([sys.executable, "-B", RUN, "nothing"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        known = done.stderr.split("nothing: unknown experiment, expected some of: ")[1].split()
        self.assertEqual(known, ALL)


if __name__ == "__main__":
    unittest.main()
