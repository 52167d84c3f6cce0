"""Hugging Face's datasets has the same rows."""

from __future__ import annotations

import unittest

import support

from sentimill import open_dataset


class Arrow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        support.require(support.HAS_DATASETS, "datasets")
        import datasets

        datasets.disable_progress_bars()

    def test_rows_and_types_are_those_of_the_dataset(self):
        for path, element in ((support.demo(), "uint16"), (support.many_words(), "uint32")):
            dataset = open_dataset(path)
            found = dataset.to_datasets()
            self.assertEqual(found.features["ids"].feature.dtype, element)
            self.assertEqual(found.features["label"].names, ["negative", "positive"])
            self.assertEqual(len(found), len(dataset))
            for row, expected in zip(found, dataset, strict=True):
                self.assertEqual(row["ids"], expected.ids.tolist())
                self.assertEqual(row["votes"], expected.votes.tolist())
                self.assertEqual(
                    (row["label"], row["hash"], row["split"]), (expected.label, expected.hash, expected.split)
                )

    def test_labels_have_the_names_of_the_classes(self):
        dataset = open_dataset(support.three_classes())
        found = dataset.to_datasets()
        self.assertEqual(found.features["label"].names, ["so so", "good", "bad"])
        self.assertEqual(found["label"][:], dataset.label.tolist())

    def test_a_split_has_its_rows_alone(self):
        dataset = open_dataset(support.demo())
        rows = dataset.splits().test
        found = dataset.to_datasets(rows)
        self.assertEqual(found["hash"][:], dataset.hash[rows].tolist())
        self.assertEqual(found[-1]["ids"], dataset[int(rows[-1])].ids.tolist())

    def test_its_own_functions_work_on_it(self):
        found = open_dataset(support.small()).to_datasets()
        self.assertEqual(found.train_test_split(test_size=10, seed=1)["test"].num_rows, 10)
        longest = found.map(lambda row: {"length": len(row["ids"])}).sort("length")[-1]
        self.assertEqual(longest["length"], max(open_dataset(support.small()).lengths))
        self.assertEqual(found.with_format("pandas")[:]["label"].sum(), open_dataset(support.small()).label.sum())


if __name__ == "__main__":
    unittest.main()
