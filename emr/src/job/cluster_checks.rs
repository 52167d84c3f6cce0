//! Checks the values of the tables `cluster` and `prices`, as far as they do not depend on AWS.

use super::cluster::{ClusterTable, Prices, Role};
use super::file::Value;
use super::place::Place;
use super::reader::{KeyLines, NO_SUCH_KEY};
use crate::finding::Finding;

/// Keys that a job with a running cluster can have.
const OF_RUNNING: [&str; 2] = ["cluster.id", "cluster.region"];
/// Limits of EMR.
const BOOTSTRAP_MAX: usize = 16;
const TASK_GROUPS_MAX: usize = 48;
const IDLE_TIMEOUT_S: std::ops::RangeInclusive<u32> = 60..=604_800;
const SPOT_TIMEOUT_MIN: std::ops::RangeInclusive<u32> = 5..=1440;
/// With an allocation strategy, which requests always have.
const FLEET_TYPES_MAX: usize = 30;
/// Limits of tags. Two of EMR's 50 are the job's.
const TAGS_MAX: usize = 48;
const TAG_KEY_MAX: usize = 128;
const TAG_VALUE_MAX: usize = 256;
const EBS_GIB_MAX: u32 = 16_384;

const WHY_NO_SPOT: &str = "on-demand instances: EMR takes spot instances away, and HDFS and the shuffled records of the job are on core nodes";

/// All findings of a cluster.
pub fn check(cluster: &ClusterTable, lines: &KeyLines) -> Vec<Finding> {
    let mut checks = ClusterChecks { lines, findings: Vec::new() };
    checks.region(cluster);
    match &cluster.id {
        Some(id) => checks.running(id),
        None => {
            checks.names(cluster);
            checks.groups(cluster);
            checks.fleets(cluster);
            checks.bootstrap(cluster);
            checks.tags(cluster);
        }
    }
    checks.findings
}

/// The findings of a cluster that matter to every runner: its region is that of the buckets.
pub fn check_region(cluster: &ClusterTable, lines: &KeyLines) -> Vec<Finding> {
    let mut checks = ClusterChecks { lines, findings: Vec::new() };
    checks.form_of_region(cluster);
    checks.findings
}

/// All findings of the prices.
pub fn check_prices(prices: &Prices, lines: &KeyLines) -> Vec<Finding> {
    let mut checks = ClusterChecks { lines, findings: Vec::new() };
    for (name, price) in &prices.instances {
        for (key, value) in [("ec2", Some(price.ec2)), ("emr", Some(price.emr)), ("spot", price.spot)] {
            let is_price = value.is_none_or(|value| value.is_finite() && value >= 0.0);
            checks.require(is_price, &format!("prices.instances.{name}.{key}"), || {
                (format!("{}", value.unwrap_or_default()), "a price of 0 or more".to_owned())
            });
        }
    }
    checks.findings
}

/// Whether a name has the form of eu-central-1.
pub fn has_form_of_region(name: &str) -> bool {
    let parts: Vec<_> = name.split('-').collect();
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = |part: &&str| part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() >= 3 && parts[..parts.len() - 1].iter().all(is_word) && parts.last().is_some_and(is_number)
}

struct ClusterChecks<'l> {
    lines: &'l KeyLines,
    findings: Vec<Finding>,
}

impl ClusterChecks<'_> {
    fn require(&mut self, holds: bool, key: &str, refused: impl FnOnce() -> (String, String)) {
        if !holds {
            let (found, expected) = refused();
            self.findings.push(Finding::error(self.lines.thing(key), found, expected));
        }
    }

    fn region(&mut self, cluster: &ClusterTable) {
        let region = &cluster.region;
        self.require(!region.is_empty(), "cluster.region", || {
            ("no region".to_owned(), "a region such as eu-central-1".to_owned())
        });
        self.form_of_region(cluster);
    }

    fn form_of_region(&mut self, cluster: &ClusterTable) {
        let region = &cluster.region;
        self.require(region.is_empty() || has_form_of_region(region), "cluster.region", || {
            (format!("{region:?}"), "a region such as eu-central-1".to_owned())
        });
    }

    fn running(&mut self, id: &str) {
        let is_id = id.strip_prefix("j-").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        });
        self.require(is_id, "cluster.id", || {
            (format!("{id:?}"), "the id of a cluster, such as j-2AXXXXXXGAPLF".to_owned())
        });
        for key in self.lines.of_table("cluster") {
            self.require(OF_RUNNING.contains(&key), key, || {
                ("a property of a new cluster".to_owned(), "only region beside cluster.id".to_owned())
            });
        }
    }

    fn names(&mut self, cluster: &ClusterTable) {
        self.require(cluster.subnets.len() <= 1 || !cluster.fleets.is_empty(), "cluster.subnets", || {
            ("several subnets".to_owned(), "one, because only fleets choose among subnets".to_owned())
        });
        for subnet in &cluster.subnets {
            let is_id = subnet.strip_prefix("subnet-").is_some_and(|id| {
                (8..=17).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            self.require(is_id, "cluster.subnets", || {
                (format!("{subnet:?}"), "the id of a subnet, such as subnet-0a1b2c3d4e5f67890".to_owned())
            });
        }
        for (key, role) in
            [("service-role", &cluster.service_role), ("instance-profile", &cluster.instance_profile)]
        {
            let of_role = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-/:".contains(&byte);
            let is_role = !role.is_empty() && role.len() <= 2048 && role.bytes().all(of_role);
            self.require(is_role, &format!("cluster.{key}"), || {
                (format!("{role:?}"), "the name or ARN of a role".to_owned())
            });
        }
        let s = cluster.idle_timeout_s;
        self.require(IDLE_TIMEOUT_S.contains(&s), "cluster.idle-timeout-s", || {
            (format!("{s} s"), "60 s to 604800 s (7 days)".to_owned())
        });
        if let Some(log) = &cluster.log {
            self.s3("cluster.log", log);
        }
    }

    fn s3(&mut self, key: &str, text: &str) {
        match Place::parse(text, "".as_ref()) {
            Ok(Place::S3 { .. }) => {}
            Ok(_) => self.require(false, key, || (format!("{text:?}"), "an s3:// URL".to_owned())),
            Err((found, expected)) => self.require(false, key, || (found, expected.to_owned())),
        }
    }

    fn groups(&mut self, cluster: &ClusterTable) {
        let (groups, fleets) = (&cluster.groups, &cluster.fleets);
        self.require(groups.is_empty() || fleets.is_empty(), "cluster.fleets", || {
            ("groups and fleets".to_owned(), "either [[cluster.groups]] or [[cluster.fleets]]".to_owned())
        });
        self.require(!groups.is_empty() || !fleets.is_empty(), "cluster.groups", || {
            ("no nodes".to_owned(), "[[cluster.groups]], [[cluster.fleets]] or cluster.id".to_owned())
        });
        let count = |role| groups.iter().filter(|group| group.role == role).count();
        self.require(groups.is_empty() || count(Role::Primary) == 1, "cluster.groups", || {
            (format!("{} primary groups", count(Role::Primary)), "exactly one".to_owned())
        });
        self.require(count(Role::Core) <= 1, "cluster.groups", || {
            (format!("{} core groups", count(Role::Core)), "at most one".to_owned())
        });
        self.require(count(Role::Task) <= TASK_GROUPS_MAX, "cluster.groups", || {
            (format!("{} task groups", count(Role::Task)), format!("at most {TASK_GROUPS_MAX}"))
        });
        self.require(count(Role::Task) == 0 || count(Role::Core) == 1, "cluster.groups", || {
            ("a task group without a core group".to_owned(), "a core group, which stores HDFS".to_owned())
        });
        for (n, group) in groups.iter().enumerate() {
            let (at, role) = (format!("cluster.groups[{n}]"), group.role);
            self.require(!group.instance_type.is_empty(), &format!("{at}.type"), || {
                (NO_SUCH_KEY.to_owned(), "an instance type such as m6i.xlarge".to_owned())
            });
            self.require(!group.spot || role == Role::Task, &format!("{at}.spot"), || {
                (format!("spot instances for {} nodes", role.name()), WHY_NO_SPOT.to_owned())
            });
            // EMR protects a cluster with three primary nodes from termination, so it would not end by itself.
            let is_count = if role == Role::Primary { group.count == 1 } else { group.count >= 1 };
            self.require(is_count, &format!("{at}.count"), || {
                let expected = match role {
                    Role::Primary => "1: EMR does not end a cluster with several primary nodes by itself",
                    Role::Core | Role::Task => "1 or more",
                };
                (format!("{} {} nodes", group.count, role.name()), expected.to_owned())
            });
            self.disk(&at, group.disk_gib);
        }
    }

    fn fleets(&mut self, cluster: &ClusterTable) {
        let fleets = &cluster.fleets;
        for role in [Role::Primary, Role::Core, Role::Task] {
            let count = fleets.iter().filter(|fleet| fleet.role == role).count();
            let is_count = count <= 1 && (count == 1 || role != Role::Primary || fleets.is_empty());
            self.require(is_count, "cluster.fleets", || {
                let expected = if role == Role::Primary { "exactly one" } else { "at most one" };
                (format!("{count} {} fleets", role.name()), expected.to_owned())
            });
        }
        for (n, fleet) in fleets.iter().enumerate() {
            let (at, role) = (format!("cluster.fleets[{n}]"), fleet.role);
            self.require(fleet.spot == 0 || role == Role::Task, &format!("{at}.spot"), || {
                (format!("spot capacity for {} nodes", role.name()), WHY_NO_SPOT.to_owned())
            });
            let capacity = u64::from(fleet.on_demand) + u64::from(fleet.spot);
            let is_capacity = if role == Role::Primary { capacity == 1 } else { capacity > 0 };
            self.require(is_capacity, &format!("{at}.on-demand"), || {
                let expected =
                    if role == Role::Primary { "a capacity of 1" } else { "a capacity of 1 or more" };
                (format!("a capacity of {capacity} for {} nodes", role.name()), expected.to_owned())
            });
            self.require((1..=FLEET_TYPES_MAX).contains(&fleet.types.len()), &format!("{at}.types"), || {
                (format!("{} types", fleet.types.len()), format!("1 to {FLEET_TYPES_MAX}"))
            });
            for (name, weight) in &fleet.types {
                let is_weight = weight.fract() == 0.0 && (1.0..=999.0).contains(weight);
                self.require(is_weight, &format!("{at}.types.{name}"), || {
                    (format!("a weight of {weight}"), "a whole number from 1 to 999".to_owned())
                });
            }
            self.require(
                SPOT_TIMEOUT_MIN.contains(&fleet.spot_timeout_min),
                &format!("{at}.spot-timeout-min"),
                || (format!("{} minutes", fleet.spot_timeout_min), "5 to 1440 minutes".to_owned()),
            );
            self.disk(&at, fleet.disk_gib);
        }
    }

    fn disk(&mut self, at: &str, gib: Option<u32>) {
        let is_size = gib.is_none_or(|gib| (1..=EBS_GIB_MAX).contains(&gib));
        self.require(is_size, &format!("{at}.disk-gib"), || {
            (format!("{} GiB", gib.unwrap_or_default()), format!("1 to {EBS_GIB_MAX} GiB"))
        });
    }

    fn bootstrap(&mut self, cluster: &ClusterTable) {
        let actions = &cluster.bootstrap;
        self.require(actions.len() <= BOOTSTRAP_MAX, "cluster.bootstrap", || {
            (format!("{} bootstrap actions", actions.len()), format!("at most {BOOTSTRAP_MAX}"))
        });
        for (n, action) in actions.iter().enumerate() {
            self.s3(&format!("cluster.bootstrap[{n}].script"), &action.script);
            let is_name = !action.name.is_empty() && action.name.chars().count() <= 256;
            self.require(is_name, &format!("cluster.bootstrap[{n}].name"), || {
                (format!("{:?}", action.name), "a name of 1 to 256 characters".to_owned())
            });
        }
    }

    fn tags(&mut self, cluster: &ClusterTable) {
        for (name, value) in &cluster.tags {
            self.require(!matches!(value, Value::Texts(_)), &format!("cluster.tags.{name}"), || {
                ("a list".to_owned(), "a text, a number, true or false".to_owned())
            });
        }
        let tags = cluster.tags();
        self.require(tags.len() <= TAGS_MAX, "cluster.tags", || {
            (format!("{} tags", tags.len()), format!("at most {TAGS_MAX}"))
        });
        let of_tag = |c: char| c.is_alphanumeric() || " _.:/=+-@".contains(c);
        for (name, value) in &tags {
            let is_name = (1..=TAG_KEY_MAX).contains(&name.chars().count()) && name.chars().all(of_tag);
            let is_value = value.chars().count() <= TAG_VALUE_MAX && value.chars().all(of_tag);
            let is_free = !["aws:", "sentimill"].iter().any(|start| name.to_lowercase().starts_with(start));
            self.require(is_name && is_value && is_free, &format!("cluster.tags.{name}"), || {
                let expected = "letters, digits, spaces and _.:/=+-@, at most 128 in the key and 256 in the value; \
                                keys that start with aws: or sentimill are reserved";
                (format!("{name:?} = {value:?}"), expected.to_owned())
            });
        }
    }
}
