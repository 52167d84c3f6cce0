//! The request that creates a cluster with its steps.

use super::requests::{
    Application, AutoTerminationPolicy, BootstrapAction, EbsBlockDevice, EbsConfiguration, InstanceFleet,
    InstanceGroup, InstanceType, Instances, LaunchSpecifications, OnDemandSpecification, RunJobFlow,
    ScriptBootstrapAction, SpotSpecification, Step, Tag, VolumeSpecification,
};
use super::steps::job_name;
use crate::job::{Cluster, Fleet, Group, Job, RUN_TAG, Role, SpotAllocation, TimeoutAction};

/// The request for a new cluster.
pub fn run_job_flow(job: &Job, cluster: &Cluster, steps: Vec<Step>) -> RunJobFlow {
    let own = Tag { key: RUN_TAG.to_owned(), value: job.run_id() };
    let tags = cluster.tags().into_iter().map(|(key, value)| Tag { key: key.to_owned(), value });
    let (one, several) = match cluster.subnets.as_slice() {
        [subnet] if cluster.fleets.is_empty() => (Some(subnet.clone()), Vec::new()),
        subnets => (None, subnets.to_vec()),
    };
    let actions = cluster.bootstrap.iter().map(|action| BootstrapAction {
        name: action.name.clone(),
        script_bootstrap_action: ScriptBootstrapAction {
            path: action.script.clone(),
            args: action.arguments.clone(),
        },
    });
    RunJobFlow {
        name: job_name(job),
        log_uri: cluster.log.clone(),
        release_label: cluster.release.clone(),
        applications: vec![Application { name: "Hadoop".to_owned() }],
        instances: Instances {
            instance_groups: cluster.groups.iter().map(group).collect(),
            instance_fleets: cluster.fleets.iter().map(fleet).collect(),
            ec2_subnet_id: one,
            ec2_subnet_ids: several,
            keep_job_flow_alive_when_no_steps: cluster.keep,
            termination_protected: false,
        },
        steps,
        bootstrap_actions: actions.collect(),
        service_role: cluster.service_role.clone(),
        job_flow_role: cluster.instance_profile.clone(),
        visible_to_all_users: true,
        auto_termination_policy: AutoTerminationPolicy { idle_timeout: i64::from(cluster.idle_timeout_s) },
        tags: [own].into_iter().chain(tags).collect(),
    }
}

fn group(group: &Group) -> InstanceGroup {
    InstanceGroup {
        name: group.role.name().to_owned(),
        instance_role: group.role.emr_name().to_owned(),
        instance_type: group.instance_type.clone(),
        instance_count: number(group.count),
        market: if group.spot { "SPOT" } else { "ON_DEMAND" }.to_owned(),
        ebs_configuration: group.disk_gib.map(disk),
    }
}

fn fleet(fleet: &Fleet) -> InstanceFleet {
    let spot = (fleet.spot > 0).then(|| SpotSpecification {
        timeout_duration_minutes: number(fleet.spot_timeout_min),
        timeout_action: match fleet.spot_timeout_action {
            TimeoutAction::SwitchToOnDemand => "SWITCH_TO_ON_DEMAND",
            TimeoutAction::TerminateCluster => "TERMINATE_CLUSTER",
        }
        .to_owned(),
        allocation_strategy: match fleet.spot_allocation {
            SpotAllocation::PriceCapacityOptimized => "price-capacity-optimized",
            SpotAllocation::CapacityOptimized => "capacity-optimized",
            SpotAllocation::LowestPrice => "lowest-price",
            SpotAllocation::Diversified => "diversified",
        }
        .to_owned(),
    });
    let types = fleet.types.iter().map(|(name, weight)| InstanceType {
        instance_type: name.clone(),
        // A primary node has capacity 1, whatever its type.
        weighted_capacity: if fleet.role == Role::Primary { 1 } else { *weight as i32 },
        ebs_configuration: fleet.disk_gib.map(disk),
    });
    InstanceFleet {
        name: fleet.role.name().to_owned(),
        instance_fleet_type: fleet.role.emr_name().to_owned(),
        target_on_demand_capacity: number(fleet.on_demand),
        target_spot_capacity: number(fleet.spot),
        instance_type_configs: types.collect(),
        launch_specifications: LaunchSpecifications {
            on_demand_specification: OnDemandSpecification { allocation_strategy: "lowest-price".to_owned() },
            spot_specification: spot,
        },
    }
}

fn disk(gib: u32) -> EbsConfiguration {
    let volume = VolumeSpecification { volume_type: "gp3".to_owned(), size_in_gb: number(gib) };
    EbsConfiguration {
        ebs_block_device_configs: vec![EbsBlockDevice {
            volume_specification: volume,
            volumes_per_instance: 1,
        }],
    }
}

/// A number of the API, which has signed numbers. Larger numbers are refused by EMR.
fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
