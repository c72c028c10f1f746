//! The scenarios, each against a host of its own.

use std::path::Path;

use serde_json::{Value, json};

use crate::driver::PageHost;

/// Two agents and a project; charon and ada are answered by the test.
fn spec(model: Value) -> Value {
    json!({"layout": "acheron-1", "model": model, "default_agent": "charon",
        "agents": {
            "charon": {"about": "The ferryman: knows the tree and shows it around.", "projects": ["here"], "budget": {"money": 5.0}},
            "ada": {"about": "Counts what there is to count."}
        },
        "projects": {"here": {"about": "The boat.", "binds": {"/": {"path": "."}}}}})
}

fn run(scenario: &str, prepare: impl FnOnce(&Path)) {
    PageHost::new(spec, prepare).run(scenario);
}

#[test]
fn every_panel_opens_by_the_keyboard_without_a_complaint_in_light_dark_and_on_a_phone() {
    run("panels", |_| ());
}

#[test]
fn a_turn_is_seen_as_it_happens() {
    run("turn", |_| ());
}

#[test]
fn a_job_is_found_followed_and_cancelled() {
    run("jobs", |_| ());
}

#[test]
fn a_form_follows_from_the_schema_and_a_refusal_stands_at_its_field() {
    run("forms", |_| ());
}

#[test]
fn nothing_that_agents_write_runs_loads_or_leads_away() {
    run("hostile", |here| {
        let evil = "# <script>alert(1)</script>\n\n<img src=x onerror=alert(2)> [x](javascript:alert(3)) ![y](http://evil.example/a.png)\n";
        for name in ["evil.md", "evil.html", "<img src=x onerror=alert(7)>.md"] {
            std::fs::write(here.join(name), evil).unwrap();
        }
    });
}

#[test]
fn every_figure_on_the_page_stands_in_the_file_that_it_names() {
    run("figures", |_| ());
}

#[test]
fn the_page_goes_on_after_a_restart_of_the_host() {
    run("restart", |_| ());
}

#[test]
fn sessions_see_the_same_and_end_when_they_are_revoked() {
    run("sessions", |_| ());
}

#[test]
fn ten_thousand_events_and_a_hundred_thousand_files_are_few_rows() {
    let mut page = PageHost::new(spec, |here| {
        std::fs::create_dir(here.join("many")).unwrap();
        for number in 0..100_000 {
            std::fs::write(here.join(format!("many/f{number:05}")), "").unwrap();
        }
    });
    page.house.says(
        r#"python3 - << 'E'
with open("agents/charon/events/control/signal.json", "w") as signals:
    for begin in range(0, 10000, 500):
        signals.write("".join('{"event_type":"user","parameter":"n%d"}\n' % n for n in range(begin, begin + 500)))
        signals.flush()
E"#,
    );
    page.run("many");
}
