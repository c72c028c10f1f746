//! The file requests of a program that is the mind of an agent: served by the tree, with the rights of the agent.

use acheron_acp::{AcpFault, FileRequest};
use serde_json::{Value, json};

use crate::doors::tree::{DoorTree, Wait};
use crate::host::HostState;
use crate::policy::PrincipalCaller;
use acheron_base::{Code, Error, Result};
use acheron_vfs::Caller;

/// The largest file that is read.
const MOST: usize = 4 << 20;

/// The tree with the rights of an agent.
pub fn tree(host: &HostState, agent: &str) -> Result<DoorTree> {
    Ok(DoorTree::new(host.context.tree()?, Caller::agent(agent), host.context.ids.clone()))
}

/// Serves a request.
pub async fn serve(tree: &DoorTree, file: &FileRequest) -> Result<Value, AcpFault> {
    let served = match file {
        FileRequest::Read { path, line, limit } => {
            read(tree, path).await.map(|text| json!({ "content": lines(&text, *line, *limit) }))
        }
        FileRequest::Write { path, content } => write(tree, path, content).await.map(|()| json!({})),
    };
    served.map_err(|error| AcpFault::from(&error))
}

/// The text of a file. A file that does not exist is empty: programs read a file before they make it, and take any refusal for a
/// failure (Gemini CLI 0.61).
async fn read(tree: &DoorTree, path: &str) -> Result<String> {
    let bytes = match tree.read(path, MOST + 1, Wait::Never).await {
        Err(error) if error.code == Code::NotFound && is_in_project(path) => return Ok(String::new()),
        read => read?,
    };
    if bytes.len() > MOST {
        return Err(Error::too_large(format!("{path} has more than {MOST} bytes")));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::invalid(format!("{path} is no text")))
}

fn is_in_project(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    parts.next() == Some("projects") && parts.nth(1) == Some("fs")
}

async fn write(tree: &DoorTree, path: &str, content: &str) -> Result<()> {
    tree.write(path, content.as_bytes(), false, false).await.map(drop)
}

/// Lines from `line` on (1 is the first), at most `limit`.
fn lines(text: &str, line: Option<u64>, limit: Option<u64>) -> String {
    if line.is_none() && limit.is_none() {
        return text.to_owned();
    }
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let skipped = text.split_inclusive('\n').skip(count(line.unwrap_or(1).saturating_sub(1)));
    skipped.take(limit.map_or(usize::MAX, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let text = "a\nb\nc";
        assert_eq!(lines(text, None, None), text);
        assert_eq!(lines(text, Some(2), None), "b\nc");
        assert_eq!(lines(text, Some(1), Some(1)), "a\n");
        assert_eq!(lines(text, Some(9), Some(u64::MAX)), "");
        assert_eq!(lines(text, Some(0), Some(2)), "a\nb\n");
    }

    #[test]
    fn only_files_of_projects_may_be_made_by_reading_them_first() {
        assert!(is_in_project("/projects/p/fs/new.rs") && !is_in_project("/projects/p") && !is_in_project("/agents/x"));
    }
}
