//! Files are written and read back, files of other programs are read, and hostile files are refused.

use std::fs;
use std::path::Path;

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
        ("a 1 two\n", "line 1 is \"a 1 two\", expected a word and 2 finite values"),
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
        ("1 2\na 1 2 3\n", "x.vec: line 2 is \"a 1 2 3\", expected a word and 2 finite values"),
        ("1 2\na 1 nan\n", "line 2 is \"a 1 nan\", expected a word and 2 finite values"),
        ("1 2\na 1 1e30\n", "line 2 is \"a 1 1e30\", expected"),
        ("1 2\n 1 2\n", "line 2 is \" 1 2\", expected"),
        ("2 2\na 1 2\nand a long, long line", "line 3 is"),
        (
            "3 1\na 1\nb 12345678\n",
            "line 4 is empty, expected a word and 1 values; the file was cut off: copy",
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
fn a_classifier_of_fasttext_is_refused() {
    let mut bytes = ngrams::files::bin::MAGIC.to_le_bytes().to_vec();
    let fields = [12, 2, 5, 5, 1, 5, 1, 3, 3, 0, 0, 0, 100];
    fields.iter().for_each(|field: &i32| bytes.extend(field.to_le_bytes()));
    let told = parsed("x.bin", &bytes).unwrap_err();
    assert!(
        told.contains("the kind of model is 3, a supervised model, expected 1 or 2, word vectors"),
        "{told}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let told = read(Path::new("/nowhere/x.vec")).unwrap_err().to_string();
    assert!(told.starts_with("/nowhere/x.vec: not found, expected "), "{told}");
}
