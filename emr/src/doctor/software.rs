//! Programs beside `emr` and on the PATH: this project's, Hadoop, Java.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use super::check::Checks;
use super::system::output;

/// Programs of this project.
const PROGRAMS: [&str; 8] =
    ["mapper", "combiner", "reducer", "merge", "sentimill", "ngrams", "vectors", "trainer"];
/// Needed for training only.
const OF_TRAINING: [&str; 3] = ["ngrams", "vectors", "trainer"];

pub(super) fn examine(checks: &mut Checks) {
    programs(checks);
    hadoop(checks);
}

fn programs(checks: &mut Checks) {
    let folder =
        env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    programs_in(checks, &folder);
}

fn programs_in(checks: &mut Checks, folder: &Path) {
    let (mut found, mut broken, mut present) = (Map::new(), Vec::new(), Vec::new());
    for name in PROGRAMS {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        present.push(name);
        match run(&path, "-V") {
            Ok(version) => {
                let version = version.trim().strip_prefix(name).unwrap_or(&version).trim().to_owned();
                found.insert(name.to_owned(), version.into());
            }
            Err(why) => broken.push(format!("{name}: {why}")),
        }
    }
    let shown = folder.display();
    let names: Vec<_> = found
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()))
        .collect();
    let absent: Vec<_> = PROGRAMS.into_iter().filter(|name| !present.contains(name)).collect();
    let found_names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let not_found =
        if absent.is_empty() { String::new() } else { format!("; not found: {}", absent.join(", ")) };
    if !broken.is_empty() {
        checks.missing(
            "programs",
            format!("{shown}: {}", broken.join("; ")),
            "use programs built for this machine: make dist, or make build on this machine",
        );
    } else if absent.iter().any(|name| !OF_TRAINING.contains(name)) {
        checks.warning(
            "programs",
            format!("{shown}: {found_names}{not_found}"),
            "copy them into the folder of emr: a job needs mapper, combiner, reducer and merge, --runner local needs sentimill",
        );
    } else {
        checks.ok("programs", format!("{shown}: {found_names}{not_found}"));
    }
    checks.fact("programs", Value::Object(found));
}

/// Output of a program, or why it does not run, in the words of the dynamic linker.
fn run(path: &Path, argument: &str) -> Result<String, String> {
    let ran = Command::new(path).arg(argument).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("does not start: {}", program::system::cause(&error)))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&ran.stderr);
    Err(errors.lines().next().map_or_else(|| format!("does not run: {}", ran.status), str::to_owned))
}

fn hadoop(checks: &mut Checks) {
    let version = output("hadoop", &["version"])
        .and_then(|text| text.lines().next()?.strip_prefix("Hadoop ").map(str::to_owned));
    let jar = streaming_jar();
    let shown = jar.as_ref().map(|path| path.display().to_string());
    match (&version, &shown) {
        (Some(version), Some(jar)) => checks.ok("hadoop", format!("{version}, {jar}")),
        (Some(version), None) => checks.warning(
            "hadoop",
            format!("{version}, no hadoop-streaming jar"),
            "set HADOOP_HOME to Hadoop's folder, or pass the jar to hadoop jar by its path",
        ),
        (None, _) => checks.ok("hadoop", "not found; only --runner hadoop needs it"),
    }
    .fact("hadoop", version)
    .fact("hadoop_streaming_jar", shown);
}

/// The jar in the folders of EMR, of Apache's distribution and of distributions for Linux.
fn streaming_jar() -> Option<PathBuf> {
    let home = env::var_os("HADOOP_HOME").map(|home| PathBuf::from(home).join("share/hadoop/tools/lib"));
    let folders =
        ["/usr/lib/hadoop-mapreduce", "/usr/lib/hadoop/tools/lib", "/opt/hadoop/share/hadoop/tools/lib"]
            .map(PathBuf::from);
    home.into_iter().chain(folders).find_map(|folder| {
        let mut jars: Vec<_> = folder
            .read_dir()
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_jar(path))
            .collect();
        jars.sort();
        jars.into_iter().next()
    })
}

fn is_jar(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("hadoop-streaming") && name.ends_with(".jar") && !name.contains("sources")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::check::CheckState;
    use super::*;

    #[test]
    fn programs_that_are_absent_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\necho {name} 1.0\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let state = || {
            let mut checks = Checks::default();
            programs_in(&mut checks, folder.path());
            (checks.checks[0].state, checks.checks[0].found.clone())
        };
        assert!(state().1.ends_with(
            ": none; not found: mapper, combiner, reducer, merge, sentimill, ngrams, vectors, trainer"
        ));
        ["mapper", "combiner", "merge"].into_iter().for_each(add);
        let (found, text) = state();
        assert_eq!(found, CheckState::Warning);
        assert!(
            text.ends_with(": combiner 1.0, mapper 1.0, merge 1.0; not found: reducer, sentimill, ngrams, vectors, trainer"),
            "{text}"
        );
        ["reducer", "sentimill"].into_iter().for_each(add);
        let (found, text) = state();
        assert!(found == CheckState::Ok && text.ends_with("; not found: ngrams, vectors, trainer"), "{text}");
    }
}
