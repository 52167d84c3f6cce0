//! Time and price of a job. The formulas are in docs/emr.md.

use serde::Serialize;

use super::instance_types::vcpus;
use crate::job::{ClusterTable, Fleet, InstancePrice, Job, Prices, Role};

/// Rates of work, measured on 1 and 4 GB with two cores; docs/experiments.md, "Rates of the estimate of emr plan".
mod rates {
    /// Core seconds per GB of all tasks, Hadoop's own work included.
    pub const TASK_CORE_SECONDS_PER_GB: f64 = 75.0;
    /// Seconds from the start of a job to its first task, and from its last task to its end.
    pub const JOB_START_AND_END_S: f64 = 14.0;
    /// Seconds of merge per GB, on one machine.
    pub const MERGE_SECONDS_PER_GB: f64 = 1.5;
    /// Cores of this machine, all of which merge uses. A task of a merge uses one.
    pub const MERGE_CORES: f64 = 2.0;
    /// Seconds per GB in which one program plans and places the results of tasks in the dataset: 13.6 s for 77 million
    /// reviews of 35 GB; "Merge by threads and by tasks".
    pub const ASSEMBLE_SECONDS_PER_GB: f64 = 0.4;
    /// Seconds until a new cluster runs its first step. Not measured: Amazon names 5 to 10 minutes.
    pub const CLUSTER_START_S: f64 = 450.0;
}

/// EC2 and EMR bill seconds, and at least one minute.
const BILLED_MIN_S: f64 = 60.0;
/// Maximum number of tasks of `merge plan`.
const TASKS_MAX: u32 = 10_000;
const GB: f64 = 1e9;
const HOUR_S: f64 = 3600.0;

/// The estimated time and price of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Size of the input.
    pub input_bytes: u64,
    /// Virtual processors of core and task nodes.
    pub vcpus: u32,
    /// Seconds until the cluster runs steps; 0 for a running cluster.
    pub start_s: f64,
    /// Seconds of the Hadoop job.
    pub job_s: f64,
    /// Seconds of merge. Predicted from the rate of one program, if tasks merge the run.
    pub merge_s: f64,
    /// Seconds for which an idle cluster is billed, if it is kept.
    pub idle_s: f64,
    /// The price, if the job file has the prices of all instance types.
    pub cost: Option<InstancesCost>,
    /// Instance types without a price.
    pub types_without_price: Vec<String>,
}

impl Estimate {
    /// Seconds from the request to the dataset.
    pub fn total_s(&self) -> f64 {
        self.start_s + self.job_s + self.merge_s
    }
}

/// The price of instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstancesCost {
    /// The currency of the price table.
    pub currency: String,
    /// EC2 instances.
    pub ec2: f64,
    /// EMR's fee.
    pub emr: f64,
}

impl InstancesCost {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.ec2 + self.emr
    }
}

/// The use of equal instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// The instance type.
    pub instance_type: String,
    /// The number of instances.
    pub count: u32,
    /// Whether they are spot instances.
    pub is_spot: bool,
    /// Seconds for which each of them runs.
    pub seconds: f64,
}

/// The price of the used instances; the types without a price, if there are any.
pub fn cost(usage: &[Usage], prices: &Prices) -> Result<InstancesCost, Vec<String>> {
    let mut missing: Vec<String> = usage.iter().map(|used| used.instance_type.clone()).collect();
    missing.retain(|name| !prices.instances.contains_key(name));
    missing.sort();
    missing.dedup();
    if !missing.is_empty() {
        return Err(missing);
    }
    let mut cost = InstancesCost { currency: prices.currency().to_owned(), ec2: 0.0, emr: 0.0 };
    for used in usage {
        let InstancePrice { ec2, emr, spot } = prices.instances[&used.instance_type];
        let hours = f64::from(used.count) * used.seconds.max(BILLED_MIN_S) / HOUR_S;
        cost.ec2 += hours * if used.is_spot { spot.unwrap_or(ec2) } else { ec2 };
        cost.emr += hours * emr;
    }
    Ok(cost)
}

/// The estimate for an input of this size. `None` for a running cluster, whose nodes are not in the job file.
pub fn estimate(job: &Job, input_bytes: u64) -> Option<Estimate> {
    let cluster = job.cluster.as_ref().filter(|cluster| cluster.id.is_none())?;
    let nodes = nodes(cluster, &job.prices);
    let vcpus = vcpus_of_tasks(&nodes);
    let gigabytes = input_bytes as f64 / GB;
    let mut estimate = Estimate {
        input_bytes,
        vcpus,
        start_s: rates::CLUSTER_START_S,
        job_s: rates::JOB_START_AND_END_S
            + gigabytes * rates::TASK_CORE_SECONDS_PER_GB / f64::from(vcpus.max(1)),
        merge_s: merge_s(gigabytes, merge_tasks(job), vcpus),
        idle_s: if cluster.keep { f64::from(cluster.idle_timeout_s) } else { 0.0 },
        cost: None,
        types_without_price: Vec::new(),
    };
    let seconds = estimate.total_s() + estimate.idle_s;
    let usage: Vec<_> = nodes.into_iter().map(|(_, used)| Usage { seconds, ..used }).collect();
    match cost(&usage, &job.prices) {
        Ok(cost) => estimate.cost = Some(cost),
        Err(missing) => estimate.types_without_price = missing,
    }
    Some(estimate)
}

/// The number of tasks that merge the run of a job on EMR: that of the job file. Without it, one per virtual processor of
/// a new cluster, if the estimate is then shorter than that of one program.
pub fn merge_tasks(job: &Job) -> u32 {
    let shorter = || {
        let cluster = job.cluster.as_ref().filter(|cluster| cluster.id.is_none())?;
        let gigabytes = job.input.bytes? as f64 / GB;
        let vcpus = vcpus_of_tasks(&nodes(cluster, &job.prices)).min(TASKS_MAX);
        (merge_s(gigabytes, vcpus, vcpus) < merge_s(gigabytes, 1, vcpus)).then_some(vcpus)
    };
    job.hadoop.merge_tasks.or_else(shorter).unwrap_or(1)
}

/// Seconds of merge by one program, or by tasks, which a job runs.
fn merge_s(gigabytes: f64, tasks: u32, vcpus: u32) -> f64 {
    let whole = gigabytes * rates::MERGE_SECONDS_PER_GB;
    match tasks {
        0 | 1 => whole,
        tasks => {
            let at_once = f64::from(tasks.min(vcpus).max(1));
            let assemble = gigabytes * rates::ASSEMBLE_SECONDS_PER_GB;
            rates::JOB_START_AND_END_S + whole * rates::MERGE_CORES / at_once + assemble
        }
    }
}

/// Virtual processors of the nodes that run tasks. A cluster of one node runs its tasks there.
fn vcpus_of_tasks(nodes: &[(Role, Usage)]) -> u32 {
    let of = |used: &Usage| used.count * vcpus(&used.instance_type).unwrap_or_default();
    let workers = nodes.iter().filter(|(role, _)| *role != Role::Primary);
    match workers.map(|(_, used)| of(used)).sum::<u32>() {
        0 => nodes.iter().map(|(_, used)| of(used)).sum(),
        vcpus => vcpus,
    }
}

/// The nodes of a new cluster. EMR chooses the types of a fleet; the most expensive choice is taken.
fn nodes(cluster: &ClusterTable, prices: &Prices) -> Vec<(Role, Usage)> {
    let groups = cluster.groups.iter().map(|group| {
        let (instance_type, is_spot) = (group.instance_type.clone(), group.spot);
        (group.role, Usage { instance_type, count: group.count, is_spot, seconds: 0.0 })
    });
    let fleets = cluster.fleets.iter().flat_map(|fleet| {
        let parts = [(fleet.on_demand, false), (fleet.spot, true)];
        parts.into_iter().filter(|(capacity, _)| *capacity > 0).filter_map(|(capacity, is_spot)| {
            Some((fleet.role, most_expensive(fleet, capacity, is_spot, prices)?))
        })
    });
    groups.chain(fleets).collect()
}

fn most_expensive(fleet: &Fleet, capacity: u32, is_spot: bool, prices: &Prices) -> Option<Usage> {
    let choices = fleet.types.iter().map(|(name, weight)| {
        let count = (f64::from(capacity) / weight).ceil() as u32;
        Usage { instance_type: name.clone(), count, is_spot, seconds: HOUR_S }
    });
    let price =
        |used: &Usage| cost(std::slice::from_ref(used), prices).map_or(f64::INFINITY, |cost| cost.total());
    choices.max_by(|a, b| price(a).total_cmp(&price(b)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::job::EXAMPLE;

    fn job(text: &str) -> Job {
        Job::parse(Path::new("/jobs/JOB.toml"), text).unwrap()
    }

    #[test]
    fn the_price_of_the_example_is_the_sum_by_hand() {
        let estimate = estimate(&job(EXAMPLE), 90_000_000_000).unwrap();
        // 6 workers of 8 virtual processors: 14 + 90 × 75 / 48 = 154.625 s; merge 14 + 90 × 1.5 × 2 / 48
        // + 90 × 0.4 = 55.625 s; start 450 s.
        assert_eq!((estimate.vcpus, estimate.job_s, estimate.merge_s), (48, 154.625, 55.625));
        assert_eq!(estimate.total_s(), 660.25);
        let cost = estimate.cost.unwrap();
        // 660.25 s are 0.183403 h. EC2: 1 × 0.230 + 2 × 0.460 + 4 × 0.190 = 1.910 per hour. EMR: 0.048 + 6 × 0.096 =
        // 0.624 per hour.
        assert!((cost.ec2 - 0.350_299).abs() < 1e-6, "{cost:?}");
        assert!((cost.emr - 0.114_443).abs() < 1e-6, "{cost:?}");
        assert!((cost.total() - 0.464_743).abs() < 2e-6 && cost.currency == "USD", "{cost:?}");
    }

    #[test]
    fn a_kept_cluster_is_billed_until_its_idle_timeout() {
        let kept = estimate(&job(&EXAMPLE.replace("keep = false", "keep = true")), 90_000_000_000).unwrap();
        let cost = kept.cost.unwrap();
        // 1560.25 s are 0.433403 h, at 2.534 per hour.
        assert!((cost.total() - 1.098_243).abs() < 2e-6, "{cost:?}");
    }

    #[test]
    fn tasks_merge_a_run_if_that_is_faster_than_one_program() {
        let with = |bytes: &str, tasks: &str| {
            let text = EXAMPLE.replace("bytes = \"90GB\"", bytes).replace("combiner = true", tasks);
            merge_tasks(&job(&text))
        };
        // 14 + 13 × (1.5 × 2 / 48 + 0.4) > 13 × 1.5, and 14 + 14 × (1.5 × 2 / 48 + 0.4) < 14 × 1.5.
        assert_eq!([with("bytes = \"13GB\"", ""), with("bytes = \"14GB\"", "")], [1, 48]);
        assert_eq!([with("bytes = \"30GB\"", "merge-tasks = 1"), with("", "merge-tasks = 7")], [1, 7]);
        // Neither the size nor the nodes of a running cluster are known.
        assert_eq!(with("", ""), 1);
        let cluster = EXAMPLE.find("[cluster]").unwrap()..EXAMPLE.find("[prices]").unwrap();
        let running = "[cluster]\nid = \"j-2AXXXXXXGAPLF\"\nregion = \"eu-central-1\"\n";
        assert_eq!(merge_tasks(&job(&EXAMPLE.replace(&EXAMPLE[cluster], running))), 1);
        // More tasks than processors take as long as one per processor.
        assert_eq!(merge_s(90.0, 96, 48), merge_s(90.0, 48, 48));
    }

    #[test]
    fn a_minute_is_billed_at_least_and_then_each_second() {
        let prices = job(EXAMPLE).prices;
        let used =
            |seconds| Usage { instance_type: "m6i.xlarge".to_owned(), count: 3, is_spot: false, seconds };
        let total = |seconds| cost(&[used(seconds)], &prices).unwrap().total();
        assert!((total(1.0) - 3.0 * 0.278 / 60.0).abs() < 1e-12);
        assert!((total(61.0) - 3.0 * 0.278 * 61.0 / 3600.0).abs() < 1e-12);
    }

    #[test]
    fn the_rates_are_those_of_the_benchmarks() {
        let page =
            include_str!("../../../docs/experiments.md").split_whitespace().collect::<Vec<_>>().join(" ");
        let task = format!("This is {} core seconds", rates::TASK_CORE_SECONDS_PER_GB);
        let ends = format!("The job's start and end take {} s", rates::JOB_START_AND_END_S);
        let merge = format!("`merge` on one machine 92 × {} =", rates::MERGE_SECONDS_PER_GB);
        for rate in [task, ends, merge] {
            assert!(page.contains(&rate), "docs/experiments.md lacks {rate:?}");
        }
    }

    #[test]
    fn a_type_without_a_price_is_named() {
        let text = EXAMPLE.replace("[prices.instances.\"m6i.2xlarge\"]", "[prices.instances.\"x\"]");
        let estimate = estimate(&job(&text), 1).unwrap();
        assert_eq!((estimate.cost, estimate.types_without_price), (None, vec!["m6i.2xlarge".to_owned()]));
    }

    #[test]
    fn a_fleet_is_estimated_at_its_most_expensive_choice() {
        let groups = EXAMPLE.find("[[cluster.groups]]").unwrap()..EXAMPLE.find("# Fleets").unwrap();
        let fleets = "[[cluster.fleets]]\nrole = \"primary\"\ntypes = { \"m6i.xlarge\" = 1 }\non-demand = 1\n\
                      [[cluster.fleets]]\nrole = \"core\"\ntypes = { \"m6i.xlarge\" = 4, \"m6i.2xlarge\" = 8 }\non-demand = 12\n";
        let job = job(&EXAMPLE.replace(&EXAMPLE[groups], fleets));
        // 3 × 0.278 = 0.834 per hour, or 2 × 0.556 = 1.112.
        let nodes = nodes(job.cluster().unwrap(), &job.prices);
        assert_eq!((nodes[1].1.instance_type.as_str(), nodes[1].1.count), ("m6i.2xlarge", 2));
    }
}
