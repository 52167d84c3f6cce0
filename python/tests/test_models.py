"""`load` predicts as `trainer predict` and `ngrams predict`, and refuses what is no model."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import unittest
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy
import support

from sentimill import DamagedModel, ModelError, load, models

THREE, FIVE = "1-2=bad,3=so so,4-5=good", "1=a,2=b,3=c,4=d,5=e"
# Beside reviews: blank texts, texts that cleaning empties, unknown words, and characters of several lengths.
OTHERS = ["", " \t", "10/10!", "</s>", "qqqq zzzz", "<b>GOOD</b> &amp; Café", "good\rbad", "日本語 good", "__label__x"]
OTHERS += ["the and", "good\nbad", "good bad " * 1500]


def texts() -> list[str]:
    return support.reviews()[1][:400] + OTHERS


@cache
def dataset(labels: str | None, flags: str) -> Path:
    """Returns a dataset of the reviews."""
    out = support.folder() / f"dataset-{dataset.cache_info().misses}.h5"
    options = ["--input", support.reviews()[0], "--out", out, *named(labels), *flags.split()]
    support.run(support.program("sentimill"), *options)
    return out


def lstm(flags: str = "", labels: str | None = None, of_dataset: str = "") -> Path:
    """Returns the training folder of an LSTM."""
    sizes = "--epochs 1 --hidden 12 --embedding 10 --validation-fraction 0.1 --rate 0.01"
    return trained("trainer", "fit", str(dataset(labels, of_dataset)), sizes, flags)


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
            "--bidirectional --layers 2 --pool mean-max --threshold f1",
            "--with-ngrams",
            "--loss rating",
            "--loss five-ratings --calibrate temperature",
            "--calibrate platt --precision f64",
        ):
            with self.subTest(flags):
                self.compare("trainer", lstm(flags), 1e-5)
        for flags in (
            "--max-tokens 9 --keep first --stopwords nltk",
            "--max-tokens 9 --keep last --punctuation",
            "--max-tokens 5000",
        ):
            with self.subTest(flags):
                self.compare("trainer", lstm("--with-ngrams", None, flags), 1e-5)

    def test_an_lstm_of_named_classes_answers_as_trainer(self):
        both = "--with-ngrams --calibrate temperature"
        for labels, flags in (("1-2=bad,4-5=good", both), (THREE, ""), (FIVE, ""), (FIVE, both)):
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
        chosen = "--validation-fraction 0.2 --calibrate"
        self.compare("ngrams", ngrams(f"{chosen} platt --threshold f1"), 1e-6)
        self.compare("ngrams", ngrams(f"{chosen} temperature --model fasttext --epochs 2", THREE), 1e-6)

    def test_a_file_of_the_fasttext_program_answers_as_ngrams(self):
        for name in ("model.bin", "model.ftz"):
            with self.subTest(name):
                file = support.folder() / name
                model = ngrams("--model fasttext --epochs 2 --words spaces --dim 4")
                support.run(support.program("ngrams"), "export", model, "--out", file)
                self.compare("ngrams", file, 1e-6)

    def compare(self, program: str, model: Path, most: float) -> None:
        """Compares predictions of texts, the fields of each, and probabilities up to the difference `most`."""
        lines = texts()
        options = ["--format", "json", *(["--top", "9"] if program == "ngrams" and self.is_of_many(model) else [])]
        printed = support.run(
            support.program(program),
            "predict",
            model,
            *options,
            standard_input="".join(json.dumps({"reviewText": line}) + "\n" for line in lines).encode(),
        )
        expected = [json.loads(line) for line in printed.splitlines()]
        found = load(model).predict(lines)
        self.assertEqual((len(found), len(expected)), (len(lines), len(lines)))
        self.assertGreater(sum(error is None for error in found.error), 300)
        for text, ours, theirs in zip(lines, found, expected, strict=True):
            theirs.pop("line")
            if not text.strip(" \t"):
                # Only a line can be blank; in a record, the programs name what cleaning left.
                self.assertEqual((ours, theirs.keys()), ({"error": "blank"}, {"error"}))
                continue
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
        self.assertEqual(found.names, ["positive", None, None])
        self.assertEqual(repr(found), "Predictions(3 texts, 2 with an error, classes negative, positive)")

    def test_probabilities_have_a_column_per_label(self):
        for model in (ngrams(), lstm(), lstm("", THREE)):
            found = load(model).predict(texts())
            known = found.label >= 0
            self.assertEqual(found.probabilities.shape, (len(texts()), len(found.classes)))
            numpy.testing.assert_allclose(found.probabilities[known].sum(1), 1, atol=1e-6)
            self.assertEqual(found.probabilities[known].argmax(1).tolist(), found.label[known].tolist())

    def test_windows_have_no_effect(self):
        for training in (ngrams(labels=THREE), lstm("--with-ngrams")):
            model = load(training)
            expected = list(model.predict(texts()))
            for limit, most in (("WINDOW_TEXTS", 7), ("WINDOW_LABELS", 30), ("WINDOW_CHARACTERS", 1000)):
                with self.subTest(limit), patch.object(models, limit, most):
                    found = list(model.predict(iter(texts())))
                    for one, other in zip(found, expected, strict=True):
                        self.assertEqual((one.keys(), one.get("label")), (other.keys(), other.get("label")))
                        if "probability" in one:
                            self.assertAlmostEqual(one["probability"], other["probability"], delta=1e-6)

    def test_a_model_is_pickled_by_its_path(self):
        for training in (ngrams(), lstm()):
            model = load(training)
            copy = pickle.loads(pickle.dumps(model))
            self.assertEqual(list(copy.predict(["good"])), list(model.predict(["good"])))

    def test_a_lone_surrogate_is_read_as_a_replacement_character(self):
        for model in (ngrams(), ngrams("--words cleaned-punctuation --buckets 0"), lstm()):
            found = load(model).predict(["good \ud83d bad", "good \ufffd bad"])
            self.assertEqual(found[0], found[1])

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
            for other in (b"good", None, math.nan):
                with self.assertRaisesRegex(TypeError, "text 1 is .*, expected a str; drop missing values"):
                    load(training).predict(["good", other])


class Refused(unittest.TestCase):
    def test_a_damaged_file_is_refused(self):
        for training in (lstm("--with-ngrams"), ngrams()):
            for file in sorted((training / "model").iterdir()):
                # The list itself, what a prediction does not read, and empty lists of words.
                if file.name not in ("SHA256SUMS", "trained_on.json") and file.stat().st_size > 0:
                    with self.subTest(file.name):
                        model = self.copy(training)
                        content = file.read_bytes()
                        (model / file.name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
                        with self.assertRaisesRegex(DamagedModel, f"{file.name}: its SHA-256 is .*, expected "):
                            load(model)

    def test_a_file_without_a_digest_is_refused(self):
        for training, names in ((lstm(), models.FILES), (ngrams(), ("config.json", "model.safetensors"))):
            for name in names:
                with self.subTest(name):
                    model = self.copy(training)
                    lines = (model / "SHA256SUMS").read_text().splitlines(keepends=True)
                    (model / "SHA256SUMS").write_text(
                        "".join(line for line in lines if not line.endswith(f"  {name}\n"))
                    )
                    with self.assertRaisesRegex(ModelError, f"the SHA-256 of {name} is missing, expected one"):
                        load(model)
            (model / "SHA256SUMS").write_bytes(b"")
            self.assertRaises(ModelError, load, model)

    def test_a_file_that_cannot_be_decoded_is_refused(self):
        training = lstm()
        weights = (training / "model/model.safetensors").read_bytes()
        config = json.loads((training / "model/config.json").read_bytes())
        del config["preparation"]
        for name, content in (
            ("config.json", b"[]"),
            ("config.json", b"{"),
            ("config.json", b"7"),
            ("config.json", json.dumps(config).encode()),
            ("model.safetensors", weights[:-1]),
            ("model.safetensors", weights[:20]),
            ("model.safetensors", weights.replace(b"F32", b"I32")),
            ("vocabulary.txt", b"\xff\n"),
        ):
            with self.subTest(name, content=content[:40]):
                model = self.changed(training, name, content)
                with self.assertRaisesRegex(
                    ModelError, "found files that cannot be decoded .*, expected files of a model"
                ):
                    load(model)

    def test_parts_of_different_models_are_refused(self):
        training, other = lstm(), lstm("--bidirectional --layers 2 --pool mean-max --threshold f1")
        words = (training / "model/vocabulary.txt").read_bytes()
        for name, content, expected in (
            ("vocabulary.txt", words + b"qqqq\n", "vocabulary.txt: the number of words is .*, expected "),
            ("vocabulary.txt", b"qqqq" + words[words.index(b"\n") :], "vocabulary.txt: the SHA-256 is .*, expected "),
            (
                "config.json",
                (other / "model/config.json").read_bytes(),
                r"model.safetensors: the shape of lstm.weight_ih_l0_reverse is None, expected \(48, 10\); copy or",
            ),
        ):
            with self.subTest(name), self.assertRaisesRegex(ModelError, expected):
                load(self.changed(training, name, content))

    def test_what_is_no_model_is_refused(self):
        empty = support.folder() / "empty"
        empty.mkdir(exist_ok=True)
        text = support.folder() / "text"
        text.write_text("no model\n")
        for path in (empty, empty / "absent", text, support.small()):
            with self.subTest(path), self.assertRaisesRegex(ModelError, str(path)):
                load(path)
        with self.assertRaisesRegex(
            ModelError, "absent: not found, expected a model or the folder of a training; check"
        ):
            load(empty / "absent")
        begun = support.folder() / "begun"
        begun.mkdir()
        shutil.copy(lstm() / "metrics.jsonl", begun)
        with self.assertRaisesRegex(ModelError, "begun: this training has no model yet, expected .*/model; resume the"):
            load(begun)

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
                config = json.loads((training / "model/config.json").read_bytes())
                config[field] = config[field] | value if isinstance(value, dict) else value
                model = self.changed(training, "config.json", json.dumps(config).encode())
                with self.assertRaisesRegex(ModelError, expected):
                    load(model)

    def changed(self, training: Path, name: str, content: bytes) -> Path:
        """Returns a copy of a model with another file, and its digest."""
        model = self.copy(training)
        (model / name).write_bytes(content)
        (model / "SHA256SUMS").write_bytes(self.sums(model))
        return model

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
