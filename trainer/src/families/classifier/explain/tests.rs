use corpus::settings::{Keep, Settings};
use dataset::WordList;
use training::answers::explain::{Form, Options, run};
use training::answers::{Counts, Format, LineOptions};

use super::*;

/// Words of the vocabulary; the stop word is "the".
fn tokenizer(tokens_max: u32) -> Tokenizer {
    let mut vocabulary = WordList::default();
    ["good", "bad", "fit", "battery"].iter().for_each(|word| vocabulary.push(word.as_bytes()));
    let settings = Settings {
        stop_words: vec!["the".to_owned()],
        max_tokens: 5,
        keep: Keep::First,
        ..Settings::default()
    };
    Tokenizer::new(&settings, &vocabulary, tokens_max).unwrap()
}

fn options(form: Form) -> Options {
    let names = ["negative", "positive", "neutral"].map(str::to_owned).to_vec();
    Options { names, top: 2, form }
}

/// Writes the explanations of lines of text.
fn explain_lines(
    text: &str,
    output: &mut Vec<u8>,
    tokenizer: &mut Tokenizer,
    (scoring, form): (Scoring, Form),
    mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, AnswersError>,
) -> Result<Counts, AnswersError> {
    let lines = LineOptions {
        file: None,
        split_start: None,
        format: Format::Text,
        encoding: corpus::encoding::UTF_8,
        line_bytes_max: 1 << 20,
    };
    run(text.as_bytes(), output, &lines, &options(form), |text| {
        explain(text, tokenizer, scoring.into(), &mut model)
    })
}

/// A model whose first output is twice the number of `good` minus the number of `bad`, plus a half.
fn count(texts: TokenRows<'_>) -> Result<Vec<Vec<f64>>, AnswersError> {
    let rows = texts.tokens.chunks(texts.longest);
    let of = |id: &i64| match id {
        2 => 2.0,
        3 => -1.0,
        _ => 0.0,
    };
    Ok(rows.map(|row| vec![row.iter().map(of).sum::<f64>() + 0.5]).collect())
}

fn explained(text: &str, scoring: Scoring, form: Form) -> String {
    let mut output = Vec::new();
    explain_lines(text, &mut output, &mut tokenizer(0), (scoring, form), count).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn words_for_and_against_are_listed_with_their_weights() {
    assert_eq!(
        explained("Good! The good fit; bad superb later.\n\nthe\n", Scoring::Logit, Form::Text),
        "line 1: positive, probability 0.9707\n  \
           for       +4.0000  good ×2\n  \
           against   -1.0000  bad\n\n  \
           good (the) good fit bad [superb] {later}\n  \
           [not in the vocabulary]  (stop word, not read)  {cut, not read}\n\n\
         line 2: no prediction: blank\n\n\
         line 3: no prediction: only_stopwords\n\n"
    );
}

#[test]
fn weights_are_those_of_the_predicted_label() {
    assert_eq!(
        explained("bad bad fit good", Scoring::Logit, Form::Text),
        "line 1: positive, probability 0.6225\n  \
           for       +2.0000  good\n  \
           against   -2.0000  bad ×2\n\n  \
           bad bad fit good\n\n"
    );
    assert_eq!(
        explained("bad bad fit", Scoring::Logit, Form::Text),
        "line 1: negative, probability 0.8176\n  \
           for       +2.0000  bad ×2\n  \
           against  no word\n\n  \
           bad bad fit\n\n"
    );
}

#[test]
fn an_object_has_the_same_content() {
    assert_eq!(
        explained("Good! The bad superb\nthe\n", Scoring::Logit, Form::Json),
        "{\"line\":1,\"label\":1,\"name\":\"positive\",\"score\":1.5,\"probability\":0.8175745,\
         \"for\":[{\"word\":\"good\",\"weight\":2.0,\"times\":1}],\
         \"against\":[{\"word\":\"bad\",\"weight\":-1.0,\"times\":1}],\
         \"text\":[{\"word\":\"good\"},{\"word\":\"the\",\"mark\":\"stop_word\"},{\"word\":\"bad\"},\
         {\"word\":\"superb\",\"mark\":\"unknown\"}]}\n\
         {\"line\":2,\"error\":\"only_stopwords\"}\n"
    );
}

#[test]
fn colours_are_only_for_a_terminal() {
    let colours = explained("good superb", Scoring::Logit, Form::Colours);
    assert!(
        colours.contains("\x1b[32mgood\x1b[0m") && colours.contains("\x1b[2m[superb]\x1b[0m"),
        "{colours}"
    );
    assert!(!explained("good superb", Scoring::Logit, Form::Text).contains('\x1b'));
}

#[test]
fn a_long_text_fits_a_screen() {
    let settings = Settings { stop_words: Vec::new(), max_tokens: 0, ..Settings::default() };
    let mut vocabulary = WordList::default();
    vocabulary.push(b"good");
    let mut tokenizer = Tokenizer::new(&settings, &vocabulary, 0).unwrap();
    let mut output = Vec::new();
    let text = "good enough ".repeat(1_000);
    explain_lines(&text, &mut output, &mut tokenizer, (Scoring::Logit, Form::Text), count).unwrap();
    let shown = String::from_utf8(output).unwrap();
    assert!(shown.lines().count() <= 24 && shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("\n  … and 1899 more words\n"), "{shown}");
}

#[test]
fn the_weight_of_a_class_is_the_change_of_its_log_odds() {
    // The logits of three classes: one per word of the vocabulary.
    let model = |texts: TokenRows<'_>| -> Result<Vec<Vec<f64>>, AnswersError> {
        let rows = texts.tokens.chunks(texts.longest);
        let of = |row: &[i64], id: i64| row.iter().filter(|&&found| found == id).count() as f64;
        Ok(rows.map(|row| [2, 3, 4].map(|id| of(row, id)).to_vec()).collect())
    };
    let mut output = Vec::new();
    let how = (Scoring::Classes { classes: 3 }, Form::Text);
    explain_lines("fit bad fit", &mut output, &mut tokenizer(0), how, model).unwrap();
    // With the logits (0, 1, 2), class 2 has the probability e² / (1 + e + e²), and log-odds 2 - ln(1 + e).
    let log_odds = |logit: f64, others: [f64; 2]| logit - (others[0].exp() + others[1].exp()).ln();
    let whole = log_odds(2.0, [0.0, 1.0]);
    let expected = [whole - log_odds(0.0, [0.0, 1.0]), whole - log_odds(2.0, [0.0, 0.0])];
    let found = String::from_utf8(output).unwrap();
    assert!(found.starts_with("line 1: neutral, probability 0.6652\n"), "{found}");
    assert!(found.contains(&format!("for       {:+.4}  fit ×2\n", expected[0])), "{found}");
    assert!(found.contains(&format!("against   {:+.4}  bad\n", expected[1])), "{found}");
}

#[test]
fn a_text_that_takes_too_long_is_refused() {
    let words: Vec<String> = (0..10_000u32)
        .map(|n| format!("{n:05}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect())
        .collect();
    let mut vocabulary = WordList::default();
    words.iter().for_each(|word| vocabulary.push(word.as_bytes()));
    let settings = Settings { stop_words: Vec::new(), max_tokens: 0, ..Settings::default() };
    let mut tokenizer = Tokenizer::new(&settings, &vocabulary, 0).unwrap();
    let mut output = Vec::new();
    let how = (Scoring::Logit, Form::Json);
    explain_lines(&words.join(" "), &mut output, &mut tokenizer, how, count).unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "{\"line\":1,\"error\":\"too_long\"}\n");
}
