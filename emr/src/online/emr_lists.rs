//! Compares a job with EMR's own lists of releases and instance types, with a running cluster, and with the roles in IAM.

use std::collections::BTreeSet;

use store::amazon::Kind;

use crate::client::{Emr, RequestFailure};
use crate::finding::Finding;
use crate::job::{ClusterTable, Job};
use crate::plan::check_running;
use crate::plan::programs::Program;

/// Findings about the cluster that the job file names. Its instances that have ended do not count.
pub fn running_cluster(
    job: &Job,
    id: &str,
    programs: &[Program],
    emr: &Emr,
) -> Result<Vec<Finding>, RequestFailure> {
    let (cluster, instances) = (emr.cluster(id)?, emr.instances(id)?);
    let instances = instances.iter().filter(|instance| instance.state != "TERMINATED");
    let types: BTreeSet<_> = instances.map(|instance| instance.instance_type.as_str()).collect();
    Ok(check_running(job, &cluster, types, programs))
}

/// Findings about the release, the instance types and the roles of a new cluster.
pub fn new_cluster(job: &Job, cluster: &ClusterTable, emr: &Emr) -> Result<Vec<Finding>, RequestFailure> {
    let release = cluster.release.as_str();
    let mut findings = roles(job, cluster, emr)?;
    if !emr.releases()?.iter().any(|label| label == release) {
        let found = format!("EMR does not have {release} in {}", cluster.region);
        findings.push(Finding::error(job.thing("cluster.release"), found, "a release of its list"));
        return Ok(findings);
    }
    let types = emr.instance_types(release)?;
    for (key, name) in cluster.types() {
        if !types.iter().any(|listed| listed == name) {
            let found = format!("{release} does not support {name} in {}", cluster.region);
            findings.push(Finding::error(job.thing(&key), found, "an instance type of EMR's list"));
        }
    }
    Ok(findings)
}

/// The user needs no permission for IAM to run a job, so a refusal is a warning.
fn roles(job: &Job, cluster: &ClusterTable, emr: &Emr) -> Result<Vec<Finding>, RequestFailure> {
    let (role, profile) = (&cluster.service_role, &cluster.instance_profile);
    let remedy = "create it with `aws emr create-default-roles`, or name another one";
    let service_role = emr.check_role(role).map(|()| None);
    let instance_profile = emr.has_role(profile).map(|has_role| {
        let thing = job.thing("cluster.instance-profile");
        let finding =
            Finding::error(thing, format!("{profile} has no role"), "an instance profile with a role");
        (!has_role).then(|| finding.remedy("add a role with `aws iam add-role-to-instance-profile`"))
    });
    let answers = [
        ("cluster.service-role", format!("IAM has no role {role}"), service_role),
        ("cluster.instance-profile", format!("IAM has no instance profile {profile}"), instance_profile),
    ];
    let mut findings = Vec::new();
    for (key, missing, answer) in answers {
        match answer {
            Ok(finding) => findings.extend(finding),
            Err(failure) if failure.is_absence() => {
                findings.push(Finding::error(job.thing(key), missing, "").remedy(remedy));
            }
            Err(failure) if is_about_credentials(&failure) => return Err(failure),
            Err(failure) => findings.push(Finding::warning(job.thing(key), failure.to_string(), "")),
        }
    }
    Ok(findings)
}

/// Whether no later request can succeed.
pub fn is_about_credentials(failure: &RequestFailure) -> bool {
    matches!(failure.kind, Kind::Expired | Kind::Credentials)
}
