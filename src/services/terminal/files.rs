//! A session as files: `input` is typed into, `output` grows, `status.json` tells.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::session::Session;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, FixedReply, Listing, MessageFile, MessageSink, Node, Reply, line, live};

/// The directory of one session.
pub fn directory(session: &Arc<Session>) -> Node {
    let status = session.clone();
    let listing = Listing::default()
        .file("input", MessageFile::new(Arc::new(KeyboardFile(session.clone()))))
        .file("output", session.output.clone())
        .file("output.1", session.output.older())
        .file("status.json", live(move |_| Ok(line(&status.facts()))));
    Node::dir(listing)
}

/// Types every byte that is written to it.
struct KeyboardFile(Arc<Session>);

impl MessageSink for KeyboardFile {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"# what is written here is typed into the terminal; read output beside this file\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        if self.0.is_open() {
            Ok(())
        } else {
            Err(Error::unavailable(format!("the session `{}` is closed", self.0.id)))
        }
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        let session = self.0.clone();
        Answer::soon(async move {
            session.write(message.as_bytes()).await?;
            Ok(Arc::new(FixedReply(line(&json!({ "written": message.len() })))) as Arc<dyn Reply>)
        })
    }
}
