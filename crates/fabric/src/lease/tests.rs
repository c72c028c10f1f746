use super::*;

const TIMES: LeaseTimes = LeaseTimes::NODE;

#[test]
fn a_lease_is_renewed_and_counts_from_when_the_renewal_was_sent() {
    let lease = HeldLease::taken(7, 1000);
    assert_eq!(lease.step(&TIMES, 2000), LeaseStep::Wait { ms: 3000 });
    assert_eq!(lease.step(&TIMES, 5000), LeaseStep::Renew);
    let lease = lease.after(RenewalOutcome::Renewed { revision: 9 }, 5000);
    assert_eq!((lease.token, lease.revision), (7, 9));
    assert!(lease.is_held(&TIMES, 16_999));
    assert!(!lease.is_held(&TIMES, 17_000), "twelve seconds after it was sent");
}

#[test]
fn what_is_not_answered_is_tried_again_and_then_the_holder_stops() {
    let lease = HeldLease::taken(7, 0).after(RenewalOutcome::Unknown, 4000);
    assert_eq!(lease.step(&TIMES, 4500), LeaseStep::Wait { ms: 500 });
    assert_eq!(lease.step(&TIMES, 5000), LeaseStep::Renew);
    assert_eq!(lease.step(&TIMES, 12_000), LeaseStep::Stop);
}

#[test]
fn a_refusal_ends_it_at_once() {
    let lease = HeldLease::taken(7, 0).after(RenewalOutcome::Refused, 4000);
    assert!(!lease.is_held(&TIMES, 4001));
    assert_eq!(lease.step(&TIMES, 4001), LeaseStep::Stop);
}

proptest::proptest! {
    /// Whatever happens to renewals, nobody acts when the server may have given the lease away.
    #[test]
    fn nobody_acts_after_the_server_has_forgotten_it(
        steps in proptest::collection::vec((0u8..3, 0u64..9000, 0u64..3000), 0..60)
    ) {
        let (mut now, mut revision) = (0, 1);
        let mut lease = HeldLease::taken(revision, now);
        let mut forgotten_at = now + TIMES.ttl_ms;
        for (kind, pause, travel) in steps {
            now += pause;
            let sent = now;
            if !lease.is_held(&TIMES, now) {
                break;
            }
            proptest::prop_assert!(now < forgotten_at);
            now += travel; // the answer takes its time; the server decided somewhere in between
            let outcome = match kind {
                0 => {
                    revision += 1;
                    forgotten_at = sent + TIMES.ttl_ms;
                    RenewalOutcome::Renewed { revision }
                }
                1 => RenewalOutcome::Unknown,
                _ => RenewalOutcome::Refused,
            };
            lease = lease.after(outcome, sent);
            if lease.is_held(&TIMES, now) {
                proptest::prop_assert!(now < forgotten_at);
            }
        }
    }
}
