//! The names of queues, items and leases. Pure.

use crate::spec::is_id;
use acheron_base::{Error, Result, quoted};

/// The longest id of an item.
const ID: usize = 200;

pub fn check_queue(name: &str) -> Result<()> {
    match is_id(name) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{} is not the name of a queue: it has up to 64 of a-z, 0-9, _ and -, and begins with a letter or a digit",
            quoted(name)
        ))),
    }
}

/// An id becomes the name of a file when its item is dead.
pub fn check_id(id: &str) -> Result<()> {
    let fine =
        (1..=ID).contains(&id.len()) && !id.contains('/') && !id.contains(char::is_control) && !id.starts_with('.');
    match fine {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "`id` is 1 to {ID} bytes without slashes and control characters, and no dot first"
        ))),
    }
}

/// The token of a lease: it names its queue, so that who may use it is decided without looking it up.
pub fn token(queue: &str, unique: &str) -> String {
    format!("{queue}.{unique}")
}

/// The queue of a lease.
pub fn queue_of(token: &str) -> Result<&str> {
    let queue = token.split_once('.').map(|(queue, _)| queue).filter(|queue| is_id(queue));
    queue
        .ok_or_else(|| Error::invalid(format!("{} is not a lease: it is `lease` in the result of take", quoted(token))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_names_its_queue() {
        assert_eq!(queue_of(&token("crawl", "lease-1.2")).unwrap(), "crawl");
        for wrong in ["", "x", ".x", "../x.y", "A.b"] {
            assert_eq!(queue_of(wrong).unwrap_err().code.name(), "invalid_payload", "{wrong}");
        }
    }

    #[test]
    fn an_id_can_be_the_name_of_a_file() {
        assert!(check_id("page 1: é").is_ok());
        for wrong in ["", ".", "..", ".x", "a/b", "a\nb", &"x".repeat(201)] {
            assert!(check_id(wrong).is_err(), "{wrong}");
        }
    }
}
