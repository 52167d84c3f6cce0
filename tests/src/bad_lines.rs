//! Inputs with mostly bad lines, and the expected messages.

/// Inputs, each with the message with which the mapper and `sentimill` refuse it. `of_tables` follows the advice to read a
/// table: the mapper reads none.
pub fn too_many(of_tables: &str) -> Vec<(String, String)> {
    let many = |line: &str| line.repeat(1000);
    let no_json = format!(
        "most lines are not JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, or --format csv{of_tables} for a table with a header"
    );
    let cases = [
        (
            many("{\"text\": \"ok\", \"overall\": 5}\n"),
            "no_text 1000",
            "most lines have no text in the field \"reviewText\": found the fields text, overall; name the field with --text-field",
        ),
        (
            many("{\"reviewText\": \"ok\", \"rating\": 5}\n"),
            "bad_rating 1000",
            "most lines have no rating from 1 to 5 in the field \"overall\": found the fields reviewText, rating; name the field with --rating-field, or set the stars of its values with --class-ratings",
        ),
        (many("great,5\n"), "bad_line 1000", &no_json),
        (many("__label__1 ok\n"), "bad_line 1000", "the input looks like fasttext; pass --format fasttext"),
    ];
    let refusal = |reasons: &str, cause: &str| {
        let (_, bad) = reasons.split_once(' ').expect("a reason and a number");
        format!("{bad} of {bad} lines are bad ({reasons}), expected at most 0.05 of them; {cause}")
    };
    cases.into_iter().map(|(lines, reasons, cause)| (lines, refusal(reasons, cause))).collect()
}
