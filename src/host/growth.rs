//! `acheron log --follow` on the host's side: tells a command whenever the audit or an event log has grown. The command reads
//! the database itself, so that it is told no more often than it can read.

use super::commands::{CommandSession, HostCommand};

pub const COMMAND: HostCommand = HostCommand { word: "growth", serve: |session| Box::pin(serve(session)) };

async fn serve(session: CommandSession) {
    let (mut lines, mut events) = (session.host.timelines.listen(), session.host.context.event_logs.listen());
    let down = session.down.clone();
    // Held no longer: the host must be able to go down meanwhile.
    drop(session.host);
    let mut connection = session.lines;
    loop {
        if connection.send(&serde_json::json!({ "grown": true })).await.is_err() {
            return;
        }
        tokio::select! {
            () = down.cancelled() => return,
            grown = lines.changed() => if grown.is_err() { return },
            grown = events.changed() => if grown.is_err() { return },
            // The command says nothing more: what comes is its end.
            _ = connection.next::<serde_json::Value>() => return,
        }
    }
}
