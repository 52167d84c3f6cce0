"""`load` predicts as `trainer predict` and `ngrams predict`, and refuses what is no model."""

from __future__ import annotations

import json
import math
import shutil
import unittest
from functools import cache
from pathlib import Path

import numpy
import support

from sentimill import DamagedModel, ModelError, load

THREE, FIVE = "1-2=bad,3=so so,4-5=good", "1=a,2=b,3=c,4=d,5=e"
# Beside reviews: blank texts, texts that cleaning empties, unknown words, and characters of several lengths.
OTHERS = ["", " \t", "10/10!", "</s>", "qqqq zzzz", "<b>GOOD</b> &amp; Café", "good\rbad", "日本語 good", "__label__x"]


def texts() -> list[str]:
    return support.reviews()[1][:400] + OTHERS


@cache
def dataset(labels: str | None) -> Path:
    """Returns a dataset of the reviews."""
    out = support.folder() / f"of-{labels}.h5"
    support.run(support.program("sentimill"), "--input", support.reviews()[0], "--out", out, *named(labels))
    return out


def lstm(flags: str = "", labels: str | None = None) -> Path:
    """Returns the training folder of an LSTM."""
    sizes = "--epochs 2 --hidden 12 --embedding 10 --validation-fraction 0.1 --rate 0.01"
    return trained("trainer", "fit", str(dataset(labels)), sizes, flags)


def ngrams(flags: str = "", labels: str | None = None) -> Path:
    """Returns the training folder of a model of n-grams."""
    return trained("ngrams", "train", "--input", str(support.reviews()[0]), flags, *named(labels))


@cache
def trained(program: str, *arguments: str) -> Path:
    out = support.folder() / f"training-{len(list(support.folder().iterdir()))}"
    separate = [one for argument in arguments for one in (argument.split() if argument[:2] == "--" else [argument])]
    support.run(support.program(program), *filter(None, separate), "--out", out)
    return out


def named(labels: str | None) -> list[str]:
    return ["--labels", labels] if labels else []


class Answers(unittest.TestCase):
    def test_an_lstm_answers_as_trainer(self):
        for flags in (
            "",
            "--bidirectional --layers 2 --pool mean-max",
            "--with-ngrams",
            "--loss rating",
            "--loss five-ratings --calibrate temperature",
            "--calibrate platt --precision f64",
            "--threshold f1",
        ):
            with self.subTest(flags):
                self.compare("trainer", lstm(flags), 1e-5)

    def test_an_lstm_of_named_classes_answers_as_trainer(self):
        for labels in ("1-2=bad,4-5=good", THREE, FIVE):
            for flags in ("", "--with-ngrams --calibrate temperature"):
                with self.subTest(labels, flags=flags):
                    self.compare("trainer", lstm(flags, labels), 1e-5)

    def test_ngrams_answer_as_ngrams(self):
        for flags in (
            "",
            "--words cleaned",
            "--words cleaned-punctuation --buckets 0",
            "--weights tf-idf --loss squared-hinge",
            "--model fasttext --epochs 2",
            "--model fasttext --epochs 2 --words cleaned --char-ngrams 3-4 --loss bce",
        ):
            for labels in (None, THREE):
                with self.subTest(flags, labels=labels):
                    self.compare("ngrams", ngrams(flags, labels), 1e-6)
        for labels in ("1-2=bad,4-5=good", FIVE):
            with self.subTest(labels):
                self.compare("ngrams", ngrams("", labels), 1e-6)

    def test_a_file_of_the_fasttext_program_answers_as_ngrams(self):
        for name in ("model.bin", "model.ftz"):
            with self.subTest(name):
                file = support.folder() / name
                model = ngrams("--model fasttext --epochs 2 --words spaces --dim 4")
                support.run(support.program("ngrams"), "export", model, "--out", file)
                self.compare("ngrams", file, 1e-6)

    def compare(self, program: str, model: Path, most: float) -> None:
        """Compares predictions of texts, the fields of each, and probabilities up to the difference `most`."""
        lines = [text for text in texts() if "\n" not in text]
        options = ["--format", "text", *(["--top", "9"] if program == "ngrams" and self.is_of_many(model) else [])]
        printed = support.run(
            support.program(program),
            "predict",
            model,
            *options,
            standard_input="".join(line + "\n" for line in lines).encode(),
        )
        expected = [json.loads(line) for line in printed.splitlines()]
        found = load(model).predict(lines)
        self.assertEqual((len(found), len(expected)), (len(lines), len(lines)))
        self.assertGreater(sum(error is None for error in found.error), 300)
        for text, ours, theirs in zip(lines, found, expected, strict=True):
            theirs.pop("line")
            self.assertEqual(ours.keys(), theirs.keys(), text)
            for field, value in theirs.items():
                if isinstance(value, dict):
                    self.assertEqual(ours[field].keys(), value.keys(), text)
                    self.assertLess(max(abs(ours[field][name] - value[name]) for name in value), most, text)
                elif field in ("score", "rating"):
                    self.assertTrue(math.isclose(ours[field], value, rel_tol=1e-4, abs_tol=1e-4), (text, ours, theirs))
                elif isinstance(value, float):
                    self.assertLess(abs(ours[field] - value), most, text)
                else:
                    self.assertEqual(ours[field], value, text)

    @staticmethod
    def is_of_many(model: Path) -> bool:
        return len(load(model).classes) > 2


class Predictions(unittest.TestCase):
    def test_arrays_have_an_element_per_text(self):
        found = load(ngrams()).predict(["good", "", "qqqq zzzz"])
        self.assertEqual(found.error, (None, "blank", "only_unknown"))
        self.assertEqual(found.label[1:].tolist(), [-1, -1])
        self.assertTrue(numpy.isnan(found.probability[1:]).all() and numpy.isnan(found.score[1:]).all())
        self.assertEqual(found[0]["probability"], found.probability[0])
        self.assertEqual(found[1:], [{"error": "blank"}, {"error": "only_unknown"}])
        self.assertEqual(found[-1], found[2])

    def test_no_texts_have_no_predictions(self):
        for model in (ngrams(), ngrams(labels=THREE), lstm(), lstm("", THREE)):
            self.assertEqual(list(load(model).predict([])), [])

    def test_predictions_do_not_depend_on_other_texts(self):
        for model in (lstm(), lstm("--with-ngrams"), ngrams()):
            loaded = load(model)
            together = loaded.predict(texts())
            alone = [loaded.predict([text])[0] for text in texts()[:50]]
            for one, other in zip(alone, together[:50], strict=True):
                self.assertAlmostEqual(one["probability"], other["probability"], delta=1e-6)

    def test_one_text_in_place_of_several_is_refused(self):
        model = load(ngrams())
        with self.assertRaisesRegex(TypeError, r"texts is a str, expected several: predict\(\[text\]\)"):
            model.predict("good")
        for training in (ngrams(), lstm()):
            self.assertRaises(TypeError, load(training).predict, [b"good"])


class Refused(unittest.TestCase):
    def test_a_damaged_file_is_refused(self):
        for training in (lstm("--with-ngrams"), ngrams()):
            for file in sorted((training / "model").iterdir()):
                if file.name != "SHA256SUMS":
                    with self.subTest(file.name):
                        model = self.copy(training)
                        (model / file.name).write_bytes(file.read_bytes() + b"?")
                        with self.assertRaisesRegex(DamagedModel, f"{file.name}: its SHA-256 is .*, expected "):
                            load(model)

    def test_what_is_no_model_is_refused(self):
        empty = support.folder() / "empty"
        empty.mkdir(exist_ok=True)
        text = support.folder() / "text"
        text.write_text("no model\n")
        for path in (empty, empty / "absent", text, support.small()):
            with self.subTest(path), self.assertRaisesRegex(ModelError, str(path)):
                load(path)

    def test_another_version_is_refused(self):
        for training, field, value, expected in (
            (lstm(), "format_version", 9, "config.json: the format version is 9, expected 1 or 2; use sentimill "),
            (ngrams(), "format_version", 9, "config.json: format_version is 9, expected "),
            (lstm(), "preparation", {"unicode_version": "16.0.0"}, "the Unicode version is 16.0.0, expected 17.0.0"),
            (
                lstm(),
                "preparation",
                {"cleaning_version": 7},
                "the cleaning version is 7, expected 1 or 2; predict with",
            ),
            (lstm(), "scoring", None, "a next-word model, expected a classifier; train one with `trainer fit"),
        ):
            with self.subTest(field=field, value=value):
                model = self.copy(training)
                config = json.loads((model / "config.json").read_bytes())
                config[field] = config[field] | value if isinstance(value, dict) else value
                (model / "config.json").write_text(json.dumps(config))
                (model / "SHA256SUMS").write_bytes(self.sums(model))
                with self.assertRaisesRegex(ModelError, expected):
                    load(model)

    @staticmethod
    def copy(training: Path) -> Path:
        model = support.folder() / "copy"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(training / "model", model)
        return model

    @staticmethod
    def sums(model: Path) -> bytes:
        names = sorted(path.name for path in model.iterdir() if path.name != "SHA256SUMS")
        return support.run("bash", "-c", 'cd "$0" && sha256sum "$@"', model, *names)


if __name__ == "__main__":
    unittest.main()
