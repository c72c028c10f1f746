use std::os::unix::fs::symlink;

use super::*;

#[test]
fn every_name_on_the_way_to_a_program_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    for name in ["tools", "venv/bin", "lib"] {
        std::fs::create_dir_all(here.join(name)).unwrap();
    }
    for (name, text) in [("tools/x.py", "#!/h/venv/bin/python -u\n"), ("lib/real", ""), ("venv/pyvenv.cfg", "")] {
        std::fs::write(here.join(name), text).unwrap();
    }
    symlink("lib", here.join("led")).unwrap();
    symlink("../lib/real", here.join("tools/linked")).unwrap();
    symlink("/bin/sh", here.join("venv/bin/python")).unwrap();
    let said = |command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let files = program_files(&ServiceSpec { command, ..ServiceSpec::default() }, &here);
        let short = |paths: &[PathBuf]| {
            let paths = paths.iter().map(|path| path.strip_prefix(&here).unwrap_or(path).display().to_string());
            paths.collect::<Vec<_>>().join(" ")
        };
        let line = |file: &ProgramFile| {
            let there = if file.exists { "" } else { " missing" };
            format!(
                "{} {:?}{there}: {} in {}\n",
                file.named_at,
                file.role,
                short(&file.names),
                short(&file.directories)
            )
        };
        files.iter().map(line).collect::<String>()
    };
    expect_test::expect![[r"
            command[0] Runs: tools/x.py in tools
            command[0] Runs missing: /h/venv/bin/python in /h/venv/bin
        "]]
    .assert_eq(&said(&["./tools/x.py"]));
    assert_eq!(said(&["led/real"]), "command[0] Runs: led lib/real in lib\n");
    assert_eq!(said(&["tools/linked"]), "command[0] Runs: tools/linked tools lib/real in tools lib\n");
    assert_eq!(said(&["tools/../lib/real"]), "command[0] Runs: tools lib/real in lib\n");
    assert_eq!(said(&["none/x"]), "command[0] Runs missing: none/x in none\n");
    let venv = said(&["venv/bin/python"]);
    assert!(venv.starts_with("command[0] Runs: venv/bin/python /") && venv.contains(" in venv /"), "{venv}");
    let script = said(&["/none", "-c", "text/html lib/real; lib/none https://a.org/b /srv/x"]);
    expect_test::expect![[r"
            command[0] Runs missing: /none in /
            command[2] Mentioned: lib/real in lib
            command[2] Mentioned missing: lib/none in lib
            command[2] Mentioned missing: /a.org/b in /a.org
            command[2] Mentioned missing: /srv/x in /srv
        "]]
    .assert_eq(&script.replace("///", "/").replace("//", "/"));
}
