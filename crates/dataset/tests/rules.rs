//! One file per numbered rule of FORMAT.md: its digests are valid, it breaks that rule, and the error names
//! the rule.
#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use corpus::digest::{Digest, split};
use corpus::labels::Labels;
use corpus::record::Votes;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::shard::ShardReader;
use fixture::reseal::{altered, put_column, put_number, put_text, reseal};
use fixture::{Given, many_rows, rows, write_dataset, write_shard, write_shard_of};
use hdf5::File;

/// How to make a file that breaks a rule, and the expected error.
struct Case {
    rule: &'static str,
    said: &'static str,
    when: When,
    write: Box<dyn FnOnce(&Path)>,
}

/// The step at which the file is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// When it is opened, before any row can be read.
    Opened,
    /// When its rows are read.
    Read,
    /// When a shard is verified, or opened for that.
    Verified,
}

impl Case {
    fn new(rule: &'static str, said: &'static str, when: When, write: impl FnOnce(&Path) + 'static) -> Self {
        Self { rule, said, when, write: Box::new(write) }
    }

    /// A dataset written with other words, settings or rows.
    fn given(
        rule: &'static str,
        said: &'static str,
        when: When,
        alter: impl FnOnce(&mut Given) + 'static,
    ) -> Self {
        Self::new(rule, said, when, |path| {
            let mut given = Given::sound();
            alter(&mut given);
            given.write(path);
        })
    }

    /// A dataset with these words and without rows.
    fn words(rule: &'static str, said: &'static str, words: &[&[u8]]) -> Self {
        let words = words.iter().map(|word| word.to_vec()).collect();
        Self::new(rule, said, When::Opened, |path| Given::of(words).write(path))
    }

    /// A dataset with another row in the middle.
    fn row(rule: &'static str, said: &'static str, alter: impl FnOnce(&mut Row) + 'static) -> Self {
        Self::given(rule, said, When::Read, |given| alter(&mut given.rows[1]))
    }

    /// A dataset that another program has altered, with a valid table of digests.
    fn altered(rule: &'static str, said: &'static str, alter: impl FnOnce(&File) + 'static) -> Self {
        Self::new(rule, said, When::Opened, |path| {
            write_dataset(path, &rows());
            altered(path, alter);
        })
    }

    /// A dataset with another table of digests.
    fn table(rule: &'static str, said: &'static str, alter: impl FnOnce(String) -> String + 'static) -> Self {
        Self::new(rule, said, When::Opened, |path| {
            write_dataset(path, &rows());
            reseal(path, alter);
        })
    }

    /// A shard with these words and rows.
    fn shard(
        rule: &'static str,
        said: &'static str,
        words: &'static [(&'static [u8], u64)],
        rows: Vec<Row>,
    ) -> Self {
        Self::new(rule, said, When::Verified, move |path| write_shard_of(path, words, &rows, Digest(0)))
    }

    fn refused(self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        (self.write)(&path);
        let error = match self.when {
            When::Opened => DatasetReader::open(&path).err(),
            When::Read => {
                let dataset = DatasetReader::open(&path).unwrap();
                let (mut reader, mut row) = (dataset.rows(), Row::default());
                let by_place = (0..dataset.n_rows()).try_for_each(|at| reader.read(at, &mut row));
                let in_order = dataset.verify(|_| Ok(())).err();
                let broken = by_place.err().map(|error| error.to_string());
                // Reading single rows either finds no violation or the same one.
                assert!(
                    broken.is_none() || broken == in_order.as_ref().map(ToString::to_string),
                    "{broken:?}"
                );
                in_order
            }
            When::Verified => ShardReader::open(&path)
                .and_then(|mut shard| {
                    shard.keep_dictionary(1 << 20)?;
                    shard.verify_blocks(NonZeroUsize::MIN, || (), |(), _| (), |()| ())
                })
                .err(),
        };
        let error = error
            .unwrap_or_else(|| panic!("{} {}: it was taken for sound", self.rule, self.said))
            .to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&error).to_owned()
    }
}

/// The file itself: links, datasets, attributes, the table of digests, columns and chunks.
fn of_files() -> Vec<Case> {
    use Case as C;
    vec![
        C::altered("F1", "schema version is 2, expected 1", |file| put_number(file, "schema_version", 2)),
        C::altered("F1", "attribute format is \"sentimill model!\"", |file| {
            put_text::<16>(file, "format", "sentimill model!");
        }),
        C::altered("F2", "label is a symbolic link", |file| {
            file.unlink("label").unwrap();
            file.link_soft("/split", "label").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"further\" among others", |file| {
            file.create_group("further").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"\\u{1b}[2J\" among others", |file| {
            file.create_group("\u{1b}[2J").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"vocabulary/further\" among others", |file| {
            put_column::<u8>(file, "vocabulary/further", &[1]);
        }),
        C::altered("F4", "the list of attributes is \"further\" among others", |file| {
            put_number(file, "further", 1);
        }),
        C::altered("F4", "an attribute of label is \"further\", expected none", |file| {
            file.dataset("label").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::altered("F4", "an attribute of vocabulary is \"further\", expected none", |file| {
            file.group("vocabulary").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::new("F4", "an attribute of digests is \"further\", expected none", When::Opened, |path| {
            write_dataset(path, &rows());
            let file = File::open_rw(path).unwrap();
            file.dataset("digests").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::altered("F4", "attribute keep is absent, expected a text", |file| {
            file.delete_attr("keep").unwrap();
        }),
        C::altered("F4", "the list of attributes is \"positive_from\" among others", |file| {
            put_text::<25>(file, "labels", "1-3=negative,4-5=positive");
        }),
        C::altered("F4", "attribute positive_from is absent, expected u64", |file| {
            file.delete_attr("positive_from").unwrap();
        }),
        C::altered("F5", "attribute labels is u64, expected a text", |file| {
            file.delete_attr("positive_from").unwrap();
            put_number(file, "labels", 3);
        }),
        C::altered("F5", "attribute max_tokens does not match its digest", |file| {
            file.delete_attr("max_tokens").unwrap();
            file.new_attr::<u64>().shape(1).create("max_tokens").unwrap().write_raw(&[100_u64]).unwrap();
        }),
        C::altered("F5", "attribute max_tokens is text 3, expected u64", |file| {
            put_text::<3>(file, "max_tokens", "100");
        }),
        C::table("F6", "digests does not match its digest", |table| table.replace("digests 1", "digests 2")),
        C::table("F6", "digests does not match its digest", |table| table + "further\n"),
        C::table("F6", "the list of attributes does not match its digest", |table| {
            format!("{table}attribute keep {}\n", Digest(1))
        }),
        C::table("F6", "the list of datasets does not match its digest", |table| {
            format!(
                "{table}column further u8 shape [1] chunk [1] shuffle deflate fletcher32\n{}\n",
                Digest(1)
            )
        }),
        C::table("F6", "attribute keep does not match its digest", |table| {
            let (before, behind) = table.split_once("attribute keep ").unwrap();
            format!("{before}attribute keep {}{}", Digest(1), &behind[32..])
        }),
        C::altered("F7", "the layout of label does not match its digest", |file| {
            put_column::<u16>(file, "label", &[1, 0, 1]);
        }),
        C::altered("F7", "the layout of label does not match its digest", |file| {
            file.unlink("label").unwrap();
            file.new_dataset::<u8>()
                .shape(3)
                .chunk(2)
                .shuffle()
                .deflate(1)
                .fletcher32()
                .create("label")
                .unwrap();
        }),
        C::altered("F7", "label is absent, expected a dataset", |file| file.unlink("label").unwrap()),
        C::altered("F8", "label is listed with 0 chunks in the table of digests, expected 1", |file| {
            file.unlink("label").unwrap();
            file.new_dataset::<u8>()
                .shape(3)
                .chunk(3)
                .shuffle()
                .deflate(1)
                .fletcher32()
                .create("label")
                .unwrap();
        }),
        C::table("F9", "chunk 0 of offsets does not match its digest", |table| {
            let column = "column offsets u64 shape [4] chunk [4] shuffle deflate fletcher32\n";
            let (before, behind) = table.split_once(column).unwrap();
            format!("{before}{column}{}{}", Digest(1), &behind[32..])
        }),
        C::new(
            "F10",
            "chunk 1 of votes is filled up with other values, expected zeros",
            When::Read,
            |path| {
                write_dataset(path, &many_rows(16_385));
                altered(path, |file| {
                    let elements = file.dataset("votes").unwrap().read_raw::<u32>().unwrap();
                    file.unlink("votes").unwrap();
                    let column =
                        file.new_dataset::<u32>().shape((16_385, 5)).chunk((16_384, 5)).fill_value(1_u32);
                    let column = column.shuffle().deflate(1).fletcher32().create("votes").unwrap();
                    column.write_raw(&elements).unwrap();
                });
            },
        ),
        C::new("F11", "digests does not match its digest", When::Opened, |path| {
            write_dataset(path, &rows());
            let file = File::open_rw(path).unwrap();
            file.unlink("digests").unwrap();
            file.new_dataset::<u8>().shape(1_usize << 50).create("digests").unwrap();
        }),
    ]
}

/// Settings and digests.
fn of_attributes() -> Vec<Case> {
    use Case as C;
    let stop_words = |said, words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        C::given("F13", said, When::Opened, |given| given.settings.rows.stop_words = words)
    };
    vec![
        C::given("F12", "the setting cleaning version is 0, expected 1 or more", When::Opened, |given| {
            given.settings.rows.cleaning_version = 0;
        }),
        C::given(
            "F12",
            "the setting Unicode version is \"17\\u{1b}[2J\", expected numbers",
            When::Opened,
            |given| {
                given.settings.rows.unicode_version = "17\u{1b}[2J".to_owned();
            },
        ),
        stop_words("the setting stop words is \"a\" behind \"b\", expected words in byte order", &["b", "a"]),
        stop_words("the setting stop words is \"a\" behind \"a\", expected words in byte order", &["a", "a"]),
        stop_words("the setting stop words is \"The\", expected a cleaned word", &["The"]),
        stop_words("the setting stop words is \"\", expected a cleaned word", &["a", "", "b"]),
        C::altered("F14", "attribute max_tokens is 4294967296, expected at most", |file| {
            put_number(file, "max_tokens", 1 << 32);
        }),
        C::altered("F14", "attribute keep is \"middle\", expected first, last or ends", |file| {
            put_text::<6>(file, "keep", "middle");
        }),
        C::altered("F14", "the setting positive-from is 0, expected 1 to 5", |file| {
            put_number(file, "positive_from", 0);
        }),
        C::altered("F14", "the setting positive-from is 6, expected 1 to 5", |file| {
            put_number(file, "positive_from", 6);
        }),
        C::altered("F14", "the setting positive-from is 260, expected 1 to 5", |file| {
            put_number(file, "positive_from", 260);
        }),
        C::altered("F14", "attribute sample is 0, expected 1 to 4294967295", |file| {
            put_number(file, "sample", 0);
        }),
        C::altered("F14", "attribute sample is 4294967296, expected 1 to 4294967295", |file| {
            put_number(file, "sample", 1 << 32);
        }),
        C::altered(
            "F14",
            "attribute labels is \"1-1=a,2=b\", expected classes as reducer writes them: the classes have another form, \
             expected 1=a,2=b",
            |file| put_labels::<9>(file, "1-1=a,2=b"),
        ),
        C::altered(
            "F14",
            "attribute labels is \"1=a\", expected classes as reducer writes them: one class, ",
            |file| {
                put_labels::<3>(file, "1=a");
            },
        ),
        C::altered(
            "F14",
            "attribute labels is \"1=a,1=b\", expected classes as reducer writes them: the rating 1 ",
            |file| {
                put_labels::<7>(file, "1=a,1=b");
            },
        ),
        C::altered(
            "F14",
            "attribute labels is \"1=a,2=\\u{1b}\", expected classes as reducer writes them: \"2=",
            |file| {
                put_labels::<7>(file, "1=a,2=\u{1b}");
            },
        ),
        C::given("F15", "attribute vocabulary_size is 2, expected at least 3", When::Opened, |given| {
            given.settings.vocabulary_size = 2;
        }),
        C::given(
            "F15",
            "attribute vocabulary_size is 4, expected 3, the number of words",
            When::Opened,
            |given| {
                given.settings.vocabulary_of = Some(Digest(7));
                given.settings.vocabulary_size = 4;
            },
        ),
        C::altered("F16", "attribute row_digest is \"ABCDEF", |file| {
            put_text::<32>(file, "row_digest", "ABCDEF00000000000000000000000000");
        }),
        C::altered(
            "F16",
            "attribute without is \"none\", expected 32 lower-case hexadecimal digits",
            |file| {
                put_text::<4>(file, "without", "none");
            },
        ),
    ]
}

/// Vocabularies and dictionaries.
fn of_words() -> Vec<Case> {
    use Case as C;
    let offsets = |said, offsets: &'static [u64]| {
        C::altered("F17", said, move |file| put_column(file, "vocabulary/offsets", offsets))
    };
    let no_word = |said, word: &[u8]| C::words("F18", said, &[b"fit", word, b"good"]);
    vec![
        offsets("the first of vocabulary/offsets is 1, expected 0", &[1, 3, 7, 14]),
        offsets("the last of vocabulary/offsets is 13, expected 14", &[0, 3, 7, 13]),
        offsets("the length of vocabulary/offsets is 3, expected 4", &[0, 3, 14]),
        offsets("the end of word 1, which begins at byte 7, is 3, expected more", &[0, 7, 3, 14]),
        offsets("the end of word 0, which begins at byte 0, is 0, expected more", &[0, 0, 3, 14]),
        no_word("word 1 of the vocabulary is \"a\\nb\", expected a cleaned word", b"a\nb"),
        no_word("word 1 of the vocabulary is \"a\\tb\", expected a cleaned word", b"a\tb"),
        no_word("word 1 of the vocabulary is \"a\\0b\", expected a cleaned word", b"a\0b"),
        no_word("word 1 of the vocabulary is \"\\u{1b}[31mred\", expected a cleaned word", b"\x1b[31mred"),
        no_word("word 1 of the vocabulary is \"caf\u{fffd}\", expected a cleaned word", b"caf\xe9"),
        no_word("word 1 of the vocabulary is \"of course\", expected a cleaned word", b"of course"),
        no_word("word 1 of the vocabulary is \"Good\", expected a cleaned word", b"Good"),
        no_word("word 1 of the vocabulary is \"'tis\", expected a cleaned word", b"'tis"),
        no_word(
            "word 1 of the vocabulary is \"a\\u{202e}b\", expected a cleaned word",
            "a\u{202e}b".as_bytes(),
        ),
        C::shard(
            "F18",
            "word 0 of the dictionary is \"Fit\", expected a cleaned word",
            &[(b"Fit", 1), (b"good", 1)],
            Vec::new(),
        ),
        C::words(
            "F19",
            "word 1 of the vocabulary is \"the\", expected none of the stop words",
            &[b"fit", b"the"],
        ),
        C::shard(
            "F19",
            "word 1 of the dictionary is \"the\", expected none",
            &[(b"fit", 1), (b"the", 1)],
            Vec::new(),
        ),
        C::words(
            "F20",
            "word 2 of the vocabulary is \"fit\", expected a word that is listed once",
            &[b"fit", b"good", b"fit"],
        ),
        C::shard(
            "F20",
            "word 1 of the dictionary is \"fit\", expected a word after",
            &[(b"fit", 1), (b"fit", 1)],
            Vec::new(),
        ),
        C::shard(
            "F20",
            "word 1 of the dictionary is \"fit\", expected a word after",
            &[(b"good", 1), (b"fit", 1)],
            Vec::new(),
        ),
        C::given(
            "F21",
            "the count of word 1 of the vocabulary is 11, expected at most 10",
            When::Opened,
            |given| {
                given.counts = vec![10, 11, 8];
            },
        ),
        C::given(
            "F21",
            "the count of word 1 of the vocabulary is 10, expected at most 10",
            When::Opened,
            |given| {
                given.words.swap(0, 1);
                given.counts = vec![10, 10, 8];
            },
        ),
        C::given(
            "F22",
            "the count of word 2 of the vocabulary is 0, expected 1 or more",
            When::Opened,
            |given| {
                given.counts[2] = 0;
            },
        ),
        C::shard(
            "F22",
            "word 0 of the dictionary is \"fit\", expected a word with a count",
            &[(b"fit", 0)],
            Vec::new(),
        ),
        C::altered("F23", "the digest of the vocabulary is ", |file| {
            put_text::<32>(file, "vocabulary_digest", &Digest(5).to_string());
        }),
        C::altered("F23", "the digest of the vocabulary is ", |file| {
            put_column::<u64>(file, "vocabulary/count", &[11, 9, 8]);
        }),
        C::new(
            "F24",
            "the vocabulary is 80000016 bytes in memory, expected at most 67108864",
            When::Opened,
            |path| {
                Given::of(vec![vec![b'a'; 80_000_000]]).write(path);
            },
        ),
    ]
}

/// Rows of datasets and shards.
fn of_rows() -> Vec<Case> {
    use Case as C;
    let offsets = |rule, said, offsets: &'static [u64]| {
        C::altered(rule, said, move |file| put_column(file, "offsets", offsets))
    };
    let length = |said, tokens: Vec<u32>| {
        C::given("F27", said, When::Opened, move |given| given.rows[1].tokens = tokens)
    };
    vec![
        C::altered("F25", "the length of label is 2, expected 3 for 3 hashes", |file| {
            put_column::<u8>(file, "label", &[1, 0]);
        }),
        offsets("F25", "the first of offsets is 1, expected 0", &[1, 2, 5, 6]),
        offsets("F25", "the last of offsets is 5, expected 6", &[0, 2, 4, 5]),
        offsets("F25", "the length of offsets is 3, expected 4 for 3 hashes", &[0, 2, 6]),
        C::altered("F26", "the type of tokens is 32 bits, expected 16 bits, for ids up to 4", |file| {
            put_column::<u32>(file, "tokens", &[3, 2, 4, 4, 4, 2]);
        }),
        length("the number of tokens of row 1 is 0, expected 1 to 100", Vec::new()),
        length("the number of tokens of row 1 is 101, expected 1 to 100", vec![4; 101]),
        offsets("F27", "the end of row 1 is 1, expected at least 2", &[0, 2, 1, 6]),
        offsets("F27", "the end of row 1 is 1, expected at least 7", &[0, 7, 1, 6]),
        C::row("F28", "a token of row 1 is 0, expected 1 to 4", |row| row.tokens[1] = 0),
        C::row("F28", "a token of row 1 is 5, expected 1 to 4", |row| row.tokens[1] = 5),
        C::row("F28", "a token of row 1 is 5, expected 1 to 4", |row| row.tokens = vec![1, 5, 4]),
        C::shard("F28", "a token of row 1 is 2, expected 0 to 1", &[(b"fit", 1), (b"good", 1)], rows()),
        C::row("F29", "the number of votes of row 1 is 0, expected 1 or more", |row| {
            row.votes = Votes([0; 5]);
        }),
        C::row("F30", "the label of row 1 is 1, expected 0, computed from its votes", |row| row.label = 1),
        of_classes("the label of row 1 is 0, expected 1, computed from its votes", "5=good,1=bad,4=fine"),
        of_classes(
            "the label of row 1 is 0, expected no row, because rating 1 has no class",
            "2=bad,4-5=good",
        ),
        C::row("F31", "the split of row 1 is 1000, expected less than 1000", |row| row.split = 1000),
        C::new("F31", "the split of row 1 is ", When::Verified, |path| {
            let mut rows = rows();
            rows[1].split = (rows[1].split + 1) % 1000;
            write_shard(path, &rows);
        }),
        C::given("F32", "row 1 is less than the previous row", When::Opened, |given| given.rows.swap(0, 1)),
        // In the second chunk of hashes.
        C::new("F32", "row 40000 is less than the previous row", When::Opened, |path| {
            let mut rows = many_rows(50_000);
            rows[40_000].hash = 0;
            write_dataset(path, &rows);
        }),
        // Between two blocks of rows, and within the second one.
        C::new("F32", "row 32768 is less than the previous row", When::Verified, |path| {
            let mut rows = many_rows(40_000);
            rows[32_767].hash = 50_000;
            write_shard(path, &rows);
        }),
        C::new("F32", "row 39000 is less than the previous row", When::Verified, |path| {
            let mut rows = many_rows(40_000);
            rows[39_000].hash = 0;
            write_shard(path, &rows);
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let of = |id: u32, word: &[u8]| Row {
                hash: 5,
                tokens: vec![id],
                split: split(word),
                ..given.rows[2].clone()
            };
            given.rows = vec![of(3, b"good"), of(2, b"fit")];
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let of = |votes| Row { votes: Votes(votes), hash: 5, ..given.rows[2].clone() };
            given.rows = vec![of([0, 0, 0, 2, 0]), of([0, 0, 0, 1, 0])];
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let row = Row { hash: 5, ..given.rows[2].clone() };
            let longer = Row { tokens: vec![2, 1], ..row.clone() };
            given.rows = vec![longer, row];
        }),
        C::new("F32", "row 1 is less than the previous row", When::Verified, |path| {
            let mut rows = rows();
            rows.swap(0, 1);
            write_shard(path, &rows);
        }),
        C::new("F33", "the id digest of the rows is ", When::Read, |path| {
            write_dataset(path, &rows());
            altered(path, |file| put_text::<32>(file, "id_digest", &Digest(5).to_string()));
        }),
        C::new("F33", "the id digest of the rows is ", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_text::<32>(file, "id_digest", &Digest(5).to_string()));
        }),
        C::new("F34", "the row digest of the rows is ", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_text::<32>(file, "row_digest", &Digest(5).to_string()));
        }),
        C::given(
            "F35",
            "the hash of row 1 is 0000000580000000, expected a hash in the sample of 0.5",
            When::Read,
            |given| of_half(given, 0x5_8000_0000),
        ),
        C::new("F35", "the hash of row 0 is 0000000000000005", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_number(file, "sample", 1));
        }),
    ]
}

/// Makes the rows a sample of half of the texts. The row in the middle has this hash.
fn of_half(given: &mut Given, hash: u64) {
    given.settings.rows.sample = "0.5".parse().unwrap();
    for (row, hash) in given.rows.iter_mut().zip([0x1_7fff_ffff, hash, 0x9_0000_0000]) {
        row.hash = hash;
    }
}

/// A file with named classes, whose rows have the labels of another split: 1, 0 and 1.
fn of_classes(said: &'static str, classes: &'static str) -> Case {
    Case::given("F30", said, When::Read, |given| {
        given.settings.rows.labels = Labels::Classes(classes.parse().unwrap());
        given.rows[0].label = given.settings.rows.label(given.rows[0].votes).unwrap();
    })
}

/// Puts the text of classes in place of `positive_from`.
fn put_labels<const N: usize>(file: &File, classes: &str) {
    file.delete_attr("positive_from").unwrap();
    put_text::<N>(file, "labels", classes);
}

fn assert_refused(cases: Vec<Case>) {
    for case in cases {
        let Case { rule, said: expected, .. } = case;
        let said = case.refused();
        assert!(said.starts_with(expected), "{rule}: {said}\nexpected {expected}");
        assert!(!said.contains(char::is_control) && said.chars().count() < 400, "{rule}: {said:?}");
        if let Some((_, found)) = said.split_once("(FORMAT.md, ") {
            assert!(found.starts_with(&format!("{rule})")), "{rule}: {said}");
        }
    }
}

#[test]
fn a_file_that_breaks_a_rule_of_files_is_refused() {
    assert_refused(of_files());
}

#[test]
fn attributes_that_break_a_rule_are_refused() {
    assert_refused(of_attributes());
}

#[test]
fn words_that_break_a_rule_are_refused() {
    assert_refused(of_words());
}

#[test]
fn rows_that_break_a_rule_are_refused() {
    assert_refused(of_rows());
}

/// The rules about other files of a dataset are covered by the tests of the programs.
#[test]
fn every_numbered_rule_of_files_has_a_case() {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/FORMAT.md")).unwrap();
    let numbers = document.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let numbered: BTreeSet<String> = numbers
        .map(|(number, _)| number.to_owned())
        .filter(|number| number.strip_prefix('F').is_some_and(|digits| digits.parse::<u8>().is_ok()))
        .collect();
    let cases = [of_files(), of_attributes(), of_words(), of_rows()];
    let with_files: BTreeSet<String> = cases.iter().flatten().map(|case| case.rule.to_owned()).collect();
    assert_eq!(with_files, numbered);
}

#[test]
fn a_resealed_file_without_changes_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    write_dataset(&path, &rows());
    altered(&path, |file| {
        put_column::<u8>(file, "label", &[1, 0, 1]);
        put_number(file, "max_tokens", 100);
        put_text::<5>(file, "keep", "first");
    });
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn a_file_with_named_classes_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.settings.rows.labels = Labels::Classes("1-2=bad,4=fine,5=it's \u{e9}".parse().unwrap());
    given.rows[0].label = 2;
    given.write(&path);
    let written = DatasetReader::open(&path).unwrap();
    written.verify(|_| Ok(())).unwrap();
    assert_eq!(written.settings(), &given.settings);
    assert_eq!(written.settings().rows.labels.names(), ["bad", "fine", "it's \u{e9}"]);
}

#[test]
fn a_sample_is_valid_and_a_dataset_of_all_texts_has_no_attribute_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = (folder.path().join("reviews.h5"), folder.path().join("whole.h5"));
    let mut given = Given::sound();
    of_half(&mut given, 0x5_7fff_ffff);
    given.write(&path);
    let written = DatasetReader::open(&path).unwrap();
    written.verify(|_| Ok(())).unwrap();
    assert_eq!(written.settings(), &given.settings);
    let sample =
        |path: &Path| File::open(path).unwrap().attr("sample").and_then(|sample| sample.read_scalar::<u64>());
    assert_eq!(sample(&path).unwrap(), 1 << 31);
    write_dataset(&whole, &rows());
    assert!(sample(&whole).is_err());
}

#[test]
fn a_reused_vocabulary_keeps_its_order_and_may_have_zero_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.settings.vocabulary_of = Some(Digest(7));
    given.settings.vocabulary_size = 3;
    given.counts = vec![0, 11, 8];
    given.write(&path);
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn rows_of_one_hash_with_unknown_words_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    let of = |tokens: &[u32], ones: u32| Row {
        hash: 5,
        tokens: tokens.to_vec(),
        votes: Votes([0, 0, 0, ones, 0]),
        split: if tokens == [2] { split(b"fit") } else { 0 },
        ..given.rows[2].clone()
    };
    // Shorter rows first, equal by votes. After an unknown word the order cannot be checked.
    given.rows =
        vec![of(&[2], 1), of(&[2], 2), of(&[2, 1], 2), of(&[3, 1], 2), of(&[1], 2), of(&[2, 1, 2], 1)];
    given.write(&path);
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn the_split_is_checked_if_all_words_of_a_row_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.rows[1].split = (given.rows[1].split + 1) % 1000;
    given.rows[2] = Row { tokens: vec![2, 1], split: 7, ..given.rows[2].clone() };
    given.write(&path);
    let dataset = DatasetReader::open(&path).unwrap();
    let mut row = Row::default();
    let checked = [0, 1, 2].map(|at| {
        dataset.rows().read(at, &mut row).unwrap();
        dataset.check_split(at, &row).map_err(|error| error.to_string())
    });
    assert!(checked[0].is_ok() && checked[2].is_ok(), "{checked:?}");
    let said = checked[1].as_ref().unwrap_err();
    assert!(
        said.contains("the split of row 1 is ") && said.contains("computed from its words (FORMAT.md, F31)"),
        "{said}"
    );
}
