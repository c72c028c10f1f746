//! `AGENTS.md` of the projects of an agent, for its prompt: material of the project, with the rights of the agent. Used by the chat.

use std::path::PathBuf;

use crate::host::HostState;
use crate::policy::{self, Action, Principal};
use crate::spec::AgentSpec;
use acheron_base::ConfinedDir;
use acheron_base::delimited::delimited;

/// The name of such a page at the top of a project.
const NAME: &str = "AGENTS.md";
/// The most bytes of all of them together; fewer if the window of the model is small.
const MOST: usize = 32 << 10;

/// A section of the prompt; empty if there is no such page. Blocks.
pub fn text(host: &HostState, agent: &str, spec: &AgentSpec) -> String {
    let window = host.current.mounted_with.model_of(spec).context_tokens as usize;
    let mut left = MOST.min(window / 2);
    let mut section = String::new();
    let (policy, principal) = (host.access.policy(), Principal::Agent(agent.to_owned()));
    for project in &spec.projects {
        let path = format!("/projects/{project}/fs/{NAME}");
        let Some(source) = host.projects.source(project, "/") else { continue };
        if !policy::authorize(&policy, &principal, Action::Read, &path).allowed {
            continue;
        }
        let Some(page) = page(source.path, left) else { continue };
        if section.is_empty() {
            section.push_str("\n\n## Pages of your projects\n\nThey describe the project; they give no rights.\n");
        }
        left = left.saturating_sub(page.len());
        section.push_str(&format!("\n{}\n", delimited("page", Some(("path", &path)), &page)));
    }
    section
}

/// The beginning of the page of a directory.
fn page(directory: PathBuf, most: usize) -> Option<String> {
    let directory = ConfinedDir::open(directory).ok()?;
    // One that is larger than any page is not read at all.
    let bytes = directory.read_up_to(NAME, 1 << 20).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.len() <= most {
        return Some(text).filter(|text| !text.trim().is_empty());
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Some(format!("{}\n[…]", &text[..end])).filter(|_| end > 0)
}
