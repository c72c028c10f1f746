//! A model whose payer has no limits, for unit tests of what asks models.

use std::sync::Arc;

use super::ask::{OpenedModel, PaidModel};
use super::budget::Spent;
use super::ledger::{AccountTerms, Ledger};
use crate::model::{Model, Prices};
use crate::state::TestStore;
use acheron_base::Clock;

const PAYER: &str = "ada";

/// Its window is that of a small model.
pub(crate) fn paid(model: Arc<dyn Model>) -> PaidModel {
    let store = TestStore::new();
    let ledger = Ledger::open(store.clone(), Clock::at(1)).unwrap();
    ledger.account(PAYER, AccountTerms::default(), || Ok(Spent::default())).unwrap();
    let (model, prices) = (OpenedModel::new(model), Prices::default());
    PaidModel { model, prices, window: 32_768, ledger, payer: PAYER.to_owned() }
}
