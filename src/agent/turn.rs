//! Runs one turn: asks the model, performs its call, records both, until there is a reply.
//!
//! [`step`] decides what comes next; this file does it. A turn that a crash interrupted continues from its transcript.
//! Dropping the future ends the turn at once and cancels a request to the model.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::ask::PaidModel;
use super::budget::{BudgetLimits, Spent, Standing, standing};
use super::chat_session::ChatSession;
use super::context::{ContextParts, RoundCache, assemble};
use super::history::HistoryEntry;
use super::mind::{Mind, MindTurn};
use super::native;
use super::protocol::{self, ModelCall};
use super::runtime::{AgentRuntime, Settings};
use super::step::{self, NextStep};
use super::transcript::{Transcript, TranscriptRecord, TurnEnd, TurnSource};
use super::turn_steps::{self, ShownPieces};
use crate::agent::tools::{ToolCall, failure, perform};
use crate::jobs::Job;
use crate::model::{ModelAnswer, ModelProtocol, ModelRequest, OfferedTool};
use crate::state::quota::QuotaKind;
use acheron_base::{Clock, Code, Error, Result, blocking};
use acheron_store::Written;

/// The form of an answer, for servers that can be asked for one.
static ANSWER_SCHEMA: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(ToolCall::answer_schema()));

/// The tools, for models that call them in their provider's own way.
static OFFERED_TOOLS: LazyLock<Arc<[OfferedTool]>> = LazyLock::new(|| ToolCall::offered().into());

/// The number of histories and replies written to disk at the same time.
static DISK_WRITES: Semaphore = Semaphore::const_new(16);

/// The running turn.
pub struct CurrentTurn {
    pub job: Arc<Job>,
    pub source: TurnSource,
    /// The conversation that it belongs to; the agent's main one otherwise.
    pub session: Option<ChatSession>,
    pub input: String,
    /// The settings at the start of the turn; changes apply to the next turn.
    pub settings: Settings,
    /// Usage so far.
    pub spent: Mutex<Spent>,
    /// Set by a write to `control/reply`.
    pub reply: watch::Sender<Option<String>>,
    /// The reply came from outside the turn and is stored until the turn has ended.
    pub kept: AtomicBool,
    /// The last message written to `control/progress`.
    pub progress: watch::Sender<Option<String>>,
}

impl CurrentTurn {
    pub fn spent(&self) -> Spent {
        *self.spent.lock()
    }
}

/// Runs a turn; returns the reply.
pub async fn run(agent_runtime: Arc<AgentRuntime>, current: Arc<CurrentTurn>) -> Result<Value> {
    let mut turn = RunningTurn::open(&agent_runtime, current).await?;
    let end = turn.run_to_end().await?;
    if !matches!(turn.records().last(), Some(TranscriptRecord::Ended { .. })) {
        let at_ms = agent_runtime.context.clock.now_ms();
        turn.write(vec![TranscriptRecord::Ended { at_ms, end: end.clone() }]).await?;
    }
    if turn.current.kept.load(Ordering::SeqCst) {
        let (owner, id) = (agent_runtime.clone(), turn.current.job.id.clone());
        on_disk(move || owner.forget_reply(&id)).await?;
    }
    agent_runtime.thoughts.end_turn();
    agent_runtime.context.jobs.grew(usize::try_from(turn.transcript.bytes()).unwrap_or(usize::MAX >> 1));
    let (reply, error) = match &end {
        TurnEnd::Replied(text) => (Some(text.clone()), None),
        TurnEnd::Failed { error, .. } => (None, Some(error.clone())),
    };
    remember(&agent_runtime, &turn.current, reply, error, turn.spent()).await?;
    match end {
        TurnEnd::Replied(text) => Ok(Value::String(text)),
        TurnEnd::Failed { why, error } => {
            turn.current.job.log.line(&format!("the turn failed ({why}): {error}"));
            Err(error)
        }
    }
}

/// The usage of a turn according to its transcript; an interrupted turn has cost something too.
pub async fn spent(agent_runtime: &Arc<AgentRuntime>, job_id: &str) -> Spent {
    let (owner, id) = (agent_runtime.clone(), job_id.to_owned());
    let transcript = on_disk(move || owner.turns.transcript(&id)).await;
    transcript.map(|transcript| transcript.spent()).unwrap_or_default()
}

/// Adds the turn to the history, once.
pub async fn remember(
    agent_runtime: &Arc<AgentRuntime>,
    current: &CurrentTurn,
    reply: Option<String>,
    error: Option<Error>,
    spent: Spent,
) -> Result<()> {
    if agent_runtime.history.has(&current.job.id) {
        return Ok(());
    }
    let (job_id, source, input) = (current.job.id.clone(), current.source.clone(), current.input.clone());
    let (ts_ms, total) = (agent_runtime.context.clock.now_ms(), agent_runtime.spent());
    let (session, rewound) = (current.session.clone(), None);
    let entry = HistoryEntry { seq: 0, ts_ms, job_id, source, session, input, reply, error, spent, total, rewound };
    let history = agent_runtime.history.clone();
    on_disk(move || history.add(entry)).await
}

pub async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let _seat = DISK_WRITES.acquire().await; // never closed
    blocking(work).await
}

struct RunningTurn<'a> {
    agent_runtime: &'a Arc<AgentRuntime>,
    current: Arc<CurrentTurn>,
    transcript: Transcript,
    /// The last outcome, while nobody has waited for it.
    unwritten: Option<Written<()>>,
    /// The runtime contract, the same in every round.
    core: String,
    rounds: RoundCache,
    /// Whether the soft limit of the turn was reported.
    warned: bool,
    /// The turn began in an earlier run of the host.
    resumed: bool,
}

/// The outcome of asking the model once.
enum AskOutcome {
    /// It calls a tool.
    Call(ModelCall),
    /// It does not, or not in a way that can be understood: the transcript says what comes next.
    NoCall,
    /// The turn is over.
    Ended(TurnEnd),
}

impl<'a> RunningTurn<'a> {
    async fn open(agent_runtime: &'a Arc<AgentRuntime>, current: Arc<CurrentTurn>) -> Result<RunningTurn<'a>> {
        let (owner, id) = (agent_runtime.clone(), current.job.id.clone());
        let (transcript, reply) = on_disk(move || Ok((owner.turns.transcript(&id)?, owner.kept_reply(&id)?))).await?;
        if reply.is_some() {
            current.kept.store(true, Ordering::SeqCst);
            current.reply.send_replace(reply);
        }
        let protocol = match transcript.records().is_empty() {
            false if step::is_native(transcript.records()) => ModelProtocol::Native,
            false => ModelProtocol::Json,
            true => current.settings.protocol,
        };
        let owner = agent_runtime.clone();
        // It reads files: the pages of projects.
        let core = on_disk(move || Ok((owner.core)(&owner.agent, protocol))).await?;
        let mut turn = RunningTurn {
            agent_runtime,
            current,
            transcript,
            unwritten: None,
            core,
            rounds: RoundCache::default(),
            warned: false,
            resumed: false,
        };
        turn.count();
        agent_runtime.pace.begin(agent_runtime.context.clock.now_ms());
        turn.resumed = !turn.records().is_empty();
        if !turn.resumed {
            let CurrentTurn { job, source, session, input, settings, .. } = &*turn.current;
            let began = TranscriptRecord::Began {
                at_ms: agent_runtime.context.clock.now_ms(),
                job_id: job.id.clone(),
                source: source.clone(),
                input: session.as_ref().map_or_else(|| input.clone(), |session| session.introduce(input)),
                limits: settings.limits,
                prices: settings.prices,
                strict: settings.strict,
                protocol: settings.protocol,
            };
            turn.write(vec![began]).await?;
        } else {
            turn.current.job.log.line("the turn continues after a restart of the host");
            let said = turn.records().iter().filter_map(|record| match record {
                TranscriptRecord::Said { said, .. } => Some(said.clone()),
                _ => None,
            });
            if let Some(model) = &turn.current.settings.model {
                model.resume(&said.collect::<Vec<_>>());
            }
            let seen = super::mail::seen_in(turn.records());
            mark_mail_seen(agent_runtime, seen).await;
        }
        Ok(turn)
    }

    fn records(&self) -> &[TranscriptRecord] {
        self.transcript.records()
    }

    /// Records and waits for the disk.
    async fn write(&mut self, records: Vec<TranscriptRecord>) -> Result<()> {
        let earlier = self.unwritten.take();
        let written = self.record(records)?;
        if let Some(earlier) = earlier {
            earlier.await?;
        }
        written.await
    }

    fn record(&mut self, records: Vec<TranscriptRecord>) -> Result<Written<()>> {
        let written = self.transcript.append(records)?;
        self.count();
        Ok(written)
    }

    /// Publishes the usage of the turn so far.
    fn count(&self) {
        *self.current.spent.lock() = self.spent();
    }

    async fn run_to_end(&mut self) -> Result<TurnEnd> {
        if let Some(mind) = self.current.settings.mind.clone() {
            return self.run_mind(&*mind).await;
        }
        let Some(model) = self.agent_runtime.paid_model(&self.current.settings) else {
            return self.wait_for_external_reply().await;
        };
        loop {
            // A program that the agent started may have replied in its name.
            let over = matches!(self.records().last(), Some(TranscriptRecord::Ended { .. }));
            if let Some(text) = self.current.reply.borrow().clone().filter(|_| !over) {
                return Ok(TurnEnd::Replied(text));
            }
            let quotas = &self.agent_runtime.context.event_logs.quotas;
            if let Err(error) = quotas.check(QuotaKind::Turn, self.transcript.bytes(), 0)
                && !over
            {
                return Ok(TurnEnd::failed("quota_exceeded", error));
            }
            match step::next(self.records(), &self.spent()) {
                NextStep::Rest(end) => return Ok(end),
                NextStep::Act(call) => {
                    self.intend(&call).await?;
                    self.act(call).await?;
                }
                NextStep::Refuse(wrong) => {
                    self.current.job.log.line(&format!("  refused, {}: {}", wrong.fault.name(), wrong.why));
                    self.outcome(native::refusal(&wrong), 0, 0)?;
                }
                NextStep::Interrupted(call) => {
                    let said = format!("the host stopped during this {}; its effect is unknown", call.tool.name());
                    let result = failure(&Error::interrupted(said));
                    self.outcome(result, 0, 0)?;
                }
                NextStep::Ask => match self.ask(&model).await? {
                    AskOutcome::Call(call) => self.act(call).await?,
                    AskOutcome::NoCall => (),
                    AskOutcome::Ended(end) => return Ok(end),
                },
            }
        }
    }

    /// Asks the model, and records its answer together with the intended call.
    async fn ask(&mut self, model: &PaidModel) -> Result<AskOutcome> {
        if let Err(error) = self.agent_runtime.ledger.check(&self.agent_runtime.agent) {
            return Ok(AskOutcome::Ended(TurnEnd::failed("budget_exceeded", error)));
        }
        let round = self.round() + 1;
        let mail = self.collect_mail().await?;
        self.warn();
        self.show(&json!({"doing": "asking the model"}));
        let (agent_runtime, clock) = (self.agent_runtime, self.agent_runtime.context.clock.clone());
        let ask = match self.question().await {
            Ok(ask) => ask,
            Err(error) => return Ok(AskOutcome::Ended(TurnEnd::failed("context", error))),
        };
        agent_runtime.thoughts.begin(&self.current.job.id, round, clock.now_ms());
        let (left, thoughts) = (self.time_left(), agent_runtime.thoughts.clone());
        let (current, mut pieces) = (self.current.clone(), ShownPieces::of(step::is_native(self.records())));
        let mut watch = |piece| {
            thoughts.add_piece(&piece);
            pieces.add(&piece, &current.job);
        };
        let answer = tokio::time::timeout(left.unwrap_or(Duration::MAX / 4), model.ask(ask, &mut watch)).await;
        let mut answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.code == Code::BudgetExceeded => {
                return Ok(AskOutcome::Ended(TurnEnd::failed("budget_exceeded", error)));
            }
            Ok(Err(error)) => return Ok(AskOutcome::Ended(TurnEnd::failed("provider_error", unless_timeout(error)))),
            Err(_) => {
                let error = Error::budget_exceeded("the turn has used up its seconds");
                return Ok(AskOutcome::Ended(TurnEnd::failed("budget_exceeded", error)));
            }
        };
        answer.said.name_calls(native::ids(self.records()));
        let (at_ms, call) = (clock.now_ms(), self.first_call(&answer.said));
        agent_runtime.pace.step(answer.ms, at_ms);
        agent_runtime.pace.set_context(answer.said.usage.total());
        // The thought first: a reader that has seen the log line of a round finds its thought.
        let seq = agent_runtime.thoughts.end(&answer.said, at_ms);
        self.log_round(round, &call);
        if call.as_ref().is_ok_and(|call| call.as_ref().is_some_and(|call| call.deviates)) {
            agent_runtime.deviations.fetch_add(1, Ordering::SeqCst);
        }
        let mut records = vec![TranscriptRecord::Said { at_ms, ms: answer.ms, seq, said: answer.said.clone() }];
        if let Ok(Some(call)) = &call
            && call.tool.acts()
        {
            records.push(TranscriptRecord::Intent { at_ms, call: call.clone() });
        }
        let earlier = self.unwritten.take();
        let written = self.transcript.append_with(records, |write| answer.settle(write).1)?;
        self.count();
        if let Some(earlier) = earlier {
            earlier.await?;
        }
        written.await?;
        mark_mail_seen(agent_runtime, mail).await;
        Ok(call.ok().flatten().map_or(AskOutcome::NoCall, AskOutcome::Call))
    }

    /// Records the mail that has come, so that the next question shows it. Returns the ids of what the model is going to see.
    async fn collect_mail(&mut self) -> Result<Vec<String>> {
        let mailbox = &self.agent_runtime.mail;
        if mailbox.may_be_unseen() {
            let unseen = mailbox.unseen(super::mail::MOST).await?;
            let mails = super::mail::new_in(self.records(), unseen);
            if !mails.is_empty() {
                let at_ms = self.agent_runtime.context.clock.now_ms();
                self.current.job.log.line(&format!("  {} new messages", mails.len()));
                self.write(vec![TranscriptRecord::Mail { at_ms, mails }]).await?;
            }
        }
        let new = self.records().iter().rev().take_while(|record| !matches!(record, TranscriptRecord::Said { .. }));
        Ok(new
            .flat_map(|record| match record {
                TranscriptRecord::Mail { mails, .. } => mails.as_slice(),
                _ => &[],
            })
            .map(|mail| mail.id.clone())
            .collect())
    }

    /// The first call of an answer; none if it is the reply.
    fn first_call(&self, said: &ModelAnswer) -> Result<Option<ModelCall>, protocol::ProtocolFault> {
        match step::is_native(self.records()) {
            true => native::first(said),
            false => protocol::read_as(said, step::reading(self.records())).map(Some),
        }
    }

    async fn question(&mut self) -> Result<ModelRequest> {
        let settings = &self.current.settings;
        let memory = (self.agent_runtime.remember)().await;
        let mut parts = ContextParts {
            core: &self.core,
            memory: &memory,
            history: &self.agent_runtime.history.exchanges(self.current.session.as_ref()),
            turn: self.transcript.records(),
            window: settings.window,
            answer: settings.answer,
        };
        if step::is_native(self.transcript.records()) {
            let offered = ModelRequest { tools: Some(OFFERED_TOOLS.clone()), ..ModelRequest::default() };
            parts.window = parts.window.saturating_sub(offered.estimated());
        }
        loop {
            let mut ask = assemble(&parts, &mut self.rounds)?;
            match step::is_native(self.transcript.records()) {
                true => ask.tools = Some(OFFERED_TOOLS.clone()),
                false => ask.schema = Some(ANSWER_SCHEMA.clone()),
            }
            let room = settings.window.saturating_sub(ask.max_tokens.into());
            if ask.at_most() <= room {
                return Ok(ask); // as nearly always: nothing needs to be counted
            }
            let counted = ask.counted().await?;
            if counted <= room {
                return Ok(ask);
            }
            // Texts with more tokens than their length tells: as much less of them as they are too long.
            parts.window = (parts.window * room / counted).min(parts.window - parts.window / 32);
        }
    }

    /// Records the intent of a further call of an answer. The outcome of the call before it is on the disk then.
    async fn intend(&mut self, call: &ModelCall) -> Result<()> {
        self.current.job.log.line(&format!("  then {} {}", call.tool.name(), call.tool.path()));
        match call.tool.acts() && !matches!(self.records().last(), Some(TranscriptRecord::Intent { .. })) {
            true => {
                let at_ms = self.agent_runtime.context.clock.now_ms();
                self.write(vec![TranscriptRecord::Intent { at_ms, call: call.clone() }]).await
            }
            false => match self.unwritten.take() {
                Some(earlier) => earlier.await,
                None => Ok(()),
            },
        }
    }

    /// Performs a call whose intent is recorded.
    async fn act(&mut self, call: ModelCall) -> Result<()> {
        let (name, path) = (call.tool.name(), call.tool.path().to_owned());
        let doing = json!({"doing": name, "path": path});
        self.show(&doing);
        let step = turn_steps::call(&self.current.job, &self.agent_runtime.agent, &call.tool);
        let clock = self.agent_runtime.context.clock.clone();
        let pause = Arc::new(WaitTimer::new(clock.clone()));
        let tools = self.agent_runtime.tools({
            let (pause, current, spent, round) = (pause.clone(), self.current.clone(), self.spent(), self.round());
            let agent_runtime = self.agent_runtime.clone();
            Arc::new(move |parked| {
                pause.note(parked);
                agent_runtime.pace.wait(parked, pause.clock.now_ms());
                let mut doing = doing.clone();
                doing["waiting"] = parked.into();
                show(&current, &pause.clock, round, &spent, &doing);
            })
        })?;
        let begun = clock.now_ms();
        let result = perform(&tools, &call.tool).await;
        let ms = clock.now_ms().saturating_sub(begun);
        let shown = match result.get("error") {
            Some(error) => format!("  refused, {}: {}", word(error, "code"), word(error, "message")),
            None => format!("  done in {ms} ms"),
        };
        self.current.job.log.line(&shown);
        turn_steps::outcome(&self.current.job, step, &result, ms);
        self.outcome(result, ms, pause.total())
    }

    /// Records the outcome of a call. The model may think about it while it is written; what it answers is recorded after it
    /// or not at all.
    fn outcome(&mut self, result: Value, ms: u64, parked_ms: u64) -> Result<()> {
        let at_ms = self.agent_runtime.context.clock.now_ms();
        self.agent_runtime.pace.step(ms.saturating_sub(parked_ms), at_ms);
        let (ledger, agent) = (&self.agent_runtime.ledger, &self.agent_runtime.agent);
        let worked = Spent { ms: ms.saturating_sub(parked_ms), ..Spent::default() };
        let records = vec![TranscriptRecord::Outcome { at_ms, ms, parked_ms, result }];
        let written = self.transcript.append_with(records, |write| match worked.ms {
            0 => ledger.write(write),
            _ => ledger.charge(agent, &worked, write),
        })?;
        self.count();
        self.unwritten = Some(written);
        Ok(())
    }

    /// A turn of an agent without a model: an external process reads the input and writes the reply.
    async fn wait_for_external_reply(&mut self) -> Result<TurnEnd> {
        if let Some(TranscriptRecord::Ended { end, .. }) = self.records().last() {
            return Ok(end.clone());
        }
        self.show(&json!({"doing": "waiting for a reply from outside", "waiting": true}));
        self.agent_runtime.pace.wait(true, self.agent_runtime.context.clock.now_ms());
        let mut reply = self.current.reply.subscribe();
        let text = reply.wait_for(Option::is_some).await.ok().and_then(|text| text.clone());
        Ok(TurnEnd::Replied(text.unwrap_or_default()))
    }

    /// A turn of an agent whose mind is a program.
    async fn run_mind(&mut self, mind: &dyn Mind) -> Result<TurnEnd> {
        if let Some(TranscriptRecord::Ended { end, .. }) = self.records().last() {
            return Ok(end.clone());
        }
        let mut reply = self.current.reply.subscribe();
        if let Some(text) = reply.borrow_and_update().clone() {
            return Ok(TurnEnd::Replied(text));
        }
        if self.resumed {
            let said = "the host stopped while a program worked on this turn; what it has done is unknown";
            return Ok(TurnEnd::failed("interrupted", Error::interrupted(said)));
        }
        if let Err(error) = self.agent_runtime.ledger.check(&self.agent_runtime.agent) {
            return Ok(TurnEnd::failed("budget_exceeded", error));
        }
        self.show(&json!({"doing": mind.name()}));
        let CurrentTurn { job, session, .. } = &*self.current;
        let input = match self.records().first() {
            Some(TranscriptRecord::Began { input, .. }) => input.clone(),
            _ => self.current.input.clone(),
        };
        let earlier = self.agent_runtime.history.exchanges(session.as_ref());
        let turn = MindTurn { job: job.clone(), session: session.clone(), input, earlier };
        let left = self.time_left().unwrap_or(Duration::MAX / 4);
        tokio::select! {
            done = tokio::time::timeout(left, mind.turn(turn)) => Ok(match done {
                Ok(Ok(text)) => TurnEnd::Replied(text),
                Ok(Err(error)) => TurnEnd::failed(error.code.name(), unless_timeout(error)),
                Err(_) => {
                    TurnEnd::failed("budget_exceeded", Error::budget_exceeded("the turn has used up its seconds"))
                }
            }),
            // The program may write its reply to the tree.
            Some(text) = async { reply.wait_for(Option::is_some).await.ok().and_then(|text| text.clone()) } => {
                Ok(TurnEnd::Replied(text))
            }
        }
    }

    fn round(&self) -> u64 {
        self.spent().rounds
    }

    fn spent(&self) -> Spent {
        self.transcript.spent()
    }

    /// The limits and the usage of the agent over all its turns. A raised budget applies at once.
    fn agent(&self) -> (BudgetLimits, Spent) {
        (self.agent_runtime.settings().total, self.agent_runtime.spent())
    }

    /// The time left, if it is limited.
    fn time_left(&self) -> Option<Duration> {
        let left = |limits: &BudgetLimits, spent: &Spent| Some((limits.seconds? * 1000).saturating_sub(spent.ms));
        let (limits, spent) = self.agent();
        let turn = left(&step::limits(self.records()), &self.spent());
        [turn, left(&limits, &spent)].into_iter().flatten().min().map(Duration::from_millis)
    }

    /// Emits an event about a soft limit of the turn, once. The ledger tells of those of the agent.
    fn warn(&mut self) {
        let (limits, spent) = (step::limits(self.records()), self.spent());
        if let Standing::Soft(what) = standing(&limits, &spent)
            && !std::mem::replace(&mut self.warned, true)
        {
            let job_id = &self.current.job.id;
            self.agent_runtime
                .note_budget(json!({"budget": what, "of": "turn", "job_id": job_id, "limits": limits, "spent": spent}));
        }
    }

    fn show(&self, doing: &Value) {
        show(&self.current, &self.agent_runtime.context.clock, self.round(), &self.spent(), doing);
    }

    fn log_round(&self, round: u64, call: &Result<Option<ModelCall>, protocol::ProtocolFault>) {
        let log = &self.current.job.log;
        match call {
            Ok(Some(call)) => log.line(&format!("round {round}: {} {}", call.tool.name(), call.tool.path())),
            Ok(None) => log.line(&format!("round {round}: the reply")),
            Err(wrong) => log.line(&format!("round {round}: fault {}: {}", wrong.fault.name(), wrong.why)),
        }
    }
}

/// Tells the senders. A failure keeps nobody: the message is shown again in the next turn.
async fn mark_mail_seen(agent_runtime: &AgentRuntime, ids: Vec<String>) {
    if ids.is_empty() {
        return;
    }
    if let Err(error) = agent_runtime.mail.seen(ids).await {
        tracing::warn!(agent = agent_runtime.agent, %error, "mail could not be marked as seen");
    }
}

fn word<'v>(error: &'v Value, key: &str) -> &'v str {
    error[key].as_str().unwrap_or_default()
}

/// Shows the progress of a turn in its job's `progress.json`.
fn show(current: &CurrentTurn, clock: &Clock, round: u64, spent: &Spent, doing: &Value) {
    let mut progress = json!({"round": round, "said": *current.progress.borrow(), "spent": spent});
    for (key, value) in doing.as_object().into_iter().flatten() {
        progress[key] = value.clone();
    }
    let now = clock.now_ms();
    current.job.update(|job| {
        job.progress = Some(progress);
        job.updated_at_ms = now;
    });
}

/// A timeout of the provider is an error of the provider; the turn itself was not too slow.
fn unless_timeout(error: Error) -> Error {
    match error.code {
        Code::Timeout | Code::Cancelled | Code::Interrupted => Error::provider(error.message),
        _ => error,
    }
}

/// Measures how long a call waits for events.
struct WaitTimer {
    clock: Clock,
    /// The start of the wait; 0 if not waiting.
    since: AtomicU64,
    total: AtomicU64,
}

impl WaitTimer {
    fn new(clock: Clock) -> Self {
        WaitTimer { clock, since: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    fn note(&self, parked: bool) {
        let now = self.clock.now_ms();
        let since = self.since.swap(if parked { now.max(1) } else { 0 }, Ordering::SeqCst);
        if !parked && since > 0 {
            self.total.fetch_add(now.saturating_sub(since), Ordering::SeqCst);
        }
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::SeqCst)
    }
}
