use super::*;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        Machine(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn link(&self, name: &str, to: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
    }

    fn find(&self, name: &str, path: &[&str]) -> FoundProgram {
        let path = std::env::join_paths(path.iter().map(|directory| self.at(directory))).unwrap();
        find(name, &path).unwrap()
    }
}

#[test]
fn a_program_of_npm_comes_with_its_packages_and_its_node() {
    let machine = Machine::new();
    let node = ".nvm/versions/node/v22";
    machine.file(&format!("{node}/bin/node"), "ELF");
    let main = machine.file(&format!("{node}/lib/node_modules/@x/coder/cli.js"), "#!/usr/bin/env node\n");
    machine.file(&format!("{node}/lib/node_modules/@x/coder/node_modules/y/index.js"), "");
    machine.link(&format!("{node}/bin/coder"), "../lib/node_modules/@x/coder/cli.js");
    let found = machine.find("coder", &[&format!("{node}/bin")]);
    assert_eq!(found.file, main);
    // The whole of Node has the packages in it, and the link by which the program is called.
    assert_eq!(found.binds, [machine.at(node)]);
    assert_eq!(found.path, [machine.at(&format!("{node}/bin"))]);
}

#[test]
fn a_program_of_pipx_comes_with_its_environment_and_the_python_behind_it() {
    let machine = Machine::new();
    let (venv, python) = (".local/share/pipx/venvs/aider", ".local/share/uv/python/cpython-3.12");
    machine.file(&format!("{python}/bin/python3.12"), "ELF");
    machine.file(&format!("{python}/lib/python3.12/os.py"), "");
    machine.file(&format!("{venv}/pyvenv.cfg"), "home = x");
    std::fs::create_dir_all(machine.at(&format!("{venv}/bin"))).unwrap();
    let target = machine.at(&format!("{python}/bin/python3.12"));
    machine.link(&format!("{venv}/bin/python"), target.to_str().unwrap());
    let shebang = format!("#!{}\n", machine.at(&format!("{venv}/bin/python")).display());
    let main = machine.file(&format!("{venv}/bin/aider"), &shebang);
    machine.link(".local/bin/aider", main.to_str().unwrap());
    let found = machine.find("aider", &[".local/bin"]);
    assert_eq!(found.file, main);
    assert_eq!(found.binds, [machine.at(".local/bin/aider"), machine.at(venv), machine.at(python)]);
}

#[test]
fn a_program_that_stands_alone_comes_alone() {
    let machine = Machine::new();
    let main = machine.file(".cargo/bin/tool", "ELF");
    machine.file(".cargo/credentials.toml", "secret");
    assert_eq!(machine.find("tool", &[".cargo/bin"]).binds, [main]);
}

#[test]
fn a_program_of_the_system_needs_nothing() {
    let found = find("env", OsStr::new("/usr/bin:/bin")).unwrap();
    assert!(found.binds.is_empty() && found.path.is_empty(), "{found:?}");
    let refused = find("no-such-program", OsStr::new("/usr/bin")).unwrap_err().message;
    assert_eq!(refused, "there is no program `no-such-program` on the PATH: install it, or name its file");
}

#[test]
fn a_script_does_not_have_any_file_bound_by_naming_it_as_its_interpreter() {
    let machine = Machine::new();
    let secret = machine.file(".ssh/id_ed25519", "key");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let script = machine.file("project/tool", &format!("#!{}\n", secret.display()));
    let found = machine.find(script.to_str().unwrap(), &[]);
    assert_eq!(found.binds, [script]);
}

#[test]
fn a_shim_leads_to_the_version_that_its_manager_names() {
    let machine = Machine::new();
    let version = ".pyenv/versions/3.12.1";
    let python = machine.file(&format!("{version}/bin/python3"), "ELF");
    machine.file(&format!("{version}/lib/python3.12/os.py"), "");
    let shebang = format!("#!{}\n", python.display());
    let main = machine.file(&format!("{version}/bin/aider"), &shebang);
    let manager =
        machine.file(".pyenv/libexec/pyenv", &format!("#!/bin/sh\necho {}/$2\n", python.parent().unwrap().display()));
    let shim = format!("#!/usr/bin/env bash\nset -e\nexec \"{}\" exec \"$program\" \"$@\"\n", manager.display());
    machine.file(".pyenv/shims/aider", &shim);
    let found = machine.find("aider", &[".pyenv/shims"]);
    assert_eq!((found.file, found.binds), (main, vec![machine.at(version)]));
    // One whose manager knows nothing stays what it is.
    let other = machine.file(".pyenv/shims/other", "#!/bin/sh\nexec /nowhere/pyenv exec other\n");
    assert_eq!(machine.find("other", &[".pyenv/shims"]).file, other);
}
