//! Rebuilds the program when a file is added to an embedded folder: `include_dir` detects changed files, but not new ones.

fn main() {
    for folder in ["prompts", "global-library", "mountspec"] {
        if std::path::Path::new(folder).exists() {
            println!("cargo::rerun-if-changed={folder}");
        }
    }
    println!("cargo::rerun-if-changed=scripts/embedded.rs");
}
