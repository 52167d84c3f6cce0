//! The requests of a plan, with the names of Amazon's API. Their JSON is what boto3 accepts as arguments, and what the
//! client of `emr run` sends.

#![allow(missing_docs, reason = "names and meanings of fields are those of Amazon's API")]

use serde::Serialize;

/// The requests of a job: one that creates a cluster with its steps, or one that adds the steps to a running cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Requests {
    /// Creates a cluster that runs the steps. No second request is needed, so no cluster waits without work if the
    /// client is interrupted.
    RunJobFlow(Box<RunJobFlow>),
    /// Adds the steps to a running cluster.
    AddJobFlowSteps(AddJobFlowSteps),
}

impl Requests {
    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::RunJobFlow(request) => &request.steps,
            Self::AddJobFlowSteps(request) => &request.steps,
        }
    }

    /// The request that adds the steps to a running cluster.
    pub fn for_cluster(&self, id: &str) -> AddJobFlowSteps {
        AddJobFlowSteps { job_flow_id: id.to_owned(), steps: self.steps().to_vec() }
    }
}

/// `RunJobFlow`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct RunJobFlow {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_uri: Option<String>,
    pub release_label: String,
    pub applications: Vec<Application>,
    pub instances: Instances,
    pub steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bootstrap_actions: Vec<BootstrapAction>,
    pub service_role: String,
    pub job_flow_role: String,
    pub visible_to_all_users: bool,
    pub auto_termination_policy: AutoTerminationPolicy,
    pub tags: Vec<Tag>,
}

/// An application of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Application {
    pub name: String,
}

/// The nodes of a cluster and their network.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Instances {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_groups: Vec<InstanceGroup>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_fleets: Vec<InstanceFleet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ec2_subnet_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ec2_subnet_ids: Vec<String>,
    pub keep_job_flow_alive_when_no_steps: bool,
    pub termination_protected: bool,
}

/// An instance group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstanceGroup {
    pub name: String,
    pub instance_role: String,
    pub instance_type: String,
    pub instance_count: i32,
    pub market: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs_configuration: Option<EbsConfiguration>,
}

/// An instance fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstanceFleet {
    pub name: String,
    pub instance_fleet_type: String,
    pub target_on_demand_capacity: i32,
    pub target_spot_capacity: i32,
    pub instance_type_configs: Vec<InstanceType>,
    pub launch_specifications: LaunchSpecifications,
}

/// An instance type of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstanceType {
    pub instance_type: String,
    pub weighted_capacity: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs_configuration: Option<EbsConfiguration>,
}

/// How a fleet is started.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct LaunchSpecifications {
    pub on_demand_specification: OnDemandSpecification,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_specification: Option<SpotSpecification>,
}

/// How on-demand instances are chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OnDemandSpecification {
    pub allocation_strategy: String,
}

/// How spot instances are chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct SpotSpecification {
    pub timeout_duration_minutes: i32,
    pub timeout_action: String,
    pub allocation_strategy: String,
}

/// Additional volumes of an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EbsConfiguration {
    pub ebs_block_device_configs: Vec<EbsBlockDevice>,
}

/// An additional volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EbsBlockDevice {
    pub volume_specification: VolumeSpecification,
    pub volumes_per_instance: i32,
}

/// Type and size of a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeSpecification {
    #[serde(rename = "VolumeType")]
    pub volume_type: String,
    #[serde(rename = "SizeInGB")]
    pub size_in_gb: i32,
}

/// A bootstrap action.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct BootstrapAction {
    pub name: String,
    pub script_bootstrap_action: ScriptBootstrapAction,
}

/// The script of a bootstrap action.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScriptBootstrapAction {
    pub path: String,
    pub args: Vec<String>,
}

/// When EMR terminates an idle cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AutoTerminationPolicy {
    pub idle_timeout: i64,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tag {
    pub key: String,
    pub value: String,
}

/// `AddJobFlowSteps`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AddJobFlowSteps {
    pub job_flow_id: String,
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Step {
    pub name: String,
    pub action_on_failure: String,
    pub hadoop_jar_step: HadoopJarStep,
}

/// The command of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HadoopJarStep {
    pub jar: String,
    pub args: Vec<String>,
}

impl HadoopJarStep {
    /// The number of characters that EMR limits.
    pub fn characters(&self) -> usize {
        let texts = self.args.iter().chain([&self.jar]);
        texts.map(|text| text.chars().count()).sum()
    }
}
