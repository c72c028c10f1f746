use std::process::{Child, Command};

use super::*;
use crate::policy::PrincipalCaller;

fn me() -> u32 {
    nix::unistd::gettid().as_raw() as u32
}

fn sleeper() -> Child {
    Command::new("sleep").arg("3600").spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_process_that_is_gone_is_nobody_even_if_it_was_known() {
    let callers = CallerIdentity::default();
    assert_eq!(callers.caller(0, 0, 0).principal(), &Principal::Nobody);
    let child = sleeper();
    let pid = child.id();
    assert_eq!(callers.caller(0, 0, pid).principal(), &Principal::Operator);
    assert_eq!(callers.threads().len(), 1);
    end(child);
    assert_eq!(callers.caller(0, 0, pid).principal(), &Principal::Nobody);
}

#[test]
fn a_thread_leads_to_its_process_the_first_time_and_later() {
    let callers = CallerIdentity::default();
    let caller = || callers.caller(0, 0, me());
    let (first, later) = std::thread::scope(|scope| scope.spawn(|| (caller(), caller())).join().unwrap());
    assert_eq!((first.pid, first.principal()), (std::process::id(), &Principal::Operator));
    assert_eq!(first, later);
}

#[test]
fn a_number_that_changed_hands_is_looked_at_anew() {
    let callers = CallerIdentity::default();
    let child = sleeper();
    let ended = descriptor(child.id()).unwrap();
    let known = KnownThread { ended, pid: child.id(), identity: identity(Principal::Agent("styx".into())) };
    callers.remember(me(), known);
    assert_eq!(callers.caller(0, 0, me()).principal(), &Principal::Agent("styx".into()));
    end(child);
    assert_eq!(callers.caller(0, 0, me()).principal(), &Principal::Operator);
}

#[test]
fn not_everybody_is_remembered() {
    let callers = CallerIdentity::default();
    for number in 0..3 * KNOWN as u32 {
        let ended = descriptor(me()).unwrap();
        callers.remember(1_000_000 + number, KnownThread { ended, pid: 1, identity: identity(Principal::Operator) });
    }
    assert!(callers.threads().len() <= KNOWN);
}

#[test]
fn a_principal_with_many_threads_makes_no_other_forgotten() {
    let callers = CallerIdentity::default();
    let remember = |tid: u32, principal: Principal| {
        let ended = descriptor(me()).unwrap();
        callers.remember(tid, KnownThread { ended, pid: 1, identity: identity(principal) });
    };
    remember(1, Principal::Agent("styx".into()));
    for number in 0..3 * KNOWN as u32 {
        remember(1_000_000 + number, Principal::Agent("lethe".into()));
    }
    assert_eq!(callers.known(1), Some(identity(Principal::Agent("styx".into()))));
    assert!(callers.threads().len() > most() / 4);
}
