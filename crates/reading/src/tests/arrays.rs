//! JSON arrays.

use program::exit::Exit;

use super::*;

/// An array on several lines, and its elements with their offsets.
fn array() -> (String, Vec<Owned>) {
    let mut text = "\u{FEFF} \n[".to_owned();
    let mut elements = Vec::new();
    for number in 0..50_000 {
        let element = format!("{{\n \"reviewText\": \"[{number}]\\\"\",\r\"overall\": 5}}");
        text.push_str(if number == 0 { "" } else { " ,\n" });
        elements.push((0, text.len() as u64, OwnedContent::Line(element.clone().into_bytes())));
        text.push_str(&element);
    }
    text.push_str("\n]\n");
    (text, elements)
}

#[test]
fn elements_of_plain_and_compressed_arrays_are_read() {
    let (text, expected) = array();
    assert!(text.len() > 2 << 20, "several batches");
    for by in 0..4 {
        let folder = folder(&[("a.json", &compressed(by, text.as_bytes()))]);
        for threads in 1..4 {
            let reading = Reading::start(all_of(&folder), &options(threads)).unwrap();
            assert!(read(&reading, threads).unwrap() == expected, "{by}");
            assert_eq!(Some(reading.bytes_read()), reading.bytes());
        }
    }
}

#[test]
fn an_array_in_several_members_is_read() {
    let (text, expected) = array();
    let members: Vec<u8> = text.as_bytes().chunks(70_000).flat_map(zstd).collect();
    let folder = folder(&[("a.json.zst", &members)]);
    let reading = Reading::start(all_of(&folder), &options(3)).unwrap();
    assert!(read(&reading, 3).unwrap() == expected);
}

#[test]
fn white_space_before_an_array_may_be_long() {
    let text = format!("{}[{{}}, {{}}]", " \n".repeat(20_000));
    let folder = folder(&[("a", text.as_bytes()), ("b", b" \n\n\t")]);
    let element = |offset, element: &[u8]| (0, offset, OwnedContent::Line(element.to_vec()));
    let mut found = read(&Reading::start(all_of(&folder), &options(2)).unwrap(), 2).unwrap();
    let blank = found.split_off(2);
    assert_eq!(found, [element(40_001, b"{}"), element(40_005, b"{}")]);
    assert_eq!(blank.len(), 3, "blank lines");
}

#[test]
fn an_unfinished_array_is_an_error_by_name() {
    let (text, _) = array();
    for (content, expected) in [
        (&text[..text.len() - 3], "/a.json: the JSON array is cut off: it ends at byte "),
        (&text[..1000], "/a.json: the JSON array is cut off: it ends at byte "),
        (
            "[{}] {}",
            "/a.json: the JSON array is damaged: found '{' at byte 5, after 1 elements, expected [ or the end",
        ),
    ] {
        let folder = folder(&[("a.json", content.as_bytes())]);
        let error = refused(all_of(&folder), &options(3));
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

#[test]
fn a_first_line_that_is_an_array_is_one_line_among_others() {
    let array = format!("[{}]", "{\"reviewText\": \"[\", \"overall\": 5}, ".repeat(4000) + "{}");
    assert!(array.len() > 128 << 10, "read in several steps");
    for text in [
        "[{\"a\": 1}]\n{\"reviewText\": \"ok\"}\n".to_owned(),
        format!("\u{FEFF}\r\n{array} \n\n{{}}\n{array}\n"),
    ] {
        for by in 0..4 {
            let folder = folder(&[("a.json", &compressed(by, text.as_bytes()))]);
            let found = read(&Reading::start(all_of(&folder), &options(2)).unwrap(), 2).unwrap();
            assert!(found == naive(&[text.as_bytes()], 1 << 20), "{by}");
        }
    }
    // Another array after it, or nothing.
    for text in [format!("{array}\n\u{FEFF}{array}\n"), format!("{array}\r\n \n")] {
        let folder = folder(&[("a.json", text.as_bytes())]);
        let found = read(&Reading::start(all_of(&folder), &options(1)).unwrap(), 1).unwrap();
        assert_eq!(found.len() % 4001, 0, "elements");
    }
}
