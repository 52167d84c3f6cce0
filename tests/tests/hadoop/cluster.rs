//! One Hadoop cluster for all tests of this process. It stops with the process, however that ends.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use tests::pipe::text_of;
use tests::programs::{Finished, folder_of_programs, run, without_hadoop};
use tests::s3_server::S3Server;
use tests::{say, skipped};

use crate::given::{FEW, MANY, TALL, WHOLE};
use crate::left_behind::{KEY_ID, SECRET};

/// Time limit of every wait in a job. The second attempt of a reducer starts after a minute if two jobs share
/// two cores.
pub const LIMIT: Duration = Duration::from_secs(600);

const SETTINGS: [&str; 4] = [
    // Keeps the folders of containers after their job, so that they can be searched.
    "yarn:yarn.nodemanager.delete.debug-delay-sec=3600",
    // Without control groups, nodes then compare the memory of containers with their limit, as on EMR. A reducer and its JVM
    // are close to the cluster's limit of 512 MB.
    "yarn:yarn.nodemanager.resource.memory.enforced=false",
    "mapred:mapreduce.reduce.memory.mb=768",
    // A node that is silent for this time is lost.
    "yarn:yarn.nm.liveness-monitor.expiry-interval-ms=20000",
];

/// A running Hadoop, and an S3 server.
pub struct Cluster {
    pub folder: PathBuf,
    pub s3: S3Server,
    /// Write-locked by a test that stops a node.
    pub nodes: RwLock<()>,
    /// The script, and its standard input.
    _serving: Child,
}

static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(|| {
    let s3 = S3Server::start()?;
    if let Some(why) = missing() {
        skipped(&format!("Hadoop: {why}"));
        return None;
    }
    Some(Cluster::start(s3))
});

/// `None`, with a notice, if Hadoop or the S3 server is not installed, which is allowed only on a developer's
/// machine.
pub fn cluster() -> Option<&'static Cluster> {
    CLUSTER.as_ref()
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn missing() -> Option<String> {
    let stamp = project().join(".deps/hadoop/stamp");
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
    if java.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Some("there is no java: apt-get install openjdk-17-jre-headless".to_owned());
    }
    (!stamp.is_file())
        .then(|| format!("{} is missing; bootstrap/laptop.sh hadoop makes it, with Maven", stamp.display()))
}

impl Cluster {
    fn start(s3: S3Server) -> Self {
        let folder = tempfile::Builder::new().prefix("hadoop-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.unwrap().keep();
        let mut serve = script("serve", &folder);
        // Ctrl-C goes only to the tests; the cluster stops after them. A failed test keeps the folder and
        // prints its path.
        let shown = folder.clone();
        let panicked = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            panicked(panic);
            let _ = fs::write(shown.join("keep"), "");
            say(&format!("the cluster's logs are in {}", shown.display()));
        }));
        let mut watch = Command::new("bash");
        watch
            .args(["-c", "\"$@\"; rm -f \"$0.credentials\"; [ -e \"$0/keep\" ] || rm -rf \"$0\""])
            .arg(&folder);
        watch.arg(serve.get_program()).args(serve.args(SETTINGS).get_args());
        watch.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let begin = Instant::now();
        let mut watch = watch.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(watch.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n", "the cluster did not start; its logs are in {}", folder.display());
        let cluster = Self { folder, s3, nodes: RwLock::new(()), _serving: watch };
        cluster.fill();
        say(&format!("a Hadoop of two nodes was up after {:.0} s", begin.elapsed().as_secs_f64()));
        cluster
    }

    /// Copies the inputs and the programs into HDFS, and the file of credentials to each node.
    fn fill(&self) {
        let programs = self.folder.join("programs");
        fs::create_dir(&programs).unwrap();
        for name in ["mapper", "combiner", "reducer", "merge", "ngrams"] {
            let (from, to) = (folder_of_programs().join(name), programs.join(name));
            // Their debug information is ten times as large as the programs.
            run(Command::new("strip").arg("-o").arg(to).arg(from), b"").succeeded();
        }
        let unlucky = project().join("tests/tests/hadoop/unlucky.sh");
        fs::copy(unlucky, programs.join("unlucky.sh")).unwrap();
        let input = self.folder.join("in");
        for (name, given) in [("whole", &WHOLE), ("many", &MANY), ("few", &FEW), ("tall", &TALL)] {
            let folder = input.join(name);
            fs::create_dir_all(&folder).unwrap();
            for (file, bytes) in &given.files {
                fs::write(folder.join(file), bytes).unwrap();
            }
        }
        let garbage = input.join("garbage");
        fs::create_dir(&garbage).unwrap();
        fs::write(garbage.join("garbage.json"), crate::failing::garbage()).unwrap();
        let damaged = input.join("damaged");
        fs::create_dir(&damaged).unwrap();
        crate::by_emr::damaged()
            .iter()
            .for_each(|(name, bytes)| fs::write(damaged.join(name), bytes).unwrap());
        // Small blocks split a small file into several, within a line.
        self.fs(&["-D", "dfs.blocksize=1048576", "-put", text_of(&programs), text_of(&input), "/"]);
        let credentials = self.credentials();
        fs::write(
            &credentials,
            format!("[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"),
        )
        .unwrap();
        fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The credentials that every node has for users who run jobs. They are outside of the cluster's folder,
    /// which is searched for leaked keys.
    pub fn credentials(&self) -> PathBuf {
        self.folder.with_extension("credentials")
    }

    /// A folder for one test, which is searched too.
    pub fn own_folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.join("tests").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A command of the cluster's script, ready to run.
    pub fn command(&self, name: &str) -> Command {
        script(name, &self.folder)
    }

    /// The output of a command of Hadoop's file system.
    pub fn fs(&self, arguments: &[&str]) -> String {
        run(self.command("fs").args(arguments), b"").succeeded().said()
    }

    /// A page of YARN, or of a job's application master behind it, as JSON.
    pub fn page(&self, path: &str) -> Finished {
        let address = run(&mut self.command("web"), b"").succeeded().said();
        let mut curl = without_hadoop(Path::new("curl"));
        curl.args(["--silent", "--fail", "--location", "--header", "Accept: application/json"]);
        run(curl.arg(format!("{}{path}", address.trim())), b"")
    }
}

fn script(command: &str, folder: &Path) -> Command {
    let mut script = without_hadoop(&project().join("bootstrap/hadoop/cluster.sh"));
    script.arg(command).arg(folder);
    script
}

/// Waits until `look` returns a value.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < LIMIT, "waited {} s for {what}", LIMIT.as_secs());
        thread::sleep(Duration::from_millis(100));
    }
}
