"""Rows, columns, words and settings are those that h5py reads from the same file."""

from __future__ import annotations

import itertools
import json
import pickle
import unittest
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import support

from sentimill import open_dataset
from sentimill.dataset import COLUMNS
from sentimill.settings import are_classes


class Content(unittest.TestCase):
    def test_columns_are_those_that_h5py_reads(self):
        for path in (support.demo(), support.small(), support.many_words()):
            with h5py.File(path) as file, open_dataset(path) as dataset:
                self.assertEqual(len(dataset), file["label"].shape[0])
                self.assertEqual(dataset.n_tokens, file["tokens"].shape[0])
                for name in COLUMNS:
                    found, expected = getattr(dataset, name), file[name][:]
                    self.assertEqual(found.dtype, expected.dtype, name)
                    np.testing.assert_array_equal(found, expected, name)
                np.testing.assert_array_equal(dataset.vocabulary_count, file["vocabulary/count"][:])

    def test_the_datasets_of_the_tests_have_several_chunks_and_both_types_of_ids(self):
        with h5py.File(support.demo()) as file:
            for name in ("tokens", "offsets", "votes", "hash"):
                self.assertGreater(file[name].id.get_num_chunks(), 1, name)
        self.assertEqual(open_dataset(support.demo()).tokens.dtype, np.uint16)
        self.assertEqual(open_dataset(support.many_words()).tokens.dtype, np.uint32)

    def test_rows_and_texts_are_those_that_h5py_reads(self):
        for path in (support.demo(), support.many_words()):
            words, rows = by_h5py(path)
            dataset = open_dataset(path)
            self.assertEqual(dataset.vocabulary, words[2:])
            n_compared = 0
            for row, text, expected in zip(dataset, dataset.texts(), rows, strict=True):
                ids, label, votes, hash_, split = expected
                self.assertEqual(row.ids.tolist(), ids)
                self.assertEqual(text, " ".join(words[at] for at in ids))
                self.assertEqual((row.label, row.votes.tolist(), row.hash, row.split), (label, votes, hash_, split))
                n_compared += 1
            self.assertEqual(n_compared, len(dataset))

    def test_rows_by_number_and_by_slice_are_those_of_iteration(self):
        dataset = open_dataset(support.demo())
        n_rows = len(dataset)
        self.assertGreater(n_rows, 32768 + 10)
        rows = list(dataset)
        numbers = [0, 1, 4095, 4096, 16383, 16384, 32767, 32768, n_rows - 1, -1, -n_rows]
        numbers += np.random.default_rng(1).integers(0, n_rows, 500).tolist()
        for at in numbers:
            self.assertTrue(same(dataset[at], rows[at]), at)
            self.assertEqual(dataset.text(at), dataset.decode(rows[at].ids))
        for part in (slice(5), slice(4090, 4099), slice(-3, None), slice(3, 3), slice(20, 4, -3), slice(32760, 32780)):
            self.assertTrue(all(map(same, dataset[part], rows[part])), part)
            self.assertEqual(len(dataset[part]), len(rows[part]))
        for at in (n_rows, -n_rows - 1):
            with self.assertRaises(IndexError):
                dataset[at]

    def test_lengths_and_ratings_follow_from_offsets_and_votes(self):
        dataset = open_dataset(support.demo())
        self.assertEqual(dataset.lengths.tolist(), [len(row.ids) for row in dataset])
        for row, rating in zip(dataset, dataset.rating.tolist(), strict=True):
            most = max(row.votes)
            self.assertEqual(rating, next(stars for stars in range(1, 6) if row.votes[stars - 1] == most))
            self.assertEqual(row.label, int(rating >= dataset.settings.positive_from))

    def test_labels_are_indices_of_class_names(self):
        self.assertEqual(open_dataset(support.small()).settings.class_names, ("negative", "positive"))
        dataset = open_dataset(support.three_classes())
        self.assertEqual((dataset.settings.positive_from, dataset.settings.labels), (None, "3=so so,4-5=good,1=bad"))
        names = [dataset.settings.class_names[label] for label in dataset.label]
        of_rating = {1: "bad", 3: "so so", 4: "good", 5: "good"}
        self.assertEqual(names, [of_rating[rating] for rating in dataset.rating.tolist()])
        self.assertEqual((len(dataset), len(set(names))), (48, 3))

    def test_a_sample_has_the_rows_below_its_setting(self):
        whole, sampled = open_dataset(support.small()), open_dataset(support.sampled())
        self.assertEqual((whole.settings.sample, sampled.settings.sample), (None, 2**31))
        expected = [hash for hash in whole.hash.tolist() if hash % 2**32 < 2**31]
        self.assertEqual(sampled.hash.tolist(), expected)
        self.assertTrue(10 < len(expected) < 50)

    def test_a_text_of_another_form_has_no_classes(self):
        for labels in ("1-2=negative,3=neutral,4-5=positive", "5=a,1=b"):
            self.assertTrue(are_classes(labels), labels)
        for labels in ("", "1=a", "1=a,2", "1=a,6=b", "1=a,2=b=c", "1=a,2=", "1=a,,2=b"):
            self.assertFalse(are_classes(labels), labels)

    def test_settings_and_digests_are_those_of_the_manifest(self):
        path = support.demo()
        manifest = json.loads(path.with_suffix(".manifest.json").read_text())
        settings = open_dataset(path).settings
        expected = manifest["settings"]["rows"] | manifest["digests"]
        expected["vocabulary_size"] = manifest["settings"]["vocabulary_size"]
        expected["stop_words"] = tuple(expected["stop_words"])
        for name, value in expected.items():
            self.assertEqual(getattr(settings, name), value, name)
        self.assertIsNone(settings.vocabulary_of)

    def test_a_dataset_is_read_after_pickling_and_by_many_threads(self):
        dataset = open_dataset(support.demo())
        again = pickle.loads(pickle.dumps(dataset))
        self.assertTrue(same(again[7], dataset[7]))
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda at: dataset[at].hash, range(0, len(dataset), 50)))
        self.assertEqual(found, dataset.hash[::50].tolist())

    def test_a_changed_array_does_not_change_the_dataset(self):
        dataset = open_dataset(support.small())
        before = dataset[3]
        for name in COLUMNS:
            dataset.column(name)[:] = 0
        dataset[3].ids[:] = 0
        self.assertTrue(same(dataset[3], before))

    def test_a_closed_dataset_and_an_unknown_column_are_refused(self):
        dataset = open_dataset(support.small())
        with self.assertRaisesRegex(KeyError, "tokens, offsets, label, votes, hash, split"):
            dataset.column("vocabulary/count")
        dataset.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            dataset[0]


class SplitsOfTrainer(unittest.TestCase):
    def test_splits_are_those_of_trainer_fit(self):
        dataset = open_dataset(support.small())
        text_of = {at: text.split() for at, text in enumerate(dataset.texts())}
        for number, (test, validation) in enumerate([(0.1, 0.05), (0.07, 0.3), (0.2905, 0.001), (0.3, 0.0)]):
            out = support.folder() / f"training-{number}"
            flags = ["--embedding", "2", "--hidden", "2", "--linear", "2", "--epochs", "1", "--out", out]
            flags += ["--test-fraction", str(test), "--validation-fraction", str(validation)]
            splits = dataset.splits(test, validation)
            if validation and not splits.validation.size:
                # `fit` refuses an empty validation split if --validation-fraction is above 0.
                continue
            support.run(support.program("trainer"), "fit", support.small(), *flags)
            events = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
            epoch = next(event for event in events if event["event"] == "epoch")
            evaluation = json.loads((out / "evaluation.json").read_text())
            validated = epoch["validation"]["rows"] if epoch.get("validation") else 0
            self.assertEqual(
                [sum(rank["rows"] for rank in epoch["ranks"]), validated, evaluation["metrics"]["rows"]],
                [rows.size for rows in splits],
            )
            for wrong in evaluation["wrong"]:
                self.assertIn(wrong["row"], splits.test)
                self.assertEqual(wrong["words"], text_of[wrong["row"]])

    def test_each_row_is_in_one_split(self):
        dataset = open_dataset(support.demo())
        splits = dataset.splits(0.1, 0.05)
        self.assertEqual(sorted(itertools.chain(*splits)), list(range(len(dataset))))
        self.assertTrue((dataset.split[splits.test] < 100).all())

    def test_a_fraction_is_the_decimal_that_was_written(self):
        # 1000 * 0.07 is 70.00000000000001 in floating point.
        dataset = open_dataset(support.demo())
        self.assertEqual(dataset.split[dataset.splits(0.07).test].max(), 69)
        self.assertEqual(dataset.split[dataset.splits(0.0701).test].max(), 70)

    def test_fractions_that_leave_no_row_for_training_are_refused(self):
        dataset = open_dataset(support.small())
        for test, validation in [(1.0, 0.0), (0.5, 0.5), (-0.1, 0.0), (float("nan"), 0.0)]:
            with self.assertRaises(ValueError):
                dataset.splits(test, validation)


def by_h5py(path):
    """Returns all words by id, and an iterator over rows, as the format's description reads them."""
    with h5py.File(path) as file:
        letters, ends = bytes(file["vocabulary/bytes"][:]), file["vocabulary/offsets"][:]
        words = ["(padding)", "(unknown)"]
        words += [letters[begin:end].decode() for begin, end in itertools.pairwise(ends)]
        tokens, offsets = file["tokens"][:], file["offsets"][:].tolist()
        columns = [file[name][:].tolist() for name in ("label", "votes", "hash", "split")]
    ids = (tokens[begin:end].tolist() for begin, end in itertools.pairwise(offsets))
    return words, zip(ids, *columns, strict=True)


def same(row, other):
    return all(np.array_equal(value, expected) for value, expected in zip(row, other, strict=True))


if __name__ == "__main__":
    unittest.main()
