//! Finds and reaches a host: resolved once, and reached only at an address that the rules allow.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

use super::{ProxyConnection, ProxyFault};
use acheron_proxy::{Destination, HostRefusal, HostRules, TargetHost};

/// How long a name may take to be resolved, and an address to answer.
const RESOLVE_TIME: Duration = Duration::from_secs(10);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The number of addresses of one name that are tried.
const TRIES: usize = 6;

impl ProxyConnection {
    pub(super) async fn dial(&self, to: &Destination) -> Result<TcpStream, ProxyFault> {
        let rules = self.policy.rules();
        rules.check_host(to).map_err(|refusal| self.refused(to, refusal))?;
        let addresses = match &to.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => self.resolved(to, name.as_str()).await?,
        };
        let mut allowed = Vec::new();
        let mut refusal = None;
        for address in addresses.into_iter().map(|address| address.to_canonical()) {
            match rules.check_address(to, address) {
                Ok(()) => allowed.push(address),
                Err(why) => refusal = Some(why),
            }
        }
        match refusal {
            Some(refusal) if allowed.is_empty() => Err(self.refused(to, refusal)),
            _ => self.connect(to, &rules, &allowed).await,
        }
    }

    async fn resolved(&self, to: &Destination, name: &str) -> Result<Vec<IpAddr>, ProxyFault> {
        let failed = |why: String| ProxyFault { status: 502, why: format!("{to} cannot be resolved: {why}") };
        let (resolver, resolutions, name) = (self.resolver.clone(), self.resolutions.clone(), name.to_owned());
        // It goes on when its client has gone, and counts until its end.
        let resolution = tokio::spawn(async move {
            let _counted = resolutions.acquire_owned().await.map_err(std::io::Error::other)?;
            resolver.resolve(&name).await
        });
        let resolution = async { resolution.await.map_err(std::io::Error::other)? };
        match tokio::time::timeout(RESOLVE_TIME, resolution).await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(failed("it has no address".to_owned())),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("the resolver does not answer".to_owned())),
        }
    }

    async fn connect(&self, to: &Destination, rules: &HostRules, allowed: &[IpAddr]) -> Result<TcpStream, ProxyFault> {
        let mut failed = "it has no address".to_owned();
        for address in allowed.iter().take(TRIES) {
            let connecting = TcpStream::connect(SocketAddr::new(*address, to.port));
            match tokio::time::timeout(CONNECT_TIME, connecting).await {
                Ok(Ok(server)) => {
                    if self.is_this_machine(&server, to, rules) {
                        return Err(
                            self.refused(to, rules.refused_address(to, *address, "an address of this machine itself"))
                        );
                    }
                    _ = server.set_nodelay(true); // without it, small pieces wait for each other
                    return Ok(server);
                }
                Ok(Err(error)) => failed = error.to_string(),
                Err(_) => failed = "it does not answer".to_owned(),
            }
        }
        Err(ProxyFault { status: 502, why: format!("{to} cannot be reached: {failed}") })
    }

    /// Whether a public address is one of this machine's own, behind which everything listens that no firewall lets in.
    fn is_this_machine(&self, server: &TcpStream, to: &Destination, rules: &HostRules) -> bool {
        let (Ok(own), Ok(peer)) = (server.local_addr(), server.peer_addr()) else { return true };
        own.ip() == peer.ip() && !peer.ip().is_loopback() && !rules.names_address(peer.ip(), to.port)
    }

    pub(super) fn refused(&self, to: &Destination, refusal: HostRefusal) -> ProxyFault {
        self.policy.refused(to, &refusal);
        ProxyFault { status: 403, why: refusal.why }
    }
}
