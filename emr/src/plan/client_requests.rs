//! Converts the requests of a plan into those of Amazon's client, field by field, so that what is sent is what was
//! planned.

use aws_sdk_emr::operation::add_job_flow_steps::builders::AddJobFlowStepsInputBuilder;
use aws_sdk_emr::operation::run_job_flow::builders::RunJobFlowInputBuilder;
use aws_sdk_emr::types;

use super::requests::{
    AddJobFlowSteps, BootstrapAction, EbsConfiguration, InstanceFleet, InstanceGroup, InstanceType,
    Instances, RunJobFlow, Step,
};

impl RunJobFlow {
    /// The request for Amazon's client; `send_with` sends it.
    pub fn request(&self) -> RunJobFlowInputBuilder {
        let applications = self.applications.iter();
        let tags = self.tags.iter();
        let steps: Vec<_> = self.steps.iter().map(Step::input).collect();
        let actions: Vec<_> = self.bootstrap_actions.iter().map(BootstrapAction::input).collect();
        let idle =
            types::AutoTerminationPolicy::builder().idle_timeout(self.auto_termination_policy.idle_timeout);
        RunJobFlowInputBuilder::default()
            .name(&self.name)
            .set_log_uri(self.log_uri.clone())
            .release_label(&self.release_label)
            .set_applications(Some(
                applications.map(|one| types::Application::builder().name(&one.name).build()).collect(),
            ))
            .instances(self.instances.input())
            .set_steps(Some(steps))
            .set_bootstrap_actions(Some(actions))
            .service_role(&self.service_role)
            .job_flow_role(&self.job_flow_role)
            .visible_to_all_users(self.visible_to_all_users)
            .auto_termination_policy(idle.build())
            .set_tags(Some(
                tags.map(|tag| types::Tag::builder().key(&tag.key).value(&tag.value).build()).collect(),
            ))
    }
}

impl AddJobFlowSteps {
    /// The request for Amazon's client; `send_with` sends it.
    pub fn request(&self) -> AddJobFlowStepsInputBuilder {
        let steps: Vec<_> = self.steps.iter().map(Step::input).collect();
        AddJobFlowStepsInputBuilder::default().job_flow_id(&self.job_flow_id).set_steps(Some(steps))
    }
}

impl Step {
    fn input(&self) -> types::StepConfig {
        let jar = &self.hadoop_jar_step;
        let jar =
            types::HadoopJarStepConfig::builder().jar(&jar.jar).set_args(Some(jar.args.clone())).build();
        types::StepConfig::builder()
            .name(&self.name)
            .action_on_failure(self.action_on_failure.as_str().into())
            .hadoop_jar_step(jar)
            .build()
    }
}

impl BootstrapAction {
    fn input(&self) -> types::BootstrapActionConfig {
        let script = &self.script_bootstrap_action;
        let script = types::ScriptBootstrapActionConfig::builder()
            .path(&script.path)
            .set_args(Some(script.args.clone()));
        types::BootstrapActionConfig::builder()
            .name(&self.name)
            .script_bootstrap_action(script.build())
            .build()
    }
}

impl Instances {
    fn input(&self) -> types::JobFlowInstancesConfig {
        let groups: Vec<_> = self.instance_groups.iter().map(InstanceGroup::input).collect();
        let fleets: Vec<_> = self.instance_fleets.iter().map(InstanceFleet::input).collect();
        let subnets = self.ec2_subnet_ids.clone();
        types::JobFlowInstancesConfig::builder()
            .set_instance_groups((!groups.is_empty()).then_some(groups))
            .set_instance_fleets((!fleets.is_empty()).then_some(fleets))
            .set_ec2_subnet_id(self.ec2_subnet_id.clone())
            .set_ec2_subnet_ids((!subnets.is_empty()).then_some(subnets))
            .keep_job_flow_alive_when_no_steps(self.keep_job_flow_alive_when_no_steps)
            .termination_protected(self.termination_protected)
            .build()
    }
}

impl InstanceGroup {
    fn input(&self) -> types::InstanceGroupConfig {
        types::InstanceGroupConfig::builder()
            .name(&self.name)
            .instance_role(self.instance_role.as_str().into())
            .instance_type(&self.instance_type)
            .instance_count(self.instance_count)
            .market(self.market.as_str().into())
            .set_ebs_configuration(self.ebs_configuration.as_ref().map(EbsConfiguration::input))
            .build()
    }
}

impl InstanceFleet {
    fn input(&self) -> types::InstanceFleetConfig {
        let kinds: Vec<_> = self.instance_type_configs.iter().map(InstanceType::input).collect();
        let launch = &self.launch_specifications;
        let on_demand = types::OnDemandProvisioningSpecification::builder()
            .allocation_strategy(launch.on_demand_specification.allocation_strategy.as_str().into());
        let spot = launch.spot_specification.as_ref().map(|spot| {
            types::SpotProvisioningSpecification::builder()
                .timeout_duration_minutes(spot.timeout_duration_minutes)
                .timeout_action(spot.timeout_action.as_str().into())
                .allocation_strategy(spot.allocation_strategy.as_str().into())
                .build()
        });
        let launch = types::InstanceFleetProvisioningSpecifications::builder()
            .on_demand_specification(on_demand.build())
            .set_spot_specification(spot);
        types::InstanceFleetConfig::builder()
            .name(&self.name)
            .instance_fleet_type(self.instance_fleet_type.as_str().into())
            .target_on_demand_capacity(self.target_on_demand_capacity)
            .target_spot_capacity(self.target_spot_capacity)
            .set_instance_type_configs(Some(kinds))
            .launch_specifications(launch.build())
            .build()
    }
}

impl InstanceType {
    fn input(&self) -> types::InstanceTypeConfig {
        types::InstanceTypeConfig::builder()
            .instance_type(&self.instance_type)
            .weighted_capacity(self.weighted_capacity)
            .set_ebs_configuration(self.ebs_configuration.as_ref().map(EbsConfiguration::input))
            .build()
    }
}

impl EbsConfiguration {
    fn input(&self) -> types::EbsConfiguration {
        let devices = self.ebs_block_device_configs.iter().map(|device| {
            let volume = types::VolumeSpecification::builder()
                .volume_type(&device.volume_specification.volume_type)
                .size_in_gb(device.volume_specification.size_in_gb)
                .build();
            types::EbsBlockDeviceConfig::builder()
                .volume_specification(volume)
                .volumes_per_instance(device.volumes_per_instance)
                .build()
        });
        let devices: Vec<_> = devices.collect();
        types::EbsConfiguration::builder().set_ebs_block_device_configs(Some(devices)).build()
    }
}
