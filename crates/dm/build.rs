//! Tells cargo which embedded folders to watch: `include_dir` notices a changed file, but not a new one.

fn main() {
    for folder in ["dm/engine", "cartridges", "campaigns/_template"] {
        println!("cargo::rerun-if-changed=../../global-library/{folder}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
