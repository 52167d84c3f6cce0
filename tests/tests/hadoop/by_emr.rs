//! `emr run --runner hadoop` with a job that fails, and the commands that explain it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tests::compressed::gzip;
use tests::programs::{program, run};

use crate::cluster::{Cluster, cluster};
use crate::given::FEW;

/// A whole file and one that is cut off.
pub fn damaged() -> [(&'static str, Vec<u8>); 2] {
    let whole = gzip(&FEW.files[0].1);
    let cut = whole[..whole.len() / 2].to_vec();
    [("whole.json.gz", whole), ("cut.json.gz", cut)]
}

/// `emr` in a prepared folder, with the commands of the cluster on the PATH.
pub fn emr(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Command {
    let mut emr: Command = program("emr");
    let path = std::env::var("PATH").unwrap();
    emr.env("PATH", format!("{}:{path}", folder.join("bin").display())).current_dir(folder);
    emr.env("SENTIMILL_HADOOP", &cluster.folder).env_remove("HADOOP_STREAMING_JAR");
    emr.args(arguments);
    emr
}

/// Puts the commands of a cluster and the programs of jobs into a folder.
pub fn prepare(folder: &Path) {
    fs::create_dir(folder.join("bin")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("emr/on_node.sh");
    ["hadoop", "mapred", "yarn"]
        .iter()
        .for_each(|name| symlink(&script, folder.join("bin").join(name)).unwrap());
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["mapper", "combiner", "reducer", "merge"] {
        let from = tests::programs::folder_of_programs().join(name);
        run(Command::new("strip").arg("-o").arg(programs.join(name)).arg(from), b"").succeeded();
    }
}

#[test]
fn a_damaged_file_is_named_by_the_command_that_ran_the_job_and_by_diagnose() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let folder = cluster.own_folder("by-emr");
    prepare(&folder);
    let emr = |arguments: &[&str]| run(&mut emr(cluster, &folder, arguments), b"");
    let job = "name = \"damaged\"\nrun = \"run\"\ndataset = \"x.h5\"\nprograms = \"programs\"\n\
               [input]\nplaces = [\"hdfs:///in/damaged\"]\n\
               [hadoop]\nreducers = 1\nsettings = { \"mapreduce.map.maxattempts\" = 1 }\n";
    fs::write(folder.join("JOB.toml"), job).unwrap();

    let failed = emr(&["run", "JOB.toml", "--runner", "hadoop"]).with_code(65);
    let last = failed.stderr.trim_end().lines().last().unwrap();
    let end =
        "/in/damaged/cut.json.gz is cut off, damaged, or not compressed as its name says; test the file: ";
    assert!(last.starts_with("emr: the Hadoop job failed: hdfs://") && last.contains(end), "{last}");
    assert!(last.ends_with("; emr diagnose JOB.toml shows the evidence"), "{last}");

    let diagnosed = emr(&["diagnose", "JOB.toml"]).succeeded().said();
    assert!(diagnosed.starts_with("run        --runner hadoop failed on "), "{diagnosed}");
    assert!(diagnosed.contains(&format!("{} is cut off", "/in/damaged/cut.json.gz")), "{diagnosed}");
    assert!(diagnosed.contains("           the task read hdfs://"), "{diagnosed}");
    let status = emr(&["status", "JOB.toml"]).succeeded().said();
    assert!(
        status.contains(" with exit code 65\n") && status.contains("/in/damaged/cut.json.gz"),
        "{status}"
    );
}
