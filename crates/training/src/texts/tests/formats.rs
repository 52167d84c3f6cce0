//! Each format gives the texts of its reviews, in their order.

use std::sync::Arc;

use ::tests::compressed::{bgzf, bzip2, gzip, in_members, zstd};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use corpus::format::{FormatName, Preset};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use super::*;

/// A review as it is written, with its words.
struct Review {
    text: String,
    stars: u8,
    cleaned: Vec<String>,
    punctuation: Vec<String>,
}

const WORDS: [&str; 7] = ["Great", "film", "Étude", "it's", "not", "a", "notwithstandingness"];

/// Review `n`, whose words depend on its number.
fn review(n: usize) -> Review {
    let words: Vec<&str> = (0..1 + n % 9).map(|at| WORDS[(n / 3 + at * at) % WORDS.len()]).collect();
    let own = letters(n);
    let text = format!("{}, {n}<br />{own}!", words.join(" "));
    let words = words.iter().map(|word| word.to_lowercase());
    let cleaned = words.clone().chain([own.clone()]).collect();
    let between = [",".to_owned(), n.to_string(), own, "!".to_owned()];
    Review { text, stars: (n % 5 + 1) as u8, cleaned, punctuation: words.chain(between).collect() }
}

/// A word of one review.
fn letters(n: usize) -> String {
    format!("{n}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn expected(reviews: &[Review], words: Words) -> Vec<Text> {
    let text = |review: &Review| {
        let words = if words == Words::Cleaned { &review.cleaned } else { &review.punctuation };
        (words.clone(), owned(&[if review.stars >= 4 { "positive" } else { "negative" }]))
    };
    reviews.iter().map(text).collect()
}

fn json_lines(reviews: &[Review], [text, stars]: [&str; 2]) -> Vec<u8> {
    let line = |review: &Review| json!({text: review.text, stars: review.stars}).to_string() + "\n";
    reviews.iter().map(line).collect::<String>().into_bytes()
}

fn json_array(reviews: &[Review]) -> Vec<u8> {
    let elements = reviews.iter().map(|review| json!({"reviewText": review.text, "overall": review.stars}));
    serde_json::to_vec_pretty(&elements.collect::<Vec<_>>()).unwrap()
}

fn delimited(reviews: &[Review], delimiter: char) -> Vec<u8> {
    let line = |review: &Review| format!("{}{delimiter}\"{}\"\n", review.stars, review.text);
    let header = format!("overall{delimiter}reviewText\n");
    (header + &reviews.iter().map(line).collect::<String>()).into_bytes()
}

/// A Parquet file of two row groups.
fn parquet(reviews: &[Review]) -> Vec<u8> {
    let schema = "message m { required binary reviewText (STRING); required double overall; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for reviews in reviews.chunks(reviews.len().div_ceil(2)) {
        let mut group = file.next_row_group().unwrap();
        let texts = reviews.iter().map(|review| ByteArray::from(review.text.as_bytes().to_vec()));
        let stars: Vec<_> = reviews.iter().map(|review| f64::from(review.stars)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts.collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&stars, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

/// An Arrow file of several record batches.
fn arrow(reviews: &[Review]) -> Vec<u8> {
    let batch = |reviews: &[Review]| {
        let texts = StringArray::from_iter_values(reviews.iter().map(|review| &review.text));
        let stars = Float64Array::from_iter_values(reviews.iter().map(|review| f64::from(review.stars)));
        let columns: [(&str, ArrayRef); 2] = [("reviewText", Arc::new(texts)), ("overall", Arc::new(stars))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<_> = reviews.chunks(reviews.len().div_ceil(5)).map(batch).collect();
    let mut file = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| file.write(batch).unwrap());
    file.into_inner().unwrap()
}

#[test]
fn each_format_gives_the_texts_of_its_reviews_with_any_number_of_threads() {
    let reviews: Vec<Review> = (0..6000).map(review).collect();
    let json = json_lines(&reviews, ["reviewText", "overall"]);
    let named = |name| FormatOptions { name: Some(name), ..FormatOptions::default() };
    let of_yelp =
        FormatOptions { preset: Some("yelp".parse::<Preset>().unwrap()), ..FormatOptions::default() };
    let of_fields = FormatOptions {
        text_field: Some("body".parse().unwrap()),
        rating_field: Some("n".parse().unwrap()),
        ..FormatOptions::default()
    };
    let polarity = FormatOptions {
        class_ratings: Some("1=1,2=2,3=3,4=4,5=5".parse().unwrap()),
        ..named(FormatName::PolarityCsv)
    };
    let without_header =
        |csv: Vec<u8>| csv[csv.iter().position(|&byte| byte == b'\n').unwrap() + 1..].to_vec();
    let cases: Vec<(&str, Vec<u8>, FormatOptions)> = vec![
        ("json", json.clone(), FormatOptions::default()),
        ("gzip", gzip(&json), FormatOptions::default()),
        ("bgzf", in_members(&json, 10_000, bgzf), FormatOptions::default()),
        ("zstd", zstd(&json), FormatOptions::default()),
        ("bzip2", bzip2(&json), FormatOptions::default()),
        ("yelp", json_lines(&reviews, ["text", "stars"]), of_yelp),
        ("fields", json_lines(&reviews, ["body", "n"]), of_fields),
        ("array", json_array(&reviews), FormatOptions::default()),
        ("array.gz", gzip(&json_array(&reviews)), FormatOptions::default()),
        ("csv", delimited(&reviews, ','), named(FormatName::Csv)),
        ("tsv", delimited(&reviews, '\t'), named(FormatName::Tsv)),
        ("polarity", without_header(delimited(&reviews, ',')), polarity),
        ("parquet", parquet(&reviews), FormatOptions::default()),
        ("arrow", arrow(&reviews), FormatOptions::default()),
    ];
    for (name, content, asked) in cases {
        let folder = folder(&[(name, &content)]);
        for (threads, words) in [(1, Words::Cleaned), (3, Words::Cleaned), (3, Words::Punctuation)] {
            let lines = lines(&[&folder.path().join(name)], asked.clone(), threads);
            let (read, told) = read_told(&lines, words);
            let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(seen(&read.texts) == expected(&reviews, words), "{name}, {threads} threads, {words:?}");
            assert_eq!(told, <[String; 0]>::default(), "{name}");
            assert_eq!(read.ledger.to_string(), "6000 lines = 6000 reviews", "{name}");
        }
    }
}

#[test]
fn many_inputs_give_equal_texts_with_any_number_of_threads() {
    let reviews: Vec<Review> = (0..30_000).map(review).collect();
    let parts: Vec<&[Review]> = reviews.chunks(3750).collect();
    let json = |part: usize| json_lines(parts[part], ["reviewText", "overall"]);
    let folder = folder(&[
        ("a", &gzip(&json(0))),
        ("b", &json(1)),
        ("c", &zstd(&json(2))),
        ("d", &parquet(parts[3])),
        ("e", &gzip(&json(4))),
        ("f", &json_array(parts[5])),
        ("g", &arrow(parts[6])),
        ("h", &json(7)),
    ]);
    let of = |threads, how: Reading| {
        read(&lines(&[folder.path()], FormatOptions::default(), threads), how, |_| {}).unwrap().texts
    };
    let alone = of(1, how(Words::Cleaned));
    assert!(seen(&alone) == expected(&reviews, Words::Cleaned));
    for threads in [2, 3, 8] {
        let texts = of(threads, how(Words::Cleaned));
        assert!(texts.dictionary == alone.dictionary && seen(&texts) == seen(&alone), "{threads} threads");
    }
    // Which words are kept depends on their order. Texts are stored in a file.
    let bounded = || Reading { words_max: 1000, count_min: 2, memory_bytes: 0, ..how(Words::Cleaned) };
    let alone = of(1, bounded());
    assert!(alone.counts().n_unknown > 0 && !alone.is_in_memory());
    for threads in [2, 5] {
        let texts = of(threads, bounded());
        assert!(texts.dictionary == alone.dictionary && seen(&texts) == seen(&alone), "{threads} threads");
    }
}

#[test]
fn the_values_of_a_field_are_labels_by_their_names() {
    let json = br#"{"text": "one", "kind": "Home & Garden"}
{"kind": 7, "text": "two"}
{"text": "three", "kind": 2.50}
{'text': 'four', 'kind': True}
{"text": "five", "kind": " caf\u00e9\t"}
{"text": "none", "kind": ""}
{"text": "none", "kind": null}
{"text": "none"}
{"text": "none", "kind": NaN}
{"text": "none", "kind": 9007199254740993}
"#;
    let list = br#"{"of": "outer", "all": [{"text": "one", "kind": "b"}, {"kind": "a", "text": "two"}, {"text": "none"}]}
"#;
    let table = "text;kind\none;\"so; so\"\ntwo;7\nthree; 7 \nnone;\n";
    let folder = folder(&[("a.json", json), ("list.json", list), ("table.csv", table.as_bytes())]);
    let asked = |name: &str, prefix: &str| FormatOptions {
        name: name.parse().ok(),
        text_field: Some(format!("{prefix}text").parse().unwrap()),
        label_field: Some(format!("{prefix}kind").parse().unwrap()),
        ..FormatOptions::default()
    };
    for (file, asked, n_bad, expected) in [
        (
            "a.json",
            asked("json", ""),
            5,
            &[("one", "Home & Garden"), ("two", "7"), ("three", "2.5"), ("four", "true"), ("five", "café")][..],
        ),
        ("list.json", asked("json", "all[]."), 1, &[("one", "b"), ("two", "a")]),
        ("table.csv", asked("csv", ""), 1, &[("one", "so; so"), ("two", "7"), ("three", "7")]),
    ] {
        let path = folder.path().join(file);
        let mut lines = lines(&[&path], asked, 2);
        lines.limits = Limits::NONE;
        let (read, told) = read_told(&lines, Words::Punctuation);
        let ReadTexts { texts, ledger } = read.unwrap_or_else(|error| panic!("{error} {told:?}"));
        let expected: Vec<_> =
            expected.iter().map(|(text, label)| (owned(&[text]), owned(&[label]))).collect();
        assert_eq!(seen(&texts), expected, "{file}");
        assert!(ledger.counters().contains(&("bad_rating", n_bad)), "{file} {ledger}");
        // In the order of bytes.
        let labels: Vec<_> = texts.dictionary.labels().iter().collect();
        assert!(labels.is_sorted(), "{labels:?}");
    }
}

#[test]
fn a_field_without_labels_is_named() {
    let folder = folder(&[("a.json", br#"{"text": "one", "kind": "b"}"#)]);
    let asked = FormatOptions {
        text_field: Some("text".parse().unwrap()),
        label_field: Some("king".parse().unwrap()),
        ..FormatOptions::default()
    };
    let (read, _) = read_told(&lines(&[&folder.path().join("a.json")], asked, 1), Words::Punctuation);
    let told = read.unwrap_err().to_string();
    let expected = "lines have no label in the field \"king\": found the fields text, kind, expected texts, or whole numbers \
                    below 2^53; name another field with --label-field, or count these lines apart with --unrated=null";
    assert!(told.ends_with(expected), "{told}");
}
