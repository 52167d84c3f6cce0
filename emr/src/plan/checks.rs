//! Checks of a job for EMR, before any request: places, release, instance types, programs, limits of steps.

use super::instance_types::{self, KnownType, architecture};
use super::programs::{Architecture, Program};
use super::releases::{self, KnownRelease, Release, is_region, nearest_region};
use super::requests::{JobRequest, list, text};
use super::steps;
use crate::cluster::{Cluster, accepts_steps};
use crate::finding::Finding;
use crate::job::{ClusterTable, Job, Place};

/// The limit of EMR for the characters of a step's `HadoopJarStep`.
const STEP_CHARACTERS_MAX: usize = 10_240;
/// The limit of EMR for a cluster's name and a step's name.
const NAME_CHARACTERS_MAX: usize = 256;

/// All findings about a job, its programs and its requests.
pub fn check(job: &Job, cluster: &ClusterTable, programs: &[Program], requests: &JobRequest) -> Vec<Finding> {
    let mut findings = places(job);
    findings.extend(format(job));
    findings.extend(encoding(job));
    findings.extend(steps::check(job));
    findings.extend(region(job, cluster));
    if cluster.id.is_none() {
        findings.extend(release(job.thing("cluster.release"), &cluster.release, programs));
        findings.extend(types(job, cluster, programs));
        findings.extend(notices(job, cluster));
    }
    findings.extend(limits(job, requests));
    findings
}

/// Findings about a running cluster: its state, its release, and the processors of its instance types.
pub fn check_running<'t>(
    job: &Job,
    cluster: &Cluster,
    types: impl IntoIterator<Item = &'t str>,
    programs: &[Program],
) -> Vec<Finding> {
    let thing = || job.thing("cluster.id");
    let mut findings = Vec::new();
    if !accepts_steps(&cluster.state) {
        let found = format!("the cluster is in the state {}", cluster.state.as_str());
        findings.push(Finding::error(thing(), found, "RUNNING or WAITING"));
    }
    if cluster.steps_at_once > 1 {
        let found = "the cluster runs several steps at once";
        let remedy =
            "merge starts before the Hadoop job is done and fails; set its StepConcurrencyLevel to 1";
        findings.push(Finding::error(thing(), found, "one step at a time").remedy(remedy));
    }
    if let Some(label) = &cluster.release {
        findings.extend(release(thing(), label, programs));
    }
    findings.extend(types.into_iter().filter_map(|name| processors(thing(), name, job, programs)));
    findings
}

/// A format that cannot be split at lines.
fn format(job: &Job) -> Option<Finding> {
    let found = job.input.table_format()?;
    let expected = "a format of lines, which mappers can read in parts: json, polarity-csv or fasttext";
    let finding = Finding::error(job.thing("input.format"), format!("{found:?}"), expected);
    Some(finding.remedy("use `emr run --runner local`, or write one JSON object per line"))
}

/// An encoding whose lines cannot be split at the byte 0A.
fn encoding(job: &Job) -> Option<Finding> {
    let found = job.input.wide_encoding()?;
    let expected = "an encoding whose lines end at the byte 0A, where Hadoop splits files";
    let finding = Finding::error(job.thing("input.encoding"), format!("{found:?}"), expected);
    Some(finding.remedy("use `emr run --runner local`, or convert the files with iconv -t UTF-8"))
}

fn places(job: &Job) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut refuse = |key: &str, place: &Place, expected: &str| {
        let finding = Finding::error(job.thing(key), format!("{:?}", place.to_string()), expected);
        findings.push(finding.remedy("copy it to S3, or use `emr run --runner local`"));
    };
    for place in &job.input.places {
        match place {
            Place::S3 { .. } => {}
            Place::Url(url) if url.starts_with("hdfs:") => {}
            Place::Local(_) | Place::Url(_) => {
                refuse("input.places", place, "s3:// or hdfs:// URLs, which the nodes of a cluster can read");
            }
        }
    }
    if job.dataset.s3().is_none() {
        refuse("dataset", &job.dataset, "an s3:// URL: a file on a node is lost when the cluster ends");
    }
    for (key, place) in
        [("output.vocabulary", &job.output.vocabulary), ("output.without", &job.output.without)]
    {
        if let Some(place) = place.as_ref().filter(|place| place.s3().is_none()) {
            refuse(key, place, "an s3:// URL, which the nodes of a cluster can read");
        }
    }
    if job.staging.is_none() {
        let expected = "an s3:// URL to which the programs are uploaded, because the run is not in S3";
        findings.push(Finding::error(job.thing("staging"), "no such key", expected));
    }
    findings
}

fn region(job: &Job, cluster: &ClusterTable) -> Option<Finding> {
    (!is_region(&cluster.region)).then(|| {
        let expected = format!("one of the regions of {}", releases::DATE);
        Finding::warning(
            job.thing("cluster.region"),
            format!("{} is not in the list", cluster.region),
            expected,
        )
        .remedy(match nearest_region(&cluster.region) {
            Some(near) => {
                format!("the nearest name is {near}; check the spelling, unless the region is newer")
            }
            None => "check the spelling, unless the region is newer".to_owned(),
        })
    })
}

fn release(thing: String, label: &str, programs: &[Program]) -> Vec<Finding> {
    let expected = "a release such as emr-7.14.0";
    let Some(release) = Release::parse(label) else {
        return vec![Finding::error(thing, format!("{label:?}"), expected)];
    };
    let mut findings = Vec::new();
    match release.known() {
        KnownRelease::Exists => {}
        KnownRelease::Newer => findings.push(
            Finding::warning(thing, format!("{label} is newer than the list of {}", releases::DATE), "")
                .remedy("check the spelling; `emr plan --online` compares it with the list of EMR"),
        ),
        KnownRelease::Missing => {
            findings.push(Finding::error(thing, format!("{label} does not exist"), expected));
        }
        KnownRelease::TooOld => {
            findings.push(Finding::error(
                thing,
                format!("{label} is too old"),
                "emr-6.1.0 or newer, with Hadoop 3 and an idle timeout",
            ));
        }
    }
    let (major, minor) = release.glibc();
    for program in programs {
        let Some(needs) = program.needs.as_ref().filter(|needs| needs.glibc > release.glibc()) else {
            continue;
        };
        let found = format!("requires glibc {}.{}", needs.glibc.0, needs.glibc.1);
        let finding = Finding::error(
            program.path.display().to_string(),
            found,
            format!("at most {major}.{minor}, that of {label}"),
        );
        findings.push(finding.remedy("build with `make dist`, or choose emr-7.0.0 or newer"));
    }
    findings
}

fn types(job: &Job, cluster: &ClusterTable, programs: &[Program]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (key, name) in cluster.types() {
        let thing = job.thing(&key);
        let family = name.split('.').next().unwrap_or(name);
        match instance_types::known(name) {
            KnownType::Supported => {}
            KnownType::Unknown => {
                let found = format!("{name} is not in {}", instance_types::SOURCE);
                findings.push(
                    Finding::warning(thing.clone(), found, "")
                        .remedy("check the spelling, unless the type is newer"),
                );
            }
            refused => {
                let (found, expected) = match refused {
                    KnownType::OldGpu => (
                        format!("{name} has GPUs that CUDA 13 no longer supports"),
                        "a type without GPUs for this job; for training g4dn, g5, g6, p4 or p5".to_owned(),
                    ),
                    KnownType::Burstable => (
                        format!("{name} is burstable; EMR does not have it"),
                        "a type such as m6i.xlarge".to_owned(),
                    ),
                    KnownType::NoSize => {
                        let sizes = instance_types::sizes(family).unwrap_or_default();
                        (format!("{family} has no such size"), format!("one of {}", sizes.replace(' ', ", ")))
                    }
                    _ => (format!("{name:?}"), "an instance type such as m6i.xlarge".to_owned()),
                };
                findings.push(Finding::error(thing.clone(), found, expected));
            }
        }
        findings.extend(processors(thing, name, job, programs));
    }
    let needed = needed_architecture(programs);
    let architectures =
        programs.iter().filter_map(|program| Some((program, program.needs.as_ref()?.architecture)));
    for (program, other) in architectures.filter(|(_, architecture)| Some(*architecture) != needed) {
        let expected = format!("{}, as the other programs", needed.map_or("", Architecture::name));
        findings.push(Finding::error(
            program.path.display().to_string(),
            format!("built for {}", other.name()),
            expected,
        ));
    }
    findings
}

/// Compares the processors of an instance type with those for which the programs are built.
fn processors(thing: String, name: &str, job: &Job, programs: &[Program]) -> Option<Finding> {
    let needed = needed_architecture(programs).filter(|needed| *needed != architecture(name))?;
    let found = format!("{name} has {} processors", architecture(name).name());
    let expected =
        format!("{}, for which the programs in {} are built", needed.name(), job.programs.display());
    Some(Finding::error(thing, found, expected))
}

fn needed_architecture(programs: &[Program]) -> Option<Architecture> {
    programs.iter().find_map(|program| Some(program.needs.as_ref()?.architecture))
}

/// What a user may regret later.
fn notices(job: &Job, cluster: &ClusterTable) -> Vec<Finding> {
    let mut findings = Vec::new();
    if cluster.log.is_none() {
        let finding = Finding::warning(job.thing("cluster.log"), "no log folder", "an s3:// URL");
        findings.push(finding.remedy("set it, so that `emr diagnose` can read the logs of a failure"));
    }
    if cluster.keep {
        let found = format!("the cluster waits for {} s after the job", cluster.idle_timeout_s);
        let finding = Finding::warning(job.thing("cluster.keep"), found, "");
        findings.push(finding.remedy("each idle second is billed; `emr terminate` ends it earlier"));
    }
    findings
}

fn limits(job: &Job, requests: &JobRequest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for step in requests.steps() {
        let jar = &step["HadoopJarStep"];
        let texts = list(&jar["Args"]).iter().chain([&jar["Jar"]]);
        let characters: usize = texts.map(|value| text(value).chars().count()).sum();
        if characters > STEP_CHARACTERS_MAX {
            let found = format!("the step {} has {characters} characters", step["Name"]);
            let expected = format!("at most {STEP_CHARACTERS_MAX}, the limit of EMR");
            let finding = Finding::error(job.thing("input.places"), found, expected);
            findings.push(finding.remedy("name folders instead of files, or shorten hadoop.settings"));
        }
    }
    let name = steps::job_name(job).chars().count() + "Hadoop job of ".len();
    if name > NAME_CHARACTERS_MAX {
        let found = format!("with the id of the run, a step's name has {name} characters");
        findings.push(Finding::error(job.thing("name"), found, format!("at most {NAME_CHARACTERS_MAX}")));
    }
    findings
}
