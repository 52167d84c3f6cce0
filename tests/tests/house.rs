//! Compares the table of folders in ARCHITECTURE.md with the dependencies that cargo reports, and checks who may know what.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// Folders of the project by description, with the packages that each depends on.
type House = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_map_lists_each_folder_and_its_dependencies() {
    let (drawn, built) = (drawn(), built());
    let folders: BTreeSet<_> = drawn.keys().chain(built.keys()).collect();
    let wrong = folders.into_iter().filter_map(|folder| match (drawn.get(folder), built.get(folder)) {
        (Some(drawn), Some(built)) if drawn == built => None,
        (Some(drawn), Some(built)) => {
            Some(format!("{folder}/: the map says {drawn:?}, cargo says {built:?}"))
        }
        (None, Some(built)) => Some(format!("{folder}/: no row in the map; it stands on {built:?}")),
        (_, None) => Some(format!("{folder}/: a row in the map, and no package")),
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn no_package_depends_on_a_program() {
    let house = built();
    let programs: BTreeSet<_> = house.keys().filter(|folder| is_program(folder)).cloned().collect();
    assert!(programs.contains("mapper") && programs.contains("trainer"), "{programs:?}");
    for (folder, stands_on) in &house {
        let on_programs: Vec<_> = stands_on.intersection(&programs).collect();
        assert!(on_programs.is_empty(), "{folder}/ stands on {on_programs:?}");
    }
    for package in packages(&["--no-deps"]) {
        let has_program = kinds(&package).any(|kind| kind == "bin");
        assert_eq!(has_program, is_program(&folder(&package)), "{}: has it a program?", folder(&package));
    }
}

#[test]
fn only_c10d_and_the_trainer_use_torch() {
    for package in packages(&["--no-deps"]) {
        let knows_torch = list(&package["dependencies"])
            .iter()
            .any(|dependency| TORCH.contains(&text(&dependency["name"])));
        let may_know = ["c10d", "trainer"].contains(&text(&package["name"]));
        assert!(may_know || !knows_torch, "{} knows torch", text(&package["name"]));
    }
}

#[test]
fn mapper_and_combiner_link_nothing_heavy() {
    for program in ["mapper", "combiner"] {
        let linked = linked_by(program);
        assert!(linked.contains("corpus"), "{linked:?}");
        let heavy: Vec<_> = HEAVY.iter().filter(|&&heavy| linked.contains(heavy)).collect();
        assert!(heavy.is_empty(), "{program} links {heavy:?}");
    }
    assert!(
        linked_by("reducer").is_superset(&HEAVY.map(str::to_owned).into()),
        "these names are out of date"
    );
}

/// A vector type whose processor was not checked is undefined behaviour without `unsafe`.
#[test]
fn only_a_macro_names_the_vectors_of_a_processor() {
    const KERNELS: &str = "crates/kernels/src/simd";
    let named = Command::new("git")
        .current_dir(project())
        .args(["grep", "-lE", "Avx(2|512)", "*.rs"])
        .output()
        .unwrap();
    assert!(named.status.success(), "{named:?}");
    let files = String::from_utf8(named.stdout).unwrap();
    let elsewhere: Vec<_> =
        files.lines().filter(|file| !file.starts_with(KERNELS) && *file != "tests/tests/house.rs").collect();
    assert!(elsewhere.is_empty() && files.contains(KERNELS), "{elsewhere:?}");
}

const TORCH: [&str; 2] = ["tch", "torch-sys"];
const HEAVY: [&str; 4] = ["hdf5-metno", "hdf5-metno-sys", "aws-sdk-s3", "tokio"];

/// The table in ARCHITECTURE.md.
fn drawn() -> House {
    let map = fs::read_to_string(project().join("ARCHITECTURE.md")).unwrap();
    let rows = map.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [folder, _turns, _does_not_know, stands_on] = cells[..] else {
            panic!("{row}: expected 4 cells")
        };
        let packages = stands_on.split(',').map(|name| name.trim().trim_matches('`').to_owned());
        let folder = folder.trim_matches('`').trim_end_matches('/').to_owned();
        (folder, packages.filter(|name| !name.is_empty()).collect())
    });
    rows.collect()
}

/// The packages reported by cargo.
fn built() -> House {
    let stands_on = |package: &Value| {
        let dependencies = list(&package["dependencies"]);
        let own = dependencies.iter().filter(|dependency| dependency["path"].is_string());
        // Dependencies of tests and build scripts have a kind.
        let linked = own.filter(|dependency| dependency["kind"].is_null());
        linked.map(|dependency| text(&dependency["name"]).to_owned()).collect()
    };
    packages(&["--no-deps"]).iter().map(|package| (folder(package), stands_on(package))).collect()
}

fn is_program(folder: &str) -> bool {
    !folder.starts_with("crates/") && folder != "tests"
}

/// The names of all packages that are linked into a program.
fn linked_by(program: &str) -> BTreeSet<String> {
    // Packages of other platforms may be unavailable.
    let platform = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let metadata = metadata(&["--filter-platform", &platform]);
    let names: BTreeMap<_, _> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<_, _> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let is_ours = |id: &str| id.starts_with("path+") && names[id] == program;
    let mut open: Vec<&str> = nodes.keys().copied().filter(|id| is_ours(id)).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if linked.insert(id) {
            let is_linked = |dependency: &&Value| {
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
            };
            let dependencies = list(&nodes[id]["deps"]).iter().filter(is_linked);
            open.extend(dependencies.map(|dependency| text(&dependency["pkg"])));
        }
    }
    linked.into_iter().map(|id| names[id].to_owned()).collect()
}

fn packages(arguments: &[&str]) -> Vec<Value> {
    list(&metadata(arguments)["packages"]).to_vec()
}

fn metadata(arguments: &[&str]) -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let told = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(arguments)
        .current_dir(project())
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).unwrap()
}

/// A package's folder in the project.
fn folder(package: &Value) -> String {
    let manifest = Path::new(text(&package["manifest_path"]));
    let project = project().canonicalize().unwrap();
    manifest.parent().unwrap().strip_prefix(project).unwrap().to_str().unwrap().to_owned()
}

/// The kinds of a package's targets: `lib`, `bin`, `test`, …
fn kinds(package: &Value) -> impl Iterator<Item = &str> {
    list(&package["targets"]).iter().flat_map(|target| list(&target["kind"])).map(text)
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
