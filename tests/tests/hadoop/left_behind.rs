//! A job must leave no key anywhere, and no text of a review in a log.

use std::path::{Path, PathBuf};

use tests::pipe::text_of;
use tests::programs::{run, without_hadoop};

use crate::cluster::Cluster;

/// The credentials that reducers find on their node.
pub const KEY_ID: &str = "canaryKeyIdBelongsNowhere";
pub const SECRET: &str = "canarySecretBelongsNowhere";

/// A word that occurs in no other text.
pub const MARK: &str = "zyzzyvas";

/// Reviews with this word: a good one and one of each bad kind.
pub const MARKED: &str = concat!(
    "{\"reviewText\": \"zyzzyvas are fine\", \"overall\": 5}\n",
    "{\"reviewText\": \"zyzzyvas are cut off\n",
    "{\"reviewText\": \"zyzzyvas without stars\", \"overall\": 0}\n",
    "{\"reviewText\": [\"zyzzyvas are no text\"], \"overall\": 5}\n",
);

/// Searches the cluster's whole disk, including HDFS blocks, and checks that the search works.
#[track_caller]
pub fn no_key_is_left(cluster: &Cluster, job: &str) {
    // The path of the credentials is not secret.
    let place = cluster.credentials();
    for (known, kind) in [(text_of(&place), "job.xml"), (job, "syslog"), (job, "blk_")] {
        let found = files_with(known, &cluster.folder);
        let is_found = found.iter().any(|file| file.file_name().unwrap().to_string_lossy().starts_with(kind));
        assert!(is_found, "the search for {known} does not look into {kind}: {found:?}");
    }
    for key in [KEY_ID, SECRET] {
        let found = files_with(key, &cluster.folder);
        assert!(found.is_empty(), "{key}: {found:?}");
    }
}

/// Searches the logs of a job's containers, on the disks of the nodes.
#[track_caller]
pub fn no_text_is_in_logs(cluster: &Cluster, job: &str) {
    let application = job.replace("job_", "application_");
    for node in ["node1", "node2"] {
        let logs = cluster.folder.join(node).join("logs").join(&application);
        if logs.exists() {
            let found = files_with(MARK, &logs);
            assert!(found.is_empty(), "{MARK}: {found:?}");
        }
    }
}

/// The files that contain these bytes, at any depth.
pub fn files_with(bytes: &str, folder: &Path) -> Vec<PathBuf> {
    let mut grep = without_hadoop(Path::new("grep"));
    // Passed on standard input, because another test may be recording the arguments of all processes.
    grep.args(["--recursive", "--files-with-matches", "--text", "--fixed-strings", "--file=-", "--"]);
    // 1: nothing found; 2: a file was deleted during the search.
    let found = run(grep.arg(folder), bytes.as_bytes());
    assert!(found.code <= 2, "{}", found.stderr);
    found.said().lines().map(PathBuf::from).collect()
}
