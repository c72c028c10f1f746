//! The level of the sandbox that a mountspec demands, against what this machine can hold. `check`, mount and reload ask
//! [`faults`]; the surroundings of programs ask [`chosen`].

use crate::contract::ValueFault;
use crate::spec::Spec;
use acheron_base::{Error, Result};
use acheron_sandbox::{Level, best_level, program};

/// What a mountspec demands and this machine cannot hold. Tries it, if anything is demanded.
pub fn faults(spec: &Spec) -> Vec<ValueFault> {
    let message = match (spec.sandbox.require, chosen(spec)) {
        (None, _) | (Some(Level::Landlock), Ok(_)) => return Vec::new(),
        (Some(Level::Namespaces), Ok(_)) => match best_level(&program()) {
            Ok(Level::Namespaces) => return Vec::new(),
            Ok(Level::Landlock) => "this machine refuses namespaces (see `acheron doctor`); `landlock` would confine \
                                    programs by Landlock alone, which holds less"
                .to_owned(),
            Err(error) => error.message,
        },
        (Some(_), Err(error)) => error.message,
    };
    vec![ValueFault { path: "sandbox.require".to_owned(), message }]
}

/// Refuses a mountspec that demands more than this machine can hold.
pub fn check(spec: &Spec) -> Result<()> {
    match faults(spec).first() {
        None => Ok(()),
        Some(fault) => Err(Error::unavailable(format!("the mountspec cannot be mounted:\n  {fault}"))),
    }
}

/// The level of the programs that are started now. The second one only where the mountspec accepts it and namespaces are
/// refused; what a machine can hold is tried once.
pub fn chosen(spec: &Spec) -> Result<Level> {
    match spec.sandbox.require {
        Some(Level::Landlock) => best_level(&program()),
        _ => Ok(Level::Namespaces),
    }
}
