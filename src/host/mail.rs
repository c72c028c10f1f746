//! `mail/`: the mailbox of the operator. No agent sees it; every agent may send to it.

use std::sync::Arc;

use super::HostState;
use super::wiring;
use crate::service::{self, ServiceInstance};
use crate::services::mail::OPERATOR;
use acheron_base::Result;
use acheron_vfs::Listing;

pub fn directory(host: &Arc<HostState>) -> Result<Listing> {
    let serve = wiring::operator_mail(host)?;
    // The calls are those of nobody's agent: what the operator writes to one is not shown to another.
    let instance = ServiceInstance::shared(&host.context, OPERATOR, "/mail".to_owned(), serve);
    host.context.register(OPERATOR, &instance);
    Ok(service::directory(&instance))
}
