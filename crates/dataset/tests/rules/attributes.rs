//! Files that break a rule of settings and digests.

use corpus::digest::Digest;
use hdf5::File;

use crate::case::{Case as C, When};
use crate::fixture::reseal::{put_number, put_text};

/// Settings and digests.
pub fn of_attributes() -> Vec<C> {
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

/// Puts the text of classes in place of `positive_from`.
fn put_labels<const N: usize>(file: &File, classes: &str) {
    file.delete_attr("positive_from").unwrap();
    put_text::<N>(file, "labels", classes);
}
