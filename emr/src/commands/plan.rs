//! `emr plan`: the requests of a job, its checks, its time and price.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::subject::connect;
use crate::finding::Finding;
use crate::job::{EXAMPLE, Job};
use crate::plan::Plan;
use crate::plan::price::Estimate;
use crate::plan::requests::{JobRequest, list, text};
use crate::{Error, online};

/// The examples of the help.
pub const EXAMPLES: &str = "\
Examples:
  emr plan --example >JOB.toml
      Write a job file with comments, to be edited

  emr plan JOB.toml --online
      Check the job and its buckets; print price, time and cluster";

/// What to plan.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Job file
    #[arg(value_name = "JOB.toml", required_unless_present = "example")]
    pub job: Option<PathBuf>,
    /// Also check buckets, input, roles and EMR's lists on AWS
    ///
    /// Sends read-only requests, and conditional puts of one small object to the run, which test that the store
    /// honours the condition. Prints a bucket policy that enforces the condition. Without this flag, nothing is sent.
    #[arg(long)]
    pub online: bool,
    /// Print the plan as JSON, with the requests to EMR
    ///
    /// One JSON document on standard output. Its `run_job_flow` or `add_job_flow_steps` has the arguments of the
    /// boto3 function of this name.
    #[arg(long)]
    pub json: bool,
    /// Print a complete job file with comments
    #[arg(long, conflicts_with_all = ["job", "online", "json"])]
    pub example: bool,
}

/// Prints the plan. Errors in it are the result.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let Some(path) = arguments.job.as_ref().filter(|_| !arguments.example) else {
        return program::exit::print(EXAMPLE).map_err(Error::output);
    };
    let job = Job::read(path)?;
    let answers = match arguments.online {
        true => Some(online::check(&job, &connect(&job, None)?)?),
        false => None,
    };
    let mut plan = Plan::of(&job, answers.as_ref().and_then(|answers| answers.input_bytes))?;
    plan.findings.extend(answers.iter().flat_map(|answers| answers.findings.iter().cloned()));
    let policy = answers.and_then(|answers| answers.policy);
    let printed = if arguments.json {
        as_json(&job, &plan, policy.as_ref())
    } else {
        as_text(&job, &plan, policy.as_ref())
    };
    program::exit::print(&printed).map_err(Error::output)?;
    let (errors, warnings): (Vec<_>, Vec<_>) = plan.findings.into_iter().partition(Finding::is_error);
    for warning in warnings {
        program::exit::notice("emr", &format!("warning: {warning}"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::BadJob { path: path.clone(), findings: errors }) }
}

/// The plan as one JSON document. Requests of a plan with errors are omitted.
fn as_json(job: &Job, plan: &Plan, policy: Option<&Value>) -> String {
    let mut document = match json!(plan.requests) {
        Value::Object(requests) if plan.is_runnable() => requests,
        _ => Map::new(),
    };
    let uploads = plan.programs.iter().map(|program| {
        json!({ "name": program.name, "url": program.url.to_string(), "sha256": program.sha256, "bytes": program.bytes })
    });
    let mut add = |name: &str, value: Value| document.insert(name.to_owned(), value);
    add("name", json!(job.name));
    add("merge_tasks", json!(plan.merge_tasks));
    add("run_id", json!(plan.run_id));
    add("job", json!(plan.record));
    add("uploads", uploads.collect());
    add("estimate", json!(plan.estimate));
    add("findings", json!(plan.findings));
    if let Some(policy) = policy {
        add("bucket_policy", policy.clone());
    }
    pretty(&Value::Object(document))
}

fn as_text(job: &Job, plan: &Plan, policy: Option<&Value>) -> String {
    let uploads: Vec<_> = plan
        .programs
        .iter()
        .map(|program| format!("{} {}", program.name, mebibytes(program.bytes)))
        .collect();
    let staging = job.staging.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut lines = vec![
        field("price", &price(plan.estimate.as_ref())),
        field("time", &time(plan)),
        field("cluster", &cluster(plan)),
        field("run", &format!("{}, id {}", job.run, plan.run_id)),
        field("dataset", &job.dataset.to_string()),
        field("merge", &merge(plan)),
        field("upload", &format!("{} to {staging}", uploads.join(", "))),
    ];
    if let Some(policy) = policy {
        lines
            .push(format!("\nA policy that refuses unconditional puts to the bucket:\n\n{}", pretty(policy)));
    }
    format!("{}\n", lines.join("\n").trim_end())
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<18}{value}")
}

fn cluster(plan: &Plan) -> String {
    let request = match &plan.requests {
        JobRequest::AddJobFlowSteps(request) => {
            return format!("{}, which is running", text(&request["JobFlowId"]));
        }
        JobRequest::RunJobFlow(request) => request,
    };
    let instances = &request["Instances"];
    let groups = list(&instances["InstanceGroups"]).iter().map(|group| {
        let spot = if group["Market"] == "SPOT" { " spot" } else { "" };
        let [name, kind] = ["Name", "InstanceType"].map(|name| text(&group[name]));
        format!("{name} {} × {kind}{spot}", group["InstanceCount"])
    });
    let fleets = list(&instances["InstanceFleets"]).iter().map(|fleet| {
        let [on_demand, spot] = ["TargetOnDemandCapacity", "TargetSpotCapacity"].map(|name| &fleet[name]);
        format!("{} {on_demand} on-demand and {spot} spot units", text(&fleet["Name"]))
    });
    let nodes: Vec<_> = groups.chain(fleets).collect();
    let end = match instances["KeepJobFlowAliveWhenNoSteps"] == true {
        true => {
            format!("terminated after {} s without work", request["AutoTerminationPolicy"]["IdleTimeout"])
        }
        false => "terminated after the job".to_owned(),
    };
    format!("{}: {}; {end}", text(&request["ReleaseLabel"]), nodes.join(", "))
}

fn time(plan: &Plan) -> String {
    let estimate = match (&plan.estimate, &plan.requests) {
        (Some(estimate), _) => estimate,
        (None, JobRequest::AddJobFlowSteps(_)) => {
            return "unknown for the nodes of a running cluster".to_owned();
        }
        (None, JobRequest::RunJobFlow(_)) => {
            return "unknown; set input.bytes or pass --online for an estimate".to_owned();
        }
    };
    let minutes = |s: f64| format!("{:.1} min", s / 60.0);
    format!(
        "about {}: start {}, Hadoop job {}, merge {}",
        minutes(estimate.total_s()),
        minutes(estimate.start_s),
        minutes(estimate.job_s),
        minutes(estimate.merge_s)
    )
}

fn merge(plan: &Plan) -> String {
    match (plan.merge_tasks, &plan.estimate) {
        (1, _) => "by one program".to_owned(),
        (tasks, None) => format!("by {tasks} tasks"),
        (tasks, Some(_)) => format!("by {tasks} tasks; their time is predicted, not measured"),
    }
}

fn price(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "unknown".to_owned(),
        Some(Estimate { cost: Some(cost), .. }) => format!(
            "about {:.2} {}: EC2 {:.2}, EMR {:.2}; without storage, requests and transfer",
            cost.total(),
            cost.currency,
            cost.ec2,
            cost.emr
        ),
        Some(estimate) => {
            format!("unknown; [prices.instances] lacks {}", estimate.types_without_price.join(", "))
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("texts and numbers can be written as JSON");
    format!("{text}\n")
}
