"""PyTorch's DataLoader receives each row once, in an order that the seed determines."""

from __future__ import annotations

import unittest

import h5py
import numpy as np
import support
from test_damage import copy_of, flip

from sentimill import open_dataset


class Loading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        support.require(support.HAS_TORCH, "torch")
        cls.dataset = open_dataset(support.demo())

    def hashes(self, stream, **options):
        from torch.utils.data import DataLoader

        return [hash_ for batch in DataLoader(stream, batch_size=500, collate_fn=hashes, **options) for hash_ in batch]

    def test_two_workers_yield_each_row_exactly_once(self):
        expected = self.dataset.hash.tolist()
        self.assertEqual(len(set(expected)), len(expected))
        for seed in (None, 3):
            found = self.hashes(self.dataset.to_torch(seed=seed), num_workers=2)
            self.assertEqual(sorted(found), expected, seed)
            self.assertNotEqual(found, expected)

    def test_one_process_reads_in_the_order_of_the_file_without_a_seed(self):
        self.assertEqual(self.hashes(self.dataset.to_torch()), self.dataset.hash.tolist())

    def test_ranks_and_their_workers_share_the_rows_of_a_split(self):
        rows = self.dataset.splits().test
        found = []
        for rank in range(3):
            share = self.hashes(self.dataset.to_torch(rows, 1, rank, 3), num_workers=2)
            self.assertLess(abs(len(share) - len(rows) / 3), len(rows) / 20)
            found += share
        self.assertEqual(sorted(found), self.dataset.hash[rows].tolist())

    def test_seed_and_epoch_determine_the_order(self):
        def order(seed, epoch):
            stream = self.dataset.to_torch(seed=seed)
            stream.set_epoch(epoch)
            return self.hashes(stream, num_workers=2)

        first = order(1, 0)
        self.assertEqual(order(1, 0), first)
        self.assertNotEqual(order(2, 0), first)
        self.assertNotEqual(order(1, 1), first)
        # Rows leave the blocks in which they are read.
        moved = np.abs(np.argsort(np.argsort(first)) - np.arange(len(first)))
        self.assertGreater(np.median(moved), len(first) / 10)

    def test_workers_that_are_spawned_read_the_dataset_too(self):
        rows = np.arange(100)
        found = self.hashes(self.dataset.to_torch(rows), num_workers=1, multiprocessing_context="spawn")
        self.assertEqual(found, self.dataset.hash[:100].tolist())

    def test_collate_pads_rows_and_keeps_their_content(self):
        from torch.utils.data import DataLoader

        from sentimill.pytorch import collate

        n_rows = 0
        for batch in DataLoader(self.dataset.to_torch(), batch_size=1000, collate_fn=collate):
            rows = self.dataset.rows(n_rows, n_rows + len(batch.label))
            n_rows += len(rows)
            self.assertEqual(batch.ids.shape, (len(rows), max(len(row.ids) for row in rows)))
            for row, ids, length in zip(rows, batch.ids.tolist(), batch.lengths.tolist(), strict=True):
                self.assertEqual(ids[:length], row.ids.tolist())
                self.assertFalse(any(ids[length:]))
            self.assertEqual(batch.label.tolist(), [row.label for row in rows])
            self.assertEqual(batch.votes.tolist(), [row.votes.tolist() for row in rows])
        self.assertEqual(n_rows, len(self.dataset))

    def test_a_dataset_itself_is_a_map_style_dataset(self):
        from torch.utils.data import DataLoader

        from sentimill.pytorch import collate

        small = open_dataset(support.small())
        batches = list(DataLoader(small, batch_size=16, shuffle=True, num_workers=2, collate_fn=collate))
        self.assertEqual(sum(len(batch.label) for batch in batches), len(small))

    def test_damage_in_a_worker_reaches_the_parent_process(self):
        path = copy_of(support.demo())
        with h5py.File(path) as file:
            stored = file["tokens"].id.get_chunk_info(2)
        flip(path, stored.byte_offset + 5)
        with self.assertRaisesRegex(Exception, "chunk 2 of tokens"):
            self.hashes(open_dataset(path).to_torch(), num_workers=1)

    def test_rows_out_of_order_and_wrong_ranks_are_refused(self):
        for rows in ([3, 2], [1, 1], [-1], [len(self.dataset)]):
            with self.assertRaisesRegex(ValueError, "ascending"):
                self.dataset.to_torch(np.array(rows))
        with self.assertRaisesRegex(ValueError, "world size"):
            self.dataset.to_torch(rank=2, world_size=2)


def hashes(rows):
    return [row.hash for row in rows]


if __name__ == "__main__":
    unittest.main()
