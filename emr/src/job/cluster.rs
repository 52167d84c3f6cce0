//! The cluster of a job: a new one with its nodes, or a running one.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::file::Value;

/// The release of a new cluster, if the job file names none.
const RELEASE: &str = "emr-7.14.0";
/// The roles that `aws emr create-default-roles` creates.
const SERVICE_ROLE: &str = "EMR_DefaultRole";
const INSTANCE_PROFILE: &str = "EMR_EC2_DefaultRole";
/// Time without work after which EMR terminates a new cluster.
const IDLE_TIMEOUT_S: u32 = 900;

/// The table `cluster`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterTable {
    /// A running cluster.
    pub id: Option<String>,
    /// The AWS region.
    #[serde(default)]
    pub region: String,
    /// The EMR release.
    #[serde(default = "default_release")]
    pub release: String,
    /// The subnets; several only with fleets.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// The IAM role of EMR.
    #[serde(default = "default_service_role")]
    pub service_role: String,
    /// The instance profile of the nodes.
    #[serde(default = "default_instance_profile")]
    pub instance_profile: String,
    /// The tags of the job file, before they become texts.
    #[serde(default)]
    pub tags: BTreeMap<String, Value>,
    /// Seconds without work after which EMR terminates the cluster.
    #[serde(default = "default_idle_timeout_s")]
    pub idle_timeout_s: u32,
    /// Whether the cluster waits for more steps when the job is done.
    #[serde(default)]
    pub keep: bool,
    /// The folder of the logs, an `s3://` URL.
    pub log: Option<String>,
    /// Instance groups.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Instance fleets.
    #[serde(default)]
    pub fleets: Vec<Fleet>,
    /// Bootstrap actions.
    #[serde(default)]
    pub bootstrap: Vec<Bootstrap>,
}

impl ClusterTable {
    /// The tags as texts.
    pub fn tags(&self) -> BTreeMap<&str, String> {
        self.tags.iter().map(|(name, value)| (name.as_str(), value.text())).collect()
    }

    /// The instance types of all groups and fleets, with the key of each.
    pub fn types(&self) -> Vec<(String, &str)> {
        let groups = self.groups.iter().enumerate();
        let groups =
            groups.map(|(n, group)| (format!("cluster.groups[{n}].type"), group.instance_type.as_str()));
        let fleets = self.fleets.iter().enumerate().flat_map(|(n, fleet)| {
            let types = fleet.types.keys();
            types.map(move |name| (format!("cluster.fleets[{n}].types.{name}"), name.as_str()))
        });
        groups.chain(fleets).collect()
    }
}

/// The role of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the resource manager and the steps.
    Primary,
    /// Runs tasks and stores HDFS.
    Core,
    /// Runs tasks only.
    Task,
}

impl Role {
    /// The name in EMR's requests.
    pub fn emr_name(self) -> &'static str {
        match self {
            Self::Primary => "MASTER",
            Self::Core => "CORE",
            Self::Task => "TASK",
        }
    }

    /// The name in job files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Core => "core",
            Self::Task => "task",
        }
    }
}

/// An instance group.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Group {
    /// The role of its nodes.
    pub role: Role,
    /// The instance type.
    #[serde(rename = "type", default)]
    pub instance_type: String,
    /// The number of instances.
    #[serde(default = "one")]
    pub count: u32,
    /// Whether the nodes are spot instances.
    #[serde(default)]
    pub spot: bool,
    /// The size of an additional volume.
    pub disk_gib: Option<u32>,
}

/// An instance fleet.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fleet {
    /// The role of its nodes.
    pub role: Role,
    /// Instance types with their weights.
    #[serde(default)]
    pub types: BTreeMap<String, f64>,
    /// On-demand capacity in units of weight.
    #[serde(default)]
    pub on_demand: u32,
    /// Spot capacity in units of weight.
    #[serde(default)]
    pub spot: u32,
    /// The size of an additional volume.
    pub disk_gib: Option<u32>,
    /// Minutes to wait for spot capacity.
    #[serde(default = "ten")]
    pub spot_timeout_min: u32,
    /// What EMR does after this time.
    #[serde(default)]
    pub spot_timeout_action: TimeoutAction,
    /// How EMR chooses among spot instances.
    #[serde(default)]
    pub spot_allocation: SpotAllocation,
}

/// What EMR does without spot capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutAction {
    /// Uses on-demand instances.
    #[default]
    SwitchToOnDemand,
    /// Terminates the cluster.
    TerminateCluster,
}

/// How EMR chooses among spot instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpotAllocation {
    /// The lowest price among pools with capacity.
    #[default]
    PriceCapacityOptimized,
    /// The pools with the most capacity.
    CapacityOptimized,
    /// The lowest price.
    LowestPrice,
    /// All pools.
    Diversified,
}

/// A bootstrap action.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bootstrap {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The `s3://` URL of the script.
    #[serde(default)]
    pub script: String,
    /// The arguments of the script.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// The table `prices`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prices {
    currency: Option<String>,
    /// Prices by instance type.
    #[serde(default)]
    pub instances: BTreeMap<String, InstancePrice>,
}

impl Prices {
    /// The currency of all prices.
    pub fn currency(&self) -> &str {
        self.currency.as_deref().unwrap_or("USD")
    }
}

/// The prices of an instance per hour.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InstancePrice {
    /// On-demand instance.
    pub ec2: f64,
    /// The fee of EMR.
    pub emr: f64,
    /// Spot instance.
    pub spot: Option<f64>,
}

fn default_release() -> String {
    RELEASE.to_owned()
}

fn default_service_role() -> String {
    SERVICE_ROLE.to_owned()
}

fn default_instance_profile() -> String {
    INSTANCE_PROFILE.to_owned()
}

fn default_idle_timeout_s() -> u32 {
    IDLE_TIMEOUT_S
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}
