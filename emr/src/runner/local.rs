//! `--runner local`: the program `sentimill` reads the input of the job and writes its dataset.

use std::env;
use std::path::Path;
use std::process::Command;

use program::temporary;
use store::{S3Options, Store};

use super::{Runner, impossible, keep, no_log, not_recorded, program, record, run, s3_flag};
use crate::Error;
use crate::job::Job;

/// Runs the job on this machine. A failure is recorded in the run, which is not used otherwise.
pub fn run_job(job: &Job, options: &S3Options, is_quiet: bool) -> Result<(), Error> {
    if let Some(limit) = &job.input.line_bytes_max {
        let remedy = "sentimill has a fixed limit; remove the key, or use another runner";
        return Err(impossible(&job.thing("input.line-bytes-max"), limit, Runner::Local, remedy));
    }
    let folder = temporary::folder_in(&env::temp_dir()).map_err(no_log)?;
    let log = folder.path().join("sentimill.log");
    run(&mut command(job, is_quiet), &log).inspect_err(|error| {
        match Store::open_with(&job.run.to_string(), options) {
            Ok(store) => record(&store, keep(&store, &log), Runner::Local, error, &log),
            Err(error) => not_recorded(&error),
        }
    })
}

/// The command: the flags that the mappers, the reducers and merge have on a cluster.
fn command(job: &Job, is_quiet: bool) -> Command {
    let mut command = program(job, "sentimill");
    command.args(job.input.places.iter().map(ToString::to_string));
    command.args(job.input.format_flags_of_sentimill()).args(&job.rows.flags);
    if let Some(stop_words) = &job.rows.stop_words {
        command.arg("--stopwords").arg(stop_words);
    }
    // With the limit of bad lines, which merge has too.
    command.args(job.merge_flags());
    if job.output.texts {
        let dataset = job.dataset.to_string();
        let stem = Path::new(&dataset).file_stem().unwrap_or_default().to_string_lossy();
        command.arg("--texts").arg(format!("{stem}.texts.parquet"));
    }
    command.arg("--out").arg(job.dataset.to_string()).args(s3_flag(job));
    if is_quiet {
        command.arg("--quiet");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentimill_gets_the_settings_of_the_job() {
        let text = "name = \"x\"\nrun = \"/data/run\"\ndataset = \"/data/reviews.h5\"\nprograms = \"/opt\"\n\
                    [input]\nplaces = [\"a.json\", \"s3://bucket/b/\"]\npreset = \"yelp\"\nbad-lines-max = 0.1\n\
                    [rows]\nmax-tokens = 50\n[output]\nvocabulary-size = 99\nparquet = true\ntexts = true\n";
        let job = Job::parse(Path::new("/job/JOB.toml"), text).unwrap();
        let command = command(&job, true);
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(command.get_program(), "/opt/sentimill");
        #[rustfmt::skip]
        assert_eq!(arguments, [
            "/job/a.json", "s3://bucket/b", "--preset", "yelp", "--format", "json", "--max-tokens", "50",
            "--parquet", "--vocabulary-size", "99", "--bad-lines-max", "0.1", "--texts", "reviews.texts.parquet",
            "--out", "/data/reviews.h5", "--quiet",
        ]);
        let text = format!(
            "s3 = \"bucket-owner=123456789012\"\n{text}[cluster]\nid = \"j-1A\"\nregion = \"eu-west-1\"\n"
        );
        let job = Job::parse(Path::new("/job/JOB.toml"), &text).unwrap();
        assert_eq!(s3_flag(&job), ["--s3", "bucket-owner=123456789012,region=eu-west-1"]);
    }
}
