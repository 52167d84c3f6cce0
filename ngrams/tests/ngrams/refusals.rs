//! What is refused, and why.

use super::*;

#[test]
fn flags_of_the_other_model_are_refused_by_name() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    for (flags, expected) in [
        (&["--model", "linear", "--dim", "10"][..], "--dim has no effect with --model linear"),
        (&["--model", "fasttext", "--c", "2"], "--c has no effect with --model fasttext"),
        (&["--dim", "10", "--weights", "nb"], "--weights has no effect with --model fasttext"),
        (&["--model", "linear", "--loss", "softmax"], "--loss softmax has no effect with --model linear"),
        (&["--loss", "logistic", "--rate", "0.1"], "--loss logistic has no effect with --model fasttext"),
        (&["--checkpoint-every", "5"], "--checkpoint-every has no effect with --model linear"),
        (&["--s3", "region=eu-central-1"], "--s3 has no effect without an s3:// URL"),
    ] {
        let (code, told) = ended(ngrams(&train, &out, flags));
        assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
        assert!(told.contains(expected), "{told}");
        assert!(!out.exists());
    }
}

#[test]
fn ranks_are_refused_with_the_faster_way() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let mut command = ngrams(&train, &out, &[]);
    command.envs([("RANK", "1"), ("WORLD_SIZE", "2")]);
    let (code, told) = ended(command);
    let expected = "ngrams: WORLD_SIZE is 2, expected 1 for ngrams: one process with --threads is faster than ranks; run \
                    it without launch and torchrun";
    assert_eq!((code, told.as_str()), (Some(64), expected));
    assert!(!out.exists());
}

#[test]
fn lines_that_are_not_cleaned_are_refused_by_a_model_of_cleaned_words() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let (code, told) = ended(ngrams(&train, &out, &["--words", "cleaned"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--format is fasttext, expected another one with --words cleaned"), "{told}");
}

#[test]
fn an_occupied_folder_is_refused_and_replaced_by_force() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &["--deterministic"]);
    let before = model_files(&out);
    let (code, told) = ended(ngrams(&train, &out, &[]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("already exists: found a training, expected a new name"), "{told}");
    assert_eq!(model_files(&out), before);
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let (code, told) = ended(ngrams(&train, &out, &["--force"]));
    assert_eq!(code, Some(64), "{told}");
    assert_eq!(model_files(&out), before);
    fs::remove_file(out.join("notes.txt")).unwrap();
    trained(&train, &out, &["--force", "--ngrams", "1"]);
    assert_ne!(model_files(&out), before);
}

#[test]
fn inputs_without_use_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.txt");
    let out = folder.path().join("out");
    for (content, code, expected) in [
        ("", 65, "found no label in 0 lines"),
        ("a text without a label\n", 65, "found no label in 1 line"),
        ("__label__1 good\n__label__1 bad\n", 65, "every text has the label 1"),
        ("__label__1\n__label__2\n", 65, "no text has a word"),
    ] {
        fs::write(&file, content).unwrap();
        for model in MODELS {
            let (found, told) = ended(ngrams(&file, &out, &[model, &["--words", "punctuation"]].concat()));
            assert_eq!((found, told.lines().count()), (Some(code), 1), "{told}");
            assert!(told.contains(expected), "{told}");
            assert!(!out.exists(), "{told}");
        }
    }
    let texts = folder.path().join("texts");
    for class in ["neg", "pos"] {
        fs::create_dir_all(texts.join(class)).unwrap();
        fs::write(texts.join(class).join("0_9.txt"), "a text of this class").unwrap();
    }
    let (code, told) = ended(ngrams(&texts, &out, &[]));
    let expected = "found no label in 2 lines of fasttext, expected a label such as __label__1 per line; the folders neg, pos of ";
    assert!(code == Some(65) && told.contains(expected) && told.ends_with("; done > reviews.txt"), "{told}");
    let (code, told) = ended(ngrams(&folder.path().join("missing.txt"), &out, &[]));
    assert_eq!(code, Some(66), "{told}");
}

#[test]
fn a_training_that_cannot_work_is_refused_with_a_remedy() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let large = ["--ngrams", "5", "--dim", "4096", "--memory", "64MiB"];
    let (code, told) = ended(ngrams(&train, &out, &large));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("bytes of memory") && told.contains("reduce --buckets or --dim"), "{told}");
    let content: String =
        (0..60_000).map(|at| format!("__label__{} w{at} w{} w{at}\n", at % 2, at / 2)).collect();
    let many = folder.path().join("many.txt");
    fs::write(&many, content).unwrap();
    let small = ["--model", "linear", "--min-count", "1", "--memory", "1MiB", "--force"];
    let (code, told) = ended(ngrams(&many, &out, &small));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("bytes of memory") && told.contains("reduce --ngrams"), "{told}");
    let (code, told) = ended(ngrams(&train, &out, &["--c", "1e300"]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("--c 1e300: expected a number above 0 and at most 1000000"), "{told}");
    let (code, told) = ended(ngrams(&train, &out, &["--rate", "1e30", "--force"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("the loss is not a number in epoch 1; set a lower --rate"), "{told}");
    assert!(!out.join("model").exists());
}

#[test]
fn a_test_that_cannot_be_read_ends_before_the_training_and_keeps_the_model_that_force_would_replace() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &[]);
    let before = model_files(&out);
    // Before the input, too, which would be reported.
    let mut text = fs::read(&train).unwrap();
    text.extend(b"a line without a label\n");
    fs::write(&train, text).unwrap();
    let (code, told) = ended(ngrams(&train, &out, &["--force", "--test", "/no/such/file"]));
    assert_eq!(code, Some(66), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(model_files(&out) == before);
}

#[test]
fn a_linear_model_counts_texts_of_an_ngram_up_to_255() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let (code, told) = ended(ngrams(&train, &out, &["--min-count=256"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--min-count") && told.contains("at most 255"), "{told}");
    trained(&train, &out, &["--min-count=255"]);
}

#[test]
fn a_model_that_does_not_exist_is_refused_by_its_name() {
    let (code, told) = ended(command_of("predict", Path::new("/no/such/model"), &["--threshold=0.5"]));
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("/no/such/model") && !told.contains("no effect"), "{told}");
}

#[test]
fn labels_of_one_text_each_are_refused_as_ids() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let lines = |n: u32| (0..n).map(|id| format!("__label__{id} some words\n")).collect::<String>();
    fs::write(&train, lines(101)).unwrap();
    let (code, told) = ended(ngrams(&train, &out, &[]));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("each of 101 labels occurs in one text only, as ids do; pass the field"), "{told}");
    fs::write(&train, lines(100)).unwrap();
    assert!(trained(&train, &out, &[]).contains("100 of 100 labels occur in one text only"));
}
