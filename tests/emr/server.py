#!/usr/bin/env python3
"""An EMR that runs on this machine, for tests: moto's EMR, S3, IAM, STS and EC2 on one port, with clusters whose steps
run on the Hadoop of the tests (service.py, node.py), and faults on command.

usage: server.py FOLDER     (with the Python of .deps/s3; a new folder for Hadoop, logs and clusters)

Prints ` * Running on http://127.0.0.1:PORT`. Stops, with Hadoop and all steps, when standard input is closed. Programs
use it with AWS_ENDPOINT_URL=http://127.0.0.1:PORT. It has a bucket `bucket` and the roles EMR_DefaultRole and
EMR_EC2_DefaultRole. The same port is the instance metadata service of the nodes.

Tests change and read it at /sentimill-test/:

  GET requests            numbers of requests since the last DELETE, by operation: {"RunJobFlow": 1, "s3:PUT": 7}
  DELETE requests         starts to count anew
  POST faults             {"operation": "RunJobFlow", "answer": "throttled", "times": 2}: the next answers to an operation,
                          or to any with "*": throttled, expired, internal, or lost: the request is executed, but the
                          connection is closed without an answer
                          {"dies": "INSTANCE_FAILURE", "message": "...", "step": 1, "after_s": 2}: the cluster that runs
                          its step 1 for 2 s dies
                          with "after": "RunJobFlow", only answers after the next request for that operation
                          {"listed_after_s": 60}: ListClusters omits a cluster for so long
                          {"waiting_after_s": 5}: a cluster is RUNNING for so long after its last step
  DELETE faults           no faults
  POST logs               {"held": true}: logs stay on the nodes until {"held": false}
  POST clock              {"seconds": 3600}: clusters have been idle for so much longer
  POST clusters/ID        {"dies": "INSTANCE_FAILURE", "message": "..."}: the cluster dies now
"""

import collections
import io
import json
import logging
import os
import pathlib
import signal
import socket
import sys
import threading
import urllib.parse

# Before boto3 is imported: credentials of this process, which moto does not check.
os.environ.update(AWS_ACCESS_KEY_ID="server", AWS_SECRET_ACCESS_KEY="server", AWS_EC2_METADATA_DISABLED="true")
# moto looks EC2's images up for each instance; an empty list is loaded faster.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

import boto3
import node
import service
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

REGION = "us-east-1"
ROLES = {"EMR_DefaultRole": "elasticmapreduce.amazonaws.com", "EMR_EC2_DefaultRole": "ec2.amazonaws.com"}
ERRORS = {
    "throttled": (400, "ThrottlingException", "Rate exceeded"),
    "expired": (400, "ExpiredTokenException", "The security token included in the request is expired"),
    "internal": (500, "InternalFailure", "An internal error occurred"),
}


class Faults:
    """The faults that tests have ordered, and have not happened yet."""

    def __init__(self):
        self.lock, self.answers, self.deaths = threading.Lock(), [], []

    def order(self, fault):
        with self.lock:
            if "dies" in fault:
                message = fault.get("message", "The master failed: Instance was lost")
                self.deaths.append({"code": fault["dies"], "message": message, "step": fault["step"], "after_s": fault.get("after_s", 0)})
            elif "operation" in fault:
                self.answers.append([fault["operation"], fault["answer"], fault.get("times", 1), fault.get("after")])
            service.Backend.listed_after_s = fault.get("listed_after_s", service.Backend.listed_after_s)
            node.Node.waiting_after_s = fault.get("waiting_after_s", node.Node.waiting_after_s)

    def clear(self):
        with self.lock:
            self.answers, self.deaths = [], []
            service.Backend.listed_after_s = node.Node.waiting_after_s = 0

    def take_answer(self, operation):
        """The fault of this answer, or None."""
        with self.lock:
            for fault in self.answers:
                if fault[3] == operation:
                    fault[3] = None
                elif fault[3] is None and fault[0] in (operation, "*") and fault[2] > 0:
                    fault[2] -= 1
                    return fault[1]
        return None

    def take_death(self, step, seconds):
        """The death of a cluster that runs this step for so long, or None."""
        with self.lock:
            for fault in self.deaths:
                if fault["step"] == step and seconds >= fault["after_s"]:
                    self.deaths.remove(fault)
                    return fault
        return None


class Server:
    """The WSGI application in front of moto."""

    def __init__(self, folder):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.faults, self.counts, self.lock = Faults(), collections.Counter(), threading.Lock()
        # moto checks whether an object exists and stores it in two steps.
        self.conditional = threading.Lock()
        self.folder, self.nodes, self.hadoop = folder, {}, None

    def __call__(self, environ, start_response):
        path = environ.get("PATH_INFO", "")
        if path.startswith("/sentimill-test/"):
            return self.control(Request(environ))(environ, start_response)
        if path.startswith("/latest/"):
            return metadata(path)(environ, start_response)
        operation = operation_of(environ)
        with self.lock:
            self.counts[operation] += 1
        answer = self.faults.take_answer(operation)
        if answer in ERRORS:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, code, message = ERRORS[answer]
            body = json.dumps({"__type": code, "message": message})
            return Response(body, status, content_type="application/x-amz-json-1.1")(environ, start_response)
        if answer == "lost":
            list(self.moto(environ, lambda *_: lambda _: None))
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError("this answer is lost")
        if environ.get("HTTP_IF_NONE_MATCH"):
            with self.conditional:
                return list(self.moto(environ, start_response))
        return self.moto(environ, start_response)

    def on_new_cluster(self, cluster):
        new = node.Node(cluster, self.hadoop, client("s3", self.hadoop.endpoint), self.faults)
        self.nodes[cluster.id] = new
        new.start()

    def control(self, request):
        what = request.path.removeprefix("/sentimill-test/")
        order = json.loads(request.get_data() or b"{}")
        match request.method, what.split("/"):
            case "GET", ["requests"]:
                with self.lock:
                    return Response(json.dumps(self.counts), content_type="application/json")
            case "DELETE", ["requests"]:
                with self.lock:
                    self.counts.clear()
            case "POST", ["faults"]:
                self.faults.order(order)
            case "DELETE", ["faults"]:
                self.faults.clear()
            case "POST", ["logs"]:
                (node.Logs.held.set if order["held"] else node.Logs.held.clear)()
            case "POST", ["clock"]:
                for each in self.nodes.values():
                    each.skipped_s += order["seconds"]
            case "POST", ["clusters", name]:
                self.nodes[name].die(order["dies"], order.get("message", "The master failed: Instance was lost"))
            case _:
                return Response("no such order\n", 404)
        return Response("{}\n", content_type="application/json")


def operation_of(environ):
    """`RunJobFlow` for EMR, `iam:GetRole` for others, `s3:PUT` for S3."""
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target.startswith("ElasticMapReduce."):
        return target.split(".", 1)[1]
    scope = environ.get("HTTP_AUTHORIZATION", "").split("Credential=", 1)[-1].split(",")[0].split("/")
    service_name = scope[3] if len(scope) > 4 else "s3"
    if service_name == "s3":
        return f"s3:{environ['REQUEST_METHOD']}"
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        action = urllib.parse.parse_qs(body.decode()).get("Action", ["?"])[0]
        return f"{service_name}:{action}"
    return f"{service_name}:{target or environ['REQUEST_METHOD']}"


def metadata(path):
    """An answer of the instance metadata service."""
    role = "EMR_EC2_DefaultRole"
    keys = {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ASIANODE", "SecretAccessKey": "node", "Token": "node", "LastUpdated": "2026-01-01T00:00:00Z", "Expiration": "2099-01-01T00:00:00Z"}
    answers = {
        "/latest/api/token": "token",
        "/latest/meta-data/iam/security-credentials": role,
        f"/latest/meta-data/iam/security-credentials/{role}": json.dumps(keys),
        "/latest/meta-data/placement/region": REGION,
        "/latest/meta-data/placement/availability-zone": f"{REGION}a",
    }
    found = answers.get(path.rstrip("/"))
    answer = Response(found or "not found", 200 if found else 404, content_type="text/plain")
    answer.headers["X-aws-ec2-metadata-token-ttl-seconds"] = "21600"
    return answer


def client(name, endpoint):
    return boto3.client(name, region_name=REGION, endpoint_url=endpoint)


def fill(endpoint):
    """The bucket and the roles of a new account."""
    client("s3", endpoint).create_bucket(Bucket="bucket")
    iam = client("iam", endpoint)
    for role, principal in ROLES.items():
        trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}]}
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
    iam.create_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole")
    iam.add_role_to_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole", RoleName="EMR_EC2_DefaultRole")


class Handler(MotoRequestHandler):
    def log_request(self, *_):
        """Requests are counted, not logged."""


def main():
    logging.basicConfig(level=logging.ERROR)
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(folder)
    service.serve_with(server.on_new_cluster)
    listening = make_server("127.0.0.1", 0, server, threaded=True, request_handler=Handler)
    endpoint = f"http://127.0.0.1:{listening.server_port}"
    server.hadoop = node.Hadoop(folder, endpoint)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    fill(endpoint)
    with server.lock:
        server.counts.clear()
    print(f" * Running on {endpoint}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.stdin.read()
    server.hadoop.stop()
    for each in server.nodes.values():
        each.cluster.end_because("USER_REQUEST", "Terminated by user request")
        each.join(node.GRACE_S)


if __name__ == "__main__":
    main()
