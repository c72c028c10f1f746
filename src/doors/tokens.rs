//! Tokens: words that a client outside shows, each standing for one principal. Only hashes are kept; a token is shown once, when
//! it is made. A token that is revoked ends what is under way for it.
//!
//! A browser logs in with a code that is good once and for a short time ([`Tokens::invite`]); its session is a token that ends by
//! itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::DoorCaller;
use crate::policy::Principal;
use crate::state::audit::{self, Record};
use crate::state::tokens::{self, TokenRow};
use acheron_base::{Error, Ids, Result, blocking, quoted};
use acheron_store::Store;

/// The beginning of every token, so that one that leaked is recognised.
const PREFIX: &str = "ach_";
/// The longest label.
const LABEL: usize = 200;
/// How long a code of a login is good, and the session of a browser; and the most codes that are out at a time.
const LOGIN_MS: u64 = 5 * 60 * 1000;
const SESSION_MS: u64 = 7 * 24 * 3600 * 1000;
const LOGINS: usize = 64;

/// A login that was invited: whom it makes known, and until when.
struct Login {
    principal: Principal,
    until_ms: u64,
}

pub struct Tokens {
    store: Store,
    ids: Ids,
    /// The tokens that were used since the host started, by id.
    used: DashMap<String, CancellationToken>,
    /// The codes of logins that are out, by their hashes.
    logins: Mutex<HashMap<[u8; 32], Login>>,
}

/// The session of a browser.
pub struct BrowserSession {
    /// The word that its cookie has.
    pub word: String,
    /// How long it lasts, in seconds.
    pub seconds: u64,
}

impl Tokens {
    pub fn new(store: Store, ids: Ids) -> Arc<Tokens> {
        Arc::new(Tokens { store, ids, used: DashMap::new(), logins: Mutex::default() })
    }

    /// Makes a token for a principal. The word is returned and kept nowhere.
    pub async fn create(&self, principal: &Principal, label: &str) -> Result<(String, TokenRow)> {
        if label.len() > LABEL || label.contains(char::is_control) {
            return Err(Error::invalid(format!("a label is one line of at most {LABEL} bytes")));
        }
        let (word, row) = self.new_token(principal, label, None);
        let (kept, hash) = (row.clone(), hash(&word));
        self.store.write(move |tx| tokens::insert(tx, &kept, &hash)).await?;
        Ok((word, row))
    }

    fn new_token(&self, principal: &Principal, label: &str, lasts_ms: Option<u64>) -> (String, TokenRow) {
        let created_at_ms = self.ids.clock().now_ms();
        let row = TokenRow {
            id: self.ids.id("token"),
            principal: principal.to_string(),
            label: label.to_owned(),
            created_at_ms,
            expires_at_ms: lasts_ms.map(|lasts| created_at_ms.saturating_add(lasts)),
        };
        (format!("{PREFIX}{}", self.secret()), row)
    }

    fn secret(&self) -> String {
        let mut secret = [0; 32];
        self.ids.random().fill(&mut secret);
        hex(&secret)
    }

    /// Makes a code with which a browser can log in once, as this principal.
    pub fn invite(&self, principal: &Principal) -> Result<String> {
        let (code, now) = (self.secret(), self.ids.clock().now_ms());
        let mut logins = self.logins.lock();
        logins.retain(|_, login| login.until_ms > now);
        if logins.len() >= LOGINS {
            return Err(Error::busy(format!(
                "{LOGINS} logins are open; each ends after {} minutes",
                LOGIN_MS / 60_000
            )));
        }
        logins.insert(hash(&code), Login { principal: principal.clone(), until_ms: now + LOGIN_MS });
        Ok(code)
    }

    /// Begins the session of a browser that shows the code of a login; `None` for one that is not good, or not any more.
    pub async fn log_in(&self, code: &str) -> Result<Option<BrowserSession>> {
        let now = self.ids.clock().now_ms();
        let login = self.logins.lock().remove(&hash(code)).filter(|login| login.until_ms > now);
        let Some(Login { principal, .. }) = login else { return Ok(None) };
        let (word, row) = self.new_token(&principal, "browser", Some(SESSION_MS));
        let hash = hash(&word);
        let record = Record::new(now, "login").with("principal", row.principal.as_str()).with("token", row.id.as_str());
        let change = move |tx: &acheron_store::Tx<'_>| {
            tokens::remove_expired(tx, now)?;
            tokens::insert(tx, &row, &hash)?;
            audit::note(tx, &record);
            Ok(())
        };
        self.store.write(change).await?;
        Ok(Some(BrowserSession { word, seconds: SESSION_MS / 1000 }))
    }

    /// Ends the session of a browser.
    pub async fn log_out(&self, word: &str) -> Result<()> {
        let (store, hash) = (self.store.clone(), hash(word));
        match blocking(move || store.look(|conn| tokens::by_hash(conn, &hash))).await? {
            Some(row) if row.expires_at_ms.is_some() => self.revoke(&row.id).await,
            _ => Ok(()),
        }
    }

    /// Whom a token stands for; `None` for a word that is no token, or no longer.
    pub async fn caller(&self, word: &str) -> Result<Option<DoorCaller>> {
        if !word.starts_with(PREFIX) || word.len() > 200 {
            return Ok(None);
        }
        let (store, hash) = (self.store.clone(), hash(word));
        let look = move || store.look(|conn| tokens::by_hash(conn, &hash));
        let Some(row) = blocking(look.clone()).await? else { return Ok(None) };
        let now = self.ids.clock().now_ms();
        let left = row.expires_at_ms.map(|end| end.saturating_sub(now));
        if left == Some(0) {
            return Ok(None);
        }
        let lasts = left.map(Duration::from_millis);
        let ended = self.used.entry(row.id.clone()).or_default().clone();
        // Looked up again now that a revocation would be heard of: one in between would otherwise be missed.
        match blocking(look).await?.is_some() && !ended.is_cancelled() {
            true => Ok(Some(DoorCaller { principal: Principal::named(&row.principal), ended, lasts })),
            false => Ok(None),
        }
    }

    /// All tokens, without their words.
    pub async fn list(&self) -> Result<Vec<TokenRow>> {
        let store = self.store.clone();
        blocking(move || store.look(tokens::all)).await
    }

    /// Takes a token back. What is under way for it ends.
    pub async fn revoke(&self, id: &str) -> Result<()> {
        let wanted = id.to_owned();
        if !self.store.write(move |tx| tokens::remove(tx, &wanted)).await? {
            let hint = "`acheron token list` shows the tokens";
            return Err(Error::not_found(format!("there is no token {}; {hint}", quoted(id))));
        }
        if let Some((_, ended)) = self.used.remove(id) {
            ended.cancel();
        }
        Ok(())
    }

    /// Takes back the tokens of a principal, as when an agent is removed: another of its name is not the same one.
    pub async fn revoke_all(&self, principal: &Principal) -> Result<()> {
        self.logins.lock().retain(|_, login| login.principal != *principal);
        let name = principal.to_string();
        self.store.write(move |tx| tokens::remove_of(tx, &name)).await?;
        let known = self.list().await?;
        self.used.retain(|id, ended| {
            let kept = known.iter().any(|row| row.id == *id);
            if !kept {
                ended.cancel();
            }
            kept
        });
        Ok(())
    }
}

fn hash(word: &str) -> [u8; 32] {
    Sha256::digest(word.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::TestStore;
    use acheron_base::{Clock, Random};

    #[tokio::test]
    async fn a_token_stands_for_its_principal_until_it_is_revoked_and_its_word_is_kept_nowhere() {
        let (store, ids) = (TestStore::new(), Ids::new(Clock::at(5), Random::seeded(1)));
        let tokens = Tokens::new((*store).clone(), ids);
        let ada = Principal::Agent("ada".to_owned());
        let (word, row) = tokens.create(&ada, "laptop").await.unwrap();
        let caller = tokens.caller(&word).await.unwrap().unwrap();
        assert_eq!((caller.principal, caller.ended.is_cancelled()), (ada, false));
        let kept = std::fs::read(store.path()).unwrap();
        assert!(!kept.windows(word.len()).any(|part| part == word.as_bytes()));
        for wrong in ["", "ach_", &word[1..], &format!("{word}0"), &word.to_uppercase()] {
            assert!(tokens.caller(wrong).await.unwrap().is_none(), "{wrong}");
        }
        assert_eq!(tokens.list().await.unwrap(), std::slice::from_ref(&row));
        tokens.revoke(&row.id).await.unwrap();
        assert!(caller.ended.is_cancelled());
        assert!(tokens.caller(&word).await.unwrap().is_none());
        assert_eq!(tokens.revoke(&row.id).await.unwrap_err().code, acheron_base::Code::NotFound);
    }
}
