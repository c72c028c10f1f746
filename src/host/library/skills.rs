//! Agent Skills as pages of the library: folders with a SKILL.md, from directories that the mountspec names. One line per skill
//! stands in `skills/README.md`; the rest is read when it is needed, as the format says.
//!
//! What a skill says is text of whoever wrote it: its description is cut to one line, and no more is shown of it by itself.

use std::path::Path;

use saphyr_parser::{Event, Parser};

use super::source::{LibraryPage, from_folder};
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result, quoted};

/// The longest name and description, in characters, as the format has them.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;
/// The most skills of all directories together, and the largest front matter.
const MOST: usize = 256;
const FRONT: usize = 64 << 10;

const HEAD: &str = "\
# Skills

Each line names a skill and says what it is for and when. If one fits your task, read `<name>/SKILL.md` and follow it; it names
further files where it needs them.

";

/// What the front matter of a SKILL.md says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFront {
    pub name: String,
    /// One line.
    pub description: String,
}

/// The pages of all skills, with the page that lists them. A skill that cannot be used is named there with the reason.
pub fn pages(directories: &[impl AsRef<Path>]) -> Vec<LibraryPage> {
    let (mut pages, mut listed, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for directory in directories.iter().map(AsRef::as_ref) {
        let folders = match folders(directory) {
            Ok(folders) => folders,
            Err(error) => {
                faults.push(format!("{}: {}", directory.display(), error.message));
                continue;
            }
        };
        for name in folders {
            match skill(directory, &name) {
                _ if listed.len() >= MOST => faults.push(format!("{name}: there are more than {MOST} skills")),
                Ok((front, _)) if listed.iter().any(|known: &SkillFront| known.name == front.name) => {
                    faults.push(format!("{name}: a directory before has a skill of this name"));
                }
                Ok((front, own)) => {
                    pages.extend(own);
                    listed.push(front);
                }
                Err(error) => faults.push(format!("{name}: {}", error.message)),
            }
        }
    }
    pages.push(LibraryPage { path: "skills/README.md".to_owned(), text: index(listed, &faults) });
    pages
}

/// The names of the folders that have a SKILL.md.
fn folders(directory: &Path) -> Result<Vec<String>> {
    let directory = ConfinedDir::open(directory)?;
    let mut names: Vec<String> = directory
        .list("")?
        .into_iter()
        .filter(|entry| entry.kind == Kind::Dir && !entry.name.starts_with('.'))
        .map(|entry| entry.name)
        .filter(|name| directory.exists(&format!("{name}/SKILL.md")).unwrap_or(false))
        .collect();
    names.sort();
    Ok(names)
}

/// One skill: what it says of itself, and its files.
fn skill(directory: &Path, name: &str) -> Result<(SkillFront, Vec<LibraryPage>)> {
    let folder = ConfinedDir::open(directory.join(name))?;
    let mut pages = from_folder(&folder)?;
    let front = pages.iter().find(|page| page.path == "SKILL.md");
    let front = front.ok_or_else(|| Error::invalid("SKILL.md is no text, or larger than 1 MiB"))?;
    let front = front_of(&front.text)?;
    if front.name != name {
        return Err(Error::invalid(format!("its name is {}, and its folder is called otherwise", quoted(&front.name))));
    }
    for page in &mut pages {
        page.path = format!("skills/{name}/{}", page.path);
    }
    Ok((front, pages))
}

fn index(mut listed: Vec<SkillFront>, faults: &[String]) -> String {
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let mut text = HEAD.to_owned();
    for skill in listed {
        text.push_str(&format!("- `{}`: {}\n", skill.name, skill.description));
    }
    if !faults.is_empty() {
        text.push_str("\nLeft out:\n\n");
        for fault in faults {
            text.push_str(&format!("- {}\n", one_line(fault, 300)));
        }
    }
    text
}

/// Reads the front matter: `name` and `description`; other keys are the business of other programs.
pub fn front_of(text: &str) -> Result<SkillFront> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return Err(Error::invalid("SKILL.md does not begin with front matter (a line `---`)"));
    }
    let mut front = String::new();
    let closed = lines.take_while(|line| line.trim_end() != "---").try_for_each(|line| {
        front.push_str(line);
        if front.len() > FRONT { Err(()) } else { Ok(()) }
    });
    if closed.is_err() {
        return Err(Error::invalid(format!("the front matter has more than {FRONT} bytes")));
    }
    let (mut name, mut description) = (None, None);
    for (key, value) in scalars(&front)? {
        match key.as_str() {
            "name" => name = Some(value),
            "description" => description = Some(value),
            _ => (),
        }
    }
    let name = name.filter(|name| is_name(name)).ok_or_else(|| {
        Error::invalid(format!("`name` in the front matter has 1 to {NAME} of a-z, 0-9 and single hyphens inside"))
    })?;
    let description = description.map(|text| one_line(&text, DESCRIPTION)).filter(|text| !text.is_empty());
    let description = description.ok_or_else(|| Error::invalid("the front matter has no `description`"))?;
    Ok(SkillFront { name, description })
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=NAME).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The keys of the outermost mapping whose values are plain texts. References are not followed, so that nothing can grow.
fn scalars(yaml: &str) -> Result<Vec<(String, String)>> {
    let (mut found, mut depth, mut key) = (Vec::new(), 0_usize, None::<String>);
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|error| Error::invalid(format!("the front matter is no YAML: {error}")))?;
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.saturating_sub(1);
                if depth == 1 {
                    key = None; // its value was no text
                }
            }
            Event::Scalar(text, ..) if depth == 1 => match key.take() {
                None => key = Some(text.into_owned()),
                Some(key) => found.push((key, text.into_owned())),
            },
            Event::Alias(_) if depth == 1 => key = None,
            _ => (),
        }
    }
    Ok(found)
}

/// One line without control characters.
fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
