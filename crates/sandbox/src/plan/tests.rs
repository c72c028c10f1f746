use super::*;

fn refusal(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = Plan::new("charon", ["true"]);
    change(&mut plan);
    plan.check().map_or_else(|err| err.message, |()| "fine".to_owned())
}

#[test]
fn a_plan_that_cannot_mean_what_it_says_is_refused() {
    let bound = |target: &str| {
        let target = target.to_owned();
        move |plan: &mut Plan| {
            let (source, target) = ("/srv".into(), target.into());
            plan.binds.push(Bind { source, target, read_only: true, alone: false, id: None, on_disk: true });
        }
    };
    assert_eq!(refusal(|_| ()), "fine");
    assert_eq!(refusal(bound("/projects/here/fs")), "fine");
    assert_eq!(refusal(|plan| plan.argv.clear()), "there is no program to run");
    assert_eq!(refusal(|plan| plan.argv.push("a\0b".into())), "an argument contains a NUL byte");
    assert_eq!(refusal(|plan| plan.agent = "a/b".into()), "`a/b` is not an agent's name");
    assert_eq!(refusal(|plan| plan.cwd = "src".into()), "the working directory `src` is not absolute");
    assert_eq!(
        refusal(|plan| _ = plan.env.insert("A=B".into(), String::new())),
        "`A=B` cannot name an environment variable"
    );
    assert_eq!(refusal(bound("x")), "`x` cannot be bound to: it is not absolute");
    assert_eq!(refusal(bound("/a/../etc")), "`/a/../etc` cannot be bound to: it is not a plain path");
    assert_eq!(refusal(bound("/")), "`/` cannot be bound to: it is the root itself or no text");
    assert_eq!(refusal(bound("/etc/x")), "`/etc/x` cannot be bound to: it belongs to the sandbox itself");
}

#[test]
fn nothing_of_the_hosts_environment_is_handed_on() {
    let mut plan = Plan::new("charon", ["true"]);
    plan.env.insert("TERM".into(), "xterm".into());
    let names: Vec<String> = plan.environment().into_keys().collect();
    assert_eq!(names.join(" "), "ACHERON_AGENT HOME LANG PATH TERM TMPDIR USER");
    assert_eq!(plan.environment()["TERM"], "xterm");
}

#[test]
fn deeper_binds_are_made_after_what_they_lie_in() {
    let plan = Plan::new("charon", ["true"]).bind("/b", "/p/x/fs", false).bind("/a", "/p", true);
    let targets: Vec<_> = plan.ordered().iter().map(|bind| bind.target.display().to_string()).collect();
    assert_eq!(targets, ["/p", "/p/x/fs"]);
}

#[test]
fn a_plan_survives_the_way_to_its_init() {
    let plan = Plan::new("charon", ["sh", "-c", "echo \n"]).bind("/srv", "/projects/p/fs", false);
    let json = serde_json::to_string(&plan).unwrap();
    assert!(!json.contains('\n'), "one line");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}
