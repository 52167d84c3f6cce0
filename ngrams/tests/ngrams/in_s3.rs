//! Trainings in S3: killed and resumed on another machine, occupied, and compared with local ones.

use ::tests::s3_server::{S3Server, with_s3};

use super::*;

const OUT: &str = "s3://bucket/kettles";

/// A bucket with the lines of a small training.
struct World {
    server: S3Server,
    /// The caches of several machines, and local trainings.
    folder: TempDir,
}

impl World {
    fn new(server: S3Server) -> Self {
        server.put("train.txt", lines(4000, 1).as_bytes());
        server.put("test.txt", lines(500, 2).as_bytes());
        Self { server, folder: tempfile::tempdir().unwrap() }
    }

    /// A command on a machine, which has a cache of its own.
    fn on(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = with_s3(program("ngrams"), &format!("http://{}", self.server.address()));
        command.env("SENTIMILL_CACHE", self.folder.path().join(machine)).current_dir(self.folder.path());
        command.args(arguments);
        command
    }

    fn train(&self, machine: &str, out: &str, more: &[&str]) -> Command {
        let flags = ["train", "--input", "s3://bucket/train.txt", "--format", "fasttext", "--out", out];
        self.on(machine, &[&flags[..], &["--deterministic", "--threads", "2"], more].concat())
    }

    fn assert_same_model(&self, local: &str) {
        for (name, content) in model_files(&self.folder.path().join(local)) {
            let found = self.server.get(&format!("kettles/model/{name}"));
            assert!(found.as_deref() == Some(&content), "{name}");
        }
    }
}

#[test]
fn a_training_in_s3_has_the_model_of_a_local_one_and_is_used_from_there() {
    for server in S3Server::each() {
        let world = World::new(server);
        let test = ["--test", "s3://bucket/test.txt"];
        let (code, told) = ended(world.train("one", "local", &test));
        assert_eq!(code, Some(0), "{told}");
        let (code, told) = ended(world.train("one", OUT, &test));
        assert_eq!(code, Some(0), "{told}");
        assert!(told.ends_with("the model is in s3://bucket/kettles/model"), "{told}");
        world.assert_same_model("local");
        assert!(!world.folder.path().join("kettles").exists());

        let (code, told) = ended(world.train("two", OUT, &test));
        assert_eq!(code, Some(64), "{told}");
        let expected =
            "s3://bucket/kettles: already exists: found a training, expected an unused prefix; resume";
        assert!(told.contains(expected), "{told}");
        let (code, told) = ended(world.train("two", OUT, &[&test[..], &["--resume"]].concat()));
        assert_eq!(
            (code, &*told),
            (Some(0), "ngrams: already complete: the model is in s3://bucket/kettles/model")
        );

        let evaluate = |model: &str| {
            let flags = ["evaluate", model, "s3://bucket/test.txt", "--format", "fasttext"];
            let (code, said, told) = run(world.on("two", &flags));
            assert_eq!(code, Some(0), "{told}");
            said
        };
        assert_eq!(evaluate(OUT), evaluate("local"));
        world.server.put("texts/a.txt", b"a");
        let (code, told) = ended(world.on("two", &["evaluate", "s3://bucket/texts", "s3://bucket/test.txt"]));
        assert_eq!(code, Some(66), "{told}");
        assert!(told.contains("s3://bucket/texts: MODEL is a.txt, expected a model folder"), "{told}");
        let (code, told) = ended(world.on("two", &["report", OUT, "--out", "page.html"]));
        assert_eq!(code, Some(0), "{told}");
        let page = fs::read_to_string(world.folder.path().join("page.html")).unwrap();
        assert!(page.contains("N-grams of 2") && page.contains("lovely"), "{page}");
        let (code, told) = ended(world.train("two", OUT, &["--force"]));
        assert_eq!(code, Some(64), "{told}");
        assert!(
            told.contains("--force has no effect on s3://bucket/kettles: nothing in S3 is replaced"),
            "{told}"
        );
    }
}

#[test]
fn a_training_in_s3_that_is_killed_and_resumed_elsewhere_has_the_bits_of_a_local_one() {
    let world = World::new(S3Server::start_s3s_fs());
    let flags = ["--model", "fasttext", "--buckets", "5000", "--epochs", "400"];
    let (code, told) = ended(world.train("one", "local", &flags));
    assert_eq!(code, Some(0), "{told}");
    let often = [&flags[..], &["--checkpoint-every", "0.001"]].concat();
    let mut first = world.train("one", OUT, &often).stderr(Stdio::null()).spawn().unwrap();
    let is_saved =
        |number: u32| world.server.get(&format!("kettles/checkpoints/step-{number:09}/SHA256SUMS")).is_some();
    while !(1..1000).any(is_saved) && first.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(world.server.get("kettles/model/SHA256SUMS").is_none());
    let (code, told) = ended(world.train("two", OUT, &[&flags[..], &["--resume"]].concat()));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(" has not released it; waiting 20 s for a heartbeat"), "{told}");
    assert!(told.contains("resuming from the checkpoint"), "{told}");
    world.assert_same_model("local");
}
