//! Datasets in S3: the same bytes as in a folder, complete or without a manifest, and never overwritten.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tests::compressed::gzip;
use tests::demo::DEMO;
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::files::files;
use tests::lines::sorted_as_c;
use tests::pipe::mapped;
use tests::programs::{Finished, finish, program, run, start};
use tests::s3_server::{S3Server, SECRET_KEY, with_s3};

/// Limit for a program to reach the request at which it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(60);
/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3600);

/// An object, and whether a request puts it.
type Kill = (&'static str, fn(&Request) -> bool);

/// A server with the lines of the demo, the counts of a mapper and a run of two partitions.
struct Room {
    server: S3Server,
    /// Passes every request on.
    proxy: FaultProxy,
    folder: TempDir,
}

impl Room {
    fn on(server: S3Server) -> Self {
        let proxy = FaultProxy::start(server.address(), |_| Fault::None).unwrap();
        let room = Self { server, proxy, folder: tempfile::tempdir().unwrap() };
        let counts = room.folder.path().join("counts.json");
        let sorted = sorted_as_c(&mapped(&DEMO.raw, &counts));
        room.server.put("input/counts.json", &fs::read(counts).unwrap());
        room.server.put("input/reviews.json.gz", &gzip(&DEMO.raw));
        for partition in ["0", "1"] {
            let partition = ["--partition", partition, "--partitions", "2", "--select", "--attempt", "a"];
            let mut reducer = room.program("reducer");
            run(reducer.args(["--run", "s3://bucket/runs/one"]).args(partition), &sorted).succeeded();
        }
        room
    }

    fn each() -> impl Iterator<Item = Self> {
        S3Server::each().map(Self::on)
    }

    fn program(&self, name: &str) -> Command {
        self.program_behind(&self.proxy, name)
    }

    fn program_behind(&self, proxy: &FaultProxy, name: &str) -> Command {
        let mut program = with_s3(program(name), &proxy.url());
        fs::create_dir_all(self.tmpdir()).unwrap();
        program.env("SENTIMILL_CACHE", self.folder.path().join("cache")).env("TMPDIR", self.tmpdir());
        program.current_dir(self.folder.path());
        program
    }

    fn tmpdir(&self) -> std::path::PathBuf {
        self.folder.path().join("tmp")
    }

    /// The program that makes a dataset, all of whose input is in S3.
    fn maker(&self, proxy: &FaultProxy, name: &str) -> Command {
        let mut maker = self.program_behind(proxy, name);
        match name {
            "merge" => {
                maker.args(["--run", "s3://bucket/runs/one", "--counts", "s3a://bucket/input/counts.json"])
            }
            _ => maker.args(["--input", "s3://bucket/input/reviews.json.gz"]),
        };
        maker
    }

    fn make(&self, name: &str, arguments: &[&str]) -> Finished {
        let made = run(self.maker(&self.proxy, name).args(arguments), b"");
        assert!(!made.stderr.contains(SECRET_KEY) && !made.said().contains(SECRET_KEY));
        assert_eq!(files(&self.tmpdir()), Vec::<std::path::PathBuf>::new(), "left behind");
        made
    }

    /// Kills a program when it sends this request.
    fn killed_at(&self, name: &str, arguments: &[&str], is_at: fn(&Request) -> bool) {
        let proxy = FaultProxy::start(self.server.address(), move |request| {
            // The body of the request is never read to its end, so the service does not get it.
            if is_at(request) { Fault::SlowRead(1, FOREVER) } else { Fault::None }
        })
        .unwrap();
        let mut child = start(self.maker(&proxy, name).args(arguments));
        let begin = Instant::now();
        while !proxy.seen().iter().any(|(request, _)| is_at(request)) {
            assert!(
                begin.elapsed() < KILL_LIMIT && child.try_wait().unwrap().is_none(),
                "{:?}",
                child.wait_with_output()
            );
            thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The next program deletes it.
        assert_ne!(files(&self.tmpdir()), Vec::<std::path::PathBuf>::new(), "nothing was left behind");
    }

    fn is_demo(&self, name: &str) {
        assert!(
            self.server.get(name).expect("it was put") == DEMO.dataset,
            "{name} differs from the dataset in a folder"
        );
    }
}

fn is_put_of(request: &Request, name: &str) -> bool {
    request.method == "PUT" && request.target.contains(name)
}

/// Number of requests that put the dataset or a file beside it.
fn puts(proxy: &FaultProxy, name: &str) -> usize {
    proxy.seen().iter().filter(|(request, _)| is_put_of(request, name)).count()
}

#[test]
fn a_dataset_in_s3_equals_the_one_in_a_folder() {
    for room in Room::each() {
        for (name, out) in [("merge", "s3://bucket/data/merged.h5"), ("sentimill", "s3a://bucket/milled.h5")]
        {
            let made = room.make(name, &["--out", out, "--padded", "8", "--parquet", "--json"]).succeeded();
            let report: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
            assert_eq!(report["dataset"], out.replace("s3a", "s3"));
            assert_eq!((&report["written"], &report["padded"]), (&true.into(), &8.into()));
        }
        room.is_demo("data/merged.h5");
        room.is_demo("milled.h5");
        let padded = room.server.get("milled.padded.h5").unwrap();
        assert!(room.server.get("data/merged.padded.h5").unwrap() == padded);
        let ids = room.server.get("milled.ids.parquet").unwrap();
        assert!(room.server.get("data/merged.ids.parquet").unwrap() == ids);
        let manifest: serde_json::Value =
            serde_json::from_slice(&room.server.get("data/merged.manifest.json").unwrap()).unwrap();
        assert_eq!(manifest["seal"]["shards"].as_array().unwrap().len(), 2);
        assert_eq!(manifest["bytes"], DEMO.dataset.len());

        let checked =
            run(room.program("merge").args(["--check", "s3://bucket/data/merged.h5"]), b"").succeeded();
        let expected = "s3://bucket/data/merged.h5: valid, ";
        assert!(checked.said().starts_with(expected), "{}", checked.said());
        assert!(checked.said().contains("; its SHA-256 matches its manifest\n"), "{}", checked.said());
        for name in ["padded.h5", "ids.parquet", "croissant.json"] {
            let matches = format!("\nmerged.{name}: its SHA-256 matches the manifest\n");
            assert!(checked.said().contains(&matches), "{}", checked.said());
        }
        let described =
            run(room.program("merge").args(["--describe", "s3://bucket/milled.h5"]), b"").succeeded();
        fs::write(room.folder.path().join("local.h5"), &DEMO.dataset).unwrap();
        let locally = run(room.program("merge").args(["--describe", "local.h5"]), b"").succeeded();
        assert_eq!(described.said(), locally.said());
    }
}

#[test]
fn texts_in_s3_equal_those_in_a_folder() {
    for room in Room::each() {
        let texts = ["--parquet", "--texts", "corpus.parquet"];
        room.make("sentimill", &[&["--out", "s3://bucket/d.h5"][..], &texts].concat()).succeeded();
        room.make("sentimill", &[&["--out", "d.h5"][..], &texts].concat()).succeeded();
        room.is_demo("d.h5");
        for name in ["corpus.parquet", "d.ids.parquet", "d.croissant.json", "d.manifest.json"] {
            let here = fs::read(room.folder.path().join(name)).unwrap();
            assert!(room.server.get(name).unwrap() == here, "{name}");
        }

        // The manifest cannot be replaced by one that lists another file.
        let refused =
            room.make("sentimill", &["--out", "s3://bucket/d.h5", "--texts", "other.parquet"]).with_code(64);
        assert_eq!(
            refused.stderr.lines().last().unwrap(),
            "sentimill: s3://bucket/d.manifest.json: already exists and is the manifest of a dataset without other.parquet, \
             expected one that lists it; nothing in S3 is overwritten: choose another --out"
        );
        // A run that needs fewer files accepts those that exist.
        room.make("sentimill", &["--out", "s3://bucket/d.h5", "--parquet"]).succeeded();
        room.make("merge", &["--out", "s3://bucket/d.h5", "--parquet"]).succeeded();
    }
}

#[test]
fn a_program_killed_between_two_puts_completes_the_dataset_when_it_is_repeated() {
    const KILLS: [Kill; 5] = [
        ("d.h5", |request| is_put_of(request, "d.h5") && !request.target.contains("padded")),
        ("d.padded.h5", |request| is_put_of(request, "d.padded.h5")),
        ("d.ids.parquet", |request| is_put_of(request, "d.ids.parquet")),
        ("d.croissant.json", |request| is_put_of(request, "d.croissant.json")),
        ("d.manifest.json", |request| is_put_of(request, "d.manifest.json")),
    ];
    for room in Room::each() {
        for program in ["merge", "sentimill"] {
            for (at, is_at) in KILLS {
                let folder = format!("{program}-{}", at.replace('.', "-"));
                let out = format!("s3://bucket/{folder}/d.h5");
                let arguments = ["--out", &out, "--padded", "8", "--parquet"];
                room.killed_at(program, &arguments, is_at);
                assert_eq!(room.server.get(&format!("{folder}/d.manifest.json")), None, "complete at {at}");
                let before = puts(&room.proxy, &folder);
                let names = ["d.h5", "d.padded.h5", "d.ids.parquet", "d.croissant.json", "d.manifest.json"];
                let there = names.map(|name| room.server.get(&format!("{folder}/{name}")).is_some());

                room.make(program, &arguments).succeeded();

                room.is_demo(&format!("{folder}/d.h5"));
                assert!(room.server.get(&format!("{folder}/d.manifest.json")).is_some());
                for name in names {
                    assert!(room.server.get(&format!("{folder}/{name}")).is_some(), "{name}");
                }
                // The probe is put again, and each object that is missing.
                let missing = there.iter().filter(|there| !**there).count();
                let probes = puts(&room.proxy, &format!("{folder}/.conditional-put"));
                assert_eq!(puts(&room.proxy, &folder) - before, missing + probes, "{at}: {there:?}");
            }
        }
    }
}

#[test]
fn an_existing_dataset_in_s3_is_accepted_or_refused_as_in_a_folder() {
    for room in Room::each() {
        let out = ["--out", "s3://bucket/d.h5"];
        room.make("merge", &out).succeeded();
        let whole = |name: &str| room.server.get(name).unwrap();
        let before = ["d.h5", "d.manifest.json"].map(whole);
        let puts_before = puts(&room.proxy, "/d.");

        let again = room.make("merge", &out).succeeded();
        let there = "s3://bucket/d.h5: already exists, complete and with these settings; nothing to do\n";
        assert!(again.said().starts_with(there), "{}", again.said());
        let json = room.make("merge", &[&out[..], &["--json"]].concat()).succeeded();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap()["written"], false);
        let milled = room.make("sentimill", &out).succeeded();
        assert!(
            milled.stderr.contains("s3://bucket/d.h5: already exists with the same content"),
            "{}",
            milled.stderr
        );
        assert_eq!(puts(&room.proxy, "/d.h5"), puts_before - 1, "the dataset was put once");

        let kept = "nothing in S3 is overwritten: choose another --out";
        for (program, arguments, message) in [
            (
                "merge",
                &["--vocabulary-size", "5"][..],
                "s3://bucket/d.h5: already exists and is a dataset with other settings, expected one with these settings",
            ),
            (
                "sentimill",
                &["--max-tokens", "3"],
                "s3://bucket/d.h5: already exists and is a dataset with other settings, expected one with these settings",
            ),
            (
                "merge",
                &["--padded", "9"],
                "s3://bucket/d.manifest.json: already exists and is the manifest of a dataset without a padded copy, expected \
                 a padded copy with 9",
            ),
            (
                "sentimill",
                &["--padded", "9"],
                "s3://bucket/d.manifest.json: already exists and is the manifest of a dataset without a padded copy, expected \
                 a padded copy with 9",
            ),
        ] {
            let refused = room.make(program, &[&out[..], arguments].concat()).with_code(64);
            assert_eq!(refused.stderr.lines().last().unwrap(), format!("{program}: {message}; {kept}"));
        }
        // Without its manifest, as left by a program that is killed before the last put.
        room.server.put("other/d.h5", &before[0]);
        let other = ["--out", "s3://bucket/other/d.h5"];
        let refused = room.make("merge", &[&other[..], &["--vocabulary-size", "5"]].concat()).with_code(64);
        assert_eq!(
            refused.stderr.lines().last().unwrap(),
            format!(
                "merge: s3://bucket/other/d.h5: already exists and is a dataset with other settings and without a manifest, \
                 expected one with these settings; {kept}"
            )
        );
        room.make("merge", &other).succeeded();
        room.server.put("foreign/d.h5", b"no dataset");
        let refused = room.make("sentimill", &["--out", "s3://bucket/foreign/d.h5"]).with_code(64);
        assert_eq!(
            refused.stderr.lines().last().unwrap(),
            format!(
                "sentimill: s3://bucket/foreign/d.h5: already exists and is an object that is not a dataset, expected this \
                 dataset or none; {kept}"
            )
        );
        assert!(["d.h5", "d.manifest.json"].map(whole) == before);
        assert_eq!(whole("foreign/d.h5"), b"no dataset");
    }
}

#[test]
fn force_with_an_output_in_s3_is_refused_before_any_request() {
    let room = Room::on(S3Server::start_s3s_fs());
    let requests = room.proxy.seen().len();
    for program in ["merge", "sentimill"] {
        let refused = room.make(program, &["--out", "s3://bucket/d.h5", "--force"]).with_code(64);
        assert_eq!(
            refused.stderr,
            format!(
                "{program}: --force: nothing in S3 is overwritten, expected no --force with --out s3://bucket/d.h5; omit it, \
                 and choose another --out if a dataset exists there\n"
            )
        );
    }
    assert_eq!(room.proxy.seen().len(), requests);
}

#[test]
fn an_output_in_a_store_without_conditional_puts_is_refused_before_the_input_is_read() {
    let Some(server) = S3Server::start() else { return };
    let room = Room::on(server);
    let proxy = FaultProxy::start(room.server.address(), |request| {
        if request.target.contains("/out/") { Fault::DropCondition } else { Fault::None }
    })
    .unwrap();
    for program in ["merge", "sentimill"] {
        let refused =
            run(room.maker(&proxy, program).args(["--out", "s3://bucket/out/d.h5"]), b"").with_code(78);
        let last = refused.stderr.lines().last().unwrap();
        assert!(
            last.starts_with(&format!("{program}: s3://bucket/out: the store ignores If-None-Match")),
            "{last}"
        );
    }
    let is_read = |request: &Request| {
        request.method == "GET" && ["/data/", "reviews.json"].iter().any(|name| request.target.contains(name))
    };
    let read: Vec<_> = proxy.seen().into_iter().filter(|(request, _)| is_read(request)).collect();
    assert!(read.is_empty(), "{read:?}");
    assert_eq!(room.server.get("out/d.h5"), None);
}

#[test]
fn other_datasets_and_lists_are_read_from_s3() {
    for room in Room::each() {
        room.server.put("lists/stop.txt", b"the\nof\n");
        room.make("sentimill", &["--out", "s3://bucket/train.h5"]).succeeded();
        room.server.put("more.json", b"{\"reviewText\": \"a battery never seen before\", \"overall\": 1}\n");
        let test = |more: &[&str], out: &str| {
            let mut sentimill = room.program("sentimill");
            sentimill.args(["--input", "s3://bucket/more.json", "--out", out]).args(more);
            run(&mut sentimill, b"").succeeded().said()
        };
        fs::write(room.folder.path().join("train.h5"), &DEMO.dataset).unwrap();
        fs::write(room.folder.path().join("stop.txt"), b"the\nof\n").unwrap();
        let cases = [
            ("others", "--vocabulary {}train.h5 --without {}train.h5", "s3://bucket/"),
            ("words", "--stopwords {}stop.txt", "s3://bucket/lists/"),
        ];
        for (name, flags, below) in cases {
            let made = |at: &str, below: &str| {
                let flags = flags.replace("{}", below);
                let out = format!("{at}-{name}.h5");
                let said = test(&flags.split(' ').collect::<Vec<_>>(), &out);
                (said, fs::read(room.folder.path().join(out)).unwrap())
            };
            assert!(made("remote", below) == made("local", ""), "{name}");
        }
    }
}

#[test]
fn a_missing_object_is_named() {
    let room = Room::on(S3Server::start_s3s_fs());
    let absent = "s3://bucket/absent";
    for arguments in [
        &["merge", "--check", absent][..],
        &["merge", "--describe", absent],
        &["merge", "--run", "s3://bucket/runs/one", "--counts", absent],
        &["merge", "--run", "s3://bucket/runs/one", "--vocabulary", absent],
        &["sentimill", "--input", "s3://bucket/input/", "--without", absent],
        &["sentimill", "--input", "s3://bucket/input/", "--stopwords", absent],
        &["reducer", "--run", "s3://bucket/runs/two", "--stopwords", absent],
    ] {
        let refused = run(room.program(arguments[0]).args(&arguments[1..]), b"").with_code(66);
        let last = refused.stderr.lines().last().unwrap();
        assert_eq!(
            last,
            format!("{}: {absent}: no such object; check the name", arguments[0]),
            "{arguments:?}"
        );
    }
    assert!(!Path::new("absent").exists());
}

#[test]
fn an_altered_dataset_in_s3_is_refused_by_its_manifest() {
    let Some(server) = S3Server::start() else { return };
    let room = Room::on(server);
    room.make("merge", &["--out", "s3://bucket/d.h5"]).succeeded();
    let mut altered = DEMO.dataset.clone();
    altered[DEMO.dataset.len() / 2] ^= 1;
    room.server.put("d.h5", &altered);
    for flag in ["--check", "--describe"] {
        let refused = run(room.program("merge").args([flag, "s3://bucket/d.h5"]), b"").with_code(66);
        let last = refused.stderr.lines().last().unwrap();
        assert!(
            last.starts_with("merge: s3://bucket/d.h5: its SHA-256 is ") && last.contains(", expected "),
            "{last}"
        );
    }
}

#[test]
fn a_program_killed_while_it_fetches_a_dataset_blocks_no_other_and_its_part_is_deleted() {
    let room = Room::on(S3Server::start_s3s_fs());
    room.server.put("d.h5", &DEMO.dataset);
    let slow = FaultProxy::start(room.server.address(), |request| {
        let is_fetched = request.method == "GET" && request.target.contains("d.h5");
        if is_fetched { Fault::Drip(1000, Duration::from_secs(1)) } else { Fault::None }
    })
    .unwrap();
    let describe =
        |proxy| start(room.program_behind(proxy, "merge").args(["--describe", "s3://bucket/d.h5"]));
    let partial = room.folder.path().join("cache/partial");
    let mut killed = describe(&slow);
    let begin = Instant::now();
    while !files(&partial).iter().any(|entry| !files(entry).is_empty()) {
        assert!(begin.elapsed() < KILL_LIMIT && killed.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(5));
    }
    let waiting = describe(&room.proxy);
    killed.kill().unwrap();
    killed.wait().unwrap();

    let described = finish(waiting, "merge").succeeded();

    assert!(described.said().contains("rows"), "{}", described.said());
    assert_eq!(files(&partial), Vec::<std::path::PathBuf>::new());
}
