//! Compiles csrc/ against the libtorch found by torch-sys, and the NCCL part if CUDA's headers are next to it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=csrc");
    println!("cargo:rerun-if-env-changed=C10D_CUDA_INCLUDE");
    println!("cargo:rustc-check-cfg=cfg(nccl_part)");
    let libraries = PathBuf::from(variable("DEP_TCH_LIBTORCH_LIB"));
    let include = libraries.with_file_name("include");
    println!("cargo:rerun-if-changed={}", libraries.join("libtorch_cpu.so").display());

    shim(&include).file("csrc/shim.cc").compile("c10d_shim");
    println!("cargo:rustc-link-lib=dylib=dl");

    let cuda = cuda_includes(&libraries);
    if !cuda.is_empty() {
        println!("cargo:rustc-cfg=nccl_part");
        nccl_part(&include, &cuda);
    }
    // Programs find libtorch at its location at build time. `cargo test --doc` ignores linker arguments and searches
    // only the target folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    println!("cargo:rustc-link-search=native={}", link_libraries(&libraries).display());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is set by cargo and torch-sys"))
}

fn shim(include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .define("USE_C10D_GLOO", None)
        .include("csrc")
        .flag("-isystem")
        .flag(include)
        .flag("-isystem")
        .flag(include.join("torch/csrc/api/include"))
        // Overridden virtual functions of PyTorch leave many arguments unused.
        .flag("-Wno-unused-parameter")
        // shim.cc includes files whose types are local to them.
        .flag("-Wno-subobject-linkage")
        .warnings(true)
        .extra_warnings(true);
    build
}

/// The folders with CUDA's and NCCL's headers: those in C10D_CUDA_INCLUDE (separated by colons), otherwise those of
/// the Python wheels installed next to PyTorch's. Empty if there are none.
fn cuda_includes(libraries: &Path) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = match env::var_os("C10D_CUDA_INCLUDE") {
        Some(folders) => env::split_paths(&folders).collect(),
        None => {
            let Ok(torch) = libraries.join("libtorch_cpu.so").canonicalize() else { return Vec::new() };
            let Some(packages) = torch.ancestors().nth(3) else { return Vec::new() };
            ["cu13", "nccl"].iter().map(|name| packages.join("nvidia").join(name).join("include")).collect()
        }
    };
    let holds = |header: &str| folders.iter().any(|folder| folder.join(header).is_file());
    if holds("nccl.h") && holds("cuda_runtime_api.h") && holds("crt/host_config.h") {
        folders
    } else {
        Vec::new()
    }
}

/// Builds a shared library. Its symbols come from libtorch_cuda, which a machine without a GPU lacks.
fn nccl_part(include: &Path, cuda: &[PathBuf]) {
    let mut build = shim(include);
    build.define("USE_C10D_NCCL", None).pic(true);
    for folder in cuda {
        build.flag("-isystem").flag(folder);
    }
    let library = PathBuf::from(variable("OUT_DIR")).join("libc10d_nccl.so");
    let status = Command::new(build.get_compiler().path())
        .args(build.get_compiler().args())
        .args(["-shared", "csrc/nccl.cc", "-o"])
        .arg(&library)
        .status()
        .expect("the C++ compiler starts");
    assert!(status.success(), "csrc/nccl.cc does not compile against the headers of {cuda:?}");
    println!("cargo:rustc-env=C10D_NCCL_PART={}", library.display());
}

/// Links to libtorch's libraries inside the target folder, where `cargo test --doc` searches for them.
fn link_libraries(libraries: &Path) -> PathBuf {
    let folder = PathBuf::from(variable("OUT_DIR")).join("libtorch");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("OUT_DIR can be written to");
    for entry in std::fs::read_dir(libraries).expect("torch-sys found this folder") {
        let path = entry.expect("the folder can be read").path();
        let link = folder.join(path.file_name().expect("an entry has a name"));
        std::os::unix::fs::symlink(&path, link).expect("OUT_DIR can hold links");
    }
    folder
}
