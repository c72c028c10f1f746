//! The keys of hosts: Ed25519, of which the server knows the public half only.

use acheron_base::{Error, Result};
use nkeys::KeyPair;

/// A new key, as its secret seed.
pub fn new_seed() -> Result<String> {
    KeyPair::new_user().seed().map_err(|err| Error::internal(format!("a key could not be made: {err}")))
}

/// The public half of a seed.
pub fn public_key(seed: &str) -> Result<String> {
    let pair = KeyPair::from_seed(seed.trim());
    pair.map(|pair| pair.public_key()).map_err(|_| Error::invalid("the credentials are not the seed of an nkey (SU…)"))
}
