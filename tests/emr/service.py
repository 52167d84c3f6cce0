"""EMR's operations, by moto with the states and answers of Amazon EMR.

What moto 5 does otherwise than EMR, and this module repairs:

- A cluster is WAITING or TERMINATED when RunJobFlow answers, and its first step RUNNING. Nothing runs steps or bootstrap
  actions, so no step ends. Here a node (node.py) runs them and sets the states.
- States have no reason, a failed step no FailureDetails, ListInstances no ends.
- CancelSteps, the operations of auto-termination policies, DescribeReleaseLabel and ListInstanceFleets are missing;
  AutoTerminationPolicy of RunJobFlow is ignored.
- An unknown cluster or step is an internal error, or an empty answer.
- Steps are added to ended clusters, in any number and of any length.
- Release labels, roles and instance types of RunJobFlow are not checked. `Configurations` of an instance group is an
  internal error.
- ListClusters is ordered by id; EMR returns the newest first.

Still different from EMR: instance fleets are refused; ListSupportedInstanceTypes and ListReleaseLabels answer in one
page; the texts of some errors and reasons, which EMR does not document; EC2 instances are moto's.
"""

import threading

from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow
from moto.emr import models, responses, urls
from moto.emr.exceptions import InvalidCluster, InvalidRequestException, ValidationException
from moto.iam.models import iam_backends

ENDED = ("TERMINATED", "TERMINATED_WITH_ERRORS")
STEPS_MAX = 256
STEP_CHARACTERS_MAX = 10_240
# Fields of an instance group that moto accepts.
GROUP_FIELDS = ("instance_count", "instance_role", "instance_type", "market", "name", "bid_price", "ebs_configuration", "auto_scaling_policy")


class Step(models.Step):
    """A step whose state is set by the node that runs it."""

    __module__ = models.__name__  # moto keeps its instances by the module's name.

    def __init__(self, state, name="", hadoop_jar_step=None, action_on_failure="TERMINATE_CLUSTER", **_):
        super().__init__("PENDING", name, hadoop_jar_step, action_on_failure)
        self.failure = None

    def start(self):
        """Called by moto for the first step of a new cluster, which has not started."""

    def begin(self):
        self.state, self.start_date_time = "RUNNING", utcnow()

    def end(self, state, failure=None):
        self.state, self.end_date_time, self.failure = state, utcnow(), failure

    @property
    def status(self):
        timeline = {"CreationDateTime": self.creation_date_time, "StartDateTime": self.start_date_time, "EndDateTime": self.end_date_time}
        return {"State": self.state, "StateChangeReason": {}, "FailureDetails": self.failure, "Timeline": timeline}

    def characters(self):
        properties = [text for pair in self.properties for text in (pair["Key"], pair["Value"])]
        texts = [self.jar, self.hadoop_jar_step.get("MainClass") or "", *self.args, *properties]
        return sum(len(text) for text in texts)


class Cluster(models.Cluster):
    """A cluster whose state is set by its node."""

    __module__ = models.__name__

    def __init__(self, *arguments, **named):
        # Guards states; the node waits here for steps and requests to end.
        self.changed = threading.Condition(threading.RLock())
        self.reason = {}
        # ("USER_REQUEST", "Terminated by user request"): why the cluster has to end.
        self.ending = None
        self.cancelled = []
        self.auto_termination_s = None
        super().__init__(*arguments, **named)
        # Set by moto when it pretends that the cluster is ready.
        self.ready_datetime = None

    def run_bootstrap_actions(self):
        """Called by moto in the constructor; the node runs them."""

    def add_steps(self, steps):
        new = [Step(state="PENDING", **step) for step in steps]
        with self.changed:
            if self.ending or getattr(self, "state", None) in ENDED:
                raise ValidationException("A job flow that is shutting down, terminated, or finished may not be modified.")
            if len(self.steps) + len(new) > STEPS_MAX:
                raise ValidationException("Maximum number of steps for job flow exceeded.")
            for step in new:
                if step.characters() > STEP_CHARACTERS_MAX:
                    raise ValidationException(f"Size of step {step.name} exceeds the limit of {STEP_CHARACTERS_MAX} characters.")
            self.steps.extend(new)
            self.changed.notify_all()
        return new

    def terminate(self):
        self.end_because("USER_REQUEST", "Terminated by user request")

    def end_because(self, code, message):
        with self.changed:
            if self.state not in ENDED and not self.ending:
                self.ending = (code, message)
                self.state, self.reason = "TERMINATING", {"Code": code, "Message": message}
                self.changed.notify_all()

    def set_state(self, state, code=None, message=None):
        with self.changed:
            self.state = state
            self.reason = {"Code": code, "Message": message} if code else {}
            if state in ("RUNNING", "WAITING") and not self.ready_datetime:
                self.ready_datetime = utcnow()
            if state in ENDED:
                self.end_datetime = utcnow()
                for group in self.instance_groups:
                    group.state, group.end_date_time = "TERMINATED", utcnow()
            self.changed.notify_all()

    @property
    def status(self):
        timeline = {"CreationDateTime": self.creation_datetime, "ReadyDateTime": self.ready_datetime, "EndDateTime": self.end_datetime}
        return {"State": self.state, "StateChangeReason": self.reason, "Timeline": timeline}

    @property
    def instance_collection_type(self):
        return "INSTANCE_GROUP"


class Clusters(dict):
    def __missing__(self, name):
        raise InvalidCluster(name)


class Backend(models.ElasticMapReduceBackend):
    __module__ = models.__name__

    # Seconds after its creation in which ListClusters omits a cluster.
    listed_after_s = 0

    def __init__(self, region_name, account_id):
        super().__init__(region_name, account_id)
        self.clusters = Clusters()

    def add_instance_groups(self, cluster_id, instance_groups):
        known = [{name: group[name] for name in GROUP_FIELDS if name in group} for group in instance_groups]
        return super().add_instance_groups(cluster_id, known)

    def run_instances(self, cluster_id, instances, instance_group):
        super().run_instances(cluster_id, {name: instances[name] for name in ("instance_count", "instance_type")}, instance_group)

    def describe_step(self, cluster_id, step_id):
        step = super().describe_step(cluster_id, step_id)
        if step is None:
            raise InvalidRequestException(f"Step id '{step_id}' is not valid.")
        return step

    def list_clusters(self, *arguments, **named):
        now = utcnow()
        clusters = super().list_clusters(*arguments, **named)
        clusters = [cluster for cluster in clusters if (now - cluster.creation_datetime).total_seconds() >= self.listed_after_s]
        return sorted(clusters, key=lambda cluster: cluster.creation_datetime, reverse=True)

    def add_job_flow_steps(self, job_flow_id, steps):
        if job_flow_id not in self.clusters:
            raise ValidationException("Specified job flow ID does not exist.")
        return super().add_job_flow_steps(job_flow_id, steps)

    def terminate_job_flows(self, job_flow_ids):
        for name in job_flow_ids:
            if name not in self.clusters:
                raise ValidationException("Specified job flow ID does not exist.")
        return super().terminate_job_flows(job_flow_ids)

    def check_release(self, label):
        if label not in self._release_labels:
            raise ValidationException(f"The supplied release label is invalid: {label}.")

    def check_types(self, label, groups):
        offered = {found["Type"] for found in self.list_supported_instance_types(label)}
        for group in groups:
            if group["instance_type"] not in offered:
                raise ValidationException(f"Instance type '{group['instance_type']}' is not supported by release {label} in {self.region_name}.")

    def check_roles(self, service_role, profile):
        iam = iam_backends[self.account_id]["aws"]
        profiles = {found.name for found in iam.instance_profiles.values()}
        if not profile or profile.rsplit("/", 1)[-1] not in profiles:
            raise ValidationException(f"Invalid InstanceProfile: {profile}.")
        roles = {found.name for found in iam.roles.values()}
        if not service_role or service_role.rsplit("/", 1)[-1] not in roles:
            raise ValidationException(f"ServiceRole {service_role} is invalid or does not exist.")


class Response(responses.ElasticMapReduceResponse):
    # Set by serve_with: called with each new cluster, after its answer is complete.
    on_new_cluster = None

    def run_job_flow(self):
        instances = self._get_param("Instances", {})
        if instances.get("InstanceFleets"):
            raise ValidationException("Instance fleets are not available here.")
        label = self._get_param("ReleaseLabel")
        self.backend.check_release(label)
        self.backend.check_types(label, instances.get("InstanceGroups") or [])
        self.backend.check_roles(self._get_param("ServiceRole"), self._get_param("JobFlowRole"))
        before = set(self.backend.clusters)
        answer = super().run_job_flow()
        [new] = set(self.backend.clusters) - before
        cluster = self.backend.clusters[new]
        cluster.auto_termination_s = self._get_param("AutoTerminationPolicy.IdleTimeout")
        Response.on_new_cluster(cluster)
        return answer

    def cancel_steps(self):
        cluster = self.backend.clusters[self._get_param("ClusterId")]
        told = []
        with cluster.changed:
            for name in self._get_param("StepIds", []):
                step = self.backend.describe_step(cluster.id, name)
                if step.state in ("PENDING", "RUNNING"):
                    step.state = "CANCEL_PENDING" if step.state == "RUNNING" else "CANCELLED"
                    told.append({"StepId": name, "Status": "SUBMITTED"})
                else:
                    reason = f"Step is in state {step.state} and cannot be cancelled."
                    told.append({"StepId": name, "Status": "FAILED", "Reason": reason})
            cluster.changed.notify_all()
        return ActionResult({"CancelStepsInfoList": told})

    def put_auto_termination_policy(self):
        cluster = self.backend.clusters[self._get_param("ClusterId")]
        cluster.auto_termination_s = self._get_param("AutoTerminationPolicy.IdleTimeout")
        return EmptyResult()

    def get_auto_termination_policy(self):
        seconds = self.backend.clusters[self._get_param("ClusterId")].auto_termination_s
        return ActionResult({"AutoTerminationPolicy": {"IdleTimeout": seconds}} if seconds else {})

    def remove_auto_termination_policy(self):
        self.backend.clusters[self._get_param("ClusterId")].auto_termination_s = None
        return EmptyResult()

    def describe_release_label(self):
        label = self._get_param("ReleaseLabel")
        self.backend.check_release(label)
        return ActionResult({"ReleaseLabel": label, "Applications": [{"Name": "Hadoop", "Version": "3.4.2"}]})

    def list_instance_fleets(self):
        cluster = self._get_param("ClusterId")
        self.backend.describe_cluster(cluster)
        raise InvalidRequestException("Instance fleets and instance groups are mutually exclusive.")

    def list_release_labels(self):
        prefix = self._get_param("Filters.Prefix") or ""
        labels = [label for label in self.backend.list_release_labels() if label.startswith(prefix)]
        return ActionResult({"ReleaseLabels": labels})


def serve_with(on_new_cluster):
    """Replaces moto's EMR. `on_new_cluster` is called with each new cluster."""
    Response.on_new_cluster = on_new_cluster
    models.Step, models.Cluster = Step, Cluster
    models.emr_backends.backend = Backend
    urls.url_paths["{0}/$"] = Response.dispatch
