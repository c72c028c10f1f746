//! Answers that pass through the gateway piece by piece. Nothing is held back: each piece of the server is a piece of the program.
//!
//! A stream belongs to the connection of its program. If that goes away, the stream is dropped: the request to the server is
//! cancelled, and its account is settled.

use bytes::Bytes;
use futures_util::stream::unfold;

use super::account::RequestAccount;
use super::client::fault_of;
use super::recording::Exchange;
use acheron_base::{Error, Result};
use acheron_gateway::{AnswerIdentity, AnswerWriter, ChatStreamReader, Dialect, StreamMeter, error_event};
use acheron_http::OpenAnswer;
use acheron_http::server::BodyStream;

/// The stream of a server, and what it costs.
struct MeteredStream {
    answer: OpenAnswer,
    meter: StreamMeter,
    account: Option<RequestAccount>,
    exchange: Option<Exchange>,
}

impl MeteredStream {
    /// The next piece. The seconds of the agent may be used up before it comes.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(account) = &mut self.account else { return Ok(None) };
        let chunk = tokio::select! {
            biased;
            chunk = self.answer.chunk() => chunk.map_err(Error::from)?,
            error = account.seconds_used_up() => return Err(error),
        };
        if let Some(chunk) = &chunk {
            self.meter.feed(chunk);
            account.progress(self.meter.usage(), self.meter.output());
        }
        Ok(chunk)
    }

    /// Notes what the program gets.
    fn told(&mut self, bytes: &[u8]) {
        if let Some(account) = &mut self.account {
            account.keep(bytes);
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.add(bytes);
        }
    }

    /// The server has ended its stream; it is charged before the program sees the end.
    async fn end(&mut self) {
        let Some(account) = self.account.take() else { return };
        let status = 200;
        match (self.meter.fault(), self.meter.is_ended()) {
            (None, true) => {
                if let Err(error) = account.complete(self.meter.usage(), self.meter.output()).await {
                    tracing::warn!(%error, "the cost of a request could not be written down");
                }
            }
            (Some(fault), _) => account.fail(status, &format!("upstream_error: {fault}")),
            (None, false) => account.fail(status, "upstream_error: the server ended its answer early"),
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.end(status);
        }
    }

    /// The stream broke: the program is told in its own language.
    fn broke(&mut self, dialect: Dialect, error: &Error) -> Bytes {
        if let Some(account) = self.account.take() {
            account.fail(200, &format!("{}: {}", error.code.name(), error.message));
        }
        error_event(dialect, fault_of(error), &error.message).into()
    }
}

/// A stream in the language of the program: its bytes pass untouched.
pub struct PassedStream {
    dialect: Dialect,
    stream: MeteredStream,
}

impl PassedStream {
    pub fn new(
        dialect: Dialect,
        answer: OpenAnswer,
        account: RequestAccount,
        exchange: Option<Exchange>,
    ) -> PassedStream {
        let meter = StreamMeter::new(dialect);
        PassedStream { dialect, stream: MeteredStream { answer, meter, account: Some(account), exchange } }
    }

    pub fn pieces(self) -> BodyStream {
        Box::pin(unfold(Some(self), |passed| async {
            let mut passed = passed?;
            match passed.stream.next().await {
                Ok(Some(chunk)) => {
                    passed.stream.told(&chunk);
                    Some((Ok(chunk), Some(passed)))
                }
                Ok(None) => {
                    passed.stream.end().await;
                    None
                }
                Err(error) => {
                    let event = passed.stream.broke(passed.dialect, &error);
                    Some((Ok(event), None))
                }
            }
        }))
    }
}

/// A stream of chat completions in another language.
pub struct TranslatedStream {
    dialect: Dialect,
    stream: MeteredStream,
    reader: ChatStreamReader,
    writer: AnswerWriter,
    begun: bool,
}

impl TranslatedStream {
    pub fn new(
        dialect: Dialect,
        identity: AnswerIdentity,
        answer: OpenAnswer,
        account: RequestAccount,
        exchange: Option<Exchange>,
    ) -> TranslatedStream {
        let meter = StreamMeter::new(Dialect::Chat);
        let stream = MeteredStream { answer, meter, account: Some(account), exchange };
        let (reader, writer) = (ChatStreamReader::default(), AnswerWriter::new(dialect, identity));
        TranslatedStream { dialect, stream, reader, writer, begun: false }
    }

    /// The next piece, and whether it is the last one.
    async fn step(&mut self) -> Result<(Vec<u8>, bool)> {
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.writer.begin(&mut out);
            return Ok((out, false));
        }
        // A piece of the server may say nothing to the program.
        while out.is_empty() {
            let Some(chunk) = self.stream.next().await? else {
                if !self.reader.is_complete() {
                    return Err(Error::provider("the model's server ended its answer early"));
                }
                let (parts, end) = self.reader.finish();
                parts.iter().for_each(|part| self.writer.part(part, &mut out));
                self.writer.end(&end, &mut out);
                return Ok((out, true));
            };
            for part in self.reader.feed(&chunk)? {
                self.writer.part(&part, &mut out);
            }
        }
        Ok((out, false))
    }

    pub fn pieces(self) -> BodyStream {
        Box::pin(unfold(Some(self), |stream| async {
            let mut stream = stream?;
            match stream.step().await {
                Ok((out, last)) => {
                    stream.stream.told(&out);
                    if last {
                        stream.stream.end().await;
                    }
                    Some((Ok(out.into()), (!last).then_some(stream)))
                }
                Err(error) => {
                    let event = stream.stream.broke(stream.dialect, &error);
                    Some((Ok(event), None))
                }
            }
        }))
    }
}
