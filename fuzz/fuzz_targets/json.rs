//! JSON lines through one parser in sequence, compared with serde_json.
#![no_main]

use corpus::format::{FieldPaths, Fields};
use corpus::json::JsonParser;
use libfuzzer_sys::fuzz_target;
use oracle::json::oracle;

fuzz_target!(|data: &[u8]| {
    let list: FieldPaths = "reviewText,summary.reviewText,overall".parse().expect("a list of paths");
    let rating = "summary.overall".parse().expect("a path");
    for fields in [Fields::default(), Fields { text: list.0, rating, ..Fields::default() }] {
        let mut parser = JsonParser::new(&fields);
        for line in String::from_utf8_lossy(data).split(['\n', '\r']) {
            let review =
                parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())));
            assert_eq!(review, oracle(line, &fields), "{line:?}");
        }
    }
});
