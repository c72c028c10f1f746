//! The place of a service in the tree, by which a service whose contract changes puts its next version there.

use std::sync::Arc;

use super::Serve;

type Renew = dyn Fn(Arc<dyn Serve>) -> bool + Send + Sync;

/// Where a service stands.
pub struct ServicePlace(Box<Renew>);

impl ServicePlace {
    /// `renew` puts another version there and returns whether the place was still this service's.
    pub fn new(renew: impl Fn(Arc<dyn Serve>) -> bool + Send + Sync + 'static) -> ServicePlace {
        ServicePlace(Box::new(renew))
    }

    /// Puts another version of the service here; calls under way run to their end. Returns false if the place has been given
    /// away, by an edit of the mountspec: then the service is over.
    pub fn renew(&self, serve: Arc<dyn Serve>) -> bool {
        (self.0)(serve)
    }
}
