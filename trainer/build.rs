//! Passes the path of libtorch to the linker, so that the program finds libtorch without LD_LIBRARY_PATH.

fn main() {
    let libraries = std::env::var("DEP_TCH_LIBTORCH_LIB").expect("torch-sys says where libtorch is");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{libraries}");
}
