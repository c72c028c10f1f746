//! `sessions/foreground.ndjson`: the plan of a program that a process outside is about to start, as `acheron exec` is, and
//! then, however late, the reason why that program must end. The file stands for the program for as long as it is open.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde_json::json;
use tokio::sync::OnceCell;

use super::running_programs::{RunningProgram, RunningPrograms};
use super::service::{FindSurroundings, Look};
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Open, line, slice};

/// Its name. It is not listed: who reads all that there is would wait for ever.
pub const FOREGROUND: &str = "foreground.ndjson";

/// The file of one agent.
pub struct ForegroundFile {
    pub agent: String,
    pub around: FindSurroundings,
    pub programs: Arc<RunningPrograms>,
}

impl File for ForegroundFile {
    fn kind(&self) -> Kind {
        Kind::Waiting
    }

    fn open(&self, caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        if *caller.principal() != Principal::Operator {
            return Err(Error::forbidden("only the operator starts programs outside; use control/exec.json"));
        }
        let (agent, around, programs) = (self.agent.clone(), self.around.clone(), self.programs.clone());
        Ok(Box::new(ForegroundHandle(Arc::new(ForegroundProgram { agent, around, programs, begun: OnceCell::new() }))))
    }
}

/// A program outside, once its plan was read.
struct ForegroundProgram {
    agent: String,
    around: FindSurroundings,
    programs: Arc<RunningPrograms>,
    begun: OnceCell<(Bytes, RunningProgram)>,
}

impl ForegroundProgram {
    async fn begin(&self) -> Result<&(Bytes, RunningProgram)> {
        let begin = async || {
            let around = self.around.clone();
            let (around, program) = self.programs.begin(&self.agent, move || around(Look::Again)).await?;
            Ok((line(&around.plan(vec!["sh".to_owned()])), program))
        };
        self.begun.get_or_try_init(begin).await
    }
}

struct ForegroundHandle(Arc<ForegroundProgram>);

impl Handle for ForegroundHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let program = self.0.clone();
        Answer::later(async move {
            let (plan, running) = program.begin().await?;
            if usize::try_from(offset).is_ok_and(|offset| offset < plan.len()) {
                return Ok(slice(plan, offset, size));
            }
            let mut all = BytesMut::from(&plan[..]);
            all.extend_from_slice(&line(&json!({ "ended_because": running.taken_away().await })));
            Ok(slice(&all.freeze(), offset, size))
        })
    }

    fn readable(&self) -> Answer<()> {
        let program = self.0.clone();
        Answer::later(async move {
            if let Some((_, running)) = program.begun.get() {
                running.taken_away().await;
            }
            Ok(())
        })
    }
}
