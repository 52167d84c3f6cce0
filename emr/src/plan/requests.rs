//! The requests of a plan as JSON, with the names of Amazon's API: what boto3 accepts as arguments, and what `emr run`
//! sends.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::steps::job_name;
use crate::job::{ClusterTable, Fleet, Group, Job, RUN_TAG, Role, SpotAllocation, TimeoutAction};

/// The request of a job: one that creates a cluster with its steps, or one that adds the steps to a running cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobRequest {
    /// Creates a cluster that runs the steps. No second request is needed, so no cluster waits without work if the
    /// client is interrupted.
    RunJobFlow(Value),
    /// Adds the steps to a running cluster.
    AddJobFlowSteps(Value),
}

impl JobRequest {
    /// The steps, in order.
    pub fn steps(&self) -> &[Value] {
        let (Self::RunJobFlow(request) | Self::AddJobFlowSteps(request)) = self;
        list(&request["Steps"])
    }
}

/// The elements of a list; none of another value.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text; empty for another value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The request that adds steps to a running cluster.
pub fn add_job_flow_steps(cluster: &str, steps: &[Value]) -> Value {
    json!({ "JobFlowId": cluster, "Steps": steps })
}

/// The request that creates a cluster with its steps.
pub fn run_job_flow(job: &Job, cluster: &ClusterTable, steps: &[Value]) -> Value {
    let own = json!({ "Key": RUN_TAG, "Value": job.run_id() });
    let tags = cluster.tags().into_iter().map(|(key, value)| json!({ "Key": key, "Value": value }));
    let tags: Value = [own].into_iter().chain(tags).collect();
    let (subnet, subnets) = match cluster.subnets.as_slice() {
        [subnet] if cluster.fleets.is_empty() => (Some(json!(subnet)), None),
        subnets => (None, some(subnets.iter().map(|subnet| json!(subnet)))),
    };
    let instances = with(
        json!({ "KeepJobFlowAliveWhenNoSteps": cluster.keep, "TerminationProtected": false }),
        [
            ("InstanceGroups", some(cluster.groups.iter().map(group))),
            ("InstanceFleets", some(cluster.fleets.iter().map(fleet))),
            ("Ec2SubnetId", subnet),
            ("Ec2SubnetIds", subnets),
        ],
    );
    let actions = cluster.bootstrap.iter().map(|action| {
        let script = json!({ "Path": action.script, "Args": action.arguments });
        json!({ "Name": action.name, "ScriptBootstrapAction": script })
    });
    with(
        json!({
            "Name": job_name(job),
            "ReleaseLabel": cluster.release,
            "Applications": [{ "Name": "Hadoop" }],
            "Instances": instances,
            "Steps": steps,
            "ServiceRole": cluster.service_role,
            "JobFlowRole": cluster.instance_profile,
            "VisibleToAllUsers": true,
            "AutoTerminationPolicy": { "IdleTimeout": cluster.idle_timeout_s },
            "Tags": tags,
        }),
        [("LogUri", cluster.log.as_ref().map(|log| json!(log))), ("BootstrapActions", some(actions))],
    )
}

fn group(group: &Group) -> Value {
    let request = json!({
        "Name": group.role.name(),
        "InstanceRole": group.role.emr_name(),
        "InstanceType": group.instance_type,
        "InstanceCount": group.count,
        "Market": if group.spot { "SPOT" } else { "ON_DEMAND" },
    });
    with(request, [("EbsConfiguration", group.disk_gib.map(disk))])
}

fn fleet(fleet: &Fleet) -> Value {
    let spot = (fleet.spot > 0).then(|| {
        json!({
            "TimeoutDurationMinutes": fleet.spot_timeout_min,
            "TimeoutAction": match fleet.spot_timeout_action {
                TimeoutAction::SwitchToOnDemand => "SWITCH_TO_ON_DEMAND",
                TimeoutAction::TerminateCluster => "TERMINATE_CLUSTER",
            },
            "AllocationStrategy": match fleet.spot_allocation {
                SpotAllocation::PriceCapacityOptimized => "price-capacity-optimized",
                SpotAllocation::CapacityOptimized => "capacity-optimized",
                SpotAllocation::LowestPrice => "lowest-price",
                SpotAllocation::Diversified => "diversified",
            },
        })
    });
    let on_demand = json!({ "OnDemandSpecification": { "AllocationStrategy": "lowest-price" } });
    let types = fleet.types.iter().map(|(name, weight)| {
        // A primary node has capacity 1, whatever its type.
        let weight = if fleet.role == Role::Primary { 1 } else { *weight as i32 };
        let request = json!({ "InstanceType": name, "WeightedCapacity": weight });
        with(request, [("EbsConfiguration", fleet.disk_gib.map(disk))])
    });
    json!({
        "Name": fleet.role.name(),
        "InstanceFleetType": fleet.role.emr_name(),
        "TargetOnDemandCapacity": fleet.on_demand,
        "TargetSpotCapacity": fleet.spot,
        "InstanceTypeConfigs": types.collect::<Value>(),
        "LaunchSpecifications": with(on_demand, [("SpotSpecification", spot)]),
    })
}

fn disk(gib: u32) -> Value {
    let volume = json!({ "VolumeType": "gp3", "SizeInGB": gib });
    json!({ "EbsBlockDeviceConfigs": [{ "VolumeSpecification": volume, "VolumesPerInstance": 1 }] })
}

/// A list, unless it is empty.
fn some(values: impl ExactSizeIterator<Item = Value>) -> Option<Value> {
    (values.len() > 0).then(|| values.collect())
}

/// An object with those of the fields that have values.
fn with<const N: usize>(object: Value, fields: [(&str, Option<Value>); N]) -> Value {
    let mut object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    object.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Value::Object(object)
}
