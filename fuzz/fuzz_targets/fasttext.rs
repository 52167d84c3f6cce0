//! Lines of fastText files, compared with a parser that splits at spaces and tabs.
#![no_main]

use corpus::entry::Reject;
use corpus::format::Format;
use corpus::review::ReviewParser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let ratings = "1=1,2=5,=3".parse().expect("these are classes and their stars");
    let mut parser = ReviewParser::new(Format::FastText { ratings });
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let review = parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())));
        let line = String::from_utf8_lossy(line);
        assert_eq!(review, naive(&line), "{line:?}");
    }
});

fn naive(line: &str) -> Result<(String, u8), Reject> {
    let pieces: Vec<&str> = line.split_inclusive([' ', '\t']).collect();
    let n_labels = pieces.iter().take_while(|piece| piece.starts_with("__label__")).count();
    let (labels, text) = pieces.split_at(n_labels);
    let first = labels.first().ok_or(Reject::BadLine)?;
    match first.trim_end_matches([' ', '\t']) {
        "__label__1" => Ok((text.concat(), 1)),
        "__label__2" => Ok((text.concat(), 5)),
        "__label__" => Ok((text.concat(), 3)),
        _ => Err(Reject::BadRating),
    }
}
