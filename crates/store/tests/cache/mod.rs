//! The cache of objects, used by processes that start at once, are killed, or find damaged entries.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use program::exit::{Exit, Fails};
use program::location::S3Url;
use store::{CacheOptions, Key, ObjectContent, S3Options, Store, cached, read_object};
use tempfile::TempDir;
use tests::fault_proxy::{Fault, FaultProxy};
use tests::s3_server::{S3Server, with_s3};

use crate::bucket::{OPTIONS, large, operation, proxy_with, servers, store};

/// SHA-256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// The result of one fetch in a process.
#[derive(Debug, PartialEq, Eq)]
struct Fetched {
    is_fetched: bool,
    path: PathBuf,
}

/// Runs an ignored test in a separate process, because its environment variables define where S3 and the cache are.
fn command(test: &str, proxy: &FaultProxy, cache: &Path) -> Command {
    let mut command = with_s3(Command::new(env::current_exe().unwrap()), &proxy.url());
    command
        .args(["--exact", &format!("cache::{test}"), "--ignored", "--nocapture"])
        .env("SENTIMILL_CACHE", cache);
    command.env("STORE_RUN", "s3://bucket/cache").env("STORE_OPTIONS", OPTIONS).stdout(Stdio::piped());
    command
}

fn fetching(name: &str, sha256: Option<&str>, proxy: &FaultProxy, cache: &Path) -> Child {
    let mut command = command("an_object_is_fetched", proxy, cache);
    command.env("CACHE_URL", format!("s3://bucket/cache/{name}"));
    sha256.map(|sha256| command.env("CACHE_SHA256", sha256));
    command.spawn().unwrap()
}

/// What the process reported: the file, or the error.
fn fetched(process: Child) -> Result<Fetched, String> {
    let ended = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let line = |start| said.lines().find_map(|line| line.split_once(start)).map(|(_, rest)| rest);
    if let Some(error) = line("refused: ") {
        return Err(error.to_owned());
    }
    let (is_fetched, path) = line("cached: ").unwrap_or_else(|| panic!("{said}")).split_once(' ').unwrap();
    Ok(Fetched { is_fetched: is_fetched == "true", path: PathBuf::from(path) })
}

fn put(proxy: &FaultProxy, cache: &Path, name: &str, content: &Path) {
    let mut command = command("an_object_is_put", proxy, cache);
    let ended = command.env("PUT_NAME", name).env("PUT_FILE", content).output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{ended:?}");
}

fn text(folder: &TempDir, content: &str) -> PathBuf {
    let path = folder.path().join("text");
    fs::write(&path, content).unwrap();
    path
}

#[test]
#[ignore = "a process of fetching"]
fn an_object_is_fetched() {
    let Ok(url) = env::var("CACHE_URL") else { return };
    let s3: S3Options = env::var("STORE_OPTIONS").unwrap().parse().unwrap();
    let options = CacheOptions { s3, sha256: env::var("CACHE_SHA256").ok(), ..CacheOptions::default() };
    match cached(&S3Url::parse(&url).unwrap(), &options) {
        Ok(file) => println!("\ncached: {} {}", file.is_fetched, file.path.display()),
        Err(error) => println!("\nrefused: {error}"),
    }
}

#[test]
#[ignore = "a process of put"]
fn an_object_is_put() {
    let Some(store) = store() else { return };
    let (name, file) = (env::var("PUT_NAME").unwrap(), env::var("PUT_FILE").unwrap());
    let key = Key::new(&name).unwrap();
    store.delete(&key).unwrap();
    store.put_if_absent(&key, ObjectContent::File(Path::new(&file))).unwrap();
}

#[test]
fn several_processes_fetch_an_object_once() {
    for server in servers() {
        let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let proxy = proxy_with(&server, |_| Fault::None);
        let file = large(folder.path());
        put(&proxy, cache.path(), "large.h5", &file);

        let processes: Vec<_> = (0..4).map(|_| fetching("large.h5", None, &proxy, cache.path())).collect();
        let fetched: Vec<_> = processes.into_iter().map(|process| fetched(process).unwrap()).collect();

        assert_eq!(fetched.iter().filter(|one| one.is_fetched).count(), 1, "{fetched:?}");
        assert!(fetched.iter().all(|one| fs::read(&one.path).unwrap() == fs::read(&file).unwrap()));
        let parts = proxy.seen().into_iter().filter(|(request, _)| operation(request) == "GetObject").count();
        assert_eq!(parts, 3, "two parts of 5 MiB and the rest, once each");
    }
}

#[test]
fn an_entry_whose_digest_is_known_needs_no_request() {
    let server = S3Server::start_s3s_fs();
    let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let proxy = proxy_with(&server, |_| Fault::None);
    put(&proxy, cache.path(), "text", &text(&folder, "abc"));
    let first = fetched(fetching("text", Some(ABC), &proxy, cache.path())).unwrap();
    assert!(first.is_fetched && first.path.ends_with(format!("objects/{ABC}")), "{first:?}");
    let requests = proxy.seen().len();

    let second = fetched(fetching("text", Some(ABC), &proxy, cache.path())).unwrap();

    assert_eq!(second, Fetched { is_fetched: false, ..first });
    assert_eq!(proxy.seen().len(), requests);
}

#[test]
fn a_damaged_entry_is_fetched_again() {
    let server = S3Server::start_s3s_fs();
    let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let proxy = proxy_with(&server, |_| Fault::None);
    put(&proxy, cache.path(), "text", &text(&folder, "abc"));
    for sha256 in [None, Some(ABC)] {
        let first = fetched(fetching("text", sha256, &proxy, cache.path())).unwrap();
        fs::set_permissions(&first.path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&first.path, "abd").unwrap();

        let second = fetched(fetching("text", sha256, &proxy, cache.path())).unwrap();

        assert!(second.is_fetched);
        assert_eq!(fs::read(&second.path).unwrap(), b"abc");
    }
}

#[test]
fn a_replaced_object_is_another_version() {
    let server = S3Server::start_s3s_fs();
    let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let proxy = proxy_with(&server, |_| Fault::None);
    for content in ["abc", "abd"] {
        put(&proxy, cache.path(), "text", &text(&folder, content));
        for is_fetched in [true, false] {
            let file = fetched(fetching("text", None, &proxy, cache.path())).unwrap();
            assert_eq!(file.is_fetched, is_fetched, "{content}");
            assert_eq!(fs::read_to_string(&file.path).unwrap(), content);
        }
    }
}

#[test]
fn an_object_with_another_digest_than_expected_is_refused_and_not_stored() {
    let server = S3Server::start_s3s_fs();
    let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let proxy = proxy_with(&server, |_| Fault::None);
    put(&proxy, cache.path(), "text", &text(&folder, "abd"));

    let refused = fetched(fetching("text", Some(ABC), &proxy, cache.path())).unwrap_err();

    assert!(refused.starts_with("s3://bucket/cache/text: its SHA-256 is "), "{refused}");
    assert!(refused.contains(&format!(", expected {ABC}; ")), "{refused}");
    for below in ["objects", "partial"] {
        assert_eq!(fs::read_dir(cache.path().join(below)).unwrap().count(), 0, "{below}");
    }
    let refused = fetched(fetching("absent", None, &proxy, cache.path())).unwrap_err();
    assert_eq!(refused, "s3://bucket/cache/absent: no such object; check the name");
}

#[test]
fn a_killed_process_blocks_no_other_and_what_it_left_is_deleted() {
    let server = S3Server::start_s3s_fs();
    let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let slow = proxy_with(&server, |request| match operation(request) {
        "GetObject" => Fault::Drip(10_000, Duration::from_millis(5)),
        _ => Fault::None,
    });
    let fast = proxy_with(&server, |_| Fault::None);
    put(&fast, cache.path(), "large.h5", &large(folder.path()));
    let mut killed = fetching("large.h5", None, &slow, cache.path());
    let partial = cache.path().join("partial");
    let has_begun = || {
        let entries = fs::read_dir(&partial).into_iter().flatten().flatten();
        entries.flat_map(|entry| fs::read_dir(entry.path()).unwrap()).next().is_some()
    };
    while !has_begun() {
        thread::sleep(Duration::from_millis(10));
    }
    let waiting = fetching("large.h5", None, &fast, cache.path());
    killed.kill().unwrap();
    killed.wait().unwrap();

    let file = fetched(waiting).unwrap();

    assert!(file.is_fetched);
    assert_eq!(fs::read_dir(&partial).unwrap().count(), 0);
}

#[test]
#[ignore = "a process of small_objects_of_any_name_are_read"]
fn small_objects_are_read() {
    let Some(store) = store() else { return };
    let url = S3Url::parse(&format!("{}/small", store.url())).unwrap();
    let options: S3Options = env::var("STORE_OPTIONS").unwrap().parse().unwrap();
    let (beside, key) = Store::of_object(&url, &options).unwrap();
    beside.probe().unwrap();
    beside.put_if_absent(&key, ObjectContent::Bytes(b"abc")).unwrap();
    assert_eq!(store.get_small(&Key::new("small").unwrap(), 3).unwrap().unwrap(), b"abc");
    assert_eq!(read_object(&url, &options, 3).unwrap().unwrap(), b"abc");
    assert_eq!(read_object(&url.join("x"), &options, 3).unwrap(), None);
    assert!(matches!(read_object(&url, &options, 2), Err(store::Error::TooLarge { .. })));
    // An object that is in no folder of its bucket.
    let (root, key) = Store::of_object(&S3Url::parse("s3://bucket/rooted").unwrap(), &options).unwrap();
    root.probe().unwrap();
    root.put_if_absent(&key, ObjectContent::Bytes(b"abc")).unwrap();
    assert_eq!(root.url(), "s3://bucket");
    let listed: Vec<_> = root.list("roo").unwrap().into_iter().map(|listed| listed.key.to_string()).collect();
    assert_eq!(listed, ["rooted"]);
}

#[test]
fn small_objects_of_any_name_are_read() {
    for server in servers() {
        let cache = TempDir::new().unwrap();
        let proxy = proxy_with(&server, |_| Fault::None);
        let ended = command("small_objects_are_read", &proxy, cache.path()).output().unwrap();
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{ended:?}");
    }
}

#[test]
fn an_output_with_a_name_that_no_program_writes_is_refused() {
    for name in ["a b", "x/.hidden", "x/a+b", "x//y", "../y"] {
        let url = S3Url::parse(&format!("s3://bucket/{name}")).unwrap();
        let refused = Store::of_object(&url, &S3Options::default()).unwrap_err();
        assert_eq!(refused.exit(), Exit::Usage, "{refused}");
    }
}
