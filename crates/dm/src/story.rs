//! The campaign as one Markdown story, from its sessions: what was done, what was told, day by day. Nothing is added to it.
//! Storage and the service use it.

use crate::files::{ReadFiles, need};
use crate::grammar::{capital, sentence};
use crate::pc::Pc;
use crate::session;
use crate::world::Cartridge;
use acheron_base::Result;

/// The story so far; the last chapter of a closed campaign is its epilogue.
pub fn render(files: &dyn ReadFiles, world: &Cartridge) -> Result<String> {
    let pc = Pc::read(&files.read("characters/PCs/pc_current.md")?.unwrap_or_default());
    let name = if pc.name.is_empty() { "a stranger" } else { &pc.name };
    let mut out = format!("# {}: the story of {name}\n", world.title);
    if !pc.drive.is_empty() {
        out.push_str(&format!("\n*{}*\n", sentence(&pc.drive)));
    }
    let mut day = String::new();
    let mut paths: Vec<String> = files.paths()?.into_iter().filter(|path| session::is_session(path)).collect();
    paths.sort();
    for path in paths {
        for turn in session::turns(&need(files, &path)?) {
            chapter(turn, &mut day, &mut out);
        }
    }
    Ok(out)
}

/// One turn of a session as a paragraph; a new day begins a chapter.
fn chapter(turn: &str, day: &mut String, out: &mut String) {
    let Some(time) = session::field(turn, "In-world time") else { return };
    let (now, hour) = time.split_once(", ").unwrap_or((time, ""));
    if *day != now {
        *day = now.to_owned();
        out.push_str(&format!("\n## {}\n", capital(now)));
    }
    let input = session::field(turn, "Player input").unwrap_or_default();
    if !input.starts_with('<') {
        let hour = if hour.is_empty() { String::new() } else { format!("{hour} · ") };
        out.push_str(&format!("\n> {hour}{input}\n"));
    }
    let told = session::field(turn, "Told").or_else(|| session::field(turn, "Resolution")).unwrap_or_default();
    let (told, epilogue) = match told.split_once(" Epilogue, ") {
        Some((told, epilogue)) => (told, Some(epilogue)),
        None => (told, None),
    };
    out.push_str(&format!("\n{}\n", sentence(told)));
    let lists = ["Found", "Consequences"].into_iter().filter_map(|key| session::field(turn, key));
    let lines: Vec<&str> = lists.filter(|list| *list != "-").flat_map(|list| list.split("; ")).collect();
    if !lines.is_empty() {
        out.push('\n');
        lines.iter().for_each(|line| out.push_str(&format!("- {}\n", sentence(line))));
    }
    if let Some((title, text)) = epilogue.and_then(|text| text.split_once(": ")) {
        out.push_str(&format!("\n## {title}\n\n{text}\n"));
    }
}
