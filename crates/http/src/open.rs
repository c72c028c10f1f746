//! An answer whose body is read piece by piece by the caller. Attempts are repeated only before the first of them; an answer
//! of any status is handed out as it is.

use std::time::Duration;

use bytes::Bytes;
use rand::RngCore;

use super::{Failure, Http, Request, Retry, retry, within};
use acheron_base::Error;

/// An answer whose body follows. Dropping it cancels the request.
#[derive(Debug)]
pub struct OpenAnswer {
    pub status: u16,
    /// The headers whose values are text, with names in lower case.
    pub headers: Vec<(String, String)>,
    response: reqwest::Response,
    host: String,
    idle: Duration,
    left: u64,
}

impl OpenAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The content type in lower case, without parameters.
    pub fn content_type(&self) -> String {
        let given = self.header("content-type").unwrap_or_default();
        given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(chunk) = within(self.idle, &self.host, "silence", self.response.chunk()).await? else {
            return Ok(None);
        };
        match self.left.checked_sub(chunk.len() as u64) {
            Some(left) => self.left = left,
            None => {
                let error = format!("the answer of {} is larger than allowed", self.host);
                return Err(Failure::permanent(Error::too_large(error)));
            }
        }
        Ok(Some(chunk))
    }

    /// The rest of the body.
    pub async fn rest(&mut self) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

impl Http {
    /// Sends the request until a server answers or the policy gives up. A server that asks for patience is asked again, as
    /// long as attempts are left; then its refusal is the answer.
    pub async fn open(&self, request: &Request, rng: &mut (dyn RngCore + Send)) -> Result<OpenAnswer, Failure> {
        let mut failed = 0;
        loop {
            let (retry, outcome) = match self.send(request).await {
                Ok(answer) if !retry::transient(answer.status) => return Ok(answer),
                Ok(answer) => {
                    let later =
                        retry::retry_after(answer.header("retry-after"), answer.header("date"), self.clock.now());
                    (Retry::After(later), Ok(answer))
                }
                Err(failure) => (failure.retry, Err(failure)),
            };
            failed += 1;
            let Some(pause) = self.policy.pause_after(failed, retry, rng) else {
                return outcome.map_err(|mut failure| {
                    failure.error = request.redacted(failure.error);
                    failure
                });
            };
            tracing::info!(failed, ?pause, "an HTTP request is repeated");
            drop(outcome);
            tokio::time::sleep(pause).await;
        }
    }

    async fn send(&self, request: &Request) -> Result<OpenAnswer, Failure> {
        let (sent, host) = self.prepare(request)?;
        let (first_byte, idle) =
            (request.first_byte.unwrap_or(self.policy.first_byte), request.idle.unwrap_or(self.policy.idle));
        let response = within(first_byte, &host, "no answer", sent.send()).await?;
        let headers = response.headers().iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let (status, headers) = (response.status().as_u16(), headers.collect());
        Ok(OpenAnswer { status, headers, response, host, idle, left: request.limit })
    }
}
