//! Tells cargo of the folders that are built into the program: `include_dir` notices a changed file, but not a new one.

fn main() {
    for folder in ["prompts", "global-library", "mountspec"] {
        if std::path::Path::new(folder).exists() {
            println!("cargo::rerun-if-changed={folder}");
        }
    }
    println!("cargo::rerun-if-changed=scripts/embedded.rs");
}
