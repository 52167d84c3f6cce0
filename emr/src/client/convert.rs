//! Converts the types of Amazon's client into those of this program. An entry without an id is dropped.

use aws_sdk_emr::primitives::DateTime;
use aws_sdk_emr::types::{self, ClusterState, MarketType, StepState};

use crate::cluster::{Cluster, Instance, Listed, Reason, Step, Times};

pub(super) fn cluster(cluster: &types::Cluster) -> Option<Cluster> {
    let status = cluster.status();
    let timeline = status.and_then(types::ClusterStatus::timeline);
    let reason = status.and_then(types::ClusterStatus::state_change_reason);
    let tag = |tag: &types::Tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned()));
    Some(Cluster {
        id: cluster.id()?.to_owned(),
        name: cluster.name().unwrap_or_default().to_owned(),
        state: status.and_then(types::ClusterStatus::state).cloned().unwrap_or(ClusterState::Starting),
        reason: reason
            .and_then(|reason| self::reason(reason.code().map(|code| code.as_str()), reason.message())),
        times: Times {
            created_unix_s: timeline.and_then(|times| seconds(times.creation_date_time())),
            started_unix_s: timeline.and_then(|times| seconds(times.ready_date_time())),
            ended_unix_s: timeline.and_then(|times| seconds(times.end_date_time())),
        },
        release: cluster.release_label().map(str::to_owned),
        log_uri: cluster.log_uri().map(str::to_owned),
        stays: !cluster.auto_terminate().unwrap_or_default(),
        is_protected: cluster.termination_protected().unwrap_or_default(),
        steps_at_once: cluster.step_concurrency_level().and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        tags: cluster.tags().iter().filter_map(tag).collect(),
    })
}

pub(super) fn listed(cluster: &types::ClusterSummary) -> Option<Listed> {
    Some(Listed {
        id: cluster.id()?.to_owned(),
        name: cluster.name().unwrap_or_default().to_owned(),
        state: cluster.status()?.state()?.clone(),
    })
}

pub(super) fn step(step: &types::StepSummary) -> Option<Step> {
    let status = step.status();
    let details = status.and_then(types::StepStatus::failure_details);
    let change = status.and_then(types::StepStatus::state_change_reason);
    let timeline = status.and_then(types::StepStatus::timeline);
    let of_details = details.and_then(|details| reason(details.reason(), details.message()));
    let of_change =
        change.and_then(|change| reason(change.code().map(|code| code.as_str()), change.message()));
    Some(Step {
        id: step.id()?.to_owned(),
        name: step.name().unwrap_or_default().to_owned(),
        state: status.and_then(types::StepStatus::state).cloned().unwrap_or(StepState::Pending),
        reason: of_details.or(of_change),
        log_file: details.and_then(|details| details.log_file()).map(str::to_owned),
        times: Times {
            created_unix_s: timeline.and_then(|times| seconds(times.creation_date_time())),
            started_unix_s: timeline.and_then(|times| seconds(times.start_date_time())),
            ended_unix_s: timeline.and_then(|times| seconds(times.end_date_time())),
        },
    })
}

pub(super) fn instance(instance: &types::Instance) -> Option<Instance> {
    let status = instance.status();
    let timeline = status.and_then(types::InstanceStatus::timeline);
    let group = instance.instance_group_id().or(instance.instance_fleet_id());
    Some(Instance {
        id: instance.id()?.to_owned(),
        instance_type: instance.instance_type().unwrap_or_default().to_owned(),
        is_spot: instance.market() == Some(&MarketType::Spot),
        group: group.map(str::to_owned),
        state: status
            .and_then(types::InstanceStatus::state)
            .map(|state| state.as_str())
            .unwrap_or_default()
            .to_owned(),
        times: Times {
            created_unix_s: timeline.and_then(|times| seconds(times.creation_date_time())),
            started_unix_s: timeline.and_then(|times| seconds(times.ready_date_time())),
            ended_unix_s: timeline.and_then(|times| seconds(times.end_date_time())),
        },
    })
}

/// A reason, unless both of its parts are empty. `NONE` is a code for no reason.
fn reason(code: Option<&str>, message: Option<&str>) -> Option<Reason> {
    let code = code.filter(|code| !code.is_empty() && *code != "NONE").map(str::to_owned);
    let message = message.filter(|message| !message.is_empty()).map(str::to_owned);
    (code.is_some() || message.is_some()).then_some(Reason { code, message })
}

fn seconds(time: Option<&DateTime>) -> Option<u64> {
    time.and_then(|time| u64::try_from(time.secs()).ok())
}
