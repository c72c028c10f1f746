//! The service `web_search`: on if the mountspec names a server.

use std::sync::Arc;
use std::time::Duration;

use crate::host::HostState;
use crate::service::{Serve, Service, typed};
use crate::services::web_search::{TIME_LIMIT, WebSearch, WebSearchOff};
use acheron_base::Result;
use acheron_http::{Http, RetryPolicy};

pub fn served(host: &HostState) -> Result<Arc<dyn Serve>> {
    let current = host.current.spec();
    let spec = current.services.get(<WebSearch as Service>::NAME);
    let time_limit = spec.and_then(|it| it.timeout_ms).map_or(TIME_LIMIT, Duration::from_millis);
    match spec.and_then(|it| it.url.as_ref()) {
        Some(url) => {
            let http = Http::new(RetryPolicy::default(), host.context.clock.clone());
            typed(WebSearch::new(url, http, time_limit, host.context.ids.random().clone()))
        }
        None => Ok(Arc::new(WebSearchOff::new()?)),
    }
}
