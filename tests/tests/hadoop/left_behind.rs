//! What a job must not leave behind: a key anywhere, or the text of a review in a log.

use std::path::{Path, PathBuf};

use tests::pipe::text_of;
use tests::programs::{run, without_hadoop};

use crate::cluster::Cluster;

/// The credentials that reducers find on their node.
pub const KEY_ID: &str = "canaryKeyIdBelongsNowhere";
pub const SECRET: &str = "canarySecretBelongsNowhere";

/// A word that no other text has.
pub const MARK: &str = "zyzzyvas";

/// Reviews with it: a good one and one of each bad kind.
pub const MARKED: &str = concat!(
    "{\"reviewText\": \"zyzzyvas are fine\", \"overall\": 5}\n",
    "{\"reviewText\": \"zyzzyvas are cut off\n",
    "{\"reviewText\": \"zyzzyvas without stars\", \"overall\": 0}\n",
    "{\"reviewText\": [\"zyzzyvas are no text\"], \"overall\": 5}\n",
);

/// Checks all that the cluster has on its disk, HDFS's blocks too, and that the search would find something.
#[track_caller]
pub fn no_key_is_left(cluster: &Cluster, job: &str) {
    // Where the keys are is no secret.
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

/// Checks the logs of a job's containers, on the disks of the nodes.
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

/// The files that hold these bytes, at any depth.
pub fn files_with(bytes: &str, folder: &Path) -> Vec<PathBuf> {
    let mut grep = without_hadoop(Path::new("grep"));
    // On standard input: another test may be keeping the arguments of all processes, this one's too.
    grep.args(["--recursive", "--files-with-matches", "--text", "--fixed-strings", "--file=-", "--"]);
    // 1: found nothing; 2: a file vanished under its eyes.
    let found = run(grep.arg(folder), bytes.as_bytes());
    assert!(found.code <= 2, "{}", found.stderr);
    found.said().lines().map(PathBuf::from).collect()
}
