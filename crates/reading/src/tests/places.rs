//! Names of inputs.

use program::exit::Exit;
use store::S3Options;

use super::*;

#[test]
fn a_folder_gives_its_files_sorted_without_hidden_ones() {
    let folder = folder(&[
        ("b/part-1.json", b""),
        ("b/part-0.json", b""),
        ("a.json", b"x\n"),
        ("b.json", b""),
        (".hidden", b""),
        ("_SUCCESS", b""),
        ("_temporary/part-2.json", b""),
    ]);
    let names = |sources: Vec<Source>| -> Vec<String> {
        let root = format!("{}/", folder.path().display());
        sources.iter().map(|source| source.name.strip_prefix(&root).unwrap().to_owned()).collect()
    };
    assert_eq!(names(all_of(&folder)), ["a.json", "b/part-0.json", "b/part-1.json", "b.json"]);
    assert_eq!(all_of(&folder)[0].bytes, Some(2));
    assert_eq!(names(found(&[folder.path().join("_SUCCESS")]).unwrap()), ["_SUCCESS"]);
    assert_eq!(names(found(&[folder.path().join("*.json")]).unwrap()), ["a.json", "b.json"]);
    let twice = ["**/part-?.json", "[ab].json"].map(|pattern| folder.path().join(pattern));
    let expected = ["_temporary/part-2.json", "b/part-0.json", "b/part-1.json", "a.json", "b.json"];
    assert_eq!(names(found(&twice).unwrap()), expected);
}

#[test]
fn a_compressed_copy_in_a_folder_or_a_pattern_is_refused() {
    let folder = folder(&[("a.json", b"{}\n"), ("a.json.gz", b""), ("b.json.gz", b"")]);
    for listed in [folder.path().to_owned(), folder.path().join("a.*")] {
        let error = found(&[listed]).unwrap_err();
        assert!(error.to_string().contains("a.json.gz: found beside "), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    // Who names both means both.
    assert_eq!(found(&["a.json", "a.json.gz"].map(|name| folder.path().join(name))).unwrap().len(), 2);
}

#[test]
fn metadata_of_the_library_datasets_are_no_reviews() {
    let folder = folder(&[
        ("a/data-0.arrow", b""),
        ("a/state.json", b""),
        ("a/dataset_info.json", b""),
        ("b/state.json", b""),
    ]);
    let names: Vec<_> =
        all_of(&folder).iter().map(|source| source.name.rsplit_once('/').unwrap().1.to_owned()).collect();
    assert_eq!(names, ["data-0.arrow", "state.json"]);
}

#[test]
fn a_file_whose_name_looks_like_a_pattern_is_read_as_a_file() {
    let folder = folder(&[("[a].json", b""), ("a.json", b"")]);
    let sources = found(&[folder.path().join("[a].json")]).unwrap();
    assert!(sources.len() == 1 && sources[0].name.ends_with("/[a].json"));
}

#[test]
fn the_same_file_under_two_names_is_an_error() {
    let folder = folder(&[("a", b""), ("b/c", b"")]);
    std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("b/link")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("b/up")).unwrap();
    for names in [&["a", "a"][..], &["a", "b"], &["b/c", "b/../b/c"], &["b/up"], &["*"]] {
        let inputs: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
        let error = found(&inputs).unwrap_err();
        assert!(error.to_string().contains(": found the same file or folder as "), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    let error = find(&["-".to_owned(), "-".to_owned()], &S3Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("-: found the same file or folder as -, "), "{error}");
    assert_eq!(find(&["-".to_owned()], &S3Options::default()).unwrap()[0].bytes, None);
}

#[test]
fn a_missing_input_is_refused_by_name() {
    let folder = folder(&[("empty/_SUCCESS", b""), ("file", b"")]);
    for (name, expected, exit) in [
        ("absent", "absent: no such file or folder; check the path", Exit::MissingInput),
        ("file/absent", "absent: no such file or folder; check the path", Exit::MissingInput),
        ("*.json", "*.json: found no file that matches the pattern; check it", Exit::MissingInput),
        ("empty", "empty: found no file in the folder, expected at least one", Exit::MissingInput),
        ("a***", "a***: found wildcards are either regular `*` or recursive `**` at character", Exit::Usage),
    ] {
        let error = found(&[folder.path().join(name)]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), exit);
    }
    let error = find(&["gs://bucket/reviews".to_owned()], &S3Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("gs://bucket/reviews: found the scheme gs, expected"), "{error}");
}
