//! The order of calls to one conversation: each waits until those before it have ended. `state` has one; it uses the order of
//! turns of `agent`.

use std::sync::Arc;

use dashmap::DashMap;

use crate::agent::turn_order::{TurnOrder, TurnPlace};
use crate::service::CallTurn;

/// The conversations with calls that wait or run, and how many.
#[derive(Clone, Default)]
pub struct TalkOrders(Arc<DashMap<String, (TurnOrder, usize)>>);

struct TalkPlace {
    orders: TalkOrders,
    id: String,
    place: Option<TurnPlace>,
}

impl TalkOrders {
    /// A place behind all calls to the conversation that came before.
    pub fn take(&self, id: &str) -> CallTurn {
        let mut order = self.0.entry(id.to_owned()).or_default();
        order.1 += 1;
        let place = order.0.take_place();
        drop(order);
        let first = Box::pin(place.is_first());
        CallTurn { first, place: Box::new(TalkPlace { orders: self.clone(), id: id.to_owned(), place: Some(place) }) }
    }

    /// Whether a call to the conversation waits or runs.
    pub fn is_busy(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }
}

impl Drop for TalkPlace {
    fn drop(&mut self) {
        drop(self.place.take());
        if let Some(mut order) = self.orders.0.get_mut(&self.id) {
            order.1 = order.1.saturating_sub(1);
        }
        self.orders.0.remove_if(&self.id, |_, (_, waiting)| *waiting == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_come_one_after_another_and_a_conversation_without_any_is_forgotten() {
        let orders = TalkOrders::default();
        let (one, two) = (orders.take("a"), orders.take("a"));
        one.first.await;
        let mut waits = two.first;
        assert!(futures_util::poll!(&mut waits).is_pending());
        orders.take("b").first.await;
        drop(one.place);
        waits.await;
        assert!(orders.is_busy("a") && !orders.is_busy("b"));
        drop(two.place);
        assert!(!orders.is_busy("a"));
    }
}
