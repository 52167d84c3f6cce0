//! Trainings that start from a model or from word vectors.

use super::*;

fn accuracy(model: &Path, test: &Path) -> f64 {
    evaluated(model, test, &[])["accuracy"].as_f64().unwrap()
}

#[test]
fn a_training_that_starts_from_a_model_knows_its_words_and_those_of_new_texts() {
    let (folder, train, test) = corpus();
    // The new texts have other words, of which the first model knows nothing.
    let renamed = |text: &str| {
        GOOD.iter().chain(&BAD).fold(text.to_owned(), |text, word| text.replace(word, &format!("x{word}")))
    };
    let [new, new_test] = ["new.txt", "new-test.txt"].map(|name| folder.path().join(name));
    fs::write(&new, renamed(&lines(400, 3))).unwrap();
    fs::write(&new_test, renamed(&lines(400, 4))).unwrap();
    for model in MODELS {
        let [first, second, alone] =
            ["first", "second", "alone"].map(|name| folder.path().join(format!("{name}{}", model[1])));
        let flags = [model, &["--deterministic", "--threads", "2"]].concat();
        trained(&train, &first, &flags);
        trained(&new, &alone, &flags);
        let from = ["--init-from", first.to_str().unwrap()];
        trained(&new, &second, &[&flags[..], &from].concat());
        assert!(accuracy(&first, &new_test) < 0.7 && accuracy(&alone, &test) < 0.7, "{model:?}");
        assert!(accuracy(&second, &new_test) > 0.9, "{model:?}");
        assert!(accuracy(&second, &test) > 0.9, "{model:?}");

        // A model folder is as good as its training folder, and equal trainings have equal bits.
        let again = folder.path().join(format!("again{}", model[1]));
        trained(
            &new,
            &again,
            &[&flags[..], &["--init-from", first.join("model").to_str().unwrap()]].concat(),
        );
        assert_eq!(model_files(&again), model_files(&second));
        let resumed =
            |more: &[&str]| ended(ngrams(&new, &second, &[&flags[..], &["--resume"], more].concat()));
        let (code, told) = resumed(&from);
        assert!(code == Some(0) && told.contains("already complete"), "{told}");
        let (code, told) = resumed(&[]);
        assert!(code == Some(78) && told.contains("SHA-256 of --init-from is "), "{told}");
        let (code, told) = ended(ngrams(&new, &first, &[&flags[..], &from, &["--force"]].concat()));
        assert!(
            code != Some(0) && told.contains("the weights of --init-from, which --force would delete"),
            "{told}"
        );
    }
}

#[test]
fn a_model_from_which_no_training_can_start_is_refused_by_name() {
    let (folder, train, _) = corpus();
    let [linear, embeddings, tf_idf, exact, tree, limited, other, out] =
        ["linear", "embeddings", "tf-idf", "exact", "tree", "limited", "other", "out"]
            .map(|name| folder.path().join(name));
    trained(&train, &linear, &[]);
    trained(&train, &embeddings, MODELS[1]);
    trained(&train, &tf_idf, &["--weights", "tf-idf"]);
    trained(&train, &exact, &["--buckets", "0", "--ngrams", "2"]);
    trained(&train, &tree, &["--loss", "hs", "--buckets", "20000"]);
    trained(&train, &limited, &["--words-max", "20", "--buckets", "20000", "--model", "fasttext"]);
    let others = folder.path().join("others.txt");
    fs::write(&others, lines(200, 1).replace("__label__2", "__label__3")).unwrap();
    trained(&others, &other, &[]);
    for (from, flags, expected) in [
        (
            &linear,
            MODELS[1],
            "a model of --model linear, expected a model of --model fasttext, or --model linear for",
        ),
        (&embeddings, MODELS[0], "a model of --model fasttext, expected a model of --model linear"),
        (&linear, &["--ngrams", "2"], "a model of --ngrams 3, expected a model of --ngrams 2, or --ngrams 3"),
        (
            &linear,
            &["--words", "spaces"],
            "a model of --words punctuation, expected a model of --words spaces",
        ),
        (&linear, &["--buckets", "0"], "--buckets is 0, expected a number above 0 with --init-from"),
        (
            &exact,
            &["--ngrams", "2"],
            "a model of --buckets 0, expected a model of hashed n-grams: one of --buckets above 0",
        ),
        (&tf_idf, &["--weights", "tf-idf"], "--weights is tf-idf, expected nb or none with --init-from"),
        (&tf_idf, &[], "a model of --weights tf-idf, expected a model of --weights nb or none"),
        (
            &linear,
            &["--loss", "squared-hinge"],
            "a model of --loss logistic, expected a model of --loss squared-hinge, or --loss logistic for",
        ),
        (
            &embeddings,
            &["--buckets", "20000", "--loss", "bce"],
            "a model of --loss softmax, expected a model of --loss bce, or --loss softmax for",
        ),
        (&embeddings, &["--loss", "hs"], "--loss is hierarchical-softmax, expected softmax or bce with"),
        (
            &tree,
            MODELS[1],
            "a model of --loss hierarchical-softmax, expected a model of --loss softmax or bce",
        ),
        (
            &embeddings,
            &["--buckets", "20000", "--char-ngrams", "2-3"],
            "a model of --char-ngrams none, expected a model of --char-ngrams 2-3, or --char-ngrams none for",
        ),
        (
            &embeddings,
            &["--model", "fasttext", "--min-count", "2"],
            "--min-count is 2, expected 1 with --init-from",
        ),
        (
            &embeddings,
            &["--model", "fasttext", "--words-max", "9"],
            "--words-max is 9, expected no maximum with",
        ),
        (&limited, MODELS[1], "a model of --words-max, expected a model with a row for each word"),
        (
            &embeddings,
            &["--dim", "20", "--buckets", "20000"],
            "a model of --dim 10, expected a model of --dim 20",
        ),
        (&other, &[], "a model of the labels 1, 3, expected a model of the labels of the texts: 1, 2"),
        (&folder.path().join("missing"), &[], "--init-from is missing: no such folder"),
    ] {
        let (code, told) =
            ended(ngrams(&train, &out, &[flags, &["--init-from", from.to_str().unwrap()]].concat()));
        assert!(code != Some(0) && told.contains(expected), "{flags:?}: {told}");
        assert!(!out.join("model").exists());
    }
}

/// Labels of bytes that are shown alike, and of several labels per text.
#[test]
fn a_model_of_other_labels_is_refused_and_the_old_training_is_kept() {
    let (folder, train, _) = corpus();
    let bytes = |first: u8| {
        let lines = lines(200, 1);
        let lines = lines.lines().map(|line| match line.strip_prefix("__label__1") {
            Some(text) => [&b"__label__"[..], &[first][..], text.as_bytes(), b"\n"].concat(),
            None => [line.as_bytes(), b"\n"].concat(),
        });
        lines.collect::<Vec<_>>().concat()
    };
    let [one, other, several] = ["one.txt", "other.txt", "several.txt"].map(|name| folder.path().join(name));
    fs::write(&one, bytes(0xff)).unwrap();
    fs::write(&other, bytes(0xfe)).unwrap();
    fs::write(&several, lines(200, 1).replace("__label__1 the", "__label__1 __label__2 the")).unwrap();
    let [first, linear, out] = ["first", "linear", "out"].map(|name| folder.path().join(name));
    trained(&one, &first, MODELS[1]);
    trained(&train, &linear, &[]);
    trained(&train, &out, &[]);
    let before = model_files(&out);
    for (input, model, from, expected) in [
        (
            &other,
            MODELS[1],
            &first,
            "a model of the labels 2, \u{fffd}, expected a model of the labels of the texts",
        ),
        (
            &several,
            MODELS[0],
            &linear,
            "a model of texts with one label each, expected a model of texts with several labels each, as in",
        ),
    ] {
        let from = ["--force", "--init-from", from.to_str().unwrap()];
        let (code, told) = ended(ngrams(input, &out, &[model, &from].concat()));
        assert!(code == Some(78) && told.contains(expected), "{told}");
        assert_eq!(model_files(&out), before);
    }
}

#[test]
fn pretrained_vectors_are_the_first_embeddings_of_their_words() {
    let (folder, train, test) = corpus();
    let vectors = folder.path().join("words.vec");
    // The first element tells the labels apart.
    let line = |word: &&str, of: f32| format!("{word} {of} 0.1 -0.1 0\n");
    let lines: String =
        GOOD.iter().map(|word| line(word, 1.0)).chain(BAD.iter().map(|word| line(word, -1.0))).collect();
    fs::write(&vectors, format!("{} 4\n{lines}", GOOD.len() + BAD.len())).unwrap();
    let few = folder.path().join("few.txt");
    let content = fs::read_to_string(&train).unwrap();
    fs::write(&few, content.lines().take(30).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let of = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let flags = ["--model", "fasttext", "--dim", "4", "--ngrams", "1", "--epochs", "2", "--threads", "1"];
        (trained(&few, &out, &[&flags[..], more].concat()), out)
    };
    let path = vectors.to_str().unwrap();
    let (told, out) = of("vectors", &["--pretrained-vectors", path]);
    assert!(told.contains("12 of 25 words of the vocabulary have a vector in "), "{told}");
    let (_, random) = of("random", &[]);
    assert!(
        accuracy(&out, &test) > accuracy(&random, &test) + 0.1,
        "{} {}",
        accuracy(&out, &test),
        accuracy(&random, &test)
    );
    // A rate of nearly 0 leaves them as they are.
    let (_, still) = of("still", &["--pretrained-vectors", path, "--rate", "1e-9"]);
    let exported = folder.path().join("still.vec");
    let (code, told) = ended(command_of("export", &still, &["--out", exported.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{told}");
    let written = fs::read_to_string(&exported).unwrap();
    let lovely: Vec<f32> = written
        .lines()
        .find_map(|line| line.strip_prefix("lovely "))
        .map(|line| line.split_whitespace().map(|number| number.parse().unwrap()).collect())
        .unwrap();
    assert!(
        lovely.iter().zip([1.0, 0.1, -0.1, 0.0]).all(|(found, expected)| (found - expected).abs() < 1e-3),
        "{lovely:?}"
    );

    let within = out.join("words.vec");
    fs::copy(&vectors, &within).unwrap();
    let (code, told) = ended(ngrams(
        &few,
        &out,
        &["--force", "--dim", "4", "--pretrained-vectors", within.to_str().unwrap()],
    ));
    let expected = "the weights of --pretrained-vectors, which --force would delete";
    assert!(code != Some(0) && told.contains(expected) && within.exists(), "{told}");
    let refused = |more: &[&str]| ended(ngrams(&few, &folder.path().join("refused"), more));
    let before = model_files(&still);
    let (code, told) = ended(ngrams(&few, &still, &["--force", "--dim", "9", "--pretrained-vectors", path]));
    assert!(code == Some(78) && told.contains("or --dim 4") && model_files(&still) == before, "{told}");
    let (code, told) = refused(&["--pretrained-vectors", path, "--dim", "10"]);
    assert!(
        code == Some(78)
            && told.contains("vectors of 4 dimensions, expected vectors of 10 dimensions, or --dim 4"),
        "{told}"
    );
    let (code, told) = refused(&["--pretrained-vectors", path, "--model", "linear"]);
    assert!(
        code == Some(64) && told.contains("--pretrained-vectors has no effect with --model linear"),
        "{told}"
    );
    fs::write(&vectors, "1 4\nqwertz 1 2 3 4\n").unwrap();
    let (code, told) = refused(&["--pretrained-vectors", path, "--dim", "4"]);
    assert!(code == Some(65) && told.contains("has no vector for any word of the texts"), "{told}");
}
