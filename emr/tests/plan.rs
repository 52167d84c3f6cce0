//! Drives `emr plan` and `emr gpus`: what they print, and what they send.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;
use tests::s3_server::{S3Server, with_s3};

fn emr() -> Command {
    let mut emr = Command::new(env!("CARGO_BIN_EXE_emr"));
    emr.env_remove("AWS_PROFILE").env("AWS_EC2_METADATA_DISABLED", "true").stdin(Stdio::null());
    emr
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the example, changed, as JOB.toml, and programs for x86-64 of which only the headers exist.
fn folder(changes: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut job = text(&emr().args(["plan", "--example"]).output().unwrap().stdout);
    for (from, to) in changes {
        assert!(job.contains(from), "{from}");
        job = job.replace(from, to);
    }
    job = job.replacen("\n[input]", "\nprograms = \".\"\n[input]", 1);
    fs::write(folder.path().join("JOB.toml"), job).unwrap();
    let mut header = [0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16..21].copy_from_slice(&[3, 0, 62, 0, 1]);
    (header[52], header[54], header[58]) = (64, 56, 64);
    for name in ["mapper", "combiner", "reducer", "merge"] {
        fs::write(folder.path().join(name), header).unwrap();
    }
    folder
}

fn run_in(folder: &Path, emr: &mut Command, arguments: &[&str]) -> Output {
    emr.current_dir(folder).args(arguments).output().unwrap()
}

/// Counts the connections to a port. The connections are closed at once.
fn counting_proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for connection in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = connection.map(|mut stream| stream.read(&mut [0; 1]));
        }
    });
    (format!("http://{address}"), count)
}

#[test]
fn a_plan_sends_nothing() {
    let folder = folder(&[]);
    for arguments in [["plan", "JOB.toml"].as_slice(), &["plan", "JOB.toml", "--json"], &["gpus", "JOB.toml"]]
    {
        let (proxy, count) = counting_proxy();
        let mut emr = emr();
        for name in ["AWS_ENDPOINT_URL", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            emr.env(name, &proxy);
        }
        emr.env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", "x");
        let done = run_in(folder.path(), &mut emr, arguments);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert_eq!(count.load(Ordering::SeqCst), 0, "{arguments:?}");
    }
    // The proxy does count: the same plan with --online reaches it.
    let (proxy, count) = counting_proxy();
    let mut emr = emr();
    emr.env("AWS_ENDPOINT_URL", &proxy).env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", "x");
    emr.env("AWS_MAX_ATTEMPTS", "1").current_dir(folder.path()).args(["plan", "JOB.toml", "--online"]);
    let mut online = emr.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while count.load(Ordering::SeqCst) == 0 {
        assert!(online.try_wait().unwrap().is_none(), "ended without a request");
        thread::yield_now();
    }
    online.kill().unwrap();
    online.wait().unwrap();
}

#[test]
fn a_plan_is_one_screen_with_the_price_at_its_top() {
    let done = run_in(folder(&[]).path(), &mut emr(), &["plan", "JOB.toml"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let printed = text(&done.stdout);
    let head = "price             about 0.46 USD: EC2 0.35, EMR 0.11; without storage, requests and transfer\n\
                time              about 11.0 min: start 7.5 min, Hadoop job 2.6 min, merge 0.9 min\n";
    assert!(printed.starts_with(head), "{printed}");
    assert!(
        printed.contains("\nrun               s3://bucket/runs/reviews-1, id sentimill-9d82e807b723d02b\n")
    );
    assert!(
        printed.contains("\nmerge             by 48 tasks; their time is predicted, not measured\n"),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 7, "{printed}");
}

#[test]
fn all_errors_are_printed_and_the_requests_are_not() {
    let folder = folder(&[("\"m6i.xlarge\"", "\"p3.2xlarge\""), ("s3://bucket/reviews/", "reviews.json")]);
    let done = run_in(folder.path(), &mut emr(), &["plan", "JOB.toml", "--json"]);
    assert_eq!(done.status.code(), Some(78));
    let plan: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(plan.get("run_job_flow").is_none());
    assert_eq!(plan["findings"].as_array().unwrap().len(), 2, "{plan:#}");
    let said = text(&done.stderr);
    assert!(
        said.contains("cluster.groups[0].type: p3.2xlarge has GPUs that CUDA 13 no longer supports"),
        "{said}"
    );
    assert!(said.ends_with("emr: JOB.toml: 2 errors, listed above; correct them\n"), "{said}");
}

#[test]
fn machines_that_are_refused_have_no_commands() {
    let folder = folder(&[("\"g6.12xlarge\"", "\"p2.xlarge\"")]);
    let done = run_in(folder.path(), &mut emr(), &["gpus", "JOB.toml", "--json"]);
    assert_eq!(done.status.code(), Some(78));
    let training: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(training["findings"].is_array(), "{training:#}");
    for name in ["user_data", "start", "train"] {
        assert_eq!(training.get(name), None, "{training:#}");
    }
}

#[test]
fn a_missing_job_file_is_named_with_the_way_to_make_one() {
    let done = run_in(folder(&[]).path(), &mut emr(), &["plan", "NONE.toml"]);
    assert_eq!(done.status.code(), Some(66));
    let said = text(&done.stderr);
    assert!(
        said.starts_with("emr: NONE.toml: cannot read the job file; `emr plan --example` prints one"),
        "{said}"
    );
}

#[test]
fn a_job_file_without_an_end_is_refused_by_its_size() {
    let done = run_in(folder(&[]).path(), &mut emr(), &["plan", "/dev/zero"]);
    assert_eq!(done.status.code(), Some(66));
    let expected = "emr: /dev/zero: cannot read the job file; `emr plan --example` prints one: it has more than 1048576 bytes; \
                    check the path\n";
    assert_eq!(text(&done.stderr), expected);
}

#[test]
fn an_online_plan_lists_the_input_and_tests_the_condition() {
    let Some(server) = S3Server::start() else { return };
    let endpoint = format!("http://{}", server.address());
    let online = |changes: &[(&str, &str)]| {
        let small = [("m6i.", "m5."), ("emr-7.14.0", "emr-7.10.0"), ("eu-central-1", "us-east-1")];
        let folder = folder(&[&small, changes].concat());
        let mut emr = with_s3(emr(), &endpoint);
        emr.env("AWS_ENDPOINT_URL", &endpoint);
        let done = run_in(folder.path(), &mut emr, &["plan", "JOB.toml", "--online", "--json"]);
        let plan: Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done.stderr)));
        (done.status.code(), plan, text(&done.stderr))
    };
    let put = |name: &str, content: &str| {
        boto3(
            &endpoint,
            &format!("client('s3').put_object(Bucket='bucket', Key='{name}', Body=b'{content}')"),
        );
    };

    let (code, _, said) = online(&[]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("input.places: s3://bucket/reviews"), "{said}");

    put("reviews/1.json", "0123456789");
    put("reviews/a/2.json", "01234");
    let (code, _, said) = online(&[]);
    let missing = "cluster.service-role: IAM has no role EMR_DefaultRole; create it with";
    assert!(code == Some(78) && said.contains(missing), "{said}");
    let missing = "cluster.instance-profile: IAM has no instance profile EMR_EC2_DefaultRole; create it with";
    assert!(said.contains(missing), "{said}");
    boto3(
        &endpoint,
        "iam = client('iam')\n\
         for name in ['EMR_DefaultRole', 'EMR_EC2_DefaultRole']: iam.create_role(RoleName=name, AssumeRolePolicyDocument='{}')\n\
         iam.create_instance_profile(InstanceProfileName='EMR_EC2_DefaultRole')",
    );
    let (code, _, said) = online(&[]);
    let without =
        "cluster.instance-profile: EMR_EC2_DefaultRole has no role, expected an instance profile with a role";
    assert!(code == Some(78) && said.contains(without) && !said.contains("service-role"), "{said}");
    boto3(
        &endpoint,
        "client('iam').add_role_to_instance_profile(InstanceProfileName='EMR_EC2_DefaultRole', RoleName='EMR_EC2_DefaultRole')",
    );
    let (code, plan, said) = online(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(plan["estimate"]["input_bytes"], 15);
    let resource = &plan["bucket_policy"]["Statement"][0]["Resource"];
    assert_eq!(resource, "arn:aws:s3:::bucket/runs/reviews-1/*");

    let (code, _, said) = online(&[("\"m5.xlarge\"", "\"m99i.xlarge\"")]);
    assert!(
        code == Some(78) && said.contains("emr-7.10.0 does not support m99i.xlarge in us-east-1"),
        "{said}"
    );
    let (code, _, said) = online(&[("emr-7.10.0", "emr-7.99.0")]);
    assert!(code == Some(78) && said.contains("EMR does not have emr-7.99.0 in us-east-1"), "{said}");
    let (code, _, said) = online(&[("region = \"us-east-1\"", "region = \"eu-west-1\"")]);
    let expected = "run: the bucket bucket is in us-east-1, expected eu-west-1, the region of the cluster";
    assert!(code == Some(78) && said.contains(expected), "{said}");
    let (code, _, said) = online(&[("s3://bucket/runs", "s3://missing/runs")]);
    assert!(code == Some(78) && said.contains("run: s3://missing: "), "{said}");

    put("datasets/reviews.h5", "x");
    let (code, _, said) = online(&[]);
    assert!(
        code == Some(78)
            && said.contains("dataset: s3://bucket/datasets/reviews.h5 exists, expected no such object"),
        "{said}"
    );
    put("runs/reviews-1/data.txt", "x");
    let (code, _, said) = online(&[]);
    assert!(
        code == Some(78) && said.contains("contains 1 objects of another program, expected an empty folder"),
        "{said}"
    );
    put("runs/reviews-1/job.json", "{}");
    let (code, _, said) = online(&[]);
    assert!(code == Some(0) && said.contains("warning: JOB.toml:4: dataset: "), "{said}");
}

/// Runs lines of Python in which `client` makes a client of boto3. Returns what they print.
fn boto3(endpoint: &str, lines: &str) -> String {
    let script = format!(
        "import boto3\n\
         def client(service): return boto3.client(service, endpoint_url='{endpoint}', region_name='us-east-1', aws_access_key_id='x', aws_secret_access_key='x')\n\
         {lines}"
    );
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/s3/bin/python");
    let done = Command::new(python).args(["-c", &script]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout).trim().to_owned()
}

#[test]
fn a_running_cluster_that_cannot_execute_the_job_is_refused_by_plan_and_run() {
    let Some(server) = S3Server::start() else { return };
    let endpoint = format!("http://{}", server.address());
    let cluster = boto3(
        &endpoint,
        "client('s3').put_object(Bucket='bucket', Key='reviews/1.json', Body=b'x')\n\
         group = dict(InstanceRole='MASTER', InstanceType='m7g.xlarge', InstanceCount=1)\n\
         nodes = dict(InstanceGroups=[group], KeepJobFlowAliveWhenNoSteps=True)\n\
         roles = dict(JobFlowRole='EMR_EC2_DefaultRole', ServiceRole='EMR_DefaultRole')\n\
         print(client('emr').run_job_flow(Name='x', ReleaseLabel='emr-5.36.0', StepConcurrencyLevel=3, Instances=nodes, **roles)['JobFlowId'])",
    );
    let example = text(&emr().args(["plan", "--example"]).output().unwrap().stdout);
    let new = &example[example.find("[cluster]").unwrap()..example.find("[prices]").unwrap()];
    let running = format!("[cluster]\nid = \"{cluster}\"\nregion = \"us-east-1\"\n\n");
    let folder = folder(&[(new, &running)]);
    for arguments in [["plan", "JOB.toml", "--online"].as_slice(), &["run", "JOB.toml"]] {
        let mut emr = with_s3(emr(), &endpoint);
        let done = run_in(folder.path(), emr.env("AWS_ENDPOINT_URL", &endpoint), arguments);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(78), "{said}");
        for expected in [
            "cluster.id: the cluster runs several steps at once, expected one step at a time",
            "cluster.id: emr-5.36.0 is too old, expected emr-6.1.0 or newer",
            "cluster.id: m7g.xlarge has aarch64 processors, expected x86_64",
        ] {
            assert!(said.contains(expected), "{arguments:?}: {expected}: {said}");
        }
    }
    let steps = boto3(&endpoint, &format!("print(client('emr').list_steps(ClusterId='{cluster}')['Steps'])"));
    assert_eq!(steps, "[]");
}

#[test]
fn an_uploaded_program_of_the_same_size_with_other_content_is_refused() {
    let Some(server) = S3Server::start() else { return };
    let endpoint = format!("http://{}", server.address());
    let folder = folder(&[("eu-central-1", "us-east-1")]);
    let planned = run_in(folder.path(), &mut emr(), &["plan", "JOB.toml", "--json"]);
    let plan: Value = serde_json::from_slice(&planned.stdout).unwrap();
    let url = plan["uploads"][0]["url"].as_str().unwrap();
    let key = url.strip_prefix("s3://bucket/").unwrap();
    boto3(&endpoint, &format!("client('s3').put_object(Bucket='bucket', Key='{key}', Body=bytes(64))"));
    let mut emr = with_s3(emr(), &endpoint);
    let done = run_in(folder.path(), emr.env("AWS_ENDPOINT_URL", &endpoint), &["run", "JOB.toml"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(66), "{said}");
    let expected = format!("emr: {url}: the SHA-256 is f5a5fd42, expected ");
    assert!(said.contains(&expected) && said.ends_with("; delete the object, which is damaged\n"), "{said}");
}

#[test]
fn an_online_plan_without_credentials_ends_before_any_request() {
    let folder = folder(&[]);
    let mut emr = emr();
    emr.env_remove("AWS_ACCESS_KEY_ID").env("HOME", "/nonexistent");
    let done = run_in(folder.path(), &mut emr, &["plan", "JOB.toml", "--online"]);
    let said = text(&done.stderr);
    assert!(done.status.code() == Some(78) && said.starts_with("emr: connect to EMR: "), "{said}");
}

/// Sends the JSON of plans with boto3 to moto. moto has no fleets; those are checked against botocore's model.
#[test]
fn boto3_accepts_the_json_of_a_plan() {
    let Some(server) = S3Server::start() else { return };
    let small = [("m6i.", "m5."), ("emr-7.14.0", "emr-7.10.0"), ("eu-central-1", "us-east-1")];
    let planned = |changes: &[(&str, &str)]| {
        let folder = folder(&[&small, changes].concat());
        let done = run_in(folder.path(), &mut emr(), &["plan", "JOB.toml", "--json"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let example = text(&emr().args(["plan", "--example"]).output().unwrap().stdout);
    let between = |start: &str, end: &str| {
        let from = example.find(start).unwrap();
        let part = &example[from..from + example[from..].find(end).unwrap()];
        small.iter().fold(part.to_owned(), |part, (from, to)| part.replace(from, to))
    };
    let fleets = "[[cluster.fleets]]\nrole = \"primary\"\ntypes = { \"m5.xlarge\" = 1 }\non-demand = 1\n\
                  [[cluster.fleets]]\nrole = \"core\"\ntypes = { \"m5.xlarge\" = 4, \"m5.2xlarge\" = 8 }\non-demand = 8\nspot = 0\n\
                  [[cluster.fleets]]\nrole = \"task\"\ntypes = { \"m5.xlarge\" = 4 }\nspot = 8\ndisk-gib = 64\n";
    let running = "[cluster]\nid = \"j-CLUSTER\"\nregion = \"us-east-1\"\n\n";
    let plans = [
        planned(&[("keep = false", "keep = true")]),
        planned(&[(between("[cluster]", "[prices]").as_str(), running)]),
        planned(&[(between("[[cluster.groups]]", "# Fleets").as_str(), fleets)]),
    ];
    let script = r#"
import json, sys
import boto3
from botocore.validate import ParamValidator

groups, running, fleets = map(json.loads, sys.argv[2:])
emr = boto3.client("emr", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
cluster = emr.run_job_flow(**groups["run_job_flow"])["JobFlowId"]
described = emr.describe_cluster(ClusterId=cluster)["Cluster"]
assert described["Name"] == "reviews " + groups["run_id"], described
assert {"Key": "sentimill-run", "Value": groups["run_id"]} in described["Tags"], described
assert described["ReleaseLabel"] == "emr-7.10.0" and not described["AutoTerminate"], described
steps = running["add_job_flow_steps"]
assert steps["JobFlowId"] == "j-CLUSTER"
added = emr.add_job_flow_steps(**(steps | {"JobFlowId": cluster}))["StepIds"]
assert len(added) == 2
sent = [step["HadoopJarStep"]["Args"] for step in steps["Steps"]]
listed = {step["Id"]: step["Config"]["Args"] for step in emr.list_steps(ClusterId=cluster)["Steps"]}
assert [listed[step] for step in added] == sent and len(listed) == 4, listed
shape = emr.meta.service_model.operation_model("RunJobFlow").input_shape
assert not ParamValidator().validate(fleets["run_job_flow"], shape).has_errors()
assert len(fleets["run_job_flow"]["Instances"]["InstanceFleets"]) == 3
"#;
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/s3/bin/python");
    let endpoint = format!("http://{}", server.address());
    let done = Command::new(python).args(["-c", script, &endpoint]).args(&plans).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
}
