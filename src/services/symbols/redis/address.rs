//! The address of a Redis server, with the prefix of its keys and the credentials from the environment.

use redis::{Client, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use tokio::sync::Mutex;

use super::Redis;
use crate::spec::SymbolsSpec;
use acheron_base::{Error, Result};

impl Redis {
    /// Takes an address such as `redis://127.0.0.1:6379/0`. Connects when first asked for something.
    pub fn new(address: &str) -> Result<Redis> {
        Redis::of(&SymbolsSpec { url: Some(address.to_owned()), ..SymbolsSpec::default() }, |_| None)
    }

    /// The server that a mountspec names; `variable` reads the environment.
    pub fn of(spec: &SymbolsSpec, variable: impl Fn(&str) -> Option<String>) -> Result<Redis> {
        let url = spec.url.as_deref().ok_or_else(|| Error::invalid("symbols.url: redis needs one"))?;
        let mut address: ConnectionInfo = url
            .into_connection_info()
            .map_err(|fault| Error::invalid(format!("the address of redis is not understood: {fault}")))?;
        let secret = |name: &Option<String>, key: &str| match name {
            None => Ok(None),
            Some(name) => variable(name)
                .filter(|value| !value.is_empty())
                .map(Some)
                .ok_or_else(|| Error::invalid(format!("symbols.{key}: the environment has no variable {name}"))),
        };
        let (user, password) = (secret(&spec.user_env, "user_env")?, secret(&spec.password_env, "password_env")?);
        let mut settings = address.redis_settings().clone();
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        address = address.set_redis_settings(settings);
        // Not the address itself: it may hold a password.
        let at = address.addr().to_string();
        let client = match &spec.ca_file {
            None => Client::open(address),
            Some(file) => {
                let root_cert = std::fs::read(file).map_err(|error| Error::from(error).about("symbols.ca_file"))?;
                Client::build_with_tls(address, TlsCertificates { client_tls: None, root_cert: Some(root_cert) })
            }
        };
        let client =
            client.map_err(|fault| Error::invalid(format!("the address of redis is not understood: {fault}")))?;
        let prefix = spec.prefix.clone();
        Ok(Redis { client, at, prefix, reading: Mutex::default(), writing: Mutex::default() })
    }
}
