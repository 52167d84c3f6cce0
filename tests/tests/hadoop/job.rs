//! A Hadoop Streaming job as a user submits it, and its results.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use corpus::digest::Digest;
use dataset::commit::Commit;
use dataset::manifest::DatasetManifest;
use serde_json::Value;
use tests::fault_proxy::FaultProxy;
use tests::pipe::text_of;
use tests::programs::{Finished, program, run};
use tests::say;

use crate::cluster::{Cluster, until};
use crate::given::Given;
use crate::left_behind::{KEY_ID, SECRET, no_key_is_left, no_text_is_in_logs};

/// A job, ready to run.
pub struct Job<'a> {
    cluster: &'a Cluster,
    name: &'static str,
    run_name: &'static str,
    input: &'static str,
    reduces: u32,
    settings: Vec<String>,
    files: Vec<String>,
    mapper: String,
    reducer: Option<String>,
    input_format: Option<&'static str>,
    endpoint: String,
}

/// A finished job.
pub struct Ran<'a> {
    cluster: &'a Cluster,
    /// Its folder for related files.
    pub folder: PathBuf,
    /// `job_1700000000000_0001`.
    pub id: String,
    pub run_url: String,
    /// The output of the job client, including counters.
    pub said: String,
    reduces: u32,
    endpoint: String,
    output: String,
}

impl<'a> Job<'a> {
    /// `mapper`, `combiner` and `reducer` over an input, with this number of reducers, into a run in S3 with
    /// the job's name.
    pub fn new(cluster: &'a Cluster, name: &'static str, input: &'static str, reduces: u32) -> Self {
        let reducer = Some(format!("reducer --run {}", run_url(name)));
        let endpoint = format!("http://{}", cluster.s3.address());
        Self {
            cluster,
            name,
            run_name: name,
            input,
            reduces,
            settings: Vec::new(),
            files: Vec::new(),
            mapper: "mapper".to_owned(),
            reducer,
            input_format: None,
            endpoint,
        }
    }

    /// Uses the run of another job. The reducers have no further arguments or faults.
    pub fn into_run_of(self, other: &'static str) -> Self {
        Self { run_name: other, reducer: Some(format!("reducer --run {}", run_url(other))), ..self }
    }

    /// Further arguments of the reducer.
    pub fn reducer(mut self, more: &str) -> Self {
        self.reducer = self.reducer.map(|reducer| format!("{reducer} {more}"));
        self
    }

    /// A job of maps only.
    pub fn of_maps(cluster: &'a Cluster, name: &'static str, input: &'static str, mapper: &str) -> Self {
        Self { mapper: mapper.to_owned(), reducer: None, ..Self::new(cluster, name, input, 0) }
    }

    /// A further file or folder in HDFS that tasks have in their folder.
    pub fn with_file(mut self, url: &str) -> Self {
        self.files.push(url.to_owned());
        self
    }

    /// A further setting of Hadoop, `name=value`.
    pub fn with(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// One map per line of the input, without the positions of lines.
    pub fn of_lines(mut self) -> Self {
        self.input_format = Some("org.apache.hadoop.mapred.lib.NLineInputFormat");
        self.with("stream.map.input.ignoreKey=true")
    }

    /// Reaches the S3 server through a proxy.
    pub fn by(mut self, proxy: &FaultProxy) -> Self {
        self.endpoint = proxy.url();
        self
    }

    /// Sets faults of single attempts of reducers, or of mappers in a job of maps only: `0.1` is attempt 1 of
    /// task 0.
    pub fn with_luck(mut self, of: &[(&str, &str)]) -> Self {
        let folder = self.folder();
        for (attempt, luck) in of {
            fs::write(folder.join(attempt), luck).unwrap();
        }
        let program = self.reducer.as_mut().unwrap_or(&mut self.mapper);
        *program = format!("unlucky.sh {} {program}", text_of(&folder));
        self
    }

    /// The folder with the faults, in which attempts also leave files that the test reads.
    pub fn folder(&self) -> PathBuf {
        self.cluster.own_folder(self.name)
    }

    /// Runs the job to its end, whether it succeeds or fails.
    pub fn run(self) -> Ran<'a> {
        let begin = Instant::now();
        let folder = self.folder();
        let mut client = self.cluster.command("streaming");
        let own =
            [format!("mapreduce.job.name={}", self.name), format!("mapreduce.job.reduces={}", self.reduces)];
        for setting in own.iter().chain(&self.settings) {
            client.args(["-D", setting]);
        }
        let programs = ["mapper", "combiner", "reducer", "unlucky.sh"];
        let programs = programs.map(|name| format!("hdfs:///programs/{name}"));
        client.args(["-files", &[&programs, &self.files[..]].concat().join(","), "-mapper", &self.mapper]);
        if let Some(reducer) = &self.reducer {
            client.args(["-combiner", "combiner", "-reducer", reducer]);
        }
        client.args(self.input_format.iter().flat_map(|class| ["-inputformat", class]));
        let credentials = text_of(&self.cluster.credentials()).to_owned();
        for (name, value) in [
            ("AWS_SHARED_CREDENTIALS_FILE", &credentials[..]),
            ("AWS_ENDPOINT_URL_S3", &self.endpoint),
            ("AWS_REGION", "eu-central-1"),
        ] {
            client.args(["-cmdenv", &format!("{name}={value}")]);
        }
        let output = format!("/out/{}", self.name);
        let ended = run(client.args(["-input", &format!("/in/{}", self.input), "-output", &output]), b"");
        fs::write(folder.join("job.log"), &ended.stderr).unwrap();
        say(&format!(
            "job {}: exit code {} after {:.0} s",
            self.name,
            ended.code,
            begin.elapsed().as_secs_f64()
        ));
        let said = ended.stderr;
        let id = said.split("Running job: ").nth(1).and_then(|rest| rest.lines().next());
        let id = id.unwrap_or_else(|| panic!("no job was started:\n{said}")).to_owned();
        no_text_is_in_logs(self.cluster, &id);
        no_key_is_left(self.cluster, &id);
        let (reduces, endpoint) = (self.reduces, self.endpoint);
        Ran {
            cluster: self.cluster,
            folder,
            id,
            run_url: run_url(self.run_name),
            said,
            reduces,
            endpoint,
            output,
        }
    }
}

fn run_url(name: &str) -> String {
    format!("s3://bucket/runs/{name}")
}

impl Ran<'_> {
    /// Panics if the job failed.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert!(self.said.contains("completed successfully"), "job {} failed:\n{}", self.id, self.said);
        self
    }

    /// Merges the run with the job client's output as counts, and compares with the dataset from the pipe.
    #[track_caller]
    pub fn is_the_same_dataset(&self, given: &Given) {
        let dataset = self.folder.join("reviews.h5");
        let mut merge = self.with_s3("merge");
        merge.args(["--run", &self.run_url, "--counts"]).arg(self.folder.join("job.log"));
        run(merge.arg("--out").arg(&dataset), b"").succeeded();
        is_dataset(&dataset, given);
    }

    /// The counters of one group in the job's report.
    pub fn counters(&self, group: &str) -> BTreeMap<String, u64> {
        let mut lines = self.said.lines().skip_while(|line| line.trim() != group).skip(1);
        let counters = std::iter::from_fn(|| lines.next()?.trim().split_once('='));
        counters.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// The output of the tasks, which is the job's output in HDFS.
    pub fn output(&self) -> String {
        self.cluster.fs(&["-cat", &format!("{}/part-*", self.output)])
    }

    /// The commits of the run, by partition, after checking that no object of it contains a key. A reducer
    /// printed each of them, except for partitions without any record: Hadoop does not read the standard
    /// output of those.
    pub fn commits(&self) -> Vec<Commit> {
        for name in self.objects("") {
            let object = self.object(&name);
            for key in [KEY_ID, SECRET] {
                assert!(
                    !object.windows(key.len()).any(|bytes| bytes == key.as_bytes()),
                    "{key} is in {name}"
                );
            }
        }
        let names = self.objects("commit/");
        let commits: Vec<Commit> =
            names.iter().map(|name| serde_json::from_slice(&self.object(name)).unwrap()).collect();
        let partitions: Vec<_> = commits.iter().map(|commit| commit.partition).collect();
        assert_eq!(partitions, (0..self.reduces).collect::<Vec<_>>());
        let output = self.output();
        let read = |line: &str| -> Value { serde_json::from_str(line.split_once('\t').unwrap().1).unwrap() };
        let mut echoed: Vec<_> = output.lines().map(read).collect();
        echoed.sort_by_key(|commit| commit["partition"].as_u64());
        let with_records = commits.iter().filter(|commit| commit.counts.reviews > 0);
        assert_eq!(echoed, with_records.map(in_short).collect::<Vec<_>>());
        commits
    }

    /// The attempts whose shards are in the store, as `TASK.ATTEMPT`, in byte order.
    pub fn shards(&self) -> Vec<String> {
        let attempt = |name: &String| {
            let (_, attempt) = name.strip_suffix(".h5").unwrap().rsplit_once("_r_").unwrap();
            let (task, number) = attempt.split_once('_').unwrap();
            format!("{}.{number}", task.parse::<u32>().unwrap())
        };
        self.objects("data/").iter().map(attempt).collect()
    }

    /// The names of the run's objects with this prefix.
    pub fn objects(&self, prefix: &str) -> Vec<String> {
        let root = self.run_url.strip_prefix("s3://bucket/").unwrap();
        let listed = self.get(&format!("/bucket?list-type=2&prefix={root}/{prefix}"));
        let listed = String::from_utf8(listed).unwrap();
        let names = listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap());
        names.map(|name| name[root.len() + 1..].to_owned()).collect()
    }

    /// The content of an object of the run.
    pub fn object(&self, name: &str) -> Vec<u8> {
        self.get(&format!("/{}/{name}", self.run_url.strip_prefix("s3://").unwrap()))
    }

    fn get(&self, target: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.cluster.s3.address()).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").unwrap();
        // The server requires a signature but does not verify it.
        write!(stream, "Authorization: AWS4-HMAC-SHA256 Credential=any/20300101/any/s3/aws4_request\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{target}: {}", String::from_utf8_lossy(&answer));
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        answer.split_off(head + 4)
    }

    /// A program on this machine, with the owner's credentials.
    pub fn with_s3(&self, name: &str) -> std::process::Command {
        let mut command = program(name);
        command.env("AWS_ENDPOINT_URL_S3", &self.endpoint).env("AWS_REGION", "eu-central-1");
        command.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    /// The output of `yarn logs` for the job, once all nodes have uploaded their logs.
    pub fn logs(&self) -> String {
        let application = self.id.replace("job_", "application_");
        until("the logs", || {
            let page = json(&self.cluster.page(&format!("/ws/v1/cluster/apps/{application}")))?;
            (page["app"]["logAggregationStatus"] == "SUCCEEDED").then_some(())
        });
        run(self.cluster.command("logs").args(["-applicationId", &application]), b"").succeeded().said()
    }
}

/// Compares a file with the dataset from the pipe.
#[track_caller]
pub fn is_dataset(dataset: &Path, given: &Given) {
    assert!(fs::read(dataset).unwrap() == given.dataset, "{}: not the same file", dataset.display());
    let manifest = fs::read(dataset.with_extension("manifest.json")).unwrap();
    let manifest: DatasetManifest = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest.seal.ledger, given.ledger);
}

/// The output of a successful process as JSON.
pub fn json(finished: &Finished) -> Option<serde_json::Value> {
    (finished.code == 0).then(|| serde_json::from_slice(&finished.stdout).ok())?
}

/// The content of a file, if it exists.
pub fn content_of(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A commit as a task prints it, with a digest in place of the stop words.
fn in_short(commit: &Commit) -> Value {
    let mut record = serde_json::to_value(commit).unwrap();
    let words = commit.settings.stop_words.join("\n");
    record["settings"]["stop_words"] = Digest::of(words.as_bytes()).to_string().into();
    record
}
