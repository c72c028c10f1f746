//! What `status.json` tells of a turn that has ended.

use serde_json::Value;

use super::{World, reply, thinking, write};
use crate::policy::PrincipalCaller;
use acheron_vfs::Caller;

async fn error(world: &World) -> Value {
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    status["error"].clone()
}

/// A handle has the answer when the job has ended, which may be before the history has it.
#[tokio::test]
async fn the_status_has_the_failure_when_its_text_can_be_read() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(dir.path(), thinking(&[]));
        let said = world.tree.ask(&Caller::operator(), "agents/ada/chat/control/input", b"hello").await.unwrap();
        assert!(String::from_utf8_lossy(&said).contains("has no answer left"));
        assert_ne!(error(&world).await, Value::Null);
    }
}

/// The agent hears of the refusal itself, and the turn ends well.
#[tokio::test]
async fn a_refusal_within_a_turn_is_not_the_failure_of_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [write("chat/control/input", "to myself"), reply("All done.")];
    let world = World::new(dir.path(), thinking(&lines));
    assert_eq!(world.say("go").await, "All done.\n");
    assert_eq!(error(&world).await, Value::Null);
}
