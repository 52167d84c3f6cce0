//! Converts a job file as written into a checked [`Job`]. Finds all deviations.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use program::size::{parse_memory, parse_size};
use store::S3Options;

use super::cluster_checks::has_form_of_region;
use super::file::{self, File, Value};
use super::flags::{FlagRefusal, InputFlags, OutputFlags, RowFlags, flags, parse_table, refused};
use super::reader::{KeyLines, NO_SUCH_KEY};
use super::{
    Credentials, Gpus, Hadoop, Input, Job, Output, Place, Purpose, RowSettings, Shared, cluster_checks, place,
};
use crate::finding::Finding;
use crate::secrets::is_secret;

const REDUCERS: u32 = 16;
/// The names of shards and of results of merge tasks have five digits.
const TASKS_RANGE: RangeInclusive<u32> = 1..=10_000;
const NAME_CHARS_MAX: usize = 200;
const NAME_REFUSED: &str = "<>$|`'\"\\";
const MACHINES_RANGE: RangeInclusive<u32> = 1..=64;

/// Settings of Hadoop that the job itself sets or that would change the dataset.
const RESERVED_SETTINGS: [&str; 9] = [
    "mapreduce.input.lineinputformat.linespermap",
    "mapreduce.job.name",
    "mapreduce.job.reduces",
    "mapred.reduce.tasks",
    "mapreduce.job.tags",
    "mapreduce.job.partitioner.class",
    "mapreduce.partition.",
    "mapreduce.job.output.key.comparator.class",
    "stream.",
];
/// The setting of Hadoop Streaming that does not change records.
const STREAM_SETTING: &str = "stream.jobconf.truncate.limit";

/// Checks all values.
pub fn checked(file: File, lines: KeyLines, folder: &Path, purpose: Purpose) -> Result<Job, Vec<Finding>> {
    let mut values = Values { lines: &lines, folder, findings: Vec::new() };
    let name = values.name(file.name.as_deref());
    let run = values.run(file.run.as_deref());
    let dataset = values.dataset(file.dataset.as_deref());
    let programs = values.programs(file.programs.as_deref());
    let staging = values.staging(file.staging.as_deref(), run.as_ref());
    let s3_options = values.s3(file.s3.as_deref());
    let input = values.input(&file.input);
    let rows = values.rows(file.rows);
    let output = values.output(&file.output);
    let hadoop = values.hadoop(&file.hadoop);
    let region = file.cluster.as_ref().map(|cluster| cluster.region.as_str());
    let gpus = file.gpus.and_then(|gpus| values.gpus(gpus, region));
    match (&file.cluster, purpose) {
        (Some(cluster), Purpose::Emr) => values.findings.extend(cluster_checks::check(cluster, &lines)),
        (Some(cluster), Purpose::NoCluster) => {
            values.findings.extend(cluster_checks::check_region(cluster, &lines));
        }
        (None, _) => {}
    }
    values.findings.extend(cluster_checks::check_prices(&file.prices, &lines));
    let findings = lines.sorted(values.findings);
    match (run, dataset) {
        (Some(run), Some(dataset)) if findings.is_empty() => Ok(Job {
            name,
            run,
            dataset,
            programs,
            staging,
            s3: file.s3,
            s3_options,
            input,
            rows,
            output,
            hadoop,
            cluster: file.cluster,
            prices: file.prices,
            gpus,
            lines,
        }),
        _ => Err(findings),
    }
}

struct Values<'l> {
    lines: &'l KeyLines,
    folder: &'l Path,
    findings: Vec<Finding>,
}

impl Values<'_> {
    fn refuse(&mut self, key: &str, found: impl Display, expected: &str) {
        self.findings.push(Finding::error(self.lines.thing(key), found.to_string(), expected));
    }

    fn name(&mut self, name: Option<&str>) -> String {
        let expected = "1 to 200 characters, without <>$|` quotes and backslashes";
        let Some(name) = name else {
            self.refuse("name", NO_SUCH_KEY, expected);
            return String::new();
        };
        let is_refused = |c: char| c.is_control() || NAME_REFUSED.contains(c);
        if !(1..=NAME_CHARS_MAX).contains(&name.chars().count()) || name.contains(is_refused) {
            self.refuse("name", format!("{name:?}"), expected);
        }
        name.to_owned()
    }

    fn place(&mut self, key: &str, text: Option<&str>) -> Option<Place> {
        let Some(text) = text else {
            self.refuse(key, NO_SUCH_KEY, "a path or an s3:// URL");
            return None;
        };
        Place::parse(text, self.folder).map_err(|(found, expected)| self.refuse(key, found, expected)).ok()
    }

    /// A place in S3 or on this machine.
    fn writable(&mut self, key: &str, text: Option<&str>) -> Option<Place> {
        let place = self.place(key, text)?;
        if let Place::Url(url) = &place {
            self.refuse(key, format!("{url:?}"), "a path or an s3:// URL");
            return None;
        }
        Some(place)
    }

    fn run(&mut self, text: Option<&str>) -> Option<Place> {
        let place = self.writable("run", text)?;
        // The message of the store starts with the name of the run, which the finding has already.
        match store::check_run(&place.to_string()) {
            Ok(()) => Some(place),
            Err(error) => {
                self.refuse("run", error, "");
                None
            }
        }
    }

    fn dataset(&mut self, text: Option<&str>) -> Option<Place> {
        let place = self.writable("dataset", text)?;
        if place.s3().is_some_and(|(_, key)| key.is_empty()) || text.is_some_and(|text| text.ends_with('/')) {
            self.refuse(
                "dataset",
                format!("{:?} names a folder", text.unwrap_or_default()),
                "the name of a file",
            );
            return None;
        }
        Some(place)
    }

    fn programs(&mut self, folder: Option<&str>) -> PathBuf {
        match folder.map(|_| self.place("programs", folder)) {
            Some(Some(Place::Local(path))) => path,
            Some(Some(other)) => {
                self.refuse("programs", other, "a folder on this machine");
                PathBuf::new()
            }
            Some(None) => PathBuf::new(),
            None => match std::env::current_exe() {
                Ok(program) => program::place::folder_of(&program).to_owned(),
                Err(_) => self.folder.to_owned(),
            },
        }
    }

    fn staging(&mut self, text: Option<&str>, run: Option<&Place>) -> Option<Place> {
        match text.map(|_| self.place("staging", text)) {
            None => run.and_then(Place::s3_parent).map(|parent| parent.join("programs")),
            Some(Some(place @ Place::S3 { .. })) if place.s3().is_some_and(|(_, key)| !key.is_empty()) => {
                Some(place)
            }
            Some(Some(other)) => {
                self.refuse("staging", format!("\"{other}\""), "an s3:// URL with a prefix");
                None
            }
            Some(None) => None,
        }
    }

    fn s3(&mut self, list: Option<&str>) -> S3Options {
        let options = list.map(str::parse::<S3Options>).transpose();
        options.map_err(|error| self.refuse("s3", error, "")).ok().flatten().unwrap_or_default()
    }

    /// The flags of a table, checked by the parser of the programs.
    fn flags<F: clap::CommandFactory + clap::FromArgMatches>(
        &mut self,
        name: &str,
        table: &BTreeMap<String, Value>,
        others: &[&str],
    ) -> Option<F> {
        let parsed = parse_table::<F>(table, others);
        parsed.map_err(|all| all.into_iter().for_each(|refused| self.refuse_flag(name, refused))).ok()
    }

    fn refuse_flag(&mut self, table: &str, (key, message): FlagRefusal) {
        let path = key.map(|key| format!("{table}.{key}")).filter(|path| self.lines.has(path));
        let thing = self.lines.thing(path.as_deref().unwrap_or(table));
        self.findings.push(Finding::error(thing, message, ""));
    }

    fn input(&mut self, table: &BTreeMap<String, Value>) -> Input {
        let texts = match table.get("places") {
            Some(Value::Texts(texts)) if !texts.is_empty() => texts.as_slice(),
            _ => {
                self.refuse("input.places", "no reviews", "a list of files, folders and URLs");
                &[]
            }
        };
        let places: Vec<_> = texts.iter().filter_map(|text| self.place("input.places", Some(text))).collect();
        for twice in place::named_twice(&places) {
            let finding = Finding::error(self.lines.thing("input.places"), twice, "");
            self.findings.push(finding.remedy("name it once"));
        }
        let bytes = table.get("bytes").and_then(|size| {
            parse_size(&size.text()).map_err(|error| self.refuse("input.bytes", error, "")).ok()
        });
        let format: BTreeMap<_, _> = table
            .iter()
            .filter(|(name, _)| {
                !["line-bytes-max", "bad-lines-max", "invalid-utf8-max"].contains(&name.as_str())
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(parsed) = self.flags::<InputFlags>("input", table, &["places", "bytes"])
            && let Err(error) = parsed.format.format()
        {
            self.refuse_flag("input", refused(&error.message));
        }
        let text = |name: &str| table.get(name).map(Value::text);
        Input {
            places,
            bytes,
            format_flags: flags(&format, &["places", "bytes"]),
            line_bytes_max: text("line-bytes-max"),
            bad_lines_max: text("bad-lines-max"),
            invalid_utf8_max: text("invalid-utf8-max"),
        }
    }

    fn rows(&mut self, mut table: BTreeMap<String, Value>) -> RowSettings {
        let named = ["nltk", "nltk-negations", "none"];
        // Reducers read a list in S3 by themselves.
        let is_file = |list: &String| !named.contains(&list.as_str()) && !list.starts_with("s3://");
        let file = table.get("stopwords").map(Value::text).filter(is_file);
        let stop_words = file.map(|file| self.folder.join(file));
        if let Some(path) = &stop_words {
            table.insert("stopwords".to_owned(), Value::Text(path.display().to_string()));
        }
        if let Some(parsed) = self.flags::<RowFlags>("rows", &table, &[])
            // A list in S3 is not read, because a plan sends nothing.
            && let Err(error) = parsed.rows.settings(&|_| Ok(Vec::new()))
        {
            self.refuse_flag("rows", refused(&error.message));
        }
        let others: &[&str] = if stop_words.is_some() { &["stopwords"] } else { &[] };
        RowSettings { flags: flags(&table, others), stop_words }
    }

    fn output(&mut self, table: &BTreeMap<String, Value>) -> Output {
        let texts = self.flags::<OutputFlags>("output", table, &[]).is_some_and(|flags| flags.texts);
        let mut dataset = |name: &str| {
            let text = table.get(name).map(Value::text)?;
            self.writable(&format!("output.{name}"), Some(&text))
        };
        let (vocabulary, without) = (dataset("vocabulary"), dataset("without"));
        Output { flags: flags(table, &["vocabulary", "without", "texts"]), vocabulary, without, texts }
    }

    fn hadoop(&mut self, table: &file::HadoopTable) -> Hadoop {
        let reducers = table.reducers.unwrap_or(REDUCERS);
        let merge_tasks = table.merge_tasks;
        for (key, tasks) in [("hadoop.reducers", Some(reducers)), ("hadoop.merge-tasks", merge_tasks)] {
            if let Some(tasks) = tasks.filter(|tasks| !TASKS_RANGE.contains(tasks)) {
                self.refuse(key, tasks, "a number from 1 to 10000");
            }
        }
        let reducer_memory = table.reducer_memory.as_ref().map(Value::text);
        if let Some(Err(error)) = reducer_memory.as_deref().map(parse_memory) {
            self.refuse("hadoop.reducer-memory", error, "");
        }
        let settings: BTreeMap<_, _> =
            table.settings.iter().map(|(name, value)| (name.clone(), value.text())).collect();
        for (name, value) in &table.settings {
            self.setting(name, value);
        }
        let credentials = table.credentials.as_deref().and_then(|text| self.credentials(text));
        let combiner = table.combiner.unwrap_or(true);
        let keep_words = table.keep_words.unwrap_or(false);
        Hadoop { reducers, combiner, keep_words, reducer_memory, merge_tasks, settings, credentials }
    }

    fn credentials(&mut self, text: &str) -> Option<Credentials> {
        match text {
            "role" => Some(Credentials::Role),
            path if path.starts_with('/') && !path.contains(char::is_whitespace) => {
                Some(Credentials::File(path.to_owned()))
            }
            _ => {
                let expected = "role, or the absolute path of a file on each node";
                // The value may be a key.
                self.refuse("hadoop.credentials", "another text", expected);
                None
            }
        }
    }

    fn setting(&mut self, name: &str, value: &Value) {
        let key = format!("hadoop.settings.{name}");
        if let Value::Texts(_) = value {
            self.refuse(&key, "a list", "a text, a number, true or false");
        }
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(of_name) {
            self.refuse(&key, format!("{name:?}"), "a name of letters, digits, dots, - and _");
        }
        let is_reserved = RESERVED_SETTINGS
            .iter()
            .any(|reserved| name == *reserved || (reserved.ends_with('.') && name.starts_with(reserved)));
        if is_reserved && name != STREAM_SETTING {
            self.refuse(
                &key,
                "a setting that the job sets itself or that would change the dataset",
                "other settings",
            );
        }
        if is_secret(name) {
            let expected = "no credentials, because Hadoop stores settings in the job's history";
            let finding = Finding::error(self.lines.thing(&key), "a setting for credentials", expected);
            let remedy = "use the role of the nodes, or hadoop credential create and hadoop.security.credential.provider.path";
            self.findings.push(finding.remedy(remedy));
        }
    }

    fn gpus(&mut self, gpus: file::GpusTable, region: Option<&str>) -> Option<Gpus> {
        let machines = gpus.machines.unwrap_or(1);
        if !MACHINES_RANGE.contains(&machines) {
            self.refuse("gpus.machines", machines, "a number from 1 to 64");
        }
        let is_id = |text: &String, kind: &str| {
            let id = text.strip_prefix(kind).unwrap_or_default();
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let image = self.required("gpus.image", gpus.image, "an AMI such as ami-0123456789abcdef0");
        if image.as_ref().is_some_and(|image| !is_id(image, "ami-")) {
            self.refuse(
                "gpus.image",
                format!("{:?}", image.as_deref().unwrap_or_default()),
                "an AMI such as ami-0123456789abcdef0",
            );
        }
        if let Some(subnet) = gpus.subnet.as_ref().filter(|subnet| !is_id(subnet, "subnet-")) {
            self.refuse(
                "gpus.subnet",
                format!("{subnet:?}"),
                "the id of a subnet, such as subnet-0a1b2c3d4e5f67890",
            );
        }
        let instance_type =
            self.required("gpus.type", gpus.instance_type, "an instance type such as g6.12xlarge");
        if let Some(region) = gpus.region.as_ref().filter(|region| !has_form_of_region(region)) {
            self.refuse("gpus.region", format!("{region:?}"), "a region such as eu-central-1");
        }
        let region = gpus.region.or_else(|| region.map(str::to_owned));
        let region = self.required("gpus.region", region, "a region such as eu-central-1");
        let profile = self.required("gpus.instance-profile", gpus.instance_profile, "an instance profile");
        let files = self.required("gpus.files", gpus.files, "an s3:// URL");
        let files = files.and_then(|files| self.place("gpus.files", Some(&files)));
        if let Some(other) = files.as_ref().filter(|files| files.s3().is_none()) {
            self.refuse("gpus.files", format!("\"{other}\""), "an s3:// URL");
        }
        let expected = "the SHA-256 of the file SHA256SUMS in gpus.files, 64 hexadecimal digits";
        let sha256 = self.required("gpus.sha256", gpus.sha256, expected);
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if let Some(other) = sha256.as_ref().filter(|text| text.len() != 64 || !text.bytes().all(is_digit)) {
            self.refuse("gpus.sha256", format!("{other:?}"), expected);
        }
        let out = self.required("gpus.out", gpus.out, "an s3:// URL, or a path in /mnt/shared");
        let out = out.and_then(|out| self.writable("gpus.out", Some(&out)));
        let shared = gpus.shared.as_deref().and_then(|shared| self.shared(shared));
        Some(Gpus {
            instance_type: instance_type?,
            machines,
            image: image?,
            subnet: gpus.subnet,
            region: region?,
            instance_profile: profile?,
            files: files?,
            sha256: sha256?,
            shared,
            out: out?,
            arguments: gpus.arguments,
        })
    }

    fn required(&mut self, key: &str, value: Option<String>, expected: &str) -> Option<String> {
        let value = value.filter(|value| !value.is_empty());
        if value.is_none() {
            self.refuse(key, NO_SUCH_KEY, expected);
        }
        value
    }

    fn shared(&mut self, text: &str) -> Option<Shared> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        let is_path =
            |path: &str| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
        let nfs = text.strip_prefix("nfs://").and_then(|rest| rest.split_once('/'));
        let efs = text.strip_prefix("efs://");
        match (nfs, efs) {
            (Some((server, path)), _) if is_name(server) && is_path(path) => {
                Some(Shared::Nfs { server: server.to_owned(), path: format!("/{path}") })
            }
            (_, Some(id)) if id.starts_with("fs-") && is_name(id) => Some(Shared::Efs { id: id.to_owned() }),
            _ => {
                self.refuse("gpus.shared", format!("{text:?}"), "nfs://SERVER/PATH or efs://fs-ID");
                None
            }
        }
    }
}
