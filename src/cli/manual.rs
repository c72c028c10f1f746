//! `acheron(4)`: the tree as a manual page.
//!
//! Generated from the pages of the services, the error codes and `docs/bugs.md`. Used by `acheron man`; it knows no
//! mount and no command line.

use std::fmt::Write;

use crate::host::library::LibraryPage;
use acheron_base::Code;

/// Every kind of file outside the services, with the effect of reading and writing it. `<…>` stands for a name.
pub const FILES: [(&str, &str); 37] = [
    (".ignore", "What may wait for its reader: ripgrep and others that search trees pass it by."),
    ("README.md", "An introduction for people."),
    ("AGENTS.md", "An introduction for agents, on one screen."),
    ("agents/self", "A link to the calling agent; for the operator, to the default agent."),
    ("agents/self/services/SERVICES.json", "The services of the agent, one line each."),
    (
        "agents/self/chat/control/input",
        "Each text written is a turn. On a handle that wrote, a read waits for the reply.",
    ),
    ("agents/self/chat/control/reply", "The agent writes its reply here, which ends its turn."),
    (
        "agents/self/chat/latest.txt",
        "The last reply, or the error of a turn that failed. Waits while a turn is queued or running.",
    ),
    ("agents/self/chat/history.ndjson", "Every turn, one line each; tail -f follows it."),
    ("agents/self/chat/status.json", "The current turn, and the error of the last one if it failed. Never waits."),
    ("agents/self/thoughts/latest.txt", "The current or last thought of the model."),
    ("agents/self/thoughts/history.ndjson", "Every thought, one line each."),
    ("agents/self/jobs/last", "A link to the newest job."),
    ("agents/self/jobs/by/<correlation_id>", "A link to the job with that correlation id."),
    ("agents/self/jobs/<job>/status.json", "Waits until the job has ended, then has its final status."),
    ("agents/self/jobs/<job>/result.json", "Waits until the job has ended, then has its result or error."),
    ("agents/self/jobs/<job>/result.txt", "The same for people."),
    ("agents/self/jobs/<job>/progress.json", "The progress. Never waits."),
    ("agents/self/jobs/<job>/log.txt", "The output so far; tail -f follows it."),
    ("agents/self/jobs/<job>/control/cancel", "Any write stops the job."),
    (
        "agents/self/events/control/wait.json",
        "Arms a wait for paths, with a timeout. A handle that also reads has its own wait.",
    ),
    ("agents/self/events/next.json", "Waits for the first event of the armed wait."),
    ("agents/self/events/control/signal.json", "Sends a signal to this agent or another."),
    ("agents/self/events/sources/user.json", "Waits for a signal; so do agent.json and hook.json."),
    ("agents/self/events/sources/mail.json", "Waits for the next message to this agent."),
    ("agents/self/events/sources/time/after/<ms>.json", "Waits that number of milliseconds."),
    ("agents/self/events/log.ndjson", "Every event, one line each; tail -f follows it."),
    ("agents/self/mail/next.json", "Waits for the oldest message. Takes nothing away, and is not listed."),
    ("mail/inbox", "The mail of the operator, with the names of the service mail. No agent sees it."),
    ("mail/receipts.ndjson", "What became of the messages that the operator sent; tail -f follows it."),
    ("projects/<project>/fs", "Directories of this machine, as the mountspec binds them."),
    ("projects/<project>/meta.json", "The binds of the project."),
    ("global/library/Index.md", "The manual: topics, and a page for each service."),
    ("nodes/local/services/SERVICES.json", "The services that all agents share."),
    ("nodes/local/CAPS.json", "The capabilities of this machine, such as its sandbox."),
    ("meta/health.json", "The health of the host; meta/metrics.json has metrics, meta/ns the bindings of all agents."),
    ("meta/protocol.json", "The layout, the tools and every error code with its number."),
];

/// The files of every service.
const SERVICE: [(&str, &str); 9] = [
    ("README.md", "The purpose, and every operation with a working example."),
    ("SCHEMA.json", "Arguments and results of every operation, exactly."),
    ("CAPS.json", "The capabilities."),
    ("OPS.json", "Each operation with its control file, its effect and its deadline."),
    ("PERMISSIONS.json", "The permissions of the reader, with the rule for each."),
    ("status.json", "The last call. Never waits."),
    ("result.json", "The result of the last call. Waits while it runs."),
    ("control/<operation>.json", "Takes the arguments. Reading it gives a payload to fill in."),
    ("control/invoke.json", "Takes any operation as op, arguments and correlation_id."),
];

/// Renders the page from the built-in library and the text of `docs/bugs.md`.
pub fn page(library: &[LibraryPage], known_bugs: &str, version: &str) -> String {
    let mut out = format!(".TH ACHERON 4 \"\" \"acheron {}\" \"File servers\"\n", plain(version));
    section(&mut out, "NAME", "acheron \\- an agent host that you can ls\n");
    section(&mut out, "SYNOPSIS", ".B acheron mount\n.I DIR\n");
    let idea = "Serves a tree of files with FUSE. Reads wait, writes command: a command is taken by the write(2) that \
                completes it, which fails if the command is refused, and then nothing has happened. A read that waits \
                ends with any signal, and can be polled. Every open handle is a session of its own. An operation \
                of effect read changes nothing. One of effect write is done when its write(2) returns: its change, its \
                job and its event are one transaction, so that after a crash all of them are there or none. One of \
                effect execute is journaled before it begins and when it ends; a crash between them leaves the job \
                interrupted, unless the operation may be repeated.";
    section(&mut out, "DESCRIPTION", &format!("{}\n", plain(idea)));
    section(&mut out, "FILES", "");
    tagged(&mut out, FILES.iter().map(|(name, says)| (*name, *says)));
    section(&mut out, "SERVICES", "Each service is a directory agents/self/<service> with the same names in it:\n");
    tagged(&mut out, SERVICE.iter().map(|(name, says)| (*name, *says)));
    for service in library.iter().filter_map(service) {
        _ = write!(out, ".SS {}\n{}\n", plain(service.name), plain(service.about.trim()));
        let operations = service.operations.iter().map(|(name, says)| (format!("control/{name}.json"), *says));
        tagged(&mut out, operations);
    }
    section(&mut out, "ERRORS", "What a failed call has as error.code, and what a refused write(2) fails with:\n");
    tagged(&mut out, Code::ALL.into_iter().chain(Code::OS).map(|code| (code.name(), meaning(code))));
    tagged(&mut out, [("system_error", "Any other error of the system")].into_iter());
    section(&mut out, "BUGS", "");
    for bug in bugs(known_bugs) {
        _ = write!(out, ".IP \\(bu 2\n{}\n", plain(&bug));
    }
    section(&mut out, "SEE ALSO", ".BR acheron (1),\n.BR acheron\\-mountspec (5),\n.BR mount.fuse3 (8)\n");
    out
}

/// The kernel's message for this error code.
fn meaning(code: Code) -> String {
    let said = std::io::Error::from_raw_os_error(code.errno()).to_string();
    said.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The description of a service in its library page.
struct ServiceSummary<'a> {
    name: &'a str,
    about: &'a str,
    operations: Vec<(&'a str, &'a str)>,
}

fn service(page: &LibraryPage) -> Option<ServiceSummary<'_>> {
    let name = page.path.strip_prefix("services/")?.strip_suffix(".md")?;
    let mut parts = page.text.split("\n## ");
    // The rest is the same for every service and is described above.
    let (_, about) = parts.next()?.split("\n\nWrite a command").next()?.split_once("\n\n")?;
    let operations = parts.filter_map(|part| {
        let (name, text) = part.split_once('\n')?;
        (!name.contains(' ')).then(|| (name, first_paragraph(text)))
    });
    Some(ServiceSummary { name, about, operations: operations.collect() })
}

/// The first paragraph that is not a heading.
fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").map(str::trim).find(|it| !it.is_empty() && !it.starts_with('#')).unwrap_or_default()
}

/// The items of the list on a page, one line each.
fn bugs(page: &str) -> Vec<String> {
    page.split("\n- ").skip(1).map(|bug| bug.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn section(out: &mut String, name: &str, text: &str) {
    _ = write!(out, ".SH {name}\n{text}");
}

pub(super) fn tagged<A: AsRef<str>, B: AsRef<str>>(out: &mut String, entries: impl Iterator<Item = (A, B)>) {
    for (name, says) in entries {
        _ = write!(out, ".TP\n.B {}\n{}\n", plain(name.as_ref()), plain(says.as_ref()));
    }
}

/// Text escaped for roff: no escapes, no requests, no Markdown.
pub(super) fn plain(text: &str) -> String {
    // What stands in backquotes is written as it is: `**` there is a pattern, and elsewhere it makes words bold.
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { part.to_owned() } else { part.replace("**", "") };
    let text: String = text.split('`').enumerate().map(part).collect();
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let guarded = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(guarded).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_in_backquotes_keeps_its_stars() {
        assert_eq!(plain("**All** of `/agents/self/**`, `*` and `**`"), "All of /agents/self/**, * and **");
    }

    #[test]
    fn a_service_is_a_heading_and_its_control_files() {
        let text = "# oar\n\nMoves.\n\nThe boat.\n\nWrite a command.\n\n## pull\n\nPulls once\nand hard.\n\n- `n`\n\n## Any operation\n\nx\n";
        let library = [
            LibraryPage { path: "Index.md".to_owned(), text: "# no".to_owned() },
            LibraryPage { path: "services/oar.md".to_owned(), text: text.to_owned() },
        ];
        let page = page(&library, "# Bugs\n\nKnown ones.\n\n- One\n  of them.\n- `.two`\n", "1");
        assert!(
            page.contains(".SS oar\nMoves.\n\nThe boat.\n.TP\n.B control/pull.json\nPulls once\nand hard.\n.SH ERRORS"),
            "{page}"
        );
        assert!(page.contains(".SH BUGS\n.IP \\(bu 2\nOne of them.\n.IP \\(bu 2\n\\&.two\n.SH SEE ALSO"), "{page}");
        assert!(page.contains(".B read_only\nRead\\-only file system\n"), "{page}");
    }

    #[test]
    fn nothing_in_a_text_is_a_request() {
        assert_eq!(plain(".so x\n'y a\\b `c-d`"), "\\&.so x\n\\&'y a\\eb c\\-d");
    }
}
