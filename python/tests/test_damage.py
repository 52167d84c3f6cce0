"""A damaged or altered file is refused, or reads as the intact one."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import unittest
from pathlib import Path

import h5py
import numpy as np
import support

from sentimill import DamagedDataset, DatasetError, NotADataset, open_dataset
from sentimill.dataset import COLUMNS

N_FLIPS = 1500


class Flips(unittest.TestCase):
    def test_a_flipped_byte_is_refused_or_changes_nothing(self):
        intact = support.small().read_bytes()
        expected = content(open_dataset(support.small()))
        choice = random.Random(5)
        places = range(len(intact)) if os.environ.get("PROVE") else sorted(choice.sample(range(len(intact)), N_FLIPS))
        n_refused = 0
        path = support.folder() / "flipped.h5"
        for at in places:
            damaged = bytearray(intact)
            damaged[at] ^= choice.randrange(1, 256)
            path.write_bytes(damaged)
            try:
                found = content(open_dataset(path))
            except DatasetError:
                n_refused += 1
                continue
            self.assertEqual(found, expected, f"byte {at}")
        # Some bytes have no effect: HDF5 leaves gaps between its objects, and stores sizes of heaps twice.
        self.assertGreater(n_refused, len(places) // 2)

    def test_a_cut_file_is_refused(self):
        intact = support.small().read_bytes()
        path = support.folder() / "cut.h5"
        for length in [0, 1, 8, 100, len(intact) // 2, len(intact) - 1]:
            path.write_bytes(intact[:length])
            with self.assertRaises(DatasetError):
                content(open_dataset(path))

    def test_damage_of_a_chunk_is_reported_with_column_and_chunk_when_it_is_read(self):
        for column, chunk in [("tokens", 3), ("votes", 1), ("label", 0)]:
            path = copy_of(support.demo())
            with h5py.File(path) as file:
                stored = file[column].id.get_chunk_info(chunk)
            flip(path, stored.byte_offset + stored.size // 2)
            dataset = open_dataset(path)
            for other in set(COLUMNS) - {column}:
                dataset.column(other)
            with self.assertRaises(DamagedDataset) as refused:
                dataset.column(column)
            error = refused.exception
            for found in (error, pickle.loads(pickle.dumps(error))):
                self.assertEqual((found.path, found.column, found.chunk), (str(path), column, chunk))
            self.assertRegex(str(refused.exception), rf"{path}: chunk {chunk} of {column}: digest \w+, expected \w+; ")
            with self.assertRaises(DamagedDataset):
                open_dataset(path, verify="all")

    def test_digests_of_chunks_are_omitted_only_on_request(self):
        path = copy_of(support.small())
        with h5py.File(path) as file:
            stored = file["votes"].id.get_chunk_info(0)
        # The last byte belongs to the chunk's checksum, which does not affect an element.
        flip(path, stored.byte_offset + stored.size - 1)
        votes = open_dataset(path, verify=False).votes
        np.testing.assert_array_equal(votes, open_dataset(support.small()).votes)
        with self.assertRaises(DamagedDataset):
            open_dataset(path).votes  # noqa: B018


class Altered(unittest.TestCase):
    """A file that h5py has changed, with valid checksums of HDF5."""

    def altered(self, change):
        path = copy_of(support.small())
        with h5py.File(path, "r+") as file:
            change(file)
        with self.assertRaises(DamagedDataset) as refused:
            open_dataset(path)
        return str(refused.exception)

    def test_attributes_are_refused(self):
        def other_value(file):
            file.attrs["max_tokens"] = np.uint64(7)

        def other_type(file):
            del file.attrs["positive_from"]
            file.attrs["positive_from"] = np.uint32(4)

        def list_of_numbers(file):
            del file.attrs["positive_from"]
            file.attrs["positive_from"] = np.array([4, 4], np.uint64)

        def further(file):
            file.attrs["colour"] = np.uint64(1)

        def absent(file):
            del file.attrs["keep"]

        self.assertIn("attribute max_tokens: does not match its digest", self.altered(other_value))
        self.assertIn("attribute positive_from: neither a text nor a u64", self.altered(other_type))
        self.assertIn("attribute positive_from: not a scalar", self.altered(list_of_numbers))
        self.assertIn("attribute colour: does not match its digest", self.altered(further))
        self.assertIn("attribute keep: missing", self.altered(absent))
        self.assertIn("label: has attributes", self.altered(lambda file: file["label"].attrs.create("unit", 1)))

    def test_objects_and_layouts_are_refused(self):
        def other_filters(file):
            label = file["label"][:]
            del file["label"]
            file.create_dataset("label", data=label, chunks=label.shape, compression="gzip")

        def other_shape(file):
            label = file["label"][:-1]
            del file["label"]
            file.create_dataset("label", data=label, chunks=label.shape, compression=1, shuffle=True, fletcher32=True)

        def other_type(file):
            del file["label"]
            file.create_group("label")

        def absent(file):
            del file["hash"]

        self.assertIn("the root group: found", self.altered(lambda file: file.create_dataset("more", data=[1])))
        self.assertIn("group vocabulary: found", self.altered(lambda file: file.create_group("vocabulary/more")))
        self.assertIn("the root group: found", self.altered(absent))
        self.assertIn("label: filters", self.altered(other_filters))
        self.assertIn("label: type or shape differs", self.altered(other_shape))
        self.assertIn("unreadable", self.altered(other_type))

    def test_links_and_storage_in_other_places_are_refused(self):
        n_rows = len(open_dataset(support.small()))
        elsewhere = support.folder() / "elsewhere.h5"
        shutil.copyfile(support.small(), elsewhere)

        def symbolic(file):
            file.move("label", "other")
            file["label"] = h5py.SoftLink("/other")

        def external(file):
            del file["label"]
            file["label"] = h5py.ExternalLink(str(elsewhere), "/label")

        def external_word(file):
            del file["vocabulary/count"]
            file["vocabulary/count"] = h5py.ExternalLink(str(elsewhere), "/vocabulary/count")

        def virtual(file):
            del file["label"]
            layout = h5py.VirtualLayout((n_rows,), np.uint8)
            layout[:] = h5py.VirtualSource(str(elsewhere), "label", (n_rows,))
            file.create_virtual_dataset("label", layout)

        def in_another_file(file):
            del file["label"]
            file.create_dataset("label", (n_rows,), np.uint8, external=[(str(elsewhere), 0, n_rows)])

        for change in (symbolic, external):
            self.assertIn("label: a link to another place", self.altered(change))
        self.assertIn("vocabulary/count: a link to another place", self.altered(external_word))
        for change in (virtual, in_another_file):
            self.assertIn("label: its storage is not that of the format", self.altered(change))

    def test_a_chunk_that_is_stored_anew_is_refused(self):
        path = copy_of(support.small())
        with h5py.File(path, "r+") as file:
            file["label"][0] = 1 - file["label"][0]
        dataset = open_dataset(path)
        with self.assertRaisesRegex(DamagedDataset, "chunk 0 of label: digest"):
            dataset[0]


class OtherFiles(unittest.TestCase):
    def test_files_of_other_kinds_are_refused_by_what_they_are(self):
        folder = support.folder()
        text = folder / "text.h5"
        text.write_text("no dataset\n")
        with self.assertRaisesRegex(DamagedDataset, "HDF5 structure"):
            open_dataset(text)
        other = folder / "other.h5"
        with h5py.File(other, "w") as file:
            file["x"] = [1]
        with self.assertRaisesRegex(NotADataset, "not a Sentimill dataset"):
            open_dataset(other)
        pipe = folder / "pipe.h5"
        os.mkfifo(pipe)
        with self.assertRaisesRegex(NotADataset, "not a regular file"):
            open_dataset(pipe)
        with self.assertRaises(FileNotFoundError):
            open_dataset(folder / "missing.h5")

    def test_a_shard_is_refused_by_its_format(self):
        lines, run = support.small().with_suffix(".json"), support.folder() / "run"
        records = support.run(support.program("mapper"), standard_input=lines.read_bytes())
        records = b"".join(sorted(records.splitlines(keepends=True)))
        partition = ["--partition", "0", "--partitions", "1", "--run", run]
        support.run(support.program("reducer"), *partition, standard_input=records)
        (shard,) = (run / "data").glob("*.h5")
        with self.assertRaisesRegex(NotADataset, "format `sentimill shard`, expected `sentimill dataset`"):
            open_dataset(shard)


def content(dataset):
    """Returns everything that a dataset holds."""
    dataset.verify()
    columns = [dataset.column(name).tobytes() for name in COLUMNS]
    return columns, dataset.vocabulary, dataset.vocabulary_count.tobytes(), dataset.settings


def copy_of(path: Path) -> Path:
    copy = support.folder() / "copy.h5"
    shutil.copyfile(path, copy)
    return copy


def flip(path: Path, at: int) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0x10
    path.write_bytes(damaged)


if __name__ == "__main__":
    unittest.main()
