use std::io::{self, BufReader, Read, Write, pipe};
use std::thread;

use corpus::format::ClassRatings;
use corpus::lines::LINE_BYTES_MAX;
use corpus::settings::Settings;
use dataset::WordList;
use program::exit::{Fails, chain};
use proptest::prelude::*;
use training::answers::Format;

use super::*;

const WORDS: [&str; 4] = ["good", "bad", "fit", "battery"];

fn tokenizer() -> Tokenizer {
    let mut vocabulary = WordList::default();
    WORDS.iter().for_each(|word| vocabulary.push(word.as_bytes()));
    Tokenizer::new(&Settings::original(), &vocabulary, 100).unwrap()
}

fn options(scoring: Scoring) -> PredictOptions {
    PredictOptions { batch_rows: 3, decision: scoring.into(), classes: Vec::new(), answers_unknown: false }
}

fn lines(format: Format) -> LineOptions {
    LineOptions {
        file: None,
        split_start: None,
        format,
        encoding: corpus::encoding::UTF_8,
        line_bytes_max: LINE_BYTES_MAX,
    }
}

fn reviews() -> LineOptions {
    lines(Format::Review(corpus::format::Format::default()))
}

fn texts() -> LineOptions {
    lines(Format::Text)
}

/// A model whose logit is the number of `good` minus the number of `bad`.
fn count(texts: TokenRows<'_>) -> Result<Vec<Vec<f64>>, AnswersError> {
    let rows = texts.tokens.chunks(texts.longest);
    let logit = |row: &[i64]| row.iter().map(|id| f64::from(*id == 2) - f64::from(*id == 3)).sum();
    Ok(rows.map(|row| vec![logit(row)]).collect())
}

fn predicted(input: &[u8], lines: &LineOptions) -> (String, Counts) {
    let mut output = Vec::new();
    let counts = run(input, &mut output, lines, &mut tokenizer(), &options(Scoring::Logit), count).unwrap();
    (String::from_utf8(output).unwrap(), counts)
}

/// The output for one text with these outputs of the model.
fn said(scoring: Scoring, outputs: &[f64]) -> String {
    let mut output = Vec::new();
    let model = |_: TokenRows<'_>| Ok::<_, AnswersError>(vec![outputs.to_vec()]);
    run(&b"good"[..], &mut output, &texts(), &mut tokenizer(), &options(scoring), model).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn a_line_is_read_in_the_mappers_formats() {
    let polarity = corpus::format::Format::PolarityCsv { ratings: ClassRatings::default(), with_title: true };
    let (output, _) =
        predicted(b"\"9\",\"Bad\",\"very \\\"good\\\"\"\n2,x\n", &lines(Format::Review(polarity)));
    assert_eq!(
        output,
        "{\"line\":1,\"label\":0,\"score\":0.0,\"probability\":0.5}\n{\"line\":2,\"error\":\"bad_line\"}\n"
    );
}

#[test]
fn each_line_of_reviews_has_one_line_in_its_order() {
    let input = concat!(
        "{\"reviewText\": \"<b>Good</b>, good battery\", \"overall\": 5}\n",
        " \t\n",
        "not json\r\n",
        "{\"overall\": 5}\r",
        "{\"reviewText\": \"bad\", \"overall\": 6}\n",
        "{\"reviewText\": \"10/10\", \"overall\": 5}\n",
        "{\"reviewText\": \"This was the product!\", \"overall\": 5}\n",
        "{\"reviewText\": \"superb\", \"overall\": 5}\n",
        "{'reviewText': u'BAD fit', 'overall': 1.0,}\n",
        "{\"reviewText\": \"fit\", \"overall\": 1}",
    );
    let (output, counts) = predicted(input.as_bytes(), &reviews());
    let expected = concat!(
        "{\"line\":1,\"label\":1,\"score\":2.0,\"probability\":0.8807971}\n",
        "{\"line\":2,\"error\":\"blank\"}\n",
        "{\"line\":3,\"error\":\"bad_line\"}\n",
        "{\"line\":4,\"error\":\"no_text\"}\n",
        "{\"line\":5,\"label\":0,\"score\":-1.0,\"probability\":0.26894143}\n",
        "{\"line\":6,\"error\":\"empty_text\"}\n",
        "{\"line\":7,\"error\":\"only_stopwords\"}\n",
        "{\"line\":8,\"error\":\"only_unknown\"}\n",
        "{\"line\":9,\"label\":0,\"score\":-1.0,\"probability\":0.26894143}\n",
        "{\"line\":10,\"label\":0,\"score\":0.0,\"probability\":0.5}\n",
    );
    assert_eq!(output, expected);
    let names = ["blank", "bad_line", "no_text", "empty_text", "only_stopwords", "only_unknown"];
    let refused = names.map(|name| (name, 1)).into();
    assert_eq!(counts, Counts { lines: 10, predicted: 4, refused, ..Counts::default() });
}

#[test]
fn a_line_of_plain_text_is_a_text_whatever_it_looks_like() {
    let input = b"\xEF\xBB\xBFGood fit\n{\"reviewText\": \"bad\", \"overall\": 5}\n\xFFbad\xFF\n\n123\n";
    let (output, _) = predicted(input, &texts());
    let expected = concat!(
        "{\"line\":1,\"label\":1,\"score\":1.0,\"probability\":0.7310586}\n",
        "{\"line\":2,\"label\":0,\"score\":-1.0,\"probability\":0.26894143}\n",
        "{\"line\":3,\"label\":0,\"score\":-1.0,\"probability\":0.26894143}\n",
        "{\"line\":4,\"error\":\"blank\"}\n",
        "{\"line\":5,\"error\":\"empty_text\"}\n",
    );
    assert_eq!(output, expected);
}

#[test]
fn a_cr_is_part_of_a_text_and_ends_a_review() {
    let (output, _) = predicted(b"good\rfit good\r\nbad\n", &texts());
    let expected = concat!(
        "{\"line\":1,\"label\":1,\"score\":2.0,\"probability\":0.8807971}\n",
        "{\"line\":2,\"label\":0,\"score\":-1.0,\"probability\":0.26894143}\n",
    );
    assert_eq!(output, expected);
    let review = "{\"reviewText\": \"bad\"}";
    let (_, counts) = predicted(format!("{review}\r{review}\r\n{review}").as_bytes(), &reviews());
    assert_eq!((counts.lines, counts.predicted), (3, 3));
}

#[test]
fn no_lines_make_no_lines() {
    assert_eq!(predicted(b"", &texts()), (String::new(), Counts::default()));
}

#[test]
fn scores_are_said_as_the_scoring_has_them() {
    let rating = Scoring::Rating { positive_from: 4 };
    assert_eq!(
        said(rating, &[4.25]),
        "{\"line\":1,\"label\":1,\"score\":0.75,\"probability\":null,\"rating\":4.25}\n"
    );
    assert_eq!(
        said(rating, &[3.5]),
        "{\"line\":1,\"label\":0,\"score\":0.0,\"probability\":null,\"rating\":3.5}\n"
    );
    let five = Scoring::FiveRatings { positive_from: 4 };
    let logits = [1.0f64, 1.0, 2.0, 3.0, 1.0].map(f64::ln);
    assert_eq!(said(five, &logits), "{\"line\":1,\"label\":0,\"score\":0.5,\"probability\":0.5}\n");
    assert_eq!(
        said(Scoring::Logit, &[-200.0]),
        "{\"line\":1,\"label\":0,\"score\":-200.0,\"probability\":0.0}\n"
    );
    assert_eq!(
        said(Scoring::Logit, &[200.0]),
        "{\"line\":1,\"label\":1,\"score\":200.0,\"probability\":1.0}\n"
    );
}

#[test]
fn the_predicted_class_has_its_name() {
    let named = |scoring, names: &[&str], outputs: &[f64]| {
        let classes = names.iter().map(|&name| name.to_owned()).collect();
        let options = PredictOptions { classes, ..options(scoring) };
        let model = |_: TokenRows<'_>| Ok::<_, AnswersError>(vec![outputs.to_vec()]);
        let mut output = Vec::new();
        run(&b"good"[..], &mut output, &texts(), &mut tokenizer(), &options, model).unwrap();
        String::from_utf8(output).unwrap()
    };
    assert_eq!(
        named(Scoring::Logit, &["bad", "good"], &[200.0]),
        "{\"line\":1,\"label\":1,\"score\":200.0,\"probability\":1.0,\"class\":\"good\"}\n"
    );
    let three = Scoring::Classes { classes: 3 };
    let names = ["bad", "so \"so\"", "good"];
    assert_eq!(
        named(three, &names, &[1.0f64, 2.0, 5.0].map(f64::ln)),
        "{\"line\":1,\"label\":2,\"class\":\"good\",\
         \"probabilities\":{\"bad\":0.125,\"so \\\"so\\\"\":0.25,\"good\":0.625}}\n"
    );
    assert_eq!(named(three, &names, &[0.0, f64::NAN, 1.0]), "{\"line\":1,\"error\":\"not_finite\"}\n");
    assert_eq!(
        named(three, &names, &[0.0, f64::NEG_INFINITY, 1.0]),
        "{\"line\":1,\"error\":\"not_finite\"}\n"
    );
}

#[test]
fn an_answer_that_is_no_number_is_an_error_of_its_line() {
    let expected = "{\"line\":1,\"error\":\"not_finite\"}\n";
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
        assert_eq!(said(Scoring::Logit, &[bad]), expected, "{bad}");
        assert_eq!(said(Scoring::Rating { positive_from: 4 }, &[bad]), expected, "{bad}");
    }
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(said(Scoring::FiveRatings { positive_from: 4 }, &[0.0, 0.0, bad, 0.0, 0.0]), expected);
    }
}

#[test]
fn answers_of_another_shape_are_a_defect() {
    let options = options(Scoring::FiveRatings { positive_from: 4 });
    let shapes = [
        (vec![], "a model returned results for 0 of 1 texts"),
        (vec![vec![0.5; 5]; 2], "a model returned results for 2 of 1 texts"),
        (vec![vec![0.5]], "a model has 1 outputs for a text, not 5"),
    ];
    for (answers, promise) in shapes {
        let model = |_: TokenRows<'_>| Ok::<_, AnswersError>(answers.clone());
        let error = run(&b"good"[..], io::sink(), &texts(), &mut tokenizer(), &options, model).unwrap_err();
        let expected = format!("{promise}: this is a defect of sentimill, please report it");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.exit() as u8, 70);
    }
}

#[test]
fn a_line_beyond_the_limit_is_read_past() {
    let long = io::repeat(b'x').take(50 << 20).chain(&b"\ngood\n"[..]);
    let blank = io::repeat(b' ').take(5 << 20).chain(&b"\n"[..]);
    let mut output = Vec::new();
    run(long.chain(blank), &mut output, &texts(), &mut tokenizer(), &options(Scoring::Logit), count).unwrap();
    let expected = concat!(
        "{\"line\":1,\"error\":\"line_too_long\"}\n",
        "{\"line\":2,\"label\":1,\"score\":1.0,\"probability\":0.7310586}\n",
        "{\"line\":3,\"error\":\"blank\"}\n",
    );
    assert_eq!(String::from_utf8(output).unwrap(), expected);
}

#[test]
fn who_asks_one_line_at_a_time_gets_each_answer_before_the_next() {
    for end in ["\n", "\r", "\r\n"] {
        let (input, mut questions) = pipe().unwrap();
        let (answers, output) = pipe().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                run(input, output, &reviews(), &mut tokenizer(), &options(Scoring::Logit), count).unwrap()
            });
            let mut answers = io::BufRead::lines(BufReader::new(answers));
            for n in 1..=5 {
                write!(questions, "{{\"reviewText\": \"bad\", \"overall\": 1}}{end}").unwrap();
                let expected =
                    format!("{{\"line\":{n},\"label\":0,\"score\":-1.0,\"probability\":0.26894143}}");
                assert_eq!(answers.next().unwrap().unwrap(), expected);
            }
            drop(questions);
            assert!(answers.next().is_none());
        });
    }
}

#[test]
fn a_reader_that_went_away_is_an_error() {
    let (answers, output) = pipe().unwrap();
    drop(answers);
    let error =
        run(&b"good\n"[..], output, &texts(), &mut tokenizer(), &options(Scoring::Logit), count).unwrap_err();
    assert!(chain(&error).starts_with("cannot write predictions: broken pipe"), "{error}");
    assert_eq!(error.exit() as u8, 74);
}

#[test]
fn input_that_cannot_be_read_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let input = (&b"good\n"[..]).chain(Broken);
    let error =
        run(input, io::sink(), &texts(), &mut tokenizer(), &options(Scoring::Logit), count).unwrap_err();
    assert_eq!(chain(&error), "standard input: cannot be read: connection reset");
    assert_eq!(error.exit() as u8, 74);
}

#[test]
fn an_error_of_the_model_ends_it() {
    let model = |_: TokenRows<'_>| Err(AnswersError::from(Failed::defect("the model fails")));
    let error = run(&b"good\n"[..], io::sink(), &texts(), &mut tokenizer(), &options(Scoring::Logit), model)
        .unwrap_err();
    assert!(error.to_string().starts_with("the model fails: "), "{error}");
}

/// Reads at most N bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

proptest! {
    #[test]
    fn the_output_depends_neither_on_batches_nor_on_how_the_bytes_arrive(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["\n", "\r\n", "\r", "good", "bad ", " ", "fit good", "the", "x", "7", "\u{FEFF}"]),
            0..60,
        ),
        batch_rows in 0usize..4,
        read_bytes in 1usize..9,
        line_bytes_max in 1usize..12,
    ) {
        let input = pieces.concat();
        let lines = LineOptions { line_bytes_max, ..texts() };
        let expected = predicted(input.as_bytes(), &lines);
        let mut output = Vec::new();
        let in_pieces = PredictOptions { batch_rows, ..options(Scoring::Logit) };
        let source = Trickle(input.as_bytes(), read_bytes);
        let counts = run(source, &mut output, &lines, &mut tokenizer(), &in_pieces, count).unwrap();
        prop_assert_eq!(expected, (String::from_utf8(output).unwrap(), counts));
    }
}
