use super::*;

#[test]
fn a_group_is_named_after_its_process() {
    for (name, expected) in [
        ("acheron-17", Some(17)),
        ("acheron-17.0-charon", Some(17)),
        ("acheron-17.12-7-of-9", Some(17)),
        ("acheron-", None),
        ("acheron.service", None),
        ("user.slice", None),
    ] {
        assert_eq!(owner_pid(name), expected, "{name}");
    }
}

#[test]
fn limits_are_written_as_each_version_reads_them() {
    let said = |settings: Vec<Setting>| {
        settings.iter().map(|Setting(file, value, _)| format!("{file}={value}")).collect::<Vec<_>>().join(" ")
    };
    let limits = AgentLimits { memory_bytes: 9, processes: 7, cpu_percent: Some(150), ..AgentLimits::default() };
    for (controller, version, expected) in [
        (Controller::Memory, 2, "memory.max=9 memory.swap.max=0"),
        (Controller::Processes, 2, "pids.max=7"),
        (Controller::Cpu, 2, "cpu.max=150000 100000"),
        (Controller::Cpu, 1, "cpu.cfs_quota_us=150000 cpu.cfs_period_us=100000"),
    ] {
        assert_eq!(said(shared(controller, version, &limits)), expected);
    }
    assert_eq!(said(shared(Controller::Cpu, 2, &AgentLimits { cpu_percent: None, ..limits })), "");
}

#[test]
fn groups_of_a_killed_process_are_removed_with_those_in_them() {
    let dir = tempfile::tempdir().unwrap();
    // Larger than any process number can be.
    let (gone, here) = (u32::MAX, std::process::id());
    for name in [
        format!("acheron-{gone}.0-ada/acheron-{gone}"),
        format!("acheron-{here}.0-ada/acheron-{here}"),
        format!("acheron-{gone}"),
        "others".to_owned(),
    ] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    remove_stale(dir.path());
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [format!("acheron-{here}.0-ada").as_str(), "others"]);
}
