//! The cache of objects, used by several callers at once, and with damaged entries.

use std::os::unix::fs::PermissionsExt;
use std::{fs, thread};

use program::exit::{Exit, Fails};
use program::location::S3Url;
use store::{CacheOptions, CachedFile, Error, Key, ObjectContent, S3Options, Store, cached, read_object};
use tempfile::TempDir;
use tests::fault_proxy::{Fault, FaultProxy};
use tests::s3_server::S3Server;

use crate::bucket::{large, open, operation, options, proxy_with, put_large, servers};

/// SHA-256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// An empty cache, and an object that is fetched into it.
struct Machine {
    cache: TempDir,
    proxy: FaultProxy,
    server: S3Server,
}

impl Machine {
    fn new(server: S3Server) -> Self {
        Self { cache: TempDir::new().unwrap(), proxy: proxy_with(&server, |_| Fault::None), server }
    }

    fn of_text(text: &str) -> Self {
        let machine = Self::new(S3Server::start_s3s_fs());
        machine.server.put("cache/text", text.as_bytes());
        machine
    }

    fn fetch(&self, name: &str, sha256: Option<&str>) -> Result<CachedFile, Error> {
        let options = CacheOptions {
            s3: options(&self.proxy),
            sha256: sha256.map(str::to_owned),
            folder: Some(self.cache.path().to_owned()),
            ..CacheOptions::default()
        };
        cached(&S3Url::parse(&format!("s3://bucket/cache/{name}")).unwrap(), &options)
    }
}

#[test]
fn several_callers_fetch_an_object_once() {
    for server in servers() {
        let machine = Machine::new(server);
        put_large(&open("s3://bucket/cache", &machine.proxy));

        let fetched: Vec<_> = thread::scope(|scope| {
            let fetch = || machine.fetch("data/large.h5", None).unwrap();
            let callers: Vec<_> = (0..4).map(|_| scope.spawn(fetch)).collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });

        assert_eq!(fetched.iter().filter(|one| one.is_fetched).count(), 1, "{fetched:?}");
        let content = fs::read(large(TempDir::new().unwrap().path())).unwrap();
        assert!(fetched.iter().all(|one| fs::read(&one.path).unwrap() == content));
        let seen = machine.proxy.seen();
        let parts = seen.iter().filter(|(request, _)| operation(request) == "GetObject").count();
        assert_eq!(parts, 3, "two parts of 5 MiB and the rest, once each");
    }
}

#[test]
fn an_entry_whose_digest_is_known_needs_no_request() {
    let machine = Machine::of_text("abc");
    let first = machine.fetch("text", Some(ABC)).unwrap();
    assert!(first.is_fetched && first.path.ends_with(format!("objects/{ABC}")), "{first:?}");
    let requests = machine.proxy.seen().len();

    let second = machine.fetch("text", Some(ABC)).unwrap();

    assert_eq!(second, CachedFile { is_fetched: false, ..first });
    assert_eq!(machine.proxy.seen().len(), requests);
}

#[test]
fn a_damaged_entry_is_fetched_again() {
    let machine = Machine::of_text("abc");
    for sha256 in [None, Some(ABC)] {
        let first = machine.fetch("text", sha256).unwrap();
        fs::set_permissions(&first.path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&first.path, "abd").unwrap();

        let second = machine.fetch("text", sha256).unwrap();

        assert!(second.is_fetched);
        assert_eq!(fs::read(&second.path).unwrap(), b"abc");
    }
}

#[test]
fn a_replaced_object_is_another_version() {
    let machine = Machine::of_text("abc");
    for content in ["abc", "abd"] {
        machine.server.put("cache/text", content.as_bytes());
        for is_fetched in [true, false] {
            let file = machine.fetch("text", None).unwrap();
            assert_eq!(file.is_fetched, is_fetched, "{content}");
            assert_eq!(fs::read_to_string(&file.path).unwrap(), content);
        }
    }
}

#[test]
fn an_object_with_another_digest_than_expected_is_refused_and_not_stored() {
    let machine = Machine::of_text("abd");

    let refused = machine.fetch("text", Some(ABC)).unwrap_err().to_string();

    assert!(refused.starts_with("s3://bucket/cache/text: its SHA-256 is "), "{refused}");
    assert!(refused.contains(&format!(", expected {ABC}; ")), "{refused}");
    for below in ["objects", "partial"] {
        assert_eq!(fs::read_dir(machine.cache.path().join(below)).unwrap().count(), 0, "{below}");
    }
    let refused = machine.fetch("absent", None).unwrap_err().to_string();
    assert_eq!(refused, "s3://bucket/cache/absent: no such object; check the name");
}

#[test]
fn small_objects_of_any_name_are_read() {
    for server in servers() {
        let proxy = proxy_with(&server, |_| Fault::None);
        let (store, options) = (open("s3://bucket/cache", &proxy), options(&proxy));
        let url = S3Url::parse("s3://bucket/cache/small").unwrap();
        let (beside, key) = Store::of_object(&url, &options).unwrap();
        beside.probe().unwrap();
        beside.put_if_absent(&key, ObjectContent::Bytes(b"abc")).unwrap();
        assert_eq!(store.get_small(&Key::new("small").unwrap(), 3).unwrap().unwrap(), b"abc");
        assert_eq!(read_object(&url, &options, 3).unwrap().unwrap(), b"abc");
        assert_eq!(read_object(&url.join("x"), &options, 3).unwrap(), None);
        assert!(matches!(read_object(&url, &options, 2), Err(Error::TooLarge { .. })));
        // An object that is in no folder of its bucket.
        let (root, key) = Store::of_object(&S3Url::parse("s3://bucket/rooted").unwrap(), &options).unwrap();
        root.probe().unwrap();
        root.put_if_absent(&key, ObjectContent::Bytes(b"abc")).unwrap();
        assert_eq!(root.url(), "s3://bucket");
        let listed = root.list("roo").unwrap();
        assert_eq!(listed.iter().map(|listed| listed.key.as_str()).collect::<Vec<_>>(), ["rooted"]);
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
