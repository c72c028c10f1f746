//! The pages of the evaluation: the machine's manual and Rust's error index, as Markdown.
//!
//! Nothing is fetched: pages that the machine does not have are not in the corpus, and their questions are not asked.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A family of thousands of generated pages that differ in one word each.
const GENERATED: &str = "gcloud";
/// Rust's errors have numbers up to this.
const LAST_ERROR: u32 = 810;

/// Writes the corpus below `root`: `man/<name>.<section>.md` and `rust/<code>.md`. Gives the number of pages and their bytes.
pub fn write(root: &Path, whole: bool) -> (usize, usize) {
    let (mut pages, mut bytes) = (0, 0);
    let mut put = |path: String, text: String| {
        if text.trim().is_empty() {
            return;
        }
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, &text).expect("a page");
        pages += 1;
        bytes += text.len();
    };
    for section in 1..=8 {
        let dir = format!("/usr/share/man/man{section}");
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = whole || !name.starts_with(GENERATED);
            // A link is another name of a page that is there already.
            let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
            if let Some(title) = name.strip_suffix(".gz").filter(|_| wanted && plain) {
                put(format!("man/{title}.md"), markdown(&unpacked(&entry.path())));
            }
        }
    }
    for number in 1..=LAST_ERROR {
        let code = format!("E{number:04}");
        let said = Command::new("rustc").args(["--explain", &code]).output();
        if let Some(said) = said.ok().filter(|said| said.status.success()) {
            let text = format!("# {code}\n\n{}", String::from_utf8_lossy(&said.stdout));
            put(format!("rust/{code}.md"), text);
        }
    }
    (pages, bytes)
}

fn unpacked(path: &Path) -> String {
    let output = Command::new("gzip").arg("-cd").arg(path).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// A page of the manual as Markdown: its macros for headings become headings, other macros their words.
pub fn markdown(roff: &str) -> String {
    let mut out = String::new();
    for line in roff.lines() {
        let Some(rest) = line.strip_prefix(['.', '\'']) else {
            out.push_str(&plain(line));
            out.push('\n');
            continue;
        };
        let (name, words) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        let words = plain(words).replace('"', "");
        match name {
            "so" => return String::new(), // another name of another page
            "TH" | "Dt" => {
                let mut words = words.split_whitespace();
                let (title, section) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                out.push_str(&format!("# {}({section})\n", title.to_lowercase()));
            }
            "SH" | "Sh" => out.push_str(&format!("\n## {words}\n\n")),
            "SS" | "Ss" => out.push_str(&format!("\n### {words}\n\n")),
            "PP" | "P" | "LP" | "Pp" | "TP" | "IP" | "sp" => out.push('\n'),
            "B" | "I" | "BR" | "BI" | "IR" | "RB" | "RI" | "IB" | "SM" | "SB" | "Nm" | "Nd" | "Xr" | "Fl" | "Ar"
            | "Pa" | "Cm" | "Fn" | "Ft" | "Dv" | "Va" | "Em" | "Sy" | "Ic" | "It" | "Op" | "Ql" | "Li" | "Er"
            | "Ev" => {
                out.push_str(&words);
                out.push('\n');
            }
            _ => {}
        }
    }
    out
}

/// A line without the marks of fonts and special characters.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('f') => match chars.next() {
                Some('(') => _ = chars.by_ref().take(2).count(),
                Some('[') => _ = chars.by_ref().take_while(|c| *c != ']').count(),
                _ => {}
            },
            Some('-') => out.push('-'),
            Some('e') => out.push('\\'),
            Some('(') => {
                let name: String = chars.by_ref().take(2).collect();
                out.push_str(if matches!(name.as_str(), "aq" | "cq" | "oq") { "'" } else { " " });
            }
            Some('*') => match chars.next() {
                Some('(') => _ = chars.by_ref().take(2).count(),
                Some('[') => _ = chars.by_ref().take_while(|c| *c != ']').count(),
                _ => {}
            },
            Some('[') => _ = chars.by_ref().take_while(|c| *c != ']').count(),
            Some('"') => break,
            Some(' ' | '~' | '0') => out.push(' '),
            _ => {}
        }
    }
    out
}

/// The questions: the pages that answer, and the question.
pub fn questions() -> Vec<(Vec<String>, &'static str)> {
    let lines = include_str!("questions.tsv").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| line.split_once('\t');
    let named = |pages: &str| pages.split('|').map(|page| format!("{page}.md")).collect();
    lines.filter_map(read).map(|(pages, asked)| (named(pages), asked)).collect()
}
