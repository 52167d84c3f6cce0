"""Tests the oracle: its computation, its comparison, its check of padded files.

Expected results are the literals of cases.py; the compared files are those of planted.py. Tests that need
h5py or datasets are skipped with a notice if these are not installed.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from importlib.util import find_spec

import spec
import xxhash
from cases import CLEANED, GOOD, JAVA_HASHES, KEPT, LINES, MODES, PUNCTUATED, RATED
from cases import JUDGED, JUDGED_CSV, JUDGED_FASTTEXT, JUDGED_TITLED

HAS_H5PY = find_spec("h5py") is not None
HAS_DATASETS = find_spec("datasets") is not None
if HAS_H5PY:
    import h5py
    import numpy as np

    import compare
    import dataset_file as form
    import padded
    from planted import PADDED_PLANTED, PLANTED, SETTINGS, WORDS, Plan, change, made, some_lines

HERE = os.path.dirname(os.path.abspath(__file__))


class Reading(unittest.TestCase):
    """Compares spec.py with literals."""

    def test_text_is_cleaned_in_five_steps(self):
        for text, cleaned in CLEANED:
            with self.subTest(text=text[:60]):
                self.assertEqual(spec.clean(text), cleaned)

    def test_punctuation_is_kept_as_words(self):
        for text, cleaned in PUNCTUATED:
            with self.subTest(text=text):
                self.assertEqual(spec.clean(text, punctuation=True), cleaned)

    def test_cleaning_a_cleaned_text_changes_nothing(self):
        for cases, punctuation in ((CLEANED, False), (PUNCTUATED, True)):
            for _, cleaned in cases:
                self.assertEqual(spec.clean(cleaned, punctuation), cleaned)

    def test_lines_end_as_in_hadoop(self):
        for content, lines in LINES:
            with self.subTest(content=content):
                self.assertEqual(list(spec.read_lines(io.BytesIO(content))), lines)

    def test_each_line_has_one_entry_in_the_ledger(self):
        formats = (
            (spec.Fields(), JUDGED),
            (spec.Fields(format="polarity-csv"), JUDGED_CSV),
            (spec.Fields(format="polarity-csv", with_title=True), JUDGED_TITLED),
            (spec.Fields(format="fasttext"), JUDGED_FASTTEXT),
        )
        for fields, cases in formats:
            for line, judged in cases:
                with self.subTest(fields=fields, line=line[:80]):
                    self.assertEqual(spec.judge(line, fields)[:3], judged)

    def test_classes_have_the_given_ratings(self):
        for named, line in (("polarity-csv", b'"good","ok"'), ("fasttext", b"__label__good ok")):
            fields = spec.Fields(format=named, class_ratings=(("good", 4),))
            self.assertEqual(spec.judge(line, fields)[:3], ("reviews", "ok", 4))
            self.assertEqual(spec.judge(line.replace(b"good", b"1"), fields)[0], "bad_rating")

    def test_length_limit_counts_the_line_without_its_end(self):
        fields = spec.Fields(line_bytes_max=len(GOOD))
        self.assertEqual(spec.judge(GOOD, fields)[0], "reviews")
        self.assertEqual(spec.judge(GOOD + b" ", fields)[0], "line_too_long")
        self.assertEqual(spec.judge(b" " * 100, fields)[0], "blank")

    def test_each_element_of_a_list_is_judged(self):
        fields = spec.Fields(text="title,a.l[].t", rating="a.l[].r")
        line = b'{"title":"x","a":{"l":[{"t":"ok","r":5},{"r":1},7]}}'
        judged = [("reviews", "x ok", 5), ("reviews", "x", 1), ("bad_rating", None, None)]
        self.assertEqual([judgement[:3] for judgement in spec.judge_all(line, fields)], judged)
        for line in (b'{"title":"x","a":{"l":[]}}', b'{"a":{"l":7}}', b"{'a': {}}"):
            self.assertEqual(spec.judge(line, fields)[0], "no_text")
        one = b'{"a":{"l":{"t":"ok","r":4}}}'
        self.assertEqual(spec.judge(one, fields)[:3], ("reviews", "ok", 4))

    def test_scales_classes_and_unrated_values_are_applied_in_their_order(self):
        scale, unrated = (1.0, 10.0), ("null", "0", "n/a")
        fields = spec.Fields(scale=scale, unrated=unrated, class_ratings=(("true", 5), ("so, so", 3)))
        for value, rating in (
            (1, 1), (10.0, 5), (7, 4), (5.5, 3), (11, None), ("7/10", 4), ("7/5", None), ("3,5", 2), ("8 %", None),
            ("10 stars", 5), ("\u2605\u2605", 1), ("\u2605\u2606", None), (True, 5), ("True", 5), (False, None),
            ("so, so", 3), (None, "unrated"), (0, "unrated"), ("0.0", "unrated"), ("", "unrated"), ("n/a", "unrated"),
            ("N/A", None), ([5], None),
        ):
            with self.subTest(value=value):
                self.assertEqual(spec.rating_of(value, fields), rating)

    def test_presets_name_other_fields(self):
        line = b'{"text":"ok","stars":4,"rating":"2.0"}'
        self.assertEqual(spec.judge(line, spec.PRESETS["yelp"])[:3], ("reviews", "ok", 4))
        self.assertEqual(spec.judge(line, spec.PRESETS["amazon2023"])[:3], ("reviews", "ok", 2))

    def test_paths_lead_into_objects_and_texts_are_joined(self):
        self.assertEqual(spec.paths_of(r"a,b.c\.d\,\\"), [["a"], ["b", "c.d,\\"]])
        line = b'{"a":"one","b":{"c":"two","d":4,"c":"three"},"c":null}'
        for text, cleaned in (("a,b.c", "one three"), ("b.c,c,a", "three one"), ("b,b.d,a", "one")):
            self.assertEqual(spec.judge(line, spec.Fields(text, "b.d"))[:3], ("reviews", cleaned, 4))
        self.assertEqual(spec.judge(line, spec.Fields("c,b,a.c", "b.d"))[0], "no_text")
        self.assertEqual(spec.judge(line, spec.Fields("a", "d.b"))[0], "bad_rating")

    def test_ratings_are_five_numbers_or_their_strings(self):
        for value, rating in RATED:
            with self.subTest(value=str(value)[:40]):
                self.assertEqual(spec.rating_of(value), rating)
        self.assertEqual(spec.judge(b'{"overall":4.9999999999999999999,"reviewText":"ok"}', spec.Fields())[2], 5)

    def test_ledger_balances_and_votes_add_up(self):
        mapped = spec.mapped([line for line, _ in JUDGED], spec.Fields())
        ledger = mapped.ledger
        self.assertEqual(ledger["lines"], len(JUDGED))
        self.assertEqual(ledger["lines"], sum(ledger[name] for name in spec.LEDGER[1:]))
        self.assertEqual(ledger["reviews"], sum(map(sum, mapped.votes.values())))
        reasons = Counter(judged[0] for _, judged in JUDGED)
        self.assertEqual(+ledger, reasons + Counter(lines=len(JUDGED)))

    def test_record_is_text_tab_votes(self):
        votes = {}
        for text, rating in (("ok", 5), ("ok", 1), ("ok", 5), ("caf\u00e9", 3)):
            spec.add_vote(votes, text, rating)
        records = [spec.record_line(*item) for item in votes.items()]
        self.assertEqual(records, ["ok\t1,0,0,0,2\n", "caf\u00e9\t0,0,1,0,0\n"])

    def test_partition_equals_that_of_hadoop(self):
        for text, java_hash in JAVA_HASHES:
            with self.subTest(text=text):
                for partitions in (1, 2, 7, 32, 2**31 - 1):
                    self.assertEqual(spec.partition(text.encode(), partitions), java_hash % partitions)

    def test_partition_drops_the_sign(self):
        self.assertEqual(spec.partition(b"\xff", 2**31 - 1), 30)  # 31 + (-1)
        self.assertEqual(spec.partition(b"\x80", 2**31 - 1), (31 - 128) & 0x7FFFFFFF)

    def test_ties_go_to_the_smaller_rating(self):
        for votes, rating in MODES:
            self.assertEqual(spec.mode(votes), rating)

    def test_keep_selects_the_end(self):
        for keep, most, kept in KEPT:
            with self.subTest(keep=keep, most=most):
                settings = spec.Settings(max_tokens=most, keep=keep)
                self.assertEqual("".join(spec.kept_words(list("abcdefg"), settings)), kept)

    def test_stop_words_are_removed_and_some_texts_become_empty(self):
        settings = spec.Settings(stop_words=frozenset(("the", "it's")), max_tokens=2, keep="first")
        votes = {"the soap the soap bar": [0, 0, 0, 0, 1], "it's the": [1, 0, 0, 0, 0], "soap": [0, 0, 0, 3, 0]}
        rows, dictionary, dropped = spec.reduced(votes, settings)
        words = {row.text: row.words for row in rows}
        self.assertEqual(words, {"the soap the soap bar": ["soap", "soap"], "soap": ["soap"]})
        self.assertEqual(dictionary, {"soap": 3, "bar": 1})  # before max-tokens, once per text
        self.assertEqual(dropped, {"not_sampled": 0, "not_labelled": 0, "only_stopwords": 1})

    def test_texts_without_a_class_are_dropped_before_their_words_are_counted(self):
        labels = spec.classes_of("4-5=good,1=bad,2=poor")
        settings = spec.Settings(stop_words=frozenset(("the",)), labels=labels)
        votes = {"a b": [0, 0, 1, 0, 1], "the": [0, 0, 1, 0, 0], "the the": [1, 0, 0, 0, 0]}
        votes |= {"b": [0, 0, 1, 1, 2], "c": [2, 2, 0, 0, 0], "d": [0, 1, 0, 0, 0]}
        rows, dictionary, dropped = spec.reduced(votes, settings)
        self.assertEqual({row.text: row.label for row in rows}, {"b": 0, "c": 1, "d": 2})
        self.assertEqual(dictionary, {"b": 1, "c": 1, "d": 1})
        self.assertEqual(dropped, {"not_sampled": 0, "not_labelled": 2, "only_stopwords": 1})

    def test_texts_outside_the_sample_are_dropped_before_their_class_and_their_words_are_looked_at(self):
        votes = {text: [0, 0, 1, 0, 0] for text in ("the", "the the", "so so", "plain", "warm", "fine", "mild")}
        below = sorted(xxhash.xxh3_64_intdigest(text.encode()) % 2**32 for text in votes)[3]
        settings = spec.Settings(stop_words=frozenset(("the",)), sample=below)
        rows, dictionary, dropped = spec.reduced(votes, settings)
        self.assertEqual(dropped["not_sampled"], 4)
        self.assertEqual(len(rows) + dropped["only_stopwords"], 3)
        self.assertTrue(all(row.hash % 2**32 < below for row in rows))
        self.assertEqual(set(dictionary), {word for row in rows for word in row.words})
        labels = spec.classes_of("1-2=bad,4-5=good")
        _, _, dropped = spec.reduced(votes, spec.Settings(labels=labels, sample=below))
        self.assertEqual(dropped, {"not_sampled": 4, "not_labelled": 3, "only_stopwords": 0})

    def test_shares_select_a_part_of_the_values_of_a_hash(self):
        for share, below in (("0.25", 2**30), ("0.1", 429_496_730), ("1e-300", 1), ("1", None), ("1.0", None)):
            self.assertEqual(spec.sample_of(share), below)

    def test_positive_from_moves_the_label(self):
        for positive_from, label in ((3, 1), (4, 0)):
            rows, _, _ = spec.reduced({"a": [0, 0, 1, 0, 0]}, spec.Settings(positive_from=positive_from))
            self.assertEqual(rows[0].label, label)

    def test_hashes_are_xxh3_with_seed_0(self):
        self.assertEqual(xxhash.xxh3_64_intdigest(b""), 0x2D06800538D394C2)
        self.assertEqual(spec.vocabulary_digest([], []), "99aa06d3014798d86001c324468d497f")
        self.assertEqual(spec.row_digest([]), "0" * 32)

    def test_rows_ascend_by_hash(self):
        rows, _, _ = spec.reduced({word: [0, 0, 0, 0, 1] for word in "abcdefgh"}, spec.Settings())
        hashes = [xxhash.xxh3_64_intdigest(word.encode()) for word in "abcdefgh"]
        self.assertEqual([row.hash for row in rows], sorted(hashes))

    def test_row_bytes_are_little_endian_without_gaps(self):
        row = spec.Row("", [1, 2, 3, 4, 0x01020304], 1, ["a", "\u00e9"], 0x0807060504030201, 0, [2, 1])
        head = bytes.fromhex("0102030405060708 01 01000000 02000000 03000000 04000000 04030201 02000000")
        self.assertEqual(spec.row_digest([row]), xxhash.xxh3_128_hexdigest(head + b"a\n\xc3\xa9\n"))
        ids = bytes.fromhex("02000000 01000000")
        self.assertEqual(spec.id_digest([row]), xxhash.xxh3_128_hexdigest(head + ids))

    def test_digests_of_rows_add_up(self):
        one, two = spec.reduced({"a": [0, 0, 0, 0, 1], "b": [1, 0, 0, 0, 0]}, spec.Settings())[0]
        total = int(spec.row_digest([one]), 16) + int(spec.row_digest([two]), 16)
        self.assertEqual(spec.row_digest([two, one]), f"{total % 2**128:032x}")

    def test_words_are_sorted_by_count_then_bytes(self):
        dictionary = Counter({"z": 2, "b": 1, "a": 1, "\u00e9": 1, "\U00010400": 1, "\uff41": 1})
        words = ["z", "a", "b", "\u00e9", "\uff41", "\U00010400"]  # the order of UTF-16 would swap the last two
        self.assertEqual(spec.vocabulary(dictionary, spec.Settings()), words)
        self.assertEqual(spec.vocabulary(dictionary, spec.Settings(vocabulary_size=2)), ["z", "a"])

    def test_ids_start_at_2_and_unknown_is_1(self):
        rows, dictionary, _ = spec.reduced({"b b a c": [0, 0, 0, 0, 1]}, spec.Settings())
        dataset = spec.merged(rows, dictionary, spec.Settings(vocabulary_size=2))
        self.assertEqual((dataset.words, dataset.counts, dataset.rows[0].ids), (["b", "a"], [2, 1], [2, 2, 3, 1]))
        self.assertEqual(dataset.vocabulary_digest, xxhash.xxh3_128_hexdigest(b"b\t2\na\t1\n"))

    def test_another_vocabulary_is_reused_completely(self):
        settings = spec.Settings(vocabulary=("x", "a"))
        rows, dictionary, _ = spec.reduced({"b b a": [0, 0, 0, 0, 1]}, settings)
        dataset = spec.merged(rows, dictionary, settings)
        self.assertEqual((dataset.words, dataset.counts, dataset.rows[0].ids), (["x", "a"], [0, 1], [1, 1, 3]))

    def test_words_of_excluded_rows_stay_counted(self):
        votes = {"a b": [0, 0, 0, 0, 1], "b": [0, 0, 0, 0, 1]}
        settings = spec.Settings(without=frozenset((xxhash.xxh3_64_intdigest(b"b"),)))
        rows, dictionary, _ = spec.reduced(votes, settings)
        dataset = spec.merged(rows, dictionary, settings)
        self.assertEqual([row.text for row in dataset.rows], ["a b"])
        self.assertEqual((dataset.words, dataset.counts), (["b", "a"], [2, 1]))
        self.assertEqual(dataset.row_digest, spec.row_digest(dataset.rows))

    def test_characters_newer_than_this_python_are_undecided(self):
        for text in ("plain & simple", "caf\u00e9 \U0001f600", "\ufdd0\uffff\ufffd", "\ue000"):
            self.assertTrue(spec.is_decided(text), text)
        for text in ("a\u0378b", "a&#x378;b"):
            self.assertFalse(spec.is_decided(text), text)
        mapped = spec.mapped(['{"overall":5,"reviewText":"a\u0378b"}'.encode()], spec.Fields())
        self.assertEqual((mapped.undecided, mapped.votes), ([("a b", 5)], {}))


class CommandLine(unittest.TestCase):
    """Runs expect.py as a program."""

    def test_files_gzip_and_standard_input_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, packed = os.path.join(folder, "raw.json"), os.path.join(folder, "raw.json.gz")
            stop_words = os.path.join(folder, "stop")
            content = b"\n".join(line for line, _ in JUDGED)
            files = ((plain, open, content), (packed, gzip.open, content), (stop_words, open, b"ok\n"))
            for path, open_to_write, held in files:
                with open_to_write(path, "wb") as file:
                    file.write(held)
            results = [
                json.loads(self.run_expect("--stop-words", stop_words, *paths, standard_input=given))
                for paths, given in (((plain,), b""), ((packed,), b""), ((), content))
            ]
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])
        self.assertEqual((results[0]["lines"], results[0]["only_stopwords"]), (len(JUDGED), 1))
        self.assertEqual(results[0]["distinct"], results[0]["only_stopwords"] + results[0]["rows"])

    def test_records_are_combined_and_in_byte_order(self):
        lines = b'{"text":"b","stars":1}\n{"text":"A!","stars":5}\n{"text":"a","stars":4}\n'
        records = self.run_expect("--records", "--preset", "yelp", standard_input=lines)
        self.assertEqual(records, b"a\t0,0,0,1,1\nb\t1,0,0,0,0\n")

    def test_formats_are_selected_by_name(self):
        csv = (("--format", "polarity-csv", "--class-ratings", "a=b=2,2=4"), b'"a=b","A","!"\n2,b,c\n')
        titled = ((*csv[0], "--with-title"), csv[1])
        fasttext = (("--format", "fasttext"), b"__label__1 b\n__label__2 c\n")
        for (arguments, lines), expected in (
            (csv, b"c\t0,0,0,1,0\n"),
            (titled, b"a\t0,1,0,0,0\nb c\t0,0,0,1,0\n"),
            (fasttext, b"b\t1,0,0,0,0\nc\t0,0,0,0,1\n"),
        ):
            self.assertEqual(self.run_expect("--records", *arguments, standard_input=lines), expected)

    def run_expect(self, *arguments: str, standard_input: bytes) -> bytes:
        command = [sys.executable, os.path.join(HERE, "expect.py"), *arguments]
        return subprocess.run(command, input=standard_input, stdout=subprocess.PIPE, check=True).stdout


@unittest.skipUnless(HAS_H5PY, "h5py is not installed")
class Comparison(unittest.TestCase):
    """compare.py accepts the oracle's file and detects each planted difference."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "reviews.h5")

    def verdict(self, lines: list, borrowed: dict = {}) -> str:
        with h5py.File(self.path, "r") as file:
            return compare.compare(file, spec.mapped(lines, spec.Fields()), borrowed)

    def test_a_file_of_the_oracle_is_accepted(self):
        three = spec.Settings(labels=spec.classes_of("1-2=negative,3=neutral,4-5=positive"))
        for settings in (SETTINGS, spec.Settings(), spec.Settings(max_tokens=0, vocabulary_size=0), three):
            Plan(made(some_lines(), settings), settings).write(self.path)
            self.assertIn("90 rows", self.verdict(some_lines()))

    def test_a_sample_of_the_rows_is_accepted(self):
        settings = spec.Settings(sample=2**31)
        dataset = made(some_lines(), settings)
        Plan(dataset, settings).write(self.path)
        self.assertIn(f"{len(dataset.rows)} rows", self.verdict(some_lines()))
        self.assertTrue(20 < len(dataset.rows) < 70)

    def test_classes_may_leave_a_rating_out(self):
        settings = spec.Settings(labels=spec.classes_of("4-5=positive,1-2=negative"))
        dataset = made(some_lines(), settings)
        self.assertEqual({row.label for row in dataset.rows}, {0, 1})
        Plan(dataset, settings).write(self.path)
        self.assertIn(f"{len(dataset.rows)} rows", self.verdict(some_lines()))
        self.assertLess(len(dataset.rows), 90)

    def test_a_dataset_without_rows_is_accepted(self):
        Plan(made([], SETTINGS), SETTINGS).write(self.path)
        self.assertIn("0 rows, 0 tokens, 0 words", self.verdict([]))

    def test_each_planted_difference_is_detected(self):
        dataset = made(some_lines(), SETTINGS)
        for what, plant, message in PLANTED:
            with self.subTest(what):
                plan = Plan(dataset, SETTINGS)
                plant(plan)
                plan.write(self.path)
                with self.assertRaises(form.Difference) as raised:
                    self.verdict(some_lines())
                self.assertIn(message, str(raised.exception))

    def test_a_missing_review_is_detected(self):
        Plan(made(some_lines(), SETTINGS), SETTINGS).write(self.path)
        with self.assertRaises(form.Difference):
            self.verdict(some_lines()[:-1])

    def test_wide_vocabularies_need_wide_tokens(self):
        self.assertEqual([form.token_type(n) for n in (0, 65_534, 65_535)], ["<u2", "<u2", "<u4"])

    def test_a_reused_vocabulary_and_excluded_rows_agree(self):
        other = made(some_lines()[:20], SETTINGS)
        borrowed = {"vocabulary": tuple(WORDS[30:60]), "without": frozenset(row.hash for row in other.rows)}
        settings = spec.Settings(stop_words=SETTINGS.stop_words, **borrowed)
        plan = Plan(made(some_lines(), settings), settings)
        del plan.attributes["vocabulary_size"]
        plan.write(self.path)
        self.assertIn("70 rows", self.verdict(some_lines(), borrowed))
        with self.assertRaises(form.Difference):
            self.verdict(some_lines(), {**borrowed, "without": frozenset()})

    def test_undecided_reviews_may_add_votes_and_rows(self):
        newer = ['{"overall":5,"reviewText":"The be\u0378 newer one"}'.encode()] * 2
        known = json.dumps({"overall": 2, "reviewText": json.loads(some_lines()[0])["reviewText"]}).encode()
        for extra in ([], [b'{"overall":5,"reviewText":"newer one"}'], [known, known]):
            Plan(made(some_lines() + extra, SETTINGS), SETTINGS).write(self.path)
            self.assertIn("2 reviews undecided", self.verdict(some_lines() + newer))
        Plan(made(some_lines() + [known] * 3, SETTINGS), SETTINGS).write(self.path)
        with self.assertRaises(form.Difference) as raised:
            self.verdict(some_lines() + newer)
        self.assertIn("3 votes beyond", str(raised.exception))

    def test_differences_are_detected_despite_undecided_reviews(self):
        newer = ['{"overall":5,"reviewText":"The be\u0378 newer one"}'.encode()]
        # An undecided review may cause each of these, or the comparison skips it if there are undecided
        # reviews.
        unseen = ("row digest", "vote", "letter", "count")
        for what, plant, _ in PLANTED:
            if what.endswith(unseen):
                continue
            with self.subTest(what):
                plan = Plan(made(some_lines(), SETTINGS), SETTINGS)
                plant(plan)
                plan.write(self.path)
                with self.assertRaises(form.Difference):
                    self.verdict(some_lines() + newer)

    def test_program_prints_the_difference_and_exits_1(self):
        raw = os.path.join(self.folder.name, "raw.json")
        with open(raw, "wb") as file:
            file.write(b"\n".join(some_lines()))
        plan = Plan(made(some_lines(), SETTINGS), SETTINGS)
        plan.write(self.path)
        self.assertEqual(self.run_compare(raw).returncode, 0)
        change("label", 3, 9)(plan)
        plan.write(self.path)
        result = self.run_compare(raw)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"reviews\.h5: row 3 \(hash [0-9a-f]{16}\): label: 9, expected [01]\n$")

    def run_compare(self, raw: str) -> subprocess.CompletedProcess:
        command = [sys.executable, os.path.join(HERE, "compare.py"), self.path, raw]
        return subprocess.run(command, capture_output=True, text=True)


@unittest.skipUnless(HAS_H5PY, "h5py is not installed")
class Padded(unittest.TestCase):
    """padded.py accepts correctly truncated and padded rows, and detects each planted difference."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dataset, self.padded = (os.path.join(folder.name, name) for name in ("reviews.h5", "reviews.padded.h5"))
        Plan(made(some_lines(), SETTINGS), SETTINGS).write(self.dataset)

    def plan(self, length: int) -> Plan:
        dataset = made(some_lines(), SETTINGS)
        plan = Plan(dataset, SETTINGS)
        rows = [(row.ids + [0] * length)[:length] + [row.label] for row in dataset.rows]
        columns = {"rows": np.array(rows, plan.arrays["tokens"].dtype)}
        columns.update({name: plan.arrays[name] for name in ("label", "votes", "hash", "split")})
        plan.arrays, plan.filters = columns, {name: {**plan.filters["label"]} for name in columns}
        return plan

    def test_truncated_and_padded_rows_are_accepted(self):
        for length in (1, 4, 12):
            self.plan(length).write(self.padded)
            self.assertEqual(padded.columns_from(self.padded, self.dataset)["rows"].shape, (90, length + 1))

    def test_each_planted_difference_is_detected(self):
        for what, plant, message in PADDED_PLANTED:
            with self.subTest(what):
                plan = self.plan(12)
                plant(plan)
                plan.write(self.padded)
                with self.assertRaises(form.Difference) as raised:
                    padded.columns_from(self.padded, self.dataset)
                self.assertIn(message, str(raised.exception))

    def test_attributes_must_equal_those_of_the_dataset(self):
        self.plan(4).write(self.padded)
        with h5py.File(self.dataset, "r+") as file:
            file.attrs["schema_version"] = 2
        with self.assertRaises(form.Difference) as raised:
            padded.columns_from(self.padded, self.dataset)
        self.assertIn("attribute schema_version", str(raised.exception))

    @unittest.skipUnless(HAS_DATASETS, "datasets is not installed")
    def test_datasets_loads_the_same_rows(self):
        self.plan(4).write(self.padded)
        command = [sys.executable, os.path.join(HERE, "padded.py"), self.padded, self.dataset]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("90 rows of 4 tokens and a label agree, by h5py and by datasets", result.stdout)


if __name__ == "__main__":
    unittest.main()
