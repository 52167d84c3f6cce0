"""The figures show what the files of a training contain."""

from __future__ import annotations

import json
import unittest
from unittest.mock import patch

import matplotlib
import matplotlib.pyplot as plt
import numpy
import support
from test_models import FIVE, lstm, ngrams

from sentimill import ModelError, Predictions, figures

matplotlib.use("agg")


class Figures(unittest.TestCase):
    def tearDown(self):
        plt.close("all")

    def test_curves_have_a_point_per_event(self):
        training = lstm("--test-every")
        events = [json.loads(line) for line in (training / "metrics.jsonl").read_text().splitlines()]
        steps = [event["loss"] for event in events if event["event"] == "steps"]
        validation = [event["validation"]["loss"] for event in events if event["event"] == "epoch"]
        axes = figures.curves(training)
        drawn = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
        self.assertEqual((drawn["training"], drawn["validation"]), (steps, validation))
        tests = [(event.get("test") or event.get("metrics", {})).get("loss") for event in events]
        self.assertEqual(drawn["test"], [loss for loss in tests if loss is not None])
        self.assertEqual(len(drawn["test"]), 2)
        given = plt.subplots()[1]
        self.assertIs(figures.curves(ngrams("--model fasttext --epochs 2"), axes=given), given)
        self.assertEqual([len(line.get_xdata()) for line in given.lines], [2])

    def test_a_resumed_training_has_each_step_once(self):
        folder = support.folder() / "resumed"
        folder.mkdir()
        steps = [("start", 0), ("steps", 10), ("steps", 20), ("start", 10), ("steps", 20)]
        lines = [json.dumps({"event": event, "step": step, "loss": at}) for at, (event, step) in enumerate(steps)]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + '\n{"event": "st')
        (line,) = figures.curves(folder).lines
        self.assertEqual((line.get_xdata().tolist(), line.get_ydata().tolist()), ([10, 20], [1, 4]))

    def test_a_confusion_has_the_counts_and_names(self):
        names = ["negative", "positive"]
        trainings = [(of(flags), names) for of, flags in ((lstm, ""), (ngrams, "--test-fraction 0.2"))]
        for training, classes in (*trainings, (lstm("", FIVE), list("abcde"))):
            axes = figures.confusion(training)
            counts = [int(text.get_text()) for text in axes.texts]
            self.assertEqual([label.get_text() for label in axes.get_xticklabels()], classes)
            self.assertEqual(len(counts), len(classes) ** 2)
            metrics = json.loads((training / "evaluation.json").read_bytes())["metrics"]
            expected = metrics["confusion"]
            if isinstance(expected, dict):
                names = ("true_negative", "false_positive", "false_negative", "true_positive")
                expected = [[expected[name] for name in names]]
            self.assertEqual(counts, [count for row in expected for count in row])
            rows = numpy.load(training / "scores.npy")
            predicted = rows["probabilities"].argmax(1) if len(classes) > 2 else rows["score"] > 0
            self.assertEqual(counts[1], ((rows["label"] == 0) & (predicted == 1)).sum())

    def test_a_calibration_has_the_error_of_the_evaluation(self):
        for flags, labels in (("--calibrate platt --precision f64", None), ("", FIVE)):
            training = lstm(flags, labels)
            quality = json.loads((training / "evaluation.json").read_bytes())["probabilities"]
            with patch.object(figures, "bins", wraps=figures.bins) as bins:
                drawn = figures.calibration(training).lines[1].get_data()
            mean, fraction, rows = figures.bins(*bins.call_args.args)
            self.assertEqual([line.tolist() for line in drawn], [mean.tolist(), fraction.tolist()])
            error = (rows * abs(mean - fraction)).sum() / rows.sum()
            self.assertAlmostEqual(error, quality["calibration_error"], delta=1e-6)

    def test_predictions_are_drawn_as_the_evaluation(self):
        label, probability = numpy.array([0, 1, -1, 1]), numpy.array([0.25, 0.875, 0, 0.75])
        found = Predictions(("a", "b"), (None, None, "blank", None), label, probability=probability)
        axes = figures.confusion(found, [0, 0, 1, 1])
        self.assertEqual([text.get_text() for text in axes.texts], ["1", "1", "0", "1"])
        mean, fraction = figures.calibration(found, [0, 0, 1, 1]).lines[1].get_data()
        self.assertEqual((mean.tolist(), fraction.tolist()), ([0.25, 0.75, 0.875], [0, 1, 0]))
        axes = figures.confusion(found, ["a", "a", "", "b"])
        self.assertEqual([text.get_text() for text in axes.texts], ["1", "1", "0", "1"])
        with self.assertRaisesRegex(ValueError, "3 labels for 4 predictions, expected a label for each"):
            figures.confusion(found, [0, 0, 1])
        for other in (-1, 2, 0.5, "c", None):
            with self.assertRaisesRegex(ValueError, "label 1 is .*, expected a number below 2 or one of a, b"):
                figures.calibration(found, [0, other, 1, 1])
        with self.assertRaisesRegex(ValueError, "has the labels of its texts, expected no others; leave them out"):
            figures.confusion(lstm(), [0])

    def test_what_cannot_be_drawn_is_refused(self):
        with self.assertRaisesRegex(ModelError, "metrics.jsonl: found no losses, expected those of `trainer fit`"):
            figures.curves(ngrams())
        with self.assertRaisesRegex(ModelError, "evaluation.json: not found, expected the evaluation of a training; "):
            figures.confusion(support.folder())
        with self.assertRaisesRegex(ModelError, "this training of n-grams wrote none, .*; draw predictions: load"):
            figures.confusion(ngrams())
        with self.assertRaisesRegex(ModelError, "the model predicts ratings, expected probabilities; "):
            figures.calibration(lstm("--loss rating"))


if __name__ == "__main__":
    unittest.main()
