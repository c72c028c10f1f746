//! Builds again when a page is added to what is embedded: the compiler sees changed files, but not new ones.

fn main() {
    // A folder that is not there would count as changed for ever.
    for folder in ["global-library", "prompts"].into_iter().filter(|folder| std::path::Path::new(folder).is_dir()) {
        println!("cargo:rerun-if-changed={folder}");
    }
}
