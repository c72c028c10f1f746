//! When a host may still act under its name: a lease on the server that it renews. Data in, data out.
//!
//! Times are those of a clock that nobody sets (milliseconds since some beginning): a wall clock that jumps changes nothing.
//! What a renewal confirms counts from the moment at which it was *sent*, so that a host stops before the server lets another
//! host begin.

/// The times of a lease, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// The server forgets the lease after this time.
    pub ttl_ms: u64,
    /// A holder renews it so often.
    pub renew_ms: u64,
    /// A holder that could not renew it for so long stops acting.
    pub stop_ms: u64,
}

impl LeaseTimes {
    /// Long enough for the elections of a cluster, which take up to ten seconds.
    pub const NODE: LeaseTimes = LeaseTimes { ttl_ms: 15_000, renew_ms: 4_000, stop_ms: 12_000 };
}

/// A lease that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The revision at which it was taken: grows with every taking of any lease, so it is the fencing token.
    pub token: u64,
    /// The revision that the next renewal must find.
    pub revision: u64,
    /// When the last renewal that the server confirmed was sent.
    pub confirmed_ms: u64,
    /// When the last renewal was sent.
    pub tried_ms: u64,
    is_lost: bool,
}

/// What became of a renewal that was sent at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalOutcome {
    Renewed {
        revision: u64,
    },
    /// Somebody else has it.
    Refused,
    /// No answer: it may have been renewed or not.
    Unknown,
}

/// What the holder has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Wait so long.
    Wait {
        ms: u64,
    },
    Renew,
    /// Stop acting: the lease is lost, or nobody knows.
    Stop,
}

impl HeldLease {
    /// A lease that the server confirmed, asked for at `sent_ms`.
    pub fn taken(revision: u64, sent_ms: u64) -> HeldLease {
        HeldLease { token: revision, revision, confirmed_ms: sent_ms, tried_ms: sent_ms, is_lost: false }
    }

    /// Notes what became of a renewal.
    pub fn after(mut self, outcome: RenewalOutcome, sent_ms: u64) -> HeldLease {
        self.tried_ms = sent_ms;
        match outcome {
            RenewalOutcome::Renewed { revision } => {
                self.revision = revision;
                self.confirmed_ms = sent_ms;
            }
            RenewalOutcome::Refused => self.is_lost = true,
            RenewalOutcome::Unknown => (),
        }
        self
    }

    /// Whether its holder may act.
    pub fn is_held(&self, times: &LeaseTimes, now_ms: u64) -> bool {
        !self.is_lost && now_ms.saturating_sub(self.confirmed_ms) < times.stop_ms
    }

    /// What to do now. After an answer that never came it is tried again soon.
    pub fn step(&self, times: &LeaseTimes, now_ms: u64) -> LeaseStep {
        if !self.is_held(times, now_ms) {
            return LeaseStep::Stop;
        }
        let is_open = self.tried_ms > self.confirmed_ms;
        let pause = if is_open { times.renew_ms / 4 } else { times.renew_ms };
        match now_ms.saturating_sub(self.tried_ms) {
            since if since >= pause => LeaseStep::Renew,
            since => LeaseStep::Wait { ms: pause - since },
        }
    }
}

#[cfg(test)]
mod tests;
