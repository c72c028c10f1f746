//! Letting agents in, changing them and taking them away, for services that manage agents. The host implements it.

use async_trait::async_trait;

use super::profiles::Profile;
use acheron_base::Result;

/// The host, as far as a service may change which agents there are.
#[async_trait]
pub trait AgentLifecycle: Send + Sync {
    /// Checks a profile, writes it down and makes the agent's directory; if that fails, nothing has happened.
    fn admit(&self, id: &str, profile: Profile) -> Result<()>;

    /// Gives an agent another profile, at once and without an end to its work. An unknown one is admitted.
    fn settle(&self, id: &str, profile: Profile) -> Result<()>;

    /// Takes an agent away: ends its work, waits for that, and forgets it. With `purge` nothing is left of it.
    async fn remove(&self, id: &str, purge: bool) -> Result<()>;
}
