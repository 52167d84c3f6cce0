//! Guarantees of every store, as functions of a new `Store`.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use program::exit::{Exit, Fails};
use store::{Error, Key, ObjectContent, Put, Store};
use tempfile::TempDir;
use tests::s3_server::SECRET_KEY;

type Claim = (&'static str, fn(&Store));

const CLAIMS: [Claim; 8] = [
    ("a run without objects is empty", an_empty_run),
    ("an object reads as it was put", an_object_reads_as_it_was_put),
    ("the second put of a name changes nothing", the_second_put_changes_nothing),
    ("a file is stored whole and stays", a_file_is_stored_whole_and_stays),
    ("a failed put leaves the name free", a_failed_put_leaves_the_name_free),
    ("a reader's limit holds", a_readers_limit_holds),
    ("a listing is complete and in byte order", a_listing_is_complete_and_in_byte_order),
    ("a deleted object is gone", a_deleted_object_is_gone),
];

/// Checks all guarantees. `open` opens the run with this name; each name is new, and some are opened several times.
pub fn meets_the_contract(open: impl Fn(&str) -> Store + Sync) {
    for (number, (claim, check)) in CLAIMS.iter().enumerate() {
        println!("{claim}");
        check(&open(&number.to_string()));
    }
    println!("of racing writers one wins each name");
    of_racing_writers_one_wins_each_name(|| open("race"));
}

fn an_empty_run(store: &Store) {
    let key = key("commit/part-00000.json");
    assert_eq!(store.head(&key).unwrap(), None);
    assert_eq!(store.get_small(&key, 10).unwrap(), None);
    assert!(store.list("").unwrap().is_empty());
    assert!(store.list("commit/").unwrap().is_empty());
    store.delete(&key).unwrap();
    let folder = TempDir::new().unwrap();
    assert!(matches!(store.local_copy(&key, folder.path()), Err(Error::Missing { .. })));
}

fn an_object_reads_as_it_was_put(store: &Store) {
    for content in [&b""[..], b"{}", &[0, 10, 13, 255], &vec![7; 3 << 20]] {
        let key = key(&format!("data/bytes-{}", content.len()));
        let Put::Stored(info) = store.put_if_absent(&key, ObjectContent::Bytes(content)).unwrap() else {
            panic!("{key} was there")
        };
        assert_eq!(info.bytes, content.len() as u64);
        assert_eq!(store.head(&key).unwrap().unwrap(), info);
        assert_eq!(store.get_small(&key, info.bytes).unwrap().unwrap(), content);
        let folder = TempDir::new().unwrap();
        let copy = store.local_copy(&key, folder.path()).unwrap();
        assert_eq!(copy.bytes(), info.bytes);
        assert_eq!(fs::read(copy.path()).unwrap(), content);
    }
}

fn the_second_put_changes_nothing(store: &Store) {
    let key = key("commit/part-00007.json");
    assert!(matches!(put(store, &key, b"first"), Put::Stored(_)));
    assert_eq!(put(store, &key, b"second, and longer"), Put::AlreadyThere);
    assert_eq!(put(store, &key, b"first"), Put::AlreadyThere);
    assert_eq!(store.get_small(&key, 100).unwrap().unwrap(), b"first");
}

fn a_file_is_stored_whole_and_stays(store: &Store) {
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    for (name, folder) in folders_of_all_file_systems() {
        let file = folder.path().join("shard.h5");
        fs::write(&file, &content).unwrap();
        let key = key(&format!("data/{name}.h5"));

        let Put::Stored(info) = store.put_if_absent(&key, ObjectContent::File(&file)).unwrap() else {
            panic!("{key} was there")
        };
        assert_eq!(store.put_if_absent(&key, ObjectContent::File(&file)).unwrap(), Put::AlreadyThere);
        // Later changes of the local file do not affect the object.
        fs::write(&file, "changed").unwrap();

        assert_eq!(info.bytes, content.len() as u64);
        assert!(store.get_small(&key, info.bytes).unwrap().unwrap() == content, "{key} differs");
    }
}

fn a_failed_put_leaves_the_name_free(store: &Store) {
    let key = key("data/part-00000.h5");
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing.h5");

    let error = store.put_if_absent(&key, ObjectContent::File(&missing)).unwrap_err();

    assert_eq!((error.exit(), one_line(&error).contains("missing.h5")), (Exit::Io, true), "{error}");
    assert_eq!(store.head(&key).unwrap(), None);
    assert!(store.list("").unwrap().is_empty());
    assert!(matches!(put(store, &key, b"retried"), Put::Stored(_)));
}

fn a_readers_limit_holds(store: &Store) {
    let key = key("manifest.json");
    put(store, &key, b"0123456789");
    assert_eq!(store.get_small(&key, 10).unwrap().unwrap().len(), 10);
    for limit_bytes in [9, 0] {
        let error = store.get_small(&key, limit_bytes).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
        one_line(&error);
    }
}

fn a_listing_is_complete_and_in_byte_order(store: &Store) {
    let names = [
        "a-b",
        "a.b",
        "a/b",
        "a/b-c",
        "a/c/d",
        "a0",
        "data/part-1",
        "data/part-10",
        "data/part-2",
        "data0",
        "z",
    ];
    for name in names.iter().rev() {
        put(store, &key(name), name.as_bytes());
    }
    for prefix in
        ["", "a", "a/", "a/b", "data/", "data/part-1", "data/part-10", "data/part-3", "no/such/", "z"]
    {
        let listed: Vec<_> = store.list(prefix).unwrap();
        let expected: Vec<_> = names.iter().copied().filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(
            listed.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(),
            expected,
            "{prefix:?}"
        );
        assert!(listed.iter().all(|object| object.bytes == object.key.as_str().len() as u64));
    }
    for hostile in ["../", "/", "data/../", ".put-"] {
        assert!(matches!(store.list(hostile), Err(Error::BadKey { .. })), "{hostile}");
    }
}

fn a_deleted_object_is_gone(store: &Store) {
    let key = key("data/part-00000.h5");
    put(store, &key, b"orphan");
    store.delete(&key).unwrap();
    store.delete(&key).unwrap();
    assert_eq!(store.head(&key).unwrap(), None);
    assert!(store.list("data/").unwrap().is_empty());
    assert!(matches!(put(store, &key, b"again"), Put::Stored(_)));
}

const RACERS: usize = 8;
const RACED_NAMES: usize = 100;
/// Smaller, because a server in Python is slow.
const RACED_NAMES_IN_S3: usize = 15;

fn raced_names(store: &Store) -> usize {
    if store.url().starts_with("s3:") { RACED_NAMES_IN_S3 } else { RACED_NAMES }
}

/// Racers share nothing but the storage, as in processes of their own.
fn of_racing_writers_one_wins_each_name(open: impl Fn() -> Store + Sync) {
    let (start, finished) = (Barrier::new(RACERS), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let store = open();
            while !finished.load(Ordering::Acquire) {
                for listed in store.list("commit/").unwrap() {
                    assert_is_some_racers(&store.get_small(&listed.key, 1 << 20).unwrap().unwrap());
                }
            }
        });
        let (start, open) = (&start, &open);
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                scope.spawn(move || {
                    let store = open();
                    start.wait();
                    race(&store, racer);
                })
            })
            .collect();
        let outcomes: Vec<_> = racers.into_iter().map(|racer| racer.join()).collect();
        finished.store(true, Ordering::Release);
        reader.join().unwrap();
        assert!(outcomes.iter().all(Result::is_ok));
    });
    assert_each_name_has_one_winner(&open());
}

/// Puts every name, then the list of the names won, as its own object.
fn race(store: &Store, racer: usize) {
    let won: Vec<String> = (0..raced_names(store))
        .map(|name| format!("commit/part-{name:05}.json"))
        .filter(|name| matches!(put(store, &key(name), &content_of(racer)), Put::Stored(_)))
        .collect();
    put(store, &key(&format!("won/{racer}")), won.join("\n").as_bytes());
}

/// Long enough to reveal a mixture, and of a different length per racer.
fn content_of(racer: usize) -> Vec<u8> {
    racer.to_string().repeat(20_000 + racer).into_bytes()
}

fn assert_is_some_racers(content: &[u8]) {
    assert!((0..RACERS).any(|racer| content == content_of(racer)), "{} bytes of a mixture", content.len());
}

fn assert_each_name_has_one_winner(store: &Store) {
    let mut winners = BTreeMap::new();
    for racer in 0..RACERS {
        let won = store.get_small(&key(&format!("won/{racer}")), 1 << 20).unwrap().unwrap();
        for name in String::from_utf8(won).unwrap().lines() {
            assert_eq!(winners.insert(name.to_owned(), racer), None, "{name} was won twice");
        }
    }
    assert_eq!(winners.len(), raced_names(store));
    assert_eq!(store.list("commit/").unwrap().len(), raced_names(store));
    for (name, racer) in winners {
        let content = store.get_small(&key(&name), 1 << 20).unwrap().unwrap();
        assert!(content == content_of(racer), "{name} is not what its winner {racer} put");
    }
}

pub fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub fn put(store: &Store, key: &Key, content: &[u8]) -> Put {
    store.put_if_absent(key, ObjectContent::Bytes(content)).unwrap()
}

pub fn one_line(error: &Error) -> String {
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{message:?}");
    assert!(!message.contains(SECRET_KEY), "{message}");
    message
}

/// One folder per available file system, so that at least one is not on the file system of the store.
fn folders_of_all_file_systems() -> Vec<(&'static str, TempDir)> {
    let mut folders = vec![("temporary", TempDir::new().unwrap())];
    match TempDir::new_in("/dev/shm") {
        Ok(folder) => folders.push(("memory", folder)),
        Err(error) => println!("SKIPPED a copy across file systems: /dev/shm: {error}"),
    }
    folders
}
