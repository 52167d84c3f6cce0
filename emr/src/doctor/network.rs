//! The network interface that NCCL and Gloo use between machines.

use std::env;
use std::fs;
use std::path::Path;

use super::check::Checks;

pub(super) fn examine(checks: &mut Checks) {
    let names = interfaces(&fs::read_to_string("/proc/net/dev").unwrap_or_default());
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (nccl, gloo) = (set("NCCL_SOCKET_IFNAME"), set("GLOO_SOCKET_IFNAME"));
    let has_rdma =
        Path::new("/sys/class/infiniband").read_dir().is_ok_and(|mut devices| devices.next().is_some());
    let shown = names.join(", ");
    let others: Vec<&String> = names.iter().filter(|name| *name != "lo" && !is_of_containers(name)).collect();
    let chosen = nccl.as_deref().and_then(|value| taken(value, &names));
    let remedy = "run bootstrap/gpu-node/nccl.sh on every machine of a training; it sets NCCL_SOCKET_IFNAME and \
                  GLOO_SOCKET_IFNAME to the interface of the default route";
    match &nccl {
        Some(value) if taken(value, &names).is_none() => {
            checks.missing("network", format!("NCCL_SOCKET_IFNAME={value} matches none of {shown}"), remedy);
        }
        Some(value) => {
            checks.ok(
                "network",
                format!("{} by NCCL_SOCKET_IFNAME={value}", chosen.as_deref().unwrap_or_default()),
            );
        }
        None if others.len() > 1 => {
            let shown = others.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
            checks.warning("network", format!("NCCL may take any of {shown}"), remedy);
        }
        None => {
            checks.ok(
                "network",
                others.first().map_or_else(
                    || "lo only: trainings on this machine alone".to_owned(),
                    |one| format!("{one}, the only one"),
                ),
            );
        }
    }
    let chosen =
        chosen.or_else(|| others.first().map(|one| (*one).clone())).or_else(|| Some("lo".to_owned()));
    checks
        .fact("interface", chosen)
        .fact("interfaces", names)
        .fact("gloo_interface", gloo)
        .fact("rdma", has_rdma);
}

/// The names in `/proc/net/dev`, below two lines of headings.
fn interfaces(dev: &str) -> Vec<String> {
    dev.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Whether it is a bridge or an end of a cable between this machine and its containers or virtual machines, which reaches no
/// other machine.
fn is_of_containers(name: &str) -> bool {
    ["docker", "br-", "veth", "cni", "virbr"].iter().any(|prefix| name.starts_with(prefix))
}

/// The first interface that a value of `NCCL_SOCKET_IFNAME` selects: prefixes, exact names after `=`, exclusions after `^`.
fn taken(value: &str, names: &[String]) -> Option<String> {
    let (excludes, value) = value.strip_prefix('^').map_or((false, value), |rest| (true, rest));
    let (exact, value) = value.strip_prefix('=').map_or((false, value), |rest| (true, rest));
    let matches =
        |name: &String| value.split(',').any(|one| if exact { name == one } else { name.starts_with(one) });
    names.iter().find(|name| matches(name) != excludes && (!excludes || *name != "lo")).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_select_interfaces_as_nccl_does() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  ens5: 1 2\ndocker0: 1 2\n";
        let names = interfaces(dev);
        assert_eq!(names, ["lo", "ens5", "docker0"]);
        assert_eq!(names.iter().filter(|name| is_of_containers(name)).collect::<Vec<_>>(), ["docker0"]);
        for (value, expected) in [
            ("ens", Some("ens5")),
            ("=ens5", Some("ens5")),
            ("=ens", None),
            ("^docker", Some("ens5")),
            ("eth,ens", Some("ens5")),
            ("eth", None),
        ] {
            assert_eq!(taken(value, &names).as_deref(), expected, "{value}");
        }
    }
}
