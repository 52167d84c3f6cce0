//! Where this machine takes credentials from, and what the tasks of a Hadoop job need beside them. Never the credentials.

use std::env;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use store::S3Options;

use crate::Error;
use crate::job::{Credentials, Job, Place};

/// The file of credentials, in the environment of AWS's tools.
const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// A source of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Something that only this machine, this user or this shell has.
    Own(String),
    /// The role of the machine or of the container, which other machines may have too.
    Role(&'static str),
}

impl Source {
    /// The first source that is set, in the order of AWS's tools.
    pub fn of(profile: Option<&str>) -> Self {
        let is_set = |name: &str| variable(name).is_some();
        let file = env::var_os(FILE).map(PathBuf::from);
        let file = file.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".aws/credentials")));
        if let Some(profile) = profile {
            return Self::Own(format!("profile {profile}"));
        }
        match () {
            () if is_set("AWS_ACCESS_KEY_ID") => Self::Own("the environment (AWS_ACCESS_KEY_ID)".to_owned()),
            () if is_set("AWS_PROFILE") => {
                Self::Own(format!("profile {}", env::var("AWS_PROFILE").unwrap_or_default()))
            }
            () if file.as_ref().is_some_and(|file| file.is_file()) => {
                Self::Own(format!("the file {}", file.unwrap_or_default().display()))
            }
            () if is_set("AWS_WEB_IDENTITY_TOKEN_FILE") => Self::Own("a web identity token".to_owned()),
            () if is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
                || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI") =>
            {
                Self::Role("the role of the container")
            }
            () => Self::Role("the role of the machine, if it has one"),
        }
    }

    /// The source in a message.
    pub fn name(&self) -> &str {
        match self {
            Self::Own(name) => name,
            Self::Role(name) => name,
        }
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The environment that the tasks of a Hadoop job need to reach the run: region and endpoint of this machine, and the file
/// of credentials that the job file names. Refuses a job whose tasks would have no credentials.
pub fn of_tasks(job: &Job, options: &S3Options) -> Result<Vec<(String, String)>, Error> {
    if !matches!(job.run, Place::S3 { .. }) {
        return Ok(Vec::new());
    }
    let mut environment = Vec::new();
    match (&job.hadoop.credentials, Source::of(options.profile.as_deref())) {
        (Some(Credentials::File(path)), _) => environment.push((FILE.to_owned(), path.clone())),
        (Some(Credentials::Role), _) | (None, Source::Role(_)) => {}
        (None, Source::Own(_)) if has_environment(job) => {}
        (None, Source::Own(origin)) => {
            let (key, run) = (job.thing("hadoop.credentials"), &job.run);
            return Err(Error::new(
                Exit::Settings,
                format!(
                    "{key}: not set, and tasks of Hadoop do not get the credentials of this machine, which are from \
                     {origin}; expected a file on each node with the credentials for {run}, in the format of \
                     ~/.aws/credentials and with mode 600, or \"role\" if the role of the nodes may use the bucket; set it \
                     in the job file"
                ),
            ));
        }
    }
    let found =
        |names: [&str; 2]| names.into_iter().find_map(|name| Some((name.to_owned(), variable(name)?)));
    if options.region.is_none() {
        let of_profile = || store::clock_of(&job.run.to_string(), options).ok()?.region;
        let region = found(REGIONS).map(|(_, region)| region).or_else(of_profile);
        environment.extend(region.map(|region| (REGIONS[0].to_owned(), region)));
    }
    if options.endpoint.is_none() {
        environment.extend(found(ENDPOINTS));
    }
    // Hadoop splits the environment at spaces.
    environment.retain(|(_, value)| !value.contains(char::is_whitespace));
    Ok(environment)
}

/// Whether the job sets an environment of AWS for its tasks by settings of Hadoop.
fn has_environment(job: &Job) -> bool {
    let is_environment = |name: &str| name.ends_with(".env") || name.contains(".env.");
    job.hadoop
        .settings
        .iter()
        .any(|(name, value)| is_environment(name) && format!("{name}{value}").contains("AWS_"))
}
