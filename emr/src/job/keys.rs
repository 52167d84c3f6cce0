//! The keys of a job file: tables, names, kinds and meanings. The reader refuses every other key, and the page
//! docs/emr.md has this list.

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A whole number.
    Number,
    /// A number, which may have decimals.
    Amount,
    /// true or false.
    Switch,
    /// A whole number or a string; flags with special values accept both.
    NumberOrText,
    /// A table whose keys are free: names and strings, numbers or switches.
    Values,
    /// A table of numbers, which may have decimals.
    Amounts,
    /// A table of tables with free names.
    Named,
    /// A table.
    Table,
    /// A list of tables.
    Tables,
}

impl Kind {
    /// The kind in messages and in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text | Self::OneOf(_) => "text",
            Self::Texts => "list of texts",
            Self::Number => "whole number",
            Self::Amount => "number",
            Self::Switch => "true or false",
            Self::NumberOrText => "number or text",
            Self::Values => "table of values",
            Self::Amounts => "table of numbers",
            Self::Named => "table of tables",
            Self::Table => "table",
            Self::Tables => "list of tables",
        }
    }
}

impl Kind {
    /// What a message expects.
    pub fn expected(self) -> String {
        match self {
            Self::OneOf([names @ .., last]) => format!("{} or {last}", names.join(", ")),
            Self::Number => "a whole number of 0 or more".to_owned(),
            Self::Switch => self.name().to_owned(),
            _ => format!("a {}", self.name()),
        }
    }
}

/// A key of the job file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table, empty for keys before the first table.
    pub table: &'static str,
    /// The name of the key.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// What it sets, with its default.
    pub meaning: &'static str,
}

impl Key {
    /// Whether its table must have it, as its meaning states.
    pub fn is_required(&self) -> bool {
        self.meaning.ends_with("Required.")
    }

    /// Whether its value is checked by a program's parser of flags.
    pub fn is_flag(&self) -> bool {
        ["input", "rows", "output"].contains(&self.table)
    }
}

const ROLES: Kind = Kind::OneOf(&["primary", "core", "task"]);
const TIMEOUT_ACTIONS: Kind = Kind::OneOf(&["switch-to-on-demand", "terminate-cluster"]);
const ALLOCATIONS: Kind =
    Kind::OneOf(&["price-capacity-optimized", "capacity-optimized", "lowest-price", "diversified"]);

const fn key(table: &'static str, name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { table, name, kind, meaning }
}

/// All keys, in the order of the documentation. Keys of `input`, `rows` and `output` that are flags of a program
/// have the names of the flags.
pub const KEYS: &[Key] = &[
    key("", "name", Kind::Text, "Name of the job. Required."),
    key("", "run", Kind::Text, "Folder of the run: an s3:// URL or a folder that all nodes share. Required."),
    key("", "dataset", Kind::Text, "Dataset to write: an s3:// URL or a path. Required."),
    key("", "programs", Kind::Text, "Folder of the programs. Default: the folder of `emr`."),
    key(
        "",
        "staging",
        Kind::Text,
        "s3:// folder to which programs are uploaded. Default: `programs` beside the run.",
    ),
    key("", "s3", Kind::Text, "Options for S3, as in `--s3` of the programs."),
    key("", "input", Kind::Table, "The reviews. Required."),
    key("", "rows", Kind::Table, "Settings of rows: flags of `reducer`."),
    key("", "output", Kind::Table, "Settings of the dataset: flags of `merge`."),
    key("", "hadoop", Kind::Table, "Settings of the Hadoop job."),
    key("", "cluster", Kind::Table, "The cluster on Amazon EMR."),
    key("", "prices", Kind::Table, "Prices, for the estimate and the cost of a run."),
    key("", "gpus", Kind::Table, "Machines for training, for `emr gpus`."),
    key(
        "input",
        "places",
        Kind::Texts,
        "Files, folders and URLs of the reviews. On a cluster: s3:// or hdfs:// URLs. Required.",
    ),
    key("input", "bytes", Kind::NumberOrText, "Size of the input, such as \"90GB\", for the estimate."),
    key("input", "format", Kind::Text, "`mapper --format`."),
    key("input", "preset", Kind::Text, "`mapper --preset`."),
    key("input", "text-field", Kind::Text, "`mapper --text-field`."),
    key("input", "rating-field", Kind::Text, "`mapper --rating-field`."),
    key("input", "class-ratings", Kind::Text, "`mapper --class-ratings`."),
    key("input", "rating-scale", Kind::Text, "`mapper --rating-scale`."),
    key("input", "unrated", Kind::Text, "`mapper --unrated`."),
    key("input", "with-title", Kind::Switch, "`mapper --with-title`."),
    key("input", "delimiter", Kind::Text, "`sentimill --delimiter`, for a table."),
    key("input", "quote", Kind::Text, "`sentimill --quote`, for a table."),
    key("input", "encoding", Kind::Text, "`mapper --encoding`."),
    key("input", "line-bytes-max", Kind::NumberOrText, "`mapper --line-bytes-max`."),
    key("input", "bad-lines-max", Kind::Amount, "`--bad-lines-max` of `mapper` and `merge`."),
    key("input", "invalid-utf8-max", Kind::Amount, "`--invalid-utf8-max` of `mapper` and `merge`."),
    key("rows", "profile", Kind::Text, "`reducer --profile`."),
    key("rows", "stopwords", Kind::Text, "`reducer --stopwords`. A local file is sent to all tasks."),
    key("rows", "max-tokens", Kind::Number, "`reducer --max-tokens`."),
    key("rows", "keep", Kind::Text, "`reducer --keep`."),
    key("rows", "positive-from", Kind::Number, "`reducer --positive-from`."),
    key("rows", "labels", Kind::Text, "`reducer --labels`."),
    key("rows", "sample", Kind::Amount, "`reducer --sample`."),
    key("output", "vocabulary-size", Kind::Number, "`merge --vocabulary-size`."),
    key("output", "vocabulary", Kind::Text, "`merge --vocabulary`: a path or an s3:// URL."),
    key("output", "without", Kind::Text, "`merge --without`: a path or an s3:// URL."),
    key("output", "padded", Kind::Number, "`merge --padded`."),
    key("hadoop", "reducers", Kind::Number, "Number of reducers, 1 to 10000. Default: 16."),
    key("hadoop", "combiner", Kind::Switch, "Whether map tasks combine records. Default: true."),
    key("hadoop", "reducer-memory", Kind::NumberOrText, "`reducer --memory`. Default: 128MiB."),
    key(
        "hadoop",
        "credentials",
        Kind::Text,
        "Credentials of the tasks with `--runner hadoop`, if the run is in S3: `role` for the role of the nodes, or a file on each node.",
    ),
    key("hadoop", "settings", Kind::Values, "Settings of Hadoop, passed with `-D`."),
    key(
        "cluster",
        "id",
        Kind::Text,
        "A running cluster to use, such as j-2AXXXXXXGAPLF. Excludes the keys of a new cluster.",
    ),
    key("cluster", "region", Kind::Text, "AWS region, such as eu-central-1. Required."),
    key("cluster", "release", Kind::Text, "EMR release. Default: emr-7.14.0."),
    key("cluster", "subnets", Kind::Texts, "Subnets; several only with fleets. Default: that of EMR."),
    key("cluster", "service-role", Kind::Text, "IAM role of EMR. Default: EMR_DefaultRole."),
    key(
        "cluster",
        "instance-profile",
        Kind::Text,
        "Instance profile of the nodes. Default: EMR_EC2_DefaultRole.",
    ),
    key("cluster", "tags", Kind::Values, "Tags of the cluster and its nodes."),
    key(
        "cluster",
        "idle-timeout-s",
        Kind::Number,
        "Seconds without work after which EMR terminates the cluster, 60 to 604800. Default: 900.",
    ),
    key(
        "cluster",
        "keep",
        Kind::Switch,
        "Whether the cluster waits for more steps when the job is done. Default: false.",
    ),
    key("cluster", "log", Kind::Text, "s3:// folder for logs. Without it, failures cannot be diagnosed."),
    key("cluster", "groups", Kind::Tables, "Instance groups: one primary, at most one core, task groups."),
    key("cluster", "fleets", Kind::Tables, "Instance fleets, in place of groups: at most one per role."),
    key("cluster", "bootstrap", Kind::Tables, "Bootstrap actions, at most 16."),
    key("cluster.groups", "role", ROLES, "primary, core or task. Required."),
    key("cluster.groups", "type", Kind::Text, "Instance type, such as m6i.xlarge. Required."),
    key("cluster.groups", "count", Kind::Number, "Number of instances. Default: 1."),
    key(
        "cluster.groups",
        "spot",
        Kind::Switch,
        "Whether the nodes are spot instances; task groups only. Default: false.",
    ),
    key("cluster.groups", "disk-gib", Kind::Number, "Size of an additional EBS volume per instance."),
    key("cluster.fleets", "role", ROLES, "primary, core or task. Required."),
    key(
        "cluster.fleets",
        "types",
        Kind::Amounts,
        "Instance types with their weights, such as { \"m6i.xlarge\" = 4 }. Required.",
    ),
    key("cluster.fleets", "on-demand", Kind::Number, "On-demand capacity, in units of weight. Default: 0."),
    key(
        "cluster.fleets",
        "spot",
        Kind::Number,
        "Spot capacity, in units of weight; task fleets only. Default: 0.",
    ),
    key("cluster.fleets", "disk-gib", Kind::Number, "Size of an additional EBS volume per instance."),
    key(
        "cluster.fleets",
        "spot-timeout-min",
        Kind::Number,
        "Minutes to wait for spot capacity, 5 to 1440. Default: 10.",
    ),
    key(
        "cluster.fleets",
        "spot-timeout-action",
        TIMEOUT_ACTIONS,
        "switch-to-on-demand or terminate-cluster. Default: switch-to-on-demand.",
    ),
    key(
        "cluster.fleets",
        "spot-allocation",
        ALLOCATIONS,
        "price-capacity-optimized, capacity-optimized, lowest-price or diversified. Default: price-capacity-optimized.",
    ),
    key("cluster.bootstrap", "name", Kind::Text, "Name of the action. Required."),
    key("cluster.bootstrap", "script", Kind::Text, "s3:// URL of the script. Required."),
    key("cluster.bootstrap", "arguments", Kind::Texts, "Arguments of the script."),
    key("prices", "currency", Kind::Text, "Currency of all prices. Default: USD."),
    key("prices", "instances", Kind::Named, "Prices by instance type."),
    key("prices.instances", "ec2", Kind::Amount, "Price of an on-demand instance per hour. Required."),
    key("prices.instances", "emr", Kind::Amount, "Fee of EMR per instance and hour. Required."),
    key(
        "prices.instances",
        "spot",
        Kind::Amount,
        "Price of a spot instance per hour. Default: that of an on-demand instance.",
    ),
    key("gpus", "type", Kind::Text, "Instance type with GPUs, such as g6.12xlarge. Required."),
    key("gpus", "machines", Kind::Number, "Number of machines. Default: 1."),
    key("gpus", "region", Kind::Text, "AWS region. Default: that of the cluster."),
    key("gpus", "image", Kind::Text, "AMI with an NVIDIA driver, such as ami-0123456789abcdef0. Required."),
    key("gpus", "subnet", Kind::Text, "Subnet of the machines."),
    key(
        "gpus",
        "instance-profile",
        Kind::Text,
        "Instance profile of the machines, with access to S3. Required.",
    ),
    key(
        "gpus",
        "files",
        Kind::Text,
        "s3:// folder with `trainer`, the scripts of bootstrap/gpu-node/ and the folder `wheelhouse`. Required.",
    ),
    key(
        "gpus",
        "sha256",
        Kind::Text,
        "SHA-256 of the file SHA256SUMS in that folder, which lists `trainer`, the scripts and wheelhouse/requirements.txt. Required.",
    ),
    key(
        "gpus",
        "shared",
        Kind::Text,
        "Folder that all machines share: nfs://SERVER/PATH or efs://fs-ID. Default: none; each machine caches the dataset.",
    ),
    key(
        "gpus",
        "out",
        Kind::Text,
        "Training folder: an s3:// URL, or a path in the shared folder, /mnt/shared. Required.",
    ),
    key("gpus", "arguments", Kind::Texts, "More arguments of `trainer fit`."),
];

/// The keys of a table.
pub fn of_table(table: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.table == table)
}

/// The name that is nearest to `name`, if one is near: at most a third of its characters differ, or one contains
/// the other.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().div_ceil(3).max(1);
    let near = names.filter_map(|known| {
        let contains =
            name.len() >= 3 && (known.contains(name) || (known.len() >= 3 && name.contains(known)));
        let distance = distance(name, known);
        (contains || distance <= limit).then_some((distance, known))
    });
    near.min().map(|(_, known)| known)
}

/// Number of insertions, deletions, replacements and swaps of adjacent characters that turn one text into the
/// other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(from != to);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = || of_table("cluster").map(|key| key.name);
        assert_eq!(nearest("regoin", names()), Some("region"));
        assert_eq!(nearest("subnet", names()), Some("subnets"));
        assert_eq!(nearest("idle-timeout", names()), Some("idle-timeout-s"));
        assert_eq!(nearest("zzzzzz", names()), None);
    }

    #[test]
    fn each_table_has_a_key_in_its_parent() {
        for key in KEYS.iter().filter(|key| !key.table.is_empty()) {
            let (parent, name) = key.table.rsplit_once('.').unwrap_or(("", key.table));
            let of = of_table(parent).find(|key| key.name == name).expect(key.table);
            assert!(matches!(of.kind, Kind::Table | Kind::Tables | Kind::Named), "{}", key.table);
        }
    }
}
