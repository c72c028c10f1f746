use super::*;

/// Processes, written as `pid parent started`.
fn all(text: &str) -> Vec<SandboxProcess> {
    let number = |word: Option<&str>| word.unwrap().parse::<i32>().unwrap();
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let (pid, parent, started) = (number(words.next()), number(words.next()), number(words.next()));
        SandboxProcess { pid, parent, started: started as u64 }
    };
    text.split(',').map(one).collect()
}

#[test]
fn processes_of_a_command_are_distinguished_from_earlier_ones() {
    // 2 is the shell, 3 a server in the background.
    let before = all("2 1 10, 3 1 20, 4 3 21");
    for (now, expected) in [
        ("2 1 10, 3 1 20, 4 3 21", ""),
        ("2 1 10, 3 1 20, 5 2 30, 6 5 31", "5 6"),
        ("2 1 10, 3 1 20, 7 3 30, 8 7 31", ""), // a new child of the server belongs to the server
        ("2 1 10, 3 1 20, 9 1 30", "9"),        // it was adopted by init
        ("2 1 10, 3 2 40", "3"),                // another process with the pid of the server
    ] {
        let found = started_since(&before, &all(now), 2);
        let said: Vec<String> = found.iter().map(|it| it.pid.to_string()).collect();
        assert_eq!(said.join(" "), expected, "{now}");
    }
}

#[test]
fn a_process_is_read_whatever_its_name_and_a_zombie_is_none() {
    let rest = "1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 777 0";
    assert_eq!(member(5, &format!("5 (a) S 9 (x) S {rest}")), Some(SandboxProcess { pid: 5, parent: 1, started: 777 }));
    assert_eq!(member(5, &format!("5 (sh) Z {rest}")), None);
    assert_eq!(member(5, "nothing"), None);
}
