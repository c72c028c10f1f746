use super::*;

/// Processes, written as `pid parent depth agent-or-dash`.
fn check(processes: &str, pid: i32, expected: ProcessOwner) {
    let look = |wanted: i32| {
        processes.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[0].parse() == Ok(wanted)).then(|| Process {
                parent: words[1].parse().unwrap(),
                depth: words[2].parse().unwrap(),
                sandbox: (words[3] != "-").then(|| words[3].to_owned()),
            })
        })
    };
    assert_eq!(owner_of(pid, look), expected, "{pid}");
}

const PROCESSES: &str = "1 0 1 -
        50 1 1 -
        60 50 1 charon
        61 60 2 charon
        62 61 2 -
        63 62 2 styx
        64 63 2 -
        70 1 2 -
        80 81 1 -
        90 91 1 -
        91 90 1 -";

#[test]
fn a_process_belongs_to_the_outermost_sandbox_above_it() {
    check(PROCESSES, 50, ProcessOwner::Host);
    check(PROCESSES, 62, ProcessOwner::Agent("charon".into()));
    check(PROCESSES, 64, ProcessOwner::Agent("charon".into()));
}

#[test]
fn a_process_that_is_gone_or_has_no_visible_ancestor_is_unknown() {
    check(PROCESSES, 99, ProcessOwner::Unknown);
    check(PROCESSES, 70, ProcessOwner::Unknown);
    check(PROCESSES, 80, ProcessOwner::Unknown);
    check(PROCESSES, 90, ProcessOwner::Unknown);
}

#[test]
fn a_sandbox_is_recognised_by_its_second_argument() {
    let status = "Name:\tacheron\nPPid:\t12\nNSpid:\t40\t1\n";
    let supervisor = read(status, b"/proc/self/exe\0__sandbox\x005\0charon\0").unwrap();
    assert_eq!(supervisor, Process { parent: 12, depth: 2, sandbox: Some("charon".into()) });
    assert_eq!(read(status, b"echo\0charon\0__sandbox\0").unwrap().sandbox, None);
    assert_eq!(read("nothing", b""), None);
}

#[test]
fn this_test_is_a_process_without_a_sandbox() {
    assert_ne!(read_process(std::process::id() as i32), None);
    assert_eq!(read_process(-1), None);
}
