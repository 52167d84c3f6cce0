#!/usr/bin/env python3
"""The EMR of the tests, driven by boto3: a cluster with a bootstrap action runs a streaming job and merge as steps, over
programs, reviews and a run in S3; failures, faults and ends leave the states and logs of Amazon EMR.

usage: selftest.py PROGRAMS [TEST ...]     (with the Python of .deps/s3; a folder with mapper, combiner, reducer, merge,
                                            sentimill and examples/demo-corpus)

SENTIMILL_EMR in the environment is the endpoint of a running server; without it, one is started.
"""

import datetime
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import boto3
import botocore.exceptions
from botocore.config import Config

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 300
INSTANCES = {
    "InstanceGroups": [
        {"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1},
        {"InstanceRole": "CORE", "InstanceType": "m5.xlarge", "InstanceCount": 2},
    ],
    "KeepJobFlowAliveWhenNoSteps": True,
}
CLUSTER = {"ReleaseLabel": "emr-7.10.0", "ServiceRole": "EMR_DefaultRole", "JobFlowRole": "EMR_EC2_DefaultRole", "LogUri": "s3://bucket/logs/", "Instances": INSTANCES}


def step(name, *args, action="CONTINUE"):
    return {"Name": name, "ActionOnFailure": action, "HadoopJarStep": {"Jar": "command-runner.jar", "Args": list(args)}}


class Emr(unittest.TestCase):
    """A server, and what tests do with it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="emr-"))
        cls.server, cls.endpoint = None, os.environ.get("SENTIMILL_EMR")
        if not cls.endpoint:
            cls.server = subprocess.Popen([sys.executable, "-B", HERE / "server.py", cls.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            cls.endpoint = cls.server.stdout.readline().split()[-1]
        once = Config(retries={"total_max_attempts": 1, "mode": "standard"})
        cls.emr, cls.s3 = (boto3.client(name, region_name="us-east-1", endpoint_url=cls.endpoint, aws_access_key_id="test", aws_secret_access_key="test", config=once) for name in ("emr", "s3"))

    @classmethod
    def tearDownClass(cls):
        if cls.server:
            cls.server.stdin.close()
            cls.server.wait()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.order("DELETE", "faults")
        self.begin = time.monotonic()

    def tearDown(self):
        print(f"{self.id().split('.')[-1]}: {time.monotonic() - self.begin:.1f} s", file=sys.stderr)

    @classmethod
    def put(cls, key, content):
        cls.s3.put_object(Bucket="bucket", Key=key, Body=content)

    def get(self, key):
        return self.s3.get_object(Bucket="bucket", Key=key)["Body"].read()

    def log(self, key):
        return gzip.decompress(self.get(f"logs/{key}.gz")).decode()

    def keys(self, prefix):
        return [found["Key"] for found in self.s3.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])]

    def order(self, method, what, **order):
        request = urllib.request.Request(f"{self.endpoint}/sentimill-test/{what}", json.dumps(order).encode(), method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def cluster(self, **more):
        return self.emr.run_job_flow(**(CLUSTER | {"Name": "test"} | more))["JobFlowId"]

    def state(self, cluster):
        return self.emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]

    def step_states(self, cluster):
        return [each["Status"]["State"] for each in reversed(self.emr.list_steps(ClusterId=cluster)["Steps"])]

    def until(self, cluster, *states):
        seen, begin = [], time.monotonic()
        while True:
            status = self.state(cluster)
            if status["State"] not in seen:
                seen.append(status["State"])
            if status["State"] in states:
                return status, seen
            self.assertLess(time.monotonic() - begin, LIMIT_S, f"states {seen}, expected {states}; see {self.folder}")
            time.sleep(0.1)

    def until_steps_end(self, cluster):
        """Waits until no step of a cluster is pending or running."""
        begin = time.monotonic()
        while {"PENDING", "RUNNING"} & set(states := self.step_states(cluster)):
            self.assertLess(time.monotonic() - begin, LIMIT_S, f"steps {states}; see {self.folder}")
            time.sleep(0.1)


class States(Emr):
    def test_a_failed_bootstrap_action_ends_the_cluster(self):
        self.put("bootstrap/fails.sh", b"#!/bin/bash\necho no disk >&2\nexit 3\n")
        action = {"Name": "fails", "ScriptBootstrapAction": {"Path": "s3://bucket/bootstrap/fails.sh"}}
        cluster = self.cluster(BootstrapActions=[action], Steps=[step("never", "true")])
        status, seen = self.until(cluster, "TERMINATED_WITH_ERRORS")
        self.assertNotIn("RUNNING", seen)
        self.assertEqual(status["StateChangeReason"]["Code"], "BOOTSTRAP_FAILURE")
        self.assertRegex(status["StateChangeReason"]["Message"], r"^On the master instance \(i-\w+\), bootstrap action 1 returned a non-zero return code$")
        self.assertEqual(self.step_states(cluster), ["CANCELLED"])
        [stderr] = [key for key in self.keys(f"logs/{cluster}/node/") if key.endswith("/stderr.gz")]
        self.assertEqual(gzip.decompress(self.get(stderr)), b"no disk\n")

    def test_a_failed_step_has_the_effect_of_its_action(self):
        for action, state, others in (
            ("CONTINUE", "WAITING", ["FAILED", "COMPLETED"]),
            ("CANCEL_AND_WAIT", "WAITING", ["FAILED", "CANCELLED"]),
            ("TERMINATE_CLUSTER", "TERMINATED_WITH_ERRORS", ["FAILED", "CANCELLED"]),
        ):
            with self.subTest(action):
                cluster = self.cluster()
                told = self.emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step("fails", "bash", "-c", "echo broken >&2; exit 70", action=action), step("next", "true")])
                # A cluster waits for a moment before its first step runs.
                self.until_steps_end(cluster)
                status, _ = self.until(cluster, state)
                self.assertEqual(self.step_states(cluster), others)
                failed = self.emr.describe_step(ClusterId=cluster, StepId=told["StepIds"][0])["Step"]["Status"]
                name = f"{cluster}/steps/{told['StepIds'][0]}/stderr"
                self.assertEqual(failed["FailureDetails"], {"Reason": "Unknown Error.", "LogFile": f"s3://bucket/logs/{name}.gz"})
                self.assertEqual(self.log(name), "broken\nCommand exiting with ret '70'\n")
                if state == "TERMINATED_WITH_ERRORS":
                    self.assertEqual(status["StateChangeReason"], {"Code": "STEP_FAILURE", "Message": "Shut down as step failed"})

    def test_steps_are_cancelled_before_and_while_they_run(self):
        cluster = self.cluster()
        told = self.emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step("long", "sleep", "1000"), step("next", "true"), step("last", "true")])["StepIds"]
        self.until(cluster, "RUNNING")
        answers = self.emr.cancel_steps(ClusterId=cluster, StepIds=told[:2])["CancelStepsInfoList"]
        self.assertEqual([answer["Status"] for answer in answers], ["SUBMITTED", "SUBMITTED"])
        self.until(cluster, "WAITING")
        self.assertEqual(self.step_states(cluster), ["CANCELLED", "CANCELLED", "COMPLETED"])
        answer = self.emr.cancel_steps(ClusterId=cluster, StepIds=told[2:])["CancelStepsInfoList"][0]
        self.assertEqual(answer["Status"], "FAILED")

    def test_a_cluster_without_steps_ends_by_itself(self):
        short = self.cluster(Instances=INSTANCES | {"KeepJobFlowAliveWhenNoSteps": False}, Steps=[step("only", "true")])
        status, _ = self.until(short, "TERMINATED")
        self.assertEqual(status["StateChangeReason"]["Code"], "ALL_STEPS_COMPLETED")
        idle = self.cluster(AutoTerminationPolicy={"IdleTimeout": 3600})
        self.assertEqual(self.emr.get_auto_termination_policy(ClusterId=idle)["AutoTerminationPolicy"], {"IdleTimeout": 3600})
        self.until(idle, "WAITING")
        self.order("POST", "clock", seconds=1800)
        time.sleep(0.3)
        self.assertEqual(self.state(idle)["State"], "WAITING")
        self.order("POST", "clock", seconds=1800)
        self.until(idle, "TERMINATED")

    def test_a_cluster_dies_while_a_step_runs(self):
        self.order("POST", "faults", dies="INSTANCE_FAILURE", message="All slaves in the job flow were terminated due to Spot", step=1, after_s=0.2)
        cluster = self.cluster(Steps=[step("long", "sleep", "1000"), step("next", "true")])
        status, _ = self.until(cluster, "TERMINATED_WITH_ERRORS")
        self.assertEqual(status["StateChangeReason"], {"Code": "INSTANCE_FAILURE", "Message": "All slaves in the job flow were terminated due to Spot"})
        self.assertEqual(self.step_states(cluster), ["INTERRUPTED", "CANCELLED"])

    def test_answers_fail_on_command(self):
        for answer, code in (("throttled", "ThrottlingException"), ("expired", "ExpiredTokenException"), ("internal", "InternalFailure")):
            self.order("POST", "faults", operation="ListClusters", answer=answer, times=1)
            with self.assertRaisesRegex(botocore.exceptions.ClientError, code):
                self.emr.list_clusters()
        self.order("DELETE", "requests")
        self.order("POST", "faults", operation="RunJobFlow", answer="lost", times=1)
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.cluster(Name="lost")
        self.assertEqual(self.order("GET", "requests"), {"RunJobFlow": 1})
        after = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        alive = self.emr.list_clusters(CreatedAfter=after, ClusterStates=["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"])["Clusters"]
        [lost] = [each for each in alive if each["Name"] == "lost"]
        self.emr.terminate_job_flows(JobFlowIds=[lost["Id"]])

    def test_requests_that_emr_refuses_are_refused(self):
        for wrong, message in (
            ({"ReleaseLabel": "emr-7.99.0"}, "release label is invalid"),
            ({"JobFlowRole": "None"}, "Invalid InstanceProfile"),
            ({"Instances": {"InstanceGroups": [{"InstanceRole": "MASTER", "InstanceType": "m5.huge", "InstanceCount": 1}]}}, "m5.huge"),
        ):
            with self.assertRaisesRegex(botocore.exceptions.ClientError, f"ValidationException.*{message}"):
                self.emr.run_job_flow(Name="wrong", **(CLUSTER | wrong))
        cluster = self.cluster()
        with self.assertRaisesRegex(botocore.exceptions.ClientError, "ValidationException.*10240"):
            self.emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step("long", "x" * 10_240)])
        with self.assertRaisesRegex(botocore.exceptions.ClientError, "InvalidRequestException.*j-NONE"):
            self.emr.describe_cluster(ClusterId="j-NONE")
        with self.assertRaisesRegex(botocore.exceptions.ClientError, "InvalidRequestException.*s-NONE"):
            self.emr.describe_step(ClusterId=cluster, StepId="s-NONE")
        self.emr.terminate_job_flows(JobFlowIds=[cluster])

    def test_held_logs_arrive_later(self):
        self.order("POST", "logs", held=True)
        cluster = self.cluster(Steps=[step("says", "echo", "done")])
        self.until(cluster, "WAITING")
        self.assertEqual(self.keys(f"logs/{cluster}/"), [])
        self.order("POST", "logs", held=False)
        begin = time.monotonic()
        while not self.keys(f"logs/{cluster}/steps/"):
            self.assertLess(time.monotonic() - begin, LIMIT_S)
            time.sleep(0.1)


class Job(Emr):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = pathlib.Path(sys.argv[1]).resolve()
        for name in ("mapper", "combiner", "reducer", "merge"):
            stripped = cls.folder / name
            subprocess.run(["strip", "-o", stripped, cls.programs / name], check=True)
            cls.s3.upload_file(str(stripped), "bucket", f"programs/1/{name}")
        cls.reviews = subprocess.run([cls.programs / "examples/demo-corpus", "--reviews", "2000", "--seed", "4"], check=True, capture_output=True).stdout
        cls.put("in/reviews.json", cls.reviews)

    def test_a_job_and_merge_as_steps_write_the_dataset_of_one_machine(self):
        self.put("bootstrap/found.sh", b"#!/bin/bash\nset -eu\necho \"$@\" on $(aws s3 ls s3://bucket/in/ | wc -l) files\n")
        action = {"Name": "found", "ScriptBootstrapAction": {"Path": "s3://bucket/bootstrap/found.sh", "Args": ["a", "b c"]}}
        streaming = [
            "hadoop-streaming", "-D", "mapreduce.job.reduces=2", "-D", "mapreduce.job.name=run1",
            "-files", ",".join(f"s3://bucket/programs/1/{name}#{name}" for name in ("mapper", "combiner", "reducer")),
            "-mapper", "mapper", "-combiner", "combiner", "-reducer", "reducer --run s3://bucket/run1",
            "-input", "s3://bucket/in/", "-output", "s3://bucket/out1",
        ]
        merge = (
            "set -euo pipefail; aws s3 cp --quiet s3://bucket/programs/1/merge merge; chmod +x merge; "
            "job=$(mapred job -list all | awk '/SUCCEEDED/ { print $1 }'); mapred job -status $job >counts; "
            "./merge --run s3://bucket/run1 --counts counts --out reviews.h5; aws s3 cp --quiet reviews.h5 s3://bucket/reviews.h5"
        )
        cluster = self.cluster(BootstrapActions=[action])
        self.emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step("reviews", *streaming), step("merge", "bash", "-c", merge)])
        self.until(cluster, "WAITING")
        steps = list(reversed(self.emr.list_steps(ClusterId=cluster)["Steps"]))
        if [each["Status"]["State"] for each in steps] != ["COMPLETED", "COMPLETED"]:
            self.fail("".join(f"{key}:\n{self.log(key[5:-3])}\n" for key in self.keys(f"logs/{cluster}/steps")))
        local, reviews = self.folder / "local.h5", self.folder / "reviews.json"
        reviews.write_bytes(self.reviews)
        subprocess.run([self.programs / "sentimill", reviews, "--out", local], check=True, capture_output=True)
        self.assertTrue(local.read_bytes() == self.get("reviews.h5"), "not the same dataset")
        logs = self.keys(f"logs/{cluster}/")
        nodes = [each["Ec2InstanceId"] for each in self.emr.list_instances(ClusterId=cluster)["Instances"]]
        self.assertEqual(len(nodes), 3)
        for node in nodes:
            self.assertEqual(self.log(f"{cluster}/node/{node}/bootstrap-actions/1/stdout"), "a b c on 1 files\n")
        first = steps[0]["Id"]
        self.assertIn("map 100% reduce 100%", self.log(f"{cluster}/steps/{first}/syslog"))
        self.assertIn("exit code 0", self.log(f"{cluster}/steps/{first}/controller"))
        for stream in ("stderr", "syslog"):
            containers = [key for key in logs if "/containers/application_" in key and key.endswith(f"/{stream}.gz")]
            self.assertGreaterEqual(len(containers), 4, logs)
        self.emr.terminate_job_flows(JobFlowIds=[cluster])
        status, _ = self.until(cluster, "TERMINATED")
        self.assertEqual(status["StateChangeReason"], {"Code": "USER_REQUEST", "Message": "Terminated by user request"})
        with self.assertRaisesRegex(botocore.exceptions.ClientError, "ValidationException.*shutting down"):
            self.emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step("late", "true")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
