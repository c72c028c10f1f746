//! Section 1: `acheron(1)` and one page per command, made from the definitions of the command line.
//!
//! Used by `acheron man`. clap_mangen renders what needs no changes; the rest is here, because its synopsis lacks the
//! values of options and it has no sections for the environment and the exit status.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;

use super::super::manual::{plain, tagged};
use super::super::{BEGIN, Cli, ENVIRONMENT};

const EXIT: [(&str, &str); 4] = [
    ("0", "Success."),
    (
        "1",
        "A failure: the message is on standard error. Also a turn that failed (chat -m) and faults found (check, doctor).",
    ),
    ("2", "The command line is wrong."),
    (
        "other",
        "exec ends with the status of its program: 128 + N after signal N, 127 if it is not found, 126 if it may not be executed.",
    ),
];

/// `acheron(1)`.
pub fn main_page() -> std::io::Result<Vec<u8>> {
    page(&whole())
}

/// Writes all pages of section 1; returns how many there are.
pub fn write(dir: &Path) -> std::io::Result<usize> {
    let whole = whole();
    let mut commands = vec![&whole];
    let mut count = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        std::fs::write(dir.join(format!("{name}.1")), page(command)?)?;
        count += 1;
    }
    Ok(count)
}

/// The command line with the names that its pages have.
fn whole() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let main = command.get_display_name().is_none_or(|name| name == "acheron");
    let man = Man::new(command.clone());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    out.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut text = String::new();
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    if main {
        text.push_str(".SH ENVIRONMENT\n");
        tagged(&mut text, ENVIRONMENT.into_iter());
        text.push_str(".SH \"EXIT STATUS\"\n");
        tagged(&mut text, EXIT.into_iter());
        _ = write!(text, ".SH EXAMPLES\n.nf\n{}\n.fi\n", plain(BEGIN));
        text.push_str(".SH \"SEE ALSO\"\n.BR acheron (4),\n.BR acheron\\-mountspec (5)\n");
    } else {
        if let Some(notes) = command.get_after_long_help() {
            _ = write!(text, ".SH NOTES\n.nf\n{}\n.fi\n", plain(&notes.to_string()));
        }
        text.push_str(".SH \"SEE ALSO\"\n.BR acheron (1),\n.BR acheron (4)\n");
    }
    out.extend(text.into_bytes());
    if main {
        man.render_version_section(&mut out)?;
    }
    Ok(out)
}

/// The words of a command, each option with its value.
fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut out = format!(".SH SYNOPSIS\n\\fB{}\\fR", plain(name));
    let options = command.get_opts().filter(|it| !it.is_hide_set());
    let flags = command.get_arguments().filter(|it| !it.is_hide_set() && !it.is_positional() && !takes_value(it));
    for argument in options.chain(flags).chain(command.get_positionals()) {
        let word = match (argument.get_long(), takes_value(argument)) {
            (Some(long), true) => format!("\\fB\\-\\-{}\\fR \\fI{}\\fR", plain(long), value(argument)),
            (Some(long), false) => format!("\\fB\\-\\-{}\\fR", plain(long)),
            (None, _) => format!("\\fI{}\\fR", value(argument)),
        };
        let required = argument.is_required_set();
        _ = write!(out, " {}", if required { word } else { format!("[{word}]") });
    }
    if command.has_subcommands() {
        out.push_str(" \\fICOMMAND\\fR");
    }
    out.push('\n');
    out
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// The name of the value, with dots if there may be several.
fn value(argument: &Arg) -> String {
    let named = argument.get_value_names().unwrap_or_default().iter().map(|name| name.to_string());
    let named = plain(&named.collect::<Vec<_>>().join(" "));
    let many = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    if many { format!("{named}...") } else { named }
}
