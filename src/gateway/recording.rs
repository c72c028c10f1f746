//! Records what programs ask and are answered, and gives the answers again.
//!
//! A recording has one line per request: the request without what differs from run to run, and the answer as the program got
//! it. A replay looks for the request among them, whatever the order; if there is none, it says what differs.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::GatewayClient;
use acheron_base::{Error, Result, blocking};
use acheron_gateway::{GatewayRequest, difference, normalised};

/// An answer with more bytes is not recorded.
const MAX_RECORDED: usize = 32 << 20;

/// The file of a recording.
pub struct Recorder(Mutex<File>);

impl Recorder {
    /// An existing file is an error; nothing is appended to it.
    pub fn create(path: &Path) -> Result<Recorder> {
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path).map_err(|error| {
            let why = format!("cannot record to {}: {error}", path.display());
            Error::new(Error::from(error).code, why)
        })?;
        Ok(Recorder(Mutex::new(file)))
    }

    fn write(&self, line: &Value) {
        let written = self.0.lock().write_all(format!("{line}\n").as_bytes());
        if let Err(error) = written {
            tracing::warn!(%error, "a request could not be recorded");
        }
    }
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedExchange {
    pub dialect: String,
    pub stream: bool,
    /// Without what differs from run to run.
    pub request: Value,
    pub status: u16,
    /// As the program got it.
    pub answer: String,
}

/// An exchange under way. It is recorded when it has ended.
pub struct Exchange {
    recorder: Arc<Recorder>,
    by: String,
    program: String,
    asked: RecordedExchange,
    answer: Vec<u8>,
}

impl Exchange {
    pub async fn begin(recorder: &Arc<Recorder>, client: &GatewayClient, asked: &GatewayRequest) -> Result<Exchange> {
        let (by, program) = (client.agent.clone(), client.program.clone());
        let asked = RecordedExchange {
            dialect: asked.dialect.name().to_owned(),
            stream: asked.stream,
            request: compared(asked).await?,
            status: 0,
            answer: String::new(),
        };
        Ok(Exchange { recorder: recorder.clone(), by, program, asked, answer: Vec::new() })
    }

    pub fn add(&mut self, bytes: &[u8]) {
        if self.answer.len() <= MAX_RECORDED {
            self.answer.extend_from_slice(bytes);
        }
    }

    pub fn end(mut self, status: u16) {
        if self.answer.len() > MAX_RECORDED {
            tracing::warn!("an answer is too large to be recorded");
            return;
        }
        self.asked.status = status;
        self.asked.answer = String::from_utf8_lossy(&self.answer).into_owned();
        self.recorder.write(&json!({"by": self.by, "program": self.program, "asked": "", "exchange": self.asked}));
    }
}

/// The part of a request that is compared. Long requests take a while.
async fn compared(asked: &GatewayRequest) -> Result<Value> {
    let body = asked.body().clone();
    blocking(move || Ok(normalised(&body))).await
}

/// The exchanges of a recording.
pub struct RecordedRun {
    name: String,
    exchanges: Vec<RecordedExchange>,
    used: Mutex<Vec<bool>>,
}

/// The part of a line that is for programs.
#[derive(Deserialize)]
struct RecordedLine {
    exchange: Option<RecordedExchange>,
}

impl RecordedRun {
    /// Reads a recording; the lines that agents of the host made are not for programs.
    pub fn read(name: &str, text: &str) -> Result<RecordedRun> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.map(|(number, line)| {
            let line: RecordedLine = serde_json::from_str(line)
                .map_err(|error| Error::invalid(format!("{name}, line {}: {error}", number + 1)))?;
            Ok(line.exchange)
        });
        let exchanges: Vec<_> = lines.filter_map(Result::transpose).collect::<Result<_>>()?;
        let used = Mutex::new(vec![false; exchanges.len()]);
        Ok(RecordedRun { name: name.to_owned(), exchanges, used })
    }

    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// The model that the program asked for; Gemini's language does not say it in the request.
    pub fn model(&self) -> Option<&str> {
        self.exchanges.iter().find_map(|exchange| exchange.request["model"].as_str())
    }

    /// The answer to a request: the first that was not given yet. A program that repeats a request gets the same answer again.
    pub async fn answer(&self, asked: &GatewayRequest) -> Result<&RecordedExchange> {
        let request = compared(asked).await?;
        let mut used = self.used.lock();
        let same = |exchange: &RecordedExchange| {
            exchange.dialect == asked.dialect.name() && exchange.stream == asked.stream && exchange.request == request
        };
        let numbered = || self.exchanges.iter().enumerate().filter(|(_, exchange)| same(exchange));
        let unused = numbered().find(|(number, _)| !used[*number]);
        if let Some((number, exchange)) = unused.or_else(|| numbered().next_back()) {
            used[number] = true;
            return Ok(exchange);
        }
        // The next request that the program made when it was recorded is the one that it most probably makes now.
        let next = self
            .exchanges
            .iter()
            .zip(used.iter())
            .find(|(exchange, used)| !**used && exchange.dialect == asked.dialect.name());
        let said = match next {
            None => format!("it has no further request in the language {}", asked.dialect.name()),
            Some((exchange, _)) if exchange.stream != asked.stream => {
                "one of them asks for a stream, the other does not".to_owned()
            }
            Some((exchange, _)) => difference(&exchange.request, &request).unwrap_or_default(),
        };
        Err(Error::conflict(format!("the recording {} has no answer to this request: {said}", self.name)))
    }
}
