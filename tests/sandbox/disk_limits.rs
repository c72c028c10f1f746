//! What is counted as written to a disk: everything that is bound from one, under whatever name, and nothing else.

use std::path::Path;

use crate::reserved_names::on_disk;
use crate::{block, python, run};
use acheron_sandbox::{PathRule, Visibility};

/// Makes files in a directory until it may not; says how many it made.
const MAKE: &str = "import errno, os, sys
def make(directory, most):
    for n in range(most):
        try: open(f'{directory}/{n}', 'x').close()
        except OSError as fault: return n, errno.errorcode[fault.errno]
    return most
";

#[test]
fn files_count_in_a_home_and_in_a_project_under_another_name() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = format!("{MAKE}print(make('/home', 15), make('/srv/work', 15), make('/home', 1))");
    let mut plan = python(&script).bind(home.path(), "/home", false).bind(project.path(), "/srv/work", false);
    plan.limits.disk_files = 20;
    let seen = block(run(&plan)).unwrap();
    assert_eq!(seen.out, "15 (5, 'EDQUOT') (0, 'EEXIST')\n", "{seen:?}");
}

#[test]
fn bytes_count_in_a_home() {
    let home = on_disk();
    let script = "import errno, os
block = b'x' * (1 << 20)
try:
    for n in range(400):
        with open(f'/home/big{n}', 'wb') as out: out.write(block); out.flush(); os.fsync(out.fileno())
    print('all was written')
except OSError as fault: print(errno.errorcode[fault.errno] in ('EDQUOT', 'EFBIG'))";
    let mut plan = python(script).bind(home.path(), "/home", false);
    plan.limits.disk_bytes = 32 << 20;
    let seen = block(run(&plan)).unwrap();
    assert_eq!(seen.out, "True\n", "{seen:?}");
}

#[test]
fn files_in_memory_do_not_count_although_a_project_lies_below_them() {
    const INSIDE: &str = "/tmp/deep/project";
    let project = tempfile::tempdir().unwrap();
    let script =
        format!("{MAKE}os.mkdir('/tmp/own'); print(make('/tmp', 30), make('/tmp/own', 30), make('{INSIDE}', 30))");
    let mut plan = python(&script).bind(project.path(), INSIDE, false);
    let path = Path::new(INSIDE).join(".mcp.json");
    plan.path_rules = vec![PathRule { path, bind: INSIDE.into(), show: Visibility::ReadOnly }];
    plan.limits.disk_files = 20;
    let seen = block(run(&plan)).unwrap();
    assert_eq!(seen.out, "30 30 (20, 'EDQUOT')\n", "{seen:?}");
}
