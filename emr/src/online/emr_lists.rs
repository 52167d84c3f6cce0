//! Compares a job with EMR's own lists: releases, instance types, the state of a running cluster.

use aws_sdk_emr::Client;
use aws_sdk_emr::config::Region;
use store::{S3Options, amazon};

use crate::finding::Finding;
use crate::job::{Cluster, Job};

/// The states in which a cluster accepts steps.
const ACCEPTING: [&str; 4] = ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"];

/// Findings of EMR's lists. If EMR does not answer, that is the finding.
pub fn check(job: &Job, cluster: &Cluster, options: &S3Options) -> Vec<Finding> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return vec![Finding::error("EMR", error.to_string(), "")],
    };
    runtime.block_on(async {
        // The endpoint of the options is that of S3.
        let profile = options.profile.clone();
        let shared = amazon::config(&S3Options { profile, ..S3Options::default() }).await;
        let region = Region::new(cluster.region.clone());
        let client = Client::from_conf(aws_sdk_emr::config::Builder::from(&shared).region(region).build());
        match &cluster.id {
            Some(id) => state(job, &client, id).await,
            None => lists(job, cluster, &client).await,
        }
    })
}

async fn state(job: &Job, client: &Client, id: &str) -> Vec<Finding> {
    let thing = job.thing("cluster.id");
    let answer = match client.describe_cluster().cluster_id(id).send().await {
        Ok(answer) => answer,
        Err(error) => {
            return vec![Finding::error(thing, amazon::found(&error), "").remedy("check id and region")];
        }
    };
    let described = answer.cluster();
    let state =
        described.and_then(|cluster| cluster.status()?.state()).map_or("unknown", |state| state.as_str());
    let mut findings = Vec::new();
    if !ACCEPTING.contains(&state) {
        let expected = "RUNNING or WAITING";
        findings.push(Finding::error(
            thing.clone(),
            format!("the cluster is in the state {state}"),
            expected,
        ));
    }
    if described.and_then(aws_sdk_emr::types::Cluster::step_concurrency_level).unwrap_or(1) > 1 {
        let found = "the cluster runs several steps at once";
        let remedy =
            "merge starts before the Hadoop job is done and fails; set its StepConcurrencyLevel to 1";
        findings.push(Finding::error(thing, found, "one step at a time").remedy(remedy));
    }
    findings
}

async fn lists(job: &Job, cluster: &Cluster, client: &Client) -> Vec<Finding> {
    let release = cluster.release.as_str();
    let mut findings = Vec::new();
    let mut pages = client.list_release_labels().into_paginator().send();
    let mut is_listed = false;
    while let Some(page) = pages.next().await {
        match page {
            Ok(page) => is_listed |= page.release_labels().iter().any(|label| label == release),
            Err(error) => return vec![unavailable(job, &amazon::found(&error))],
        }
    }
    if !is_listed {
        let found = format!("EMR does not have {release} in {}", cluster.region);
        findings.push(Finding::error(job.thing("cluster.release"), found, "a release of its list"));
        return findings;
    }
    let mut types = Vec::new();
    let mut pages = client.list_supported_instance_types().release_label(release).into_paginator().send();
    while let Some(page) = pages.next().await {
        match page {
            Ok(page) => {
                types.extend(
                    page.supported_instance_types()
                        .iter()
                        .filter_map(|listed| listed.r#type().map(str::to_owned)),
                );
            }
            Err(error) => return vec![unavailable(job, &amazon::found(&error))],
        }
    }
    for (key, name) in cluster.types() {
        if !types.iter().any(|listed| listed == name) {
            let found = format!("{release} does not support {name} in {}", cluster.region);
            findings.push(Finding::error(job.thing(&key), found, "an instance type of EMR's list"));
        }
    }
    findings
}

fn unavailable(job: &Job, found: &str) -> Finding {
    let found = format!("EMR did not list its releases and types: {found}");
    Finding::warning(job.thing("cluster.region"), found, "").remedy("check credentials and permissions")
}
