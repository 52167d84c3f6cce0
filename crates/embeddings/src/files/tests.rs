//! Files are written and read back, files of other programs are read, and hostile files are refused.

use std::fs;
use std::io::Write;
use std::path::Path;

use program::exit::{Exit, Fails};

use super::*;
use crate::CharacterNgrams;
use crate::tests::{names, plain, with_characters};

/// Writes a file and returns it as read.
fn back(name: &str, embedding: &Embedding) -> (Embedding, Option<Vec<f32>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(&path, Format::of_name(&path).unwrap(), embedding, None).unwrap();
    read_with_outputs(&path).unwrap()
}

/// Reads these bytes as a file.
fn parsed(name: &str, bytes: &[u8]) -> std::result::Result<Embedding, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    read(&path).map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

/// Without the word that contains a space.
fn short(embedding: &Embedding) -> Embedding {
    let words: Vec<&[u8]> = embedding.words.words().iter().take(3).collect();
    let vectors = embedding.vectors[..9].to_vec();
    Embedding::new(words.into_iter().collect(), None, 3, vectors)
}

#[test]
fn the_folder_of_another_model_is_named_with_what_works() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    let message = |config: &str| {
        fs::write(model.join("config.json"), config).unwrap();
        let message = read(folder.path()).unwrap_err().to_string();
        message.replace(&folder.path().display().to_string(), "MODEL")
    };
    assert_eq!(
        message(r#"{"family": "ngrams", "kind": "linear"}"#),
        "MODEL: a linear n-gram model, which has no word vectors, expected word vectors; train word vectors with `vectors \
         train`, or a model that has some with `ngrams train --model fasttext`"
    );
    assert_eq!(
        message(r#"{"family": "ngrams", "kind": "fasttext"}"#),
        "MODEL: an n-gram model, expected word vectors; export its words with `ngrams export MODEL --out WORDS.vec`"
    );
    fs::write(model.join("vocabulary.txt"), "").unwrap();
    let expected = "MODEL: an LSTM model, expected word vectors; train word vectors with `vectors train`";
    assert_eq!(message("{}"), expected);
}

fn binary(words: &[(&str, [f32; 2])], end: &str) -> Vec<u8> {
    let mut bytes = format!("{} 2\n", words.len()).into_bytes();
    for (word, vector) in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(b' ');
        vector.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        bytes.extend_from_slice(end.as_bytes());
    }
    bytes
}

#[test]
fn exact_formats_are_read_back() {
    let embedding = short(&plain());
    for name in ["x.txt", "x.w2v", "x.npy"] {
        assert_eq!(back(name, &embedding), (embedding.clone(), None), "{name}");
    }
    // -0.7 + 1/8 has more digits than five.
    let (found, _) = back("x.vec", &embedding);
    assert!(found.vectors.iter().zip(&embedding.vectors).all(|(a, b)| (a - b).abs() < 1e-5));
    let (found, _) = back("x", &with_characters());
    assert_eq!(found, with_characters());
}

#[test]
fn a_model_of_fasttext_keeps_counts_and_character_ngrams() {
    let whole = with_characters();
    let characters = whole.characters.clone().unwrap();
    let characters = CharacterNgrams { own: characters.own[..9].to_vec(), ..characters };
    let words = names(&["the", "film", "b\u{e4}d"]);
    let embedding = Embedding::with_characters(words.clone(), Some(vec![9, 5, 2]), 3, characters);
    assert_eq!(back("x.bin", &embedding), (embedding.clone(), Some(vec![0.0; 9])));
    let plain = Embedding::new(words, Some(vec![9, 5, 2]), 3, embedding.vectors.clone());
    assert_eq!(back("x.bin", &plain).0, plain);
}

#[test]
fn output_vectors_are_kept_by_models() {
    let folder = tempfile::tempdir().unwrap();
    let outputs: Vec<f32> = (0..9).map(|at| at as f32).collect();
    for (name, format) in [("x.bin", Format::FastText), ("x", Format::Folder)] {
        let path = folder.path().join(name);
        write(&path, format, &short(&plain()), Some(&outputs)).unwrap();
        assert_eq!(read_with_outputs(&path).unwrap().1, Some(outputs.clone()), "{name}");
    }
}

#[test]
fn files_of_other_programs_are_read() {
    let expected = Embedding::new(names(&["a", "\u{e9}"]), None, 2, vec![1.0, -0.5, 0.25, 1e-5]);
    for text in [
        "2 2\na 1 -0.5\n\u{e9} 0.25 1e-05\n",
        "2 2\na 1 -0.5 \n\u{e9} 0.25 1e-05 \n\n",
        "2 2\r\na 1.0 -.5\r\n\u{e9}\t2.5E-1 0.00001",
        "a 1 -0.5\n\u{e9} 0.25 0.00001\n",
    ] {
        assert_eq!(parsed("x.vec", text.as_bytes()).unwrap(), expected, "{text:?}");
    }
    let words = [("a", [1.0, -0.5]), ("\u{e9}", [0.25, 1e-5])];
    for end in ["\n", ""] {
        assert_eq!(parsed("x.bin", &binary(&words, end)).unwrap(), expected);
    }
}

#[test]
fn a_training_folder_means_its_model() {
    let folder = tempfile::tempdir().unwrap();
    let training = folder.path().join("training");
    fs::create_dir(&training).unwrap();
    folder::write_embedding(&training.join("model"), &plain(), None, Value::Null).unwrap();
    assert!(is_folder(&training) && is_folder(&training.join("model")) && !is_folder(folder.path()));
    assert_eq!(read(&training).unwrap(), plain());
}

#[test]
fn the_extension_selects_the_format() {
    let of = |name: &str| Format::of_name(Path::new(name));
    assert_eq!(of("x.bin"), Some(Format::FastText));
    assert_eq!(of("x.w2v"), Some(Format::Word2Vec));
    assert_eq!(of("a.b/x"), Some(Format::Folder));
    assert_eq!(of("x.gz"), None);
}

#[test]
fn words_that_a_format_cannot_separate_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.vec", "x.txt", "x.w2v", "x.bin"] {
        let path = folder.path().join(name);
        let told = write(&path, Format::of_name(&path).unwrap(), &plain(), None).unwrap_err().to_string();
        assert!(told.contains("a word is \"a b\", but the format allows words"), "{told}");
    }
    let embedding = Embedding::new(names(&["a b"]), None, 1, vec![0.5]);
    assert_eq!(back("x.npy", &embedding).0, embedding);
}

#[test]
fn an_existing_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for (name, occupied) in [("x.vec", "x.vec"), ("x.npy", "x.npy"), ("y.npy", "y.txt"), ("x.bin", "x.bin")] {
        fs::write(folder.path().join(occupied), "mine").unwrap();
        let path = folder.path().join(name);
        let told = write(&path, Format::of_name(&path).unwrap(), &short(&plain()), None).unwrap_err();
        assert!(told.to_string().contains("already exists"), "{told}");
        assert_eq!(fs::read_to_string(folder.path().join(occupied)).unwrap(), "mine");
    }
}

#[test]
fn words_whose_array_cannot_be_written_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    // A file cannot have a name with a slash at its end.
    let told = write(&folder.path().join("x.npy/"), Format::Numpy, &plain(), None).unwrap_err().to_string();
    assert!(told.contains("cannot rename it"), "{told}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn damaged_text_is_refused() {
    for (text, expected) in [
        (
            "",
            "x.vec: line 1 is empty, expected two numbers, of the words and of the dimension, or a word and its values; \
             pass a file of word vectors",
        ),
        ("a\n", "x.vec: line 1 is \"a\", expected two numbers"),
        (
            "a 1 two\n",
            "line 1 is \"a 1 two\", expected two numbers, of the words and of the dimension, or a word",
        ),
        ("b 1 2\na 1 two\n", "line 2 is \"a 1 two\", expected a word and 2 finite values"),
        ("a 1 2\nb 1\n", "line 2 is \"b 1\", expected a word and 2 finite values"),
        ("a 1 2\n\n", "line 2 is empty, expected a word and 2 finite values"),
        (
            "a 1 2\nb 1 2",
            "line 2 is \"b 1 2\", expected a line break at the end of the file; the file was cut off",
        ),
        (
            "2 2\na 1 2\nb 1\n",
            "x.vec: line 3 is \"b 1\", expected a word and 2 finite values; write the file again",
        ),
        (
            "1 2\na 1 2 3\n",
            "x.vec: line 2 is \"a 1 2 3\", expected a word and 2 finite values; correct the dimension on the first line",
        ),
        (
            "1 4\na -1.5 2\n",
            "x.vec: line 2 is \"a -1.5 2\", expected a word and 4 finite values; correct the dimension on the first line",
        ),
        (
            "400000 2\na 1 2\n",
            "expected 1 to 2, because the file has 15 bytes; copy the file again, or correct the number of words",
        ),
        // Two lines without the line break between them.
        ("a 1 2\nb 1 2 c 3 4\n", "line 2 is \"b 1 2 c 3 4\", expected a word and 2 finite values"),
        ("2 2\na 1 2 b 1 2\nc 1 2\n", "line 2 is \"a 1 2 b 1 2\", expected a word and 2 finite values"),
        ("1 2\na 1 nan\n", "line 2 is \"a 1 nan\", expected a word and 2 finite values"),
        ("1 2\na 1 1e30\n", "line 2 is \"a 1 1e30\", expected"),
        ("1 2\n 1 2\n", "line 2 is \" 1 2\", expected"),
        ("2 2\na 1 2\nand a long, long line", "line 3 is"),
        (
            "3 1\na 1\nb 12345678\n",
            "line 4 is the end of the file, expected word 3 of 3; copy the file again, or correct the number of words",
        ),
        ("1 2\na 1 2\nb 1 2\n", "line 3 is \"b 1 2\", expected the end of the file after 1 words"),
        (
            "9999999999 2\na 1 2\n",
            "the number of words is 9999999999, expected 1 to 3, because the file has 19",
        ),
        ("1 99999999999\na 1 2\n", "x.vec: the dimension is 99999999999, expected 1 to 1048576"),
        ("0 2\n", "x.vec: the number of words is 0"),
    ] {
        let told = parsed("x.vec", text.as_bytes()).unwrap_err();
        assert!(told.contains(expected), "{text:?}: {told}");
    }
}

#[test]
fn damaged_binary_files_are_refused() {
    let whole = binary(&[("a", [1.0, -0.5]), ("b", [0.25, 1e-5])], "\n");
    let cut = |n: usize| whole[..whole.len() - n].to_vec();
    let infinite = binary(&[("a", [1.0, 2.0]), ("b", [0.25, f32::INFINITY])], "\n");
    for (bytes, expected) in [
        (cut(2), "x.w2v: vector 1 is cut off after 7 bytes, expected 8 bytes"),
        (infinite, "x.w2v: value 1 of vector 1 is inf, expected a finite value of a magnitude below 1e12"),
        ([&whole[..], b"more"].concat(), "the number of bytes after the last vector is 4, expected 0"),
        // Without the line break, "more" is not a part of the last line.
        ([&cut(1)[..], b"more"].concat(), "the number of bytes after the last vector is 4, expected 0"),
        (
            [b"9", &whole[1..]].concat(),
            "the number of words is 9, expected 1 to 2, because the file has 26 bytes",
        ),
    ] {
        let told = parsed("x.w2v", &bytes).unwrap_err();
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn damaged_arrays_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    write(&path, Format::Numpy, &short(&plain()), None).unwrap();
    let bytes = fs::read(&path).unwrap();
    let words = folder.path().join("x.txt");
    fs::write(&words, "a\nb\n").unwrap();
    let told = read(&path).unwrap_err().to_string();
    assert!(told.contains("x.txt: the number of words is 2, expected 3, the rows of "), "{told}");
    fs::remove_file(&words).unwrap();
    let told = read(&path).unwrap_err().to_string();
    assert!(told.contains("x.txt: not found, expected the words of the array, one per line"), "{told}");
    let doubles = String::from_utf8_lossy(&bytes[..128]).replace("<f4", "<f8");
    let told = parsed("y.npy", &[b"\x93", &doubles.as_bytes()[3..], &bytes[128..]].concat()).unwrap_err();
    assert!(told.contains("expected '<f4' in C order with two dimensions"), "{told}");
}

#[test]
fn a_truncated_model_of_fasttext_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    write(&path, Format::FastText, &short(&plain()), None).unwrap();
    let bytes = fs::read(&path).unwrap();
    for n in 1..bytes.len() {
        assert!(parsed("y.bin", &bytes[..n]).is_err(), "{n} bytes");
    }
    assert!(parsed("y.bin", &[&bytes[..], b"x"].concat()).is_err());
}

#[test]
fn a_classifier_of_fasttext_has_the_vectors_of_its_words() {
    let whole = with_characters();
    let characters = whole.characters.clone().unwrap();
    let words = ["the", "film", "b\u{e4}d"];
    let counts = || Some(vec![9, 5, 2]);
    let own = characters.own[..9].to_vec();
    let of_characters = CharacterNgrams { own: own.clone(), ..characters.clone() };
    for (longest, expected) in [
        (characters.max, Embedding::with_characters(names(&words), counts(), 3, of_characters)),
        // The other rows are those of word n-grams.
        (0, Embedding::new(names(&words), counts(), 3, own.clone())),
    ] {
        let bytes = classifier(&words, longest, &[&own[..], &characters.rows].concat());
        assert_eq!(parsed("x.bin", &bytes).unwrap(), expected, "{longest}");
        assert_eq!(parsed("x.bin.gz", &gzip(&bytes)).unwrap(), expected, "{longest}");
        for n in 1..bytes.len() {
            assert!(parsed("y.bin", &bytes[..n]).is_err(), "{n} bytes");
        }
    }
}

/// The file of a classifier of two labels. `rows` are those of the words and of 50 buckets, of three values each.
fn classifier(words: &[&str; 3], longest: usize, rows: &[f32]) -> Vec<u8> {
    let mut bytes = classifiers::files::bin::MAGIC.to_le_bytes().to_vec();
    let fields = [12, 3, 5, 5, 1, 5, 2, 3, 3, 50, 2, longest as i32, 100];
    fields.iter().for_each(|field: &i32| bytes.extend(field.to_le_bytes()));
    bytes.extend(1e-4f64.to_le_bytes());
    [5, 3, 2].iter().for_each(|n: &i32| bytes.extend(n.to_le_bytes()));
    [16i64, -1].iter().for_each(|n| bytes.extend(n.to_le_bytes()));
    let words = words.iter().zip([9i64, 5, 2]).map(|(word, count)| (*word, count, 0));
    for (word, count, kind) in words.chain([("__label__1", 3, 1), ("__label__2", 2, 1)]) {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
        bytes.extend(count.to_le_bytes());
        bytes.push(kind);
    }
    for (n_rows, values) in [(53, rows), (2, &[0.5; 6][..])] {
        bytes.push(0);
        [n_rows, 3i64].iter().for_each(|n| bytes.extend(n.to_le_bytes()));
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn the_last_numbers_of_a_line_are_the_vector_and_the_rest_is_the_word() {
    for (text, words) in [
        ("at name@domain.com 1 2 3\n. . . 4 5 6\nplain 7 8 9\n", ["at name@domain.com", ". . .", "plain"]),
        ("3 3\nNew York 1 2 3 \n1 2 4 5 6 \n7 7 8 9 \n", ["New York", "1 2", "7"]),
        // Of a line of numbers alone, the first one is the word.
        ("1 1 2 3\n2 4 5 6\nsince 1984 7 8 9\n", ["1", "2", "since 1984"]),
        ("3 3\r\n. .\u{2009}.\t1 2\t3\r\na  b 4 5 6\r\n, 7 8 9\r\n", [". .\u{2009}.", "a  b", ","]),
        ("inf 1 2 3\nnot a nan 4 5 6\n1e40 7 8 9\n", ["inf", "not a nan", "1e40"]),
    ] {
        let expected = Embedding::new(names(&words), None, 3, (1..10).map(|at| at as f32).collect());
        assert_eq!(parsed("x.txt", text.as_bytes()).unwrap(), expected, "{text:?}");
    }
    // The first lines have more spaces than most.
    let lines = |n: usize| (0..n).map(|at| format!("w{at} 0.5 {at}\n")).collect::<String>();
    let found = parsed("x.txt", format!("a 3 4 5\nb 2 6 7\n{}", lines(200)).as_bytes()).unwrap();
    assert_eq!((found.n_words(), found.dim, found.words.name(0)), (202, 2, &b"a 3"[..]));
}

#[test]
fn files_that_are_compressed_or_begin_with_a_mark_are_read() {
    let expected = Embedding::new(names(&["red", "blue"]), None, 2, vec![1.0, -0.5, 0.25, 1e-5]);
    let text = "2 2\nred 1 -0.5\nblue 0.25 1e-05\n";
    let utf16 = |text: &str| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let words = [("red", [1.0, -0.5]), ("blue", [0.25, 1e-5])];
    for (name, bytes) in [
        ("x.vec", format!("\u{feff}{text}").into_bytes()),
        ("x.txt", format!("\u{feff}{}", &text[4..]).into_bytes()),
        ("x.txt", utf16(text)),
        ("x.vec.gz", gzip(text.as_bytes())),
        ("x.vec.gz", gzip(format!("\u{feff}{text}").as_bytes())),
        ("x.w2v.gz", gzip(&binary(&words, "\n"))),
    ] {
        assert_eq!(parsed(name, &bytes).unwrap(), expected, "{name} {bytes:?}");
    }
    let cut = gzip(text.as_bytes());
    let told = parsed("x.vec.gz", &cut[..cut.len() - 4]).unwrap_err();
    assert!(told.contains("the gzip member at byte 0 is cut off"), "{told}");
    let told = parsed("x.vec.gz", &gzip(b"4000000000 1048576\na 1\n")).unwrap_err();
    assert!(
        told.contains("x.vec.gz: line 2 is \"a 1\", expected a word and 1048576 finite values"),
        "{told}"
    );
}

#[test]
fn content_of_another_kind_is_bad_input_with_a_remedy_for_vectors() {
    let text: Vec<u8> = "a 1 2\nb 3 4\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let zipped = gzip(b"a 1 2\n");
    for (bytes, expected) in [
        (
            &b"PK\x03\x04..."[..],
            "the file is a zip archive, expected text or word vectors; unpack it, and pass the file",
        ),
        (b"\xfd7zXZ\0.", "the file is an xz-compressed file, expected text or word vectors; unpack it"),
        (
            &gzip(&zipped),
            "the file is a file that is compressed twice, expected text or word vectors; unpack it",
        ),
        (&zipped[..zipped.len() - 4], "the gzip member at byte 0 is cut off at byte "),
        (
            &text,
            "found UTF-16 without a mark, expected UTF-8; convert the file with iconv -f UTF-16LE -t UTF-8",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.vec");
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains(&format!("x.vec: {expected}")), "{error}");
        assert_eq!(error.exit(), Exit::BadInput, "{error}");
    }
}

#[test]
fn decimal_commas_are_named() {
    for (text, line) in [
        ("2 3\na 0,72 0,80 -1,9\nb 0,1 0,2 0,3\n", 2),
        ("a 0,72 0,80\nb 0,1 0,2\n", 1),
        ("2 2\na 0.5 0.5\nb 0,5 1,5e-3\n", 3),
    ] {
        let told = parsed("x.vec", text.as_bytes()).unwrap_err();
        let expected = "with decimal points, found decimal commas; replace the commas: sed -E ";
        assert!(told.starts_with(&format!("x.vec: line {line} is ")) && told.contains(expected), "{told}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let told = read(Path::new("/nowhere/x.vec")).unwrap_err().to_string();
    assert!(told.starts_with("/nowhere/x.vec: not found, expected "), "{told}");
}
