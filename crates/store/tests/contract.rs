//! Guarantees of every store, tested in a folder, and errors that only a folder can have.
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers may panic and print as the tests do"
)]

mod claims;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use program::exit::{Exit, Fails};
use program::temporary;
use store::{Error, ObjectContent, Put, Store};
use tempfile::TempDir;

use crate::claims::{key, meets_the_contract, one_line, put};

#[test]
fn a_folder_meets_the_contract() {
    let folder = TempDir::new().unwrap();
    meets_the_contract(|run| Store::open(folder.path().join(run).to_str().unwrap()).unwrap());
    assert_eq!(hidden_files(&folder), Vec::<String>::new(), "left behind");
}

#[test]
fn what_a_killed_writer_left_is_no_object_blocks_no_other_and_is_deleted() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let (key, data) = (key("data/part-00000.h5"), folder.path().join("data"));
    fs::create_dir(&data).unwrap();
    // A closed file has no lock, like that of a killed writer.
    let leave = || temporary::file_in(&data).unwrap().into_temp_path().keep().unwrap();

    leave();
    assert!(matches!(put(&store, &key, b"the next attempt"), Put::Stored(_)));
    let left = leave();
    assert!(left.exists());
    assert_eq!(store.list("").unwrap().len(), 1);
    assert_eq!(hidden_files(&folder), Vec::<String>::new());
}

#[test]
fn a_run_below_a_regular_file_is_a_clean_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let store = Store::open(file.join("run").to_str().unwrap()).unwrap();

    let error = store.put_if_absent(&key("manifest.json"), ObjectContent::Bytes(b"{}")).unwrap_err();

    assert_eq!(error.exit(), Exit::Io);
    assert!(one_line(&error).contains("/file/run/manifest.json: cannot make its folder"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"in the way");
    assert_eq!(store.get_small(&key("manifest.json"), 10).unwrap(), None);
    assert!(store.list("").unwrap().is_empty());
}

#[test]
fn a_read_only_folder_is_a_clean_error() {
    let folder = TempDir::new().unwrap();
    let allow = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    if fs::write(folder.path().join("probe"), "").is_ok() {
        println!("SKIPPED: this user, root perhaps, may write into a read-only folder");
        return;
    }
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let error = store.put_if_absent(&key("manifest.json"), ObjectContent::Bytes(b"{}")).unwrap_err();
    assert_eq!(error.exit(), Exit::Io);
    one_line(&error);
    allow(0o755);
}

#[test]
fn a_folder_with_the_name_of_an_object_is_an_error() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    put(&store, &key("data/part-00000.h5"), b"shard");

    for error in [
        store.put_if_absent(&key("data"), ObjectContent::Bytes(b"{}")).unwrap_err(),
        store.get_small(&key("data"), 10).unwrap_err(),
        store.head(&key("data")).unwrap_err(),
        store.delete(&key("data")).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotAnObject { .. }), "{error}");
        one_line(&error);
    }
    assert_eq!(hidden_files(&folder), Vec::<String>::new());
}

#[test]
fn files_that_no_key_can_name_are_not_listed() {
    let folder = TempDir::new().unwrap();
    for stray in [".put-0123456789abcdef", ".DS_Store", "notes of mine.txt", "part~"] {
        fs::write(folder.path().join(stray), "").unwrap();
    }
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    put(&store, &key("manifest.json"), b"{}");
    let listed: Vec<_> = store.list("").unwrap().into_iter().map(|object| object.key).collect();
    assert_eq!(listed, [key("manifest.json")]);
}

#[test]
fn nothing_is_created_before_the_first_put() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("a b/run").to_str().unwrap()).unwrap();
    assert!(store.url().ends_with("/a%20b/run"), "{}", store.url());
    store.list("").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// All files and folders whose names start with a dot, at any depth.
fn hidden_files(folder: &TempDir) -> Vec<String> {
    let mut hidden = Vec::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with('.') {
                hidden.push(name);
            } else if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    hidden
}
