"""Runs the clusters of the tests' EMR: bootstrap actions and steps become processes on this machine, jobs run on the
Hadoop of the tests, logs are written to S3 as EMR does.

All clusters share one Hadoop, which starts with the first cluster. The processes have the environment of an EMR node:
its commands on the PATH, the role's credentials from the instance metadata service, and no keys.

Different from EMR: logs are in S3 at once, before the state changes, unless they are held (server.py); only
`command-runner.jar` runs; bootstrap actions run on each node in turn, with the privileges of the tests; one machine is
all nodes of all clusters.
"""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import traceback
import urllib.request
from xml.sax.saxutils import escape

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = PROJECT / "bootstrap/hadoop/cluster.sh"
COMMANDS = ("hadoop", "hadoop-streaming", "hdfs", "mapred", "yarn")
POLL_S = 0.05
# How long a process may take to end after SIGTERM.
GRACE_S = 5
# Interval between uploads of the logs of a running step; on EMR it is five minutes.
LOG_INTERVAL_S = 2
# A job's application master ends some seconds after the job; then its log is complete.
LATE_LOGS_S = 8
S3A = "org.apache.hadoop.fs.s3a"
SUBMITTED = re.compile(r"Submitted application (application_\d+_\d+)")
# Variables that a node's tasks find in their environment.
OF_TASKS = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL")


class Hadoop:
    """The Hadoop of the tests in a folder; it stops with this process."""

    def __init__(self, folder, endpoint):
        self.folder, self.endpoint = folder, endpoint
        self.lock, self.serving = threading.Lock(), None

    def environment(self):
        """The environment of a node, without keys of this process."""
        kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
        path = f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        node = {"PATH": path, "HOME": str(self.folder / "home"), "SENTIMILL_HADOOP": str(self.folder / "hadoop")}
        return kept | node | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.endpoint, "AWS_ENDPOINT_URL": self.endpoint}

    def start(self):
        """Starts it, if it is not running."""
        with self.lock:
            if self.serving:
                return
            for name in ("bin", "home"):
                (self.folder / name).mkdir(exist_ok=True)
            for name in COMMANDS:
                (self.folder / "bin" / name).symlink_to(pathlib.Path(__file__).with_name("on_node.sh"))
            (self.folder / "bin/aws").symlink_to(PROJECT / ".deps/s3/bin/aws")
            settings = [
                f"core:fs.s3.impl={S3A}.S3AFileSystem",
                f"core:fs.AbstractFileSystem.s3.impl={S3A}.S3A",
                f"core:fs.s3a.endpoint={self.endpoint}",
                "core:fs.s3a.endpoint.region=us-east-1",
                "core:fs.s3a.path.style.access=true",
                "core:fs.s3a.connection.ssl.enabled=false",
                f"core:fs.s3a.aws.credentials.provider={S3A}.auth.IAMInstanceCredentialsProvider",
                f"yarn:yarn.nodemanager.env-whitelist=JAVA_HOME,SENTIMILL_CLUSTER,SENTIMILL_NODE,{','.join(OF_TASKS)}",
                # Keeps the logs of containers on the nodes, where EMR reads them.
                "yarn:yarn.nodemanager.delete.debug-delay-sec=36000",
            ]
            command = [CLUSTER, "serve", self.folder / "hadoop", "emr", *settings]
            with open(self.folder / "hadoop.log", "wb") as log:
                environment = self.environment() | {"PATH": os.environ["PATH"]}
                serving = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
            if serving.stdout.readline() != b"ready\n":
                raise RuntimeError(f"Hadoop did not start: {(self.folder / 'hadoop.log').read_text()}")
            self.serving = serving

    def stop(self):
        serving, self.serving = self.serving, None
        if serving:
            serving.stdin.close()
            serving.wait()

    def kill(self, applications):
        """Kills the applications of a cluster, whose nodes are gone."""
        for name in applications if self.serving else ():
            web = subprocess.run([CLUSTER, "web", self.folder / "hadoop"], capture_output=True, text=True, check=True).stdout.strip()
            with urllib.request.urlopen(f"{web}/ws/v1/cluster/apps/{name}") as answer:
                state = json.load(answer)["app"]["state"]
            if state not in ("FINISHED", "FAILED", "KILLED"):
                subprocess.run([CLUSTER, "application", self.folder / "hadoop", "-kill", name], capture_output=True, check=False)

    def container_logs(self, application):
        """The log files of an application, as (container/name, bytes)."""
        for path in sorted((self.folder / "hadoop").glob(f"node*/logs/{application}/container_*/*")):
            if path.name in ("stdout", "stderr", "syslog"):
                yield f"{path.parent.name}/{path.name}", path.read_bytes()


class Logs:
    """Files for a LogUri. While `held` is set, they wait."""

    held = threading.Event()

    def __init__(self, s3, log_uri):
        self.s3, self.waiting, self.lock = s3, {}, threading.Lock()
        found = re.fullmatch(r"s3[na]?://([^/]+)/?(.*?)/*", log_uri or "")
        self.bucket, self.prefix = found.groups() if found else (None, None)

    def url(self, name):
        """The URL of a log, or None without a log folder."""
        return self.bucket and f"s3://{self.bucket}/{self.key(name)}.gz"

    def key(self, name):
        return "/".join(filter(None, (self.prefix, name)))

    def put(self, name, content):
        with self.lock:
            self.waiting[name] = content
        self.push()

    def push(self):
        if self.bucket is None or Logs.held.is_set():
            return
        with self.lock:
            waiting, self.waiting = self.waiting, {}
        for name, content in waiting.items():
            self.s3.put_object(Bucket=self.bucket, Key=self.key(f"{name}.gz"), Body=gzip.compress(content, mtime=0))


class Died(Exception):
    """The cluster has to end while a step or bootstrap action runs."""


class Node(threading.Thread):
    """One cluster: its life from STARTING to TERMINATED."""

    # Seconds from the end of the last step to the state WAITING.
    waiting_after_s = 0

    def __init__(self, cluster, hadoop, s3, faults):
        super().__init__(daemon=True, name=cluster.id)
        self.cluster, self.hadoop, self.s3, self.faults = cluster, hadoop, s3, faults
        self.folder = hadoop.folder / "clusters" / cluster.id
        self.logs = Logs(s3, cluster.log_uri)
        # Seconds that a test has added to the idle time.
        self.skipped_s = 0

    def run(self):
        try:
            self.live()
        except Died:
            self.shut_down()
        except Exception as error:
            traceback.print_exc()
            self.cluster.end_because("INTERNAL_ERROR", f"Internal error: {error}")
            self.shut_down()

    def live(self):
        self.hadoop.start()
        self.configure()
        self.cluster.set_state("BOOTSTRAPPING")
        for number, action in enumerate(self.cluster.bootstrap_actions, 1):
            for instance in self.cluster.ec2_instances:
                self.bootstrap(number, action, instance)
        at_work, worked, idle_since, last_push = None, 0, time.monotonic(), time.monotonic()
        while True:
            with self.cluster.changed:
                self.stop_if_asked()
                step = next((step for step in self.cluster.steps if step.state == "PENDING"), None)
                if step is None:
                    if self.cluster.auto_terminate:
                        self.cluster.end_because("ALL_STEPS_COMPLETED", "Steps completed")
                        continue
                    if at_work is None or (at_work and time.monotonic() - worked >= Node.waiting_after_s):
                        self.cluster.set_state("WAITING", "USER_REQUEST", "Cluster ready to run steps." if at_work is None else "Cluster ready after last step completed.")
                        at_work, idle_since, self.skipped_s = False, time.monotonic(), 0
                    limit, idle = self.cluster.auto_termination_s, time.monotonic() - idle_since + self.skipped_s
                    if limit and at_work is False and idle >= limit:
                        self.cluster.end_because("ALL_STEPS_COMPLETED", f"Cluster was idle for {limit} seconds and was terminated by its auto-termination policy")
                        continue
                    self.cluster.changed.wait(POLL_S)
                else:
                    step.begin()
                    self.cluster.set_state("RUNNING", "USER_REQUEST", "Running step")
                    at_work = True
            if step:
                self.run_step(step)
                worked = last_push = time.monotonic()
            elif last_push is not None and time.monotonic() - last_push > LATE_LOGS_S:
                self.push_containers()
                last_push = None
            self.logs.push()

    def stop_if_asked(self):
        if self.cluster.ending:
            raise Died

    def die(self, code, message):
        """Ends the cluster at once, as if its instances were lost."""
        self.cluster.end_because(code, message)

    def shut_down(self):
        cluster = self.cluster
        code, message = cluster.ending
        with cluster.changed:
            for step in cluster.steps:
                if step.state in ("PENDING", "CANCEL_PENDING"):
                    step.end("CANCELLED")
                elif step.state == "RUNNING":
                    step.end("CANCELLED" if code == "USER_REQUEST" else "INTERRUPTED")
        self.hadoop.kill(self.applications())
        self.push_containers()
        failed = code not in ("USER_REQUEST", "ALL_STEPS_COMPLETED")
        cluster.set_state("TERMINATED_WITH_ERRORS" if failed else "TERMINATED", code, message)
        while self.logs.waiting and self.hadoop.serving:
            time.sleep(POLL_S)
            self.logs.push()

    def configure(self):
        """Writes the cluster's Hadoop configuration: that of the nodes, and its Configurations."""
        conf = self.folder / "conf"
        conf.mkdir(parents=True)
        more = {}
        for configuration in self.cluster.configurations:
            of = more.setdefault(configuration.get("classification"), {})
            of.update(dict(configuration.get("properties") or {}))
        for path in (self.hadoop.folder / "hadoop/conf").iterdir():
            if path.is_file():
                text = path.read_text()
                for name, value in more.get(path.stem, {}).items():
                    shown = f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
                    text = text.replace("</configuration>", f"{shown}\n</configuration>")
                (conf / path.name).write_text(text)
        # Clients of a step write their log to the file `syslog`, as HADOOP_ROOT_LOGGER=INFO,DRFA does on EMR.
        (conf / "log4j.properties").write_text(
            "log4j.rootLogger=INFO,file\n"
            "log4j.appender.file=org.apache.log4j.FileAppender\n"
            "log4j.appender.file.file=${sentimill.syslog}\n"
            "log4j.appender.file.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.file.layout.ConversionPattern=%d{ISO8601} %p %c (%t): %m%n\n"
            "log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR\n"
        )

    def bootstrap(self, number, action, instance):
        instance_id = instance.ec2_instance_id
        folder = self.folder / instance_id / "bootstrap-actions" / str(number)
        folder.mkdir(parents=True)
        name = f"{self.cluster.id}/node/{instance_id}/bootstrap-actions/{number}"
        path = action.script_path
        where = "the master instance" if instance.instance_group.role == "MASTER" else "an instance"
        script = folder / "script"
        try:
            bucket, key = path.removeprefix("s3://").split("/", 1)
            script.write_bytes(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        except Exception as error:
            self.logs.put(f"{name}/controller", f"Failed to download bootstrap action {path}: {error}\n".encode())
            self.cluster.end_because("BOOTSTRAP_FAILURE", f"On {where} ({instance_id}), application provisioning failed: bootstrap action {number} could not be downloaded: {path}")
            raise Died from error
        script.chmod(0o755)
        code = self.execute([str(script), *action.args], folder, self.hadoop.environment(), lambda: None)
        controller = f"INFO startExec '{path}'\nINFO waitProcessCompletion ended with exit code {code}\n"
        self.logs.put(f"{name}/controller", controller.encode())
        for stream in ("stdout", "stderr"):
            self.logs.put(f"{name}/{stream}", (folder / stream).read_bytes())
        if code != 0:
            self.cluster.end_because("BOOTSTRAP_FAILURE", f"On {where} ({instance_id}), bootstrap action {number} returned a non-zero return code")
            raise Died

    def run_step(self, step):
        folder = self.folder / "steps" / step.id
        folder.mkdir(parents=True)
        (folder / "tmp").mkdir()
        begin = time.monotonic()
        name = f"{self.cluster.id}/steps/{step.id}"
        number = self.cluster.steps.index(step) + 1
        args, code, died = list(step.args), 1, False
        (folder / "stderr").touch()
        (folder / "stdout").touch()
        options = f"-Dlog4j.configuration=file:{self.folder}/conf/log4j.properties -Dsentimill.syslog={folder}/syslog"
        environment = self.hadoop.environment() | {"HADOOP_CONF_DIR": str(self.folder / "conf"), "HADOOP_CLIENT_OPTS": options, "TMPDIR": str(folder / "tmp"), "EMR_STEP_ID": step.id}
        if step.jar != "command-runner.jar" or not args:
            (folder / "stderr").write_text(f"Error fetching jar file {step.jar}: only command-runner.jar runs here\n")
        else:
            try:
                last_push = begin

                def look():
                    nonlocal last_push
                    if time.monotonic() - last_push > LOG_INTERVAL_S:
                        last_push = time.monotonic()
                        self.push_streams(name, folder)
                    return self.interrupts(step, number, time.monotonic() - begin)

                code = self.execute(args, folder, environment, look)
            except OSError as error:
                missing = f'Cannot run program "{args[0]}" (in directory "."): error={error.errno}, {error.strerror}'
                (folder / "stderr").write_text(f"Exception in thread \"main\" java.lang.RuntimeException: java.io.IOException: {missing}\n")
            except Died:
                died = True
        if code != 0 and not died:
            with open(folder / "stderr", "a") as stderr:
                stderr.write(f"Command exiting with ret '{code}'\n")
        took = time.monotonic() - begin
        self.write_controller(name, step, args, code, took)
        self.push_streams(name, folder)
        if died:
            raise Died
        self.push_containers()
        with self.cluster.changed:
            self.end_step(step, code, name, folder)

    def end_step(self, step, code, name, folder):
        if step.state == "CANCEL_PENDING":
            return step.end("CANCELLED")
        if code == 0:
            return step.end("COMPLETED")
        step.end("FAILED", failure_details(folder, lambda stream: self.logs.url(f"{name}/{stream}")))
        if step.action_on_failure in ("TERMINATE_CLUSTER", "TERMINATE_JOB_FLOW"):
            self.cluster.end_because("STEP_FAILURE", "Shut down as step failed")
        elif step.action_on_failure == "CANCEL_AND_WAIT":
            for other in self.cluster.steps:
                if other.state == "PENDING":
                    other.end("CANCELLED")
        return None

    def interrupts(self, step, number, seconds):
        """Raises Died if a test wants the cluster to die in this step; returns whether the step is cancelled."""
        fault = self.faults.take_death(number, seconds)
        if fault:
            self.die(fault["code"], fault["message"])
        return step.state == "CANCEL_PENDING"

    def execute(self, args, folder, environment, interrupts):
        """The exit code of a process with its streams in files."""
        with open(folder / "stdout", "wb") as stdout, open(folder / "stderr", "wb") as stderr:
            process = subprocess.Popen(args, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            while process.poll() is None:
                if interrupts():
                    break
                self.stop_if_asked()
                time.sleep(POLL_S)
        finally:
            end_group(process)
        code = process.wait()
        return code if code >= 0 else 128 - code

    def write_controller(self, name, step, args, code, took):
        lines = [
            f"INFO ProcessRunner started child process : hadoop jar /var/lib/aws/emr/step-runner/hadoop-jars/{step.jar} {' '.join(args)}",
            f"INFO waitProcessCompletion ended with exit code {code}",
            f"INFO total process run time: {took:.0f} seconds",
            f"INFO Step succeeded with exitCode 0 and took {took:.0f} seconds" if code == 0 else f"WARN Step failed with exitCode {code} and took {took:.0f} seconds",
        ]
        self.logs.put(f"{name}/controller", "".join(f"{line}\n" for line in lines).encode())

    def push_streams(self, name, folder):
        for stream in ("stderr", "stdout", "syslog"):
            if (folder / stream).exists():
                self.logs.put(f"{name}/{stream}", (folder / stream).read_bytes())

    def applications(self):
        """The applications that this cluster's steps have submitted, from the logs of their clients."""
        logs = (path.read_text(errors="replace") for path in sorted(self.folder.glob("steps/*/syslog")))
        return sorted({name for log in logs for name in SUBMITTED.findall(log)})

    def push_containers(self):
        for application in self.applications():
            for file, content in self.hadoop.container_logs(application):
                self.logs.put(f"{self.cluster.id}/containers/{application}/{file}", content)


def end_group(process):
    """Ends a process and all that it started."""
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def failure_details(folder, url):
    """Reason, message and log file of a failed step, as EMR finds them in the step's logs."""
    for stream in ("syslog", "stderr"):
        path = folder / stream
        text = path.read_text(errors="replace") if path.exists() else ""
        if found := re.search(r"^.*Output directory \S+ already exists.*$", text, re.MULTILINE):
            return {"Reason": "Output directory already exists.", "Message": found[0].strip(), "LogFile": url(stream)}
        if found := re.search(r"^Exception in thread .*$", text, re.MULTILINE):
            return {"Reason": "Unknown Error.", "Message": found[0].strip(), "LogFile": url(stream)}
    return {"Reason": "Unknown Error.", "LogFile": url("stderr")}
