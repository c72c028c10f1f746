//! Makes the streams and readers, which only the operator may where the server knows users; and checks that they are there.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::link::ANSWER;
use crate::stored::ServerError;
use crate::{Condition, Link, LinkFault};
use acheron_base::{Error, Result};
use acheron_fabric::streams::{self, MAIL, differences};

/// The codes for "it is there with other settings": of a stream, of a reader.
const EXISTS: [u64; 2] = [10058, 10148];

impl Link {
    /// A request to the interface of JetStream.
    async fn api(&self, what: &str, body: Value) -> Result<Value, LinkFault> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let answer = self.request(format!("$JS.API.{what}"), None, body, ANSWER).await?;
        let mut value: Value = serde_json::from_slice(&answer.payload).map_err(LinkFault::unknown)?;
        match value.get_mut("error").map(Value::take) {
            Some(error) => match serde_json::from_value::<ServerError>(error) {
                Ok(error) => Err(error.fault()),
                Err(err) => Err(LinkFault::unknown(err)),
            },
            None => Ok(value),
        }
    }

    /// Makes what is missing for these hosts: streams with so many copies, and a reader of mail per host. What is there with
    /// other settings is changed to these.
    pub async fn set_up(&self, replicas: u64, nodes: &[String]) -> Result<()> {
        for wanted in streams::all(replicas) {
            let name = wanted["name"].as_str().unwrap_or_default().to_owned();
            let made = match self.api(&format!("STREAM.CREATE.{name}"), wanted.clone()).await {
                Err(LinkFault::Refused { code, .. }) if EXISTS.contains(&code) => {
                    self.api(&format!("STREAM.UPDATE.{name}"), wanted.clone()).await
                }
                made => made,
            };
            let made = made.map_err(|fault| Error::from(fault).about(format!("stream {name}")))?;
            check(&name, &wanted, &made["config"])?;
        }
        for node in nodes {
            self.set_up_reader(node).await?;
        }
        Ok(())
    }

    /// Makes the reader of a host's mail.
    pub async fn set_up_reader(&self, node: &str) -> Result<()> {
        let wanted = streams::mail_reader(node);
        let request = json!({ "stream_name": MAIL, "config": wanted });
        let made = self.api(&format!("CONSUMER.DURABLE.CREATE.{MAIL}.{node}"), request).await;
        let made = made.map_err(|fault| Error::from(fault).about(format!("the reader of {node}'s mail")))?;
        check(&format!("the reader of {node}'s mail"), &wanted, &made["config"])
    }

    /// Checks that everything is there that this host uses, and returns how many copies the server keeps. What is missing is
    /// made if the server lets this host make it, as one without users does.
    pub async fn ready(&self) -> Result<u64> {
        let replicas = match self.check_streams().await {
            Err(fault) if fault.is_missing() => {
                self.set_up(1, &[]).await.map_err(not_set_up)?;
                self.check_streams().await
            }
            outcome => outcome,
        }?;
        match self.api(&format!("CONSUMER.INFO.{MAIL}.{}", self.node()), Value::Null).await {
            Err(fault) if fault.is_missing() => self.set_up_reader(self.node()).await.map_err(not_set_up)?,
            outcome => _ = outcome?,
        }
        Ok(replicas)
    }

    /// How many copies the server keeps of everything. Fails if something is missing.
    pub async fn replicas(&self) -> Result<u64> {
        self.check_streams().await.map_err(Error::from)
    }

    /// The copies that the server keeps, if all streams are there.
    async fn check_streams(&self) -> Result<u64, LinkFault> {
        let mut replicas = u64::MAX;
        for wanted in streams::all(1) {
            let name = wanted["name"].as_str().unwrap_or_default();
            let info = self.api(&format!("STREAM.INFO.{name}"), Value::Null).await?;
            replicas = replicas.min(info["config"]["num_replicas"].as_u64().unwrap_or(1));
        }
        Ok(replicas)
    }

    /// Tries whether the server refuses the write of a host that was overtaken. Only the operator may make a stream for it.
    pub async fn probe_fencing(&self) -> Result<()> {
        const STREAM: &str = "ACH_PROBE";
        const SUBJECT: &str = "ach.v1.probe";
        let wanted = json!({ "name": STREAM, "subjects": [SUBJECT], "storage": "memory", "max_msgs_per_subject": 1 });
        self.api(&format!("STREAM.CREATE.{STREAM}"), wanted).await?;
        let tried = async {
            let first = self.store(SUBJECT, Bytes::from_static(b"1"), &Condition::after(0)).await?;
            self.store(SUBJECT, Bytes::from_static(b"2"), &Condition::after(first.number)).await?;
            self.store(SUBJECT, Bytes::from_static(b"3"), &Condition::after(first.number)).await
        };
        let tried = tried.await;
        _ = self.api(&format!("STREAM.DELETE.{STREAM}"), Value::Null).await;
        match tried {
            Err(fault) if fault.is_conflict() => Ok(()),
            Err(fault) => Err(fault.into()),
            Ok(_) => {
                Err(Error::unavailable("the server accepts the write of a host that was overtaken: it is too old"))
            }
        }
    }
}

fn not_set_up(error: Error) -> Error {
    Error::unavailable(format!(
        "the fabric is not set up for this host, and the server does not let a host do it: `acheron fabric init` with the \
         operator's credentials does ({error})"
    ))
}

fn check(name: &str, wanted: &Value, made: &Value) -> Result<()> {
    let differences = differences(wanted, made);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Error::unavailable(format!(
            "the server did not make {name} as it must be: {}; it is too old, or somebody else has made it",
            differences.join(", ")
        ))),
    }
}
