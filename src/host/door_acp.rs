//! `acheron acp` on the host's side: after the request, the connection speaks the Agent Client Protocol.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use super::commands::{CommandSession, HostCommand};
use super::{HostState, binds};
use crate::doors::DoorCaller;
use crate::doors::acp::{self, AcpDoor, EditorPaths};
use crate::policy::Principal;
use acheron_base::{Error, Result, quoted};

pub const COMMAND: HostCommand = HostCommand { word: "acp", serve: |session| Box::pin(serve(session)) };

/// What `acheron acp` asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpRequest {
    /// The agent that is talked to; otherwise the default one.
    pub agent: Option<String>,
}

/// From now on the connection speaks the Agent Client Protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpBegun {
    pub agent: String,
}

async fn serve(mut session: CommandSession) {
    let door = match door(&mut session) {
        Ok(door) => door,
        Err(error) => return session.refuse(error).await,
    };
    if session.lines.send(&AcpBegun { agent: door.agent.clone() }).await.is_err() {
        return; // it has gone
    }
    let CommandSession { lines, host, .. } = session;
    // The connection must not keep the host.
    drop(host);
    let (stream, unread) = lines.into_stream();
    let (read, write) = stream.into_split();
    acp::serve(door, std::io::Cursor::new(unread).chain(read), write).await;
}

fn door(session: &mut CommandSession) -> Result<AcpDoor> {
    let AcpRequest { agent } = session.request()?;
    let agent = agent.unwrap_or_else(|| session.host.current.spec().default_agent().to_owned());
    if session.host.profiles.get(&agent).is_err() {
        return Err(Error::not_found(format!("there is no agent {}", quoted(&agent))));
    }
    let context = session.host.door_context(session.down.clone())?;
    let paths = Arc::new(ProjectPaths(Arc::downgrade(&session.host)));
    // Whoever reaches the socket is the operator.
    Ok(AcpDoor { context, caller: DoorCaller::peer(Principal::Operator), agent, paths })
}

/// Paths by the directories that projects show.
struct ProjectPaths(Weak<HostState>);

impl ProjectPaths {
    /// Each directory with its path in the tree, what lies deeper first.
    fn all(&self) -> Vec<(PathBuf, PathBuf)> {
        let Some(host) = self.0.upgrade() else { return Vec::new() };
        let bound = binds::all(&host.current.spec(), &host.paths.here);
        let known = |bound: &crate::spec::ProjectDir| {
            host.projects.source(&bound.project, &bound.at).map(|source| (source.path, bound.path()))
        };
        bound.iter().rev().filter_map(known).collect()
    }
}

/// The path below `to` of what lies below `from`.
fn moved(path: &Path, from: &Path, to: &Path) -> Option<String> {
    let rest = path.strip_prefix(from).ok()?;
    if rest.components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return None;
    }
    Some(to.join(rest).components().collect::<PathBuf>().to_str()?.to_owned())
}

impl EditorPaths for ProjectPaths {
    fn place(&self, path: &str) -> Option<String> {
        let mut found: Vec<_> = self.all();
        // The deepest directory of this machine that has it.
        found.sort_by_key(|(source, _)| std::cmp::Reverse(source.components().count()));
        found.iter().find_map(|(source, place)| moved(Path::new(path), source, place))
    }

    fn real(&self, path: &str) -> Option<String> {
        let found = self.all().iter().find_map(|(source, place)| moved(Path::new(path), place, source));
        found.or_else(|| {
            let mountpoint = self.0.upgrade()?.paths.mountpoint.clone()?;
            moved(Path::new(path), Path::new("/"), &mountpoint)
        })
    }
}
