//! The game master: the service `dm`, its narrators and the storage of its campaigns. `host` and the list of services use it;
//! it uses the rules of `acheron-dm`, which touch no disk and no model.

pub mod narrator;
pub mod service;
pub mod store;
