//! Which processes can reach ranks: the addresses on which ranks listen, and the key with which they
//! authenticate.
#![allow(clippy::unwrap_used)]

mod command;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use command::trainer;
use fixtures::free_port;
use fixtures::reviews;
use rustix::process::Signal;
use tests::ranks::{Rank, placed};

fn fit(dataset: &Path, out: &Path) -> Vec<String> {
    let words = "fit --device cpu --batch 32 --log-steps 1 --tokens 20 --embedding 8 --hidden 6 --linear 5 \
                 --epochs 100000";
    let mut arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    arguments.push(dataset.to_str().unwrap().to_owned());
    arguments.extend(["--out".to_owned(), out.to_str().unwrap().to_owned()]);
    arguments
}

/// The processes of the trainer with this output folder: `launch` and its ranks.
fn processes_of(out: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let mut words = command.split('\0');
        (words.next()?.ends_with("/trainer") && words.any(|word| Path::new(word) == out)).then_some(id)
    });
    processes.collect()
}

/// The local addresses at which these processes listen, as the kernel writes them.
fn listening(processes: &[u32]) -> Vec<String> {
    let sockets: BTreeSet<String> = processes
        .iter()
        .flat_map(|id| fs::read_dir(format!("/proc/{id}/fd")).unwrap())
        .filter_map(|entry| {
            let target = fs::read_link(entry.ok()?.path()).ok()?;
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    rows.filter_map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        // State 0A is LISTEN; the tenth column is the socket's number.
        (columns[3] == "0A" && sockets.contains(columns[9])).then(|| columns[1].to_owned())
    })
    .collect()
}

fn assert_on_loopback(processes: &[u32]) {
    let found = listening(processes);
    // One address of the store, two of Gloo (one per rank), and one of the watch.
    assert!(found.len() >= 4, "{found:?}");
    assert!(found.iter().all(|address| address.starts_with("0100007F:")), "not on 127.0.0.1: {found:?}");
}

#[test]
fn ranks_of_a_launch_listen_on_loopback_alone() {
    let (_data, dataset) = reviews(600);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--"]).args(fit(&dataset, &out));
    // A cluster's environment may contain this variable.
    launch.env("GLOO_SOCKET_IFNAME", "eth0");
    let mut launch = Rank::start(0, launch);
    launch.wait_for(" step 5: ");

    let processes = processes_of(&out);
    assert_eq!(processes.len(), 3, "a launch and two ranks");
    assert_on_loopback(&processes);

    launch.signal(Signal::TERM);
    let (code, output) = launch.end();
    assert_eq!(code, Some(75), "{output:?}");
    assert!(!output.concat().contains("SENTIMILL_KEY_FILE"), "they have a key: {output:?}");
}

#[test]
fn ranks_of_a_master_on_loopback_listen_there_alone() {
    let (_data, dataset) = reviews(600);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let port = free_port();
    let mut ranks = [0, 1].map(|rank| {
        let mut command = trainer();
        command.args(fit(&dataset, &out));
        Rank::start(rank, placed(command, rank, 2, port))
    });
    ranks[0].wait_for(" step 5: ");

    let processes = processes_of(&out);
    assert_eq!(processes.len(), 2);
    assert_on_loopback(&processes);

    ranks[0].wait_for("warning: SENTIMILL_KEY_FILE is not set");
    ranks.iter().for_each(|rank| rank.signal(Signal::TERM));
    ranks.iter_mut().for_each(|rank| assert_eq!(rank.end().0, Some(75)));
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let (_data, dataset) = reviews(60);
    let folder = tempfile::tempdir().unwrap();
    let (out, key) = (folder.path().join("out"), folder.path().join("key"));
    fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let mut command = trainer();
    command.args(fit(&dataset, &out)).env("SENTIMILL_KEY_FILE", &key);

    let (code, output) = Rank::start(0, placed(command, 0, 2, free_port())).end();

    assert_eq!(code, Some(78), "{output:?}");
    let told = output.last().unwrap();
    assert!(told.contains("has mode 644") && told.contains("expected 600"), "{told}");
    assert!(!out.exists());
}

#[test]
fn ranks_with_one_key_file_train_without_a_warning_and_a_rank_with_another_ends_them() {
    let (_data, dataset) = reviews(600);
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("the secret of {name}, long enough\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    };
    let keys = [key("one"), key("another")];
    let start = |name: &str, keys: [&Path; 2]| {
        let port = free_port();
        [0, 1].map(|rank| {
            let mut command = trainer();
            command.args(fit(&dataset, &folder.path().join(name))).env("SENTIMILL_KEY_FILE", keys[rank]);
            Rank::start(rank, placed(command, rank, 2, port))
        })
    };

    let mut alike = start("alike", [&keys[0], &keys[0]]);
    alike[0].wait_for(" step 5: ");
    alike.iter().for_each(|rank| rank.signal(Signal::TERM));
    for rank in &mut alike {
        let (code, output) = rank.end();
        assert_eq!(code, Some(75), "{output:?}");
        assert!(!output.concat().contains("warning"), "{output:?}");
    }

    let mut unlike = start("unlike", [&keys[0], &keys[1]]);
    let ended = unlike.each_mut().map(Rank::end);
    assert!(ended.iter().all(|(code, _)| *code == Some(75)), "{ended:?}");
    let told = "before the key was verified; set the same key on all ranks, unless this rank has died";
    assert!(ended.iter().any(|(_, output)| output.concat().contains(told)), "{ended:?}");
}
