//! `chat/`: the directory of a conversation.

use std::sync::Arc;

use super::Chat;
use super::input::NamedInputFile;
use super::messages::{InputFile, ProgressFile, ReplyFile};
use super::pending::NamedReplyFile;
use super::rewind::RewindFile;
use acheron_vfs::{Control, Listing, MessageFile, Node, line, live, text, waiting};

const README: &str = "\
# chat

A conversation with the agent.

    echo 'What can you do?' > control/input
    cat latest.txt

- Every message is a turn, and every turn is a job: `../jobs/last/result.txt` also waits for the reply. Further messages
  are queued in order.
- `latest.txt` is the last reply, or the error of a turn that failed; reading it waits while a turn is queued or running.
  After a reply, `error` in `status.json` is null.
- On one handle, `exec 3<>control/input; echo hi >&3; cat <&3`, a read returns the reply to that message.
- `history.ndjson` has every turn: input, reply or error, and cost. `status.json` shows the current turn, the limits of a
  turn and of the agent (`limits`) and the usage of all turns (`spent`). A turn that reaches a limit ends with
  `budget_exceeded`; an event is emitted at 80 %. `attention` says whether the agent needs you: `approval`, `blocked` (its
  last turn failed, or turns wait while it is paused), `stalled` (on one step for more than twice its median), `working`,
  `idle` or `done`; `last` its last words; `context` the tokens of the last question and answer, and the window.
- `echo > ../jobs/<job>/control/cancel` ends a turn.
- `pending.json` is for programs that serve an agent whose model is `external`: it waits until a turn has no answer and shows
  the oldest. It is not listed, so that nothing hangs that only looks around. `control/reply.json` answers it
  (`/global/library/topics/external-models.md`).
";

const CONTROL: &str = "\
- `input`: write a message to the agent. The agent itself cannot.
- `input.json`: the same as an object with `input`. `session` with an `id` makes it a turn of a conversation of that name, which
  remembers its own turns only. A `correlation_id` in `_meta` names its job; on the same handle the answer has
  `reply`, `error` and `spent`.
- `reply`: the agent writes its reply, which ends its turn. From a program outside it answers the oldest turn.
- `reply.json`: an object with `turn` and `reply` answers that turn and no other.
- `rewind.json`: the operator brings the agent back to the end of a turn, by its `seq` in `history.ndjson`: an object with `to`. Its
  view, its conversation and its memory come back together; `preview` only tells what would, `undo` takes the last one back.
- `progress`: the agent writes a message before the end of its turn; reading it shows the last one.
";

impl Chat {
    pub fn directory(&self) -> Listing {
        let (status, latest, pending) = (self.clone(), self.clone(), self.clone());
        let control = Listing::default()
            .file("README.md", text(CONTROL))
            .file("input", MessageFile::new(Arc::new(InputFile(self.clone()))))
            .file("input.json", Control::new(Arc::new(NamedInputFile(self.clone()))))
            .file("reply", MessageFile::new(Arc::new(ReplyFile(self.clone()))))
            .file("reply.json", Control::new(Arc::new(NamedReplyFile(self.clone()))))
            .file("rewind.json", Control::new(Arc::new(RewindFile(self.clone()))))
            .file("progress", MessageFile::new(Arc::new(ProgressFile(self.clone()))));
        let log = self.0.agent_runtime.history.log();
        Listing::default()
            .file("README.md", text(README))
            .file("status.json", live(move |_| Ok(line(&status.status()))))
            .file("latest.txt", waiting(move |caller| latest.last_reply(caller)))
            .file("history.ndjson", log.clone())
            .file("history.ndjson.1", log.older())
            .dir("control", control)
            .unlisted("pending.json", Node::file(waiting(move |caller| pending.pending_turn(caller))))
    }
}
