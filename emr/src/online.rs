//! Checks of a job on AWS: read-only requests, and one conditional put of a small object to the run.

mod emr_lists;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use store::{Key, S3Options, Store};

use crate::Error;
use crate::client::Emr;
use crate::finding::Finding;
use crate::job::{ClusterTable, Job, Place};
use crate::plan::programs;
pub use emr_lists::running_cluster;

/// The record of a run that `emr run` has started.
const JOB_RECORD: &str = "job.json";
/// The record of a run that is complete.
const MANIFEST: &str = "manifest.json";

/// What AWS answered.
#[derive(Debug, Default)]
pub struct Answers {
    /// Size of the input, if all of it is in S3.
    pub input_bytes: Option<u64>,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
    /// A bucket policy that refuses unconditional puts to the run.
    pub policy: Option<Value>,
}

/// Requests from AWS the state of the buckets, the input, the run, the dataset, EMR's lists and the roles.
pub fn check(job: &Job, emr: &Emr) -> Result<Answers, Error> {
    let cluster = job.cluster()?;
    let options = job.bucket_options();
    let mut answers = Answers::default();
    let reachable = buckets(job, cluster, &options, &mut answers.findings);
    // Without access to a bucket, all other requests to it would fail for the same reason.
    let is_reachable = |place: &Place| place.s3().is_some_and(|(bucket, _)| reachable.contains(bucket));
    answers.input_bytes = input(job, &options, &is_reachable, &mut answers.findings);
    if is_reachable(&job.run) {
        answers.findings.extend(run(job, &options));
        answers.policy = policy(&job.run, &cluster.region);
    }
    answers.findings.extend(of_emr(job, cluster, emr)?);
    Ok(answers)
}

/// Compares the job with EMR's lists or its running cluster. A failed request is a finding, unless the credentials
/// are unusable.
fn of_emr(job: &Job, cluster: &ClusterTable, emr: &Emr) -> Result<Vec<Finding>, Error> {
    let (key, checked) = match &cluster.id {
        Some(id) => ("cluster.id", running_cluster(job, id, &programs::read(job).0, emr)),
        None => ("cluster.region", emr_lists::new_cluster(job, cluster, emr)),
    };
    match checked {
        Err(failure) if emr_lists::is_about_credentials(&failure) => Err(failure.into()),
        Err(failure) if failure.is_absence() => {
            Ok(vec![Finding::error(job.thing(key), failure.to_string(), "")])
        }
        Err(failure) => Ok(vec![Finding::warning(job.thing(key), failure.to_string(), "")]),
        Ok(findings) => Ok(findings),
    }
}

/// Checks each bucket of the job. Returns those that may be read.
fn buckets<'j>(
    job: &'j Job,
    cluster: &ClusterTable,
    options: &S3Options,
    findings: &mut Vec<Finding>,
) -> BTreeSet<&'j str> {
    let of_job = [("run", &job.run), ("dataset", &job.dataset)];
    let inputs = job.input.places.iter().map(|place| ("input.places", place));
    let staging = job.staging.iter().map(|place| ("staging", place));
    let (mut seen, mut reachable) = (BTreeSet::new(), BTreeSet::new());
    for (key, place) in of_job.into_iter().chain(staging).chain(inputs) {
        let Some((bucket, _)) = place.s3().filter(|(bucket, _)| seen.insert(*bucket)) else { continue };
        match store::bucket_region(&place.to_string(), options) {
            Ok(Some(region)) if region != cluster.region => {
                let found = format!("the bucket {bucket} is in {region}");
                let finding = Finding::error(
                    job.thing(key),
                    found,
                    format!("{}, the region of the cluster", cluster.region),
                );
                findings
                    .push(finding.remedy("transfer between regions costs time and money; choose one region"));
            }
            Ok(_) => {
                reachable.insert(bucket);
            }
            Err(error) => findings.push(Finding::error(job.thing(key), error.to_string(), "")),
        }
    }
    reachable
}

/// Lists the input. Returns its size, if all of it is in S3.
fn input(
    job: &Job,
    options: &S3Options,
    is_reachable: &dyn Fn(&Place) -> bool,
    findings: &mut Vec<Finding>,
) -> Option<u64> {
    let mut bytes = Some(0);
    for place in &job.input.places {
        if !is_reachable(place) {
            bytes = None;
            continue;
        }
        match store::objects(&place.to_string(), options) {
            Ok(objects) => {
                let sum: u64 = objects.iter().map(store::Object::bytes).sum();
                bytes = bytes.map(|bytes| bytes + sum);
            }
            Err(error) => {
                findings.push(Finding::error(job.thing("input.places"), error.to_string(), ""));
                bytes = None;
            }
        }
    }
    bytes
}

/// Checks that conditional puts are honoured, that the run is new or of this job, and that the dataset is new.
fn run(job: &Job, options: &S3Options) -> Vec<Finding> {
    let refused =
        |key: &str, error: &store::Error| vec![Finding::error(job.thing(key), error.to_string(), "")];
    let run = match Store::open_with(&job.run.to_string(), options) {
        Ok(run) => run,
        Err(error) => return refused("run", &error),
    };
    // Also checks the KMS key and the permission to write.
    if let Err(error) = run.probe() {
        return refused("run", &error);
    }
    let names = match run.list("") {
        Ok(names) => names,
        Err(error) => return refused("run", &error),
    };
    let has = |name: &str| names.iter().any(|listed| listed.key.as_str() == name);
    let mut findings = Vec::new();
    if has(MANIFEST) {
        let found = format!("{} is complete", job.run);
        findings.push(
            Finding::warning(job.thing("run"), found, "a new folder").remedy(
                "the job repeats its work and compares the result; choose another run to keep this one",
            ),
        );
    } else if !names.is_empty() && !has(JOB_RECORD) {
        let found = format!("{} contains {} objects of another program", job.run, names.len());
        findings
            .push(Finding::error(job.thing("run"), found, "an empty folder").remedy("choose another run"));
    }
    findings.extend(dataset(job, options, has(JOB_RECORD)));
    findings
}

fn dataset(job: &Job, options: &S3Options, is_repeated: bool) -> Option<Finding> {
    let folder = job.dataset.s3_parent()?;
    let (_, key) = job.dataset.s3()?;
    let name = key.rsplit('/').next().and_then(|name| Key::new(name).ok())?;
    // A dataset in no folder of its bucket cannot be read as an object of a run.
    let place = Store::open_with(&folder.to_string(), options).ok()?;
    match place.head(&name) {
        Ok(None) => None,
        Ok(Some(_)) if is_repeated => Some(Finding::warning(
            job.thing("dataset"),
            format!("{} exists", job.dataset),
            "no object, or the dataset of this run",
        )),
        Ok(Some(_)) => Some(
            Finding::error(job.thing("dataset"), format!("{} exists", job.dataset), "no such object")
                .remedy("merge does not replace it; choose another dataset"),
        ),
        Err(error) => Some(Finding::error(job.thing("dataset"), error.to_string(), "")),
    }
}

/// A bucket policy that refuses puts without `If-None-Match` to a run. Parts of uploads are exempt, because their
/// requests cannot have this header; the request that completes an upload is not.
fn policy(run: &Place, region: &str) -> Option<Value> {
    let (bucket, key) = run.s3()?;
    let partition = match region.split('-').next() {
        Some("cn") => "aws-cn",
        _ if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    Some(json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "RefuseUnconditionalPuts",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": format!("arn:{partition}:s3:::{bucket}/{key}/*"),
            "Condition": {
                "Null": { "s3:if-none-match": "true" },
                "Bool": { "s3:ObjectCreationOperation": "true" }
            }
        }]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_refuses_puts_without_the_condition_except_parts() {
        let run = Place::parse("s3://bucket/runs/7", "".as_ref()).unwrap();
        let policy = policy(&run, "us-gov-west-1").unwrap();
        let statement = &policy["Statement"][0];
        assert_eq!(statement["Resource"], "arn:aws-us-gov:s3:::bucket/runs/7/*");
        assert_eq!(statement["Condition"]["Null"]["s3:if-none-match"], "true");
        assert_eq!(statement["Condition"]["Bool"]["s3:ObjectCreationOperation"], "true");
    }
}
