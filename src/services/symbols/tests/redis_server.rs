//! The suite on a real redis-server, which is killed and started again in the middle.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::{all_of_it, author, symbol};
use crate::services::symbols::backend::Backend as _;
use crate::services::symbols::change::DocumentKind;
use crate::services::symbols::durability::RedisDurability;
use crate::services::symbols::index::Within;
use crate::services::symbols::redis::Redis;
use crate::services::symbols::store::SymbolStore;
use crate::spec::{SymbolsBackend, SymbolsSpec};
use acheron_base::Code;

/// A redis-server of our own, on a port that was free, which ends with the test.
struct Server {
    child: Option<Child>,
    port: u16,
    dir: TempDir,
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server { child: None, port: 0, dir };
        // Between finding a free port and using it somebody else may take it; then another is tried.
        for _ in 0..20 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if server.run() {
                return server;
            }
        }
        panic!("redis-server would not start; is it installed?");
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Starts the process and waits until it answers; false if it ended instead.
    fn run(&mut self) -> bool {
        let child = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--dir", self.dir.path().to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is needed for this test: apt-get install redis-server");
        let child = self.child.insert(child);
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/0", self.port)).unwrap();
        let guard = Instant::now() + Duration::from_secs(60);
        while Instant::now() < guard {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            let ours = client.get_connection().ok().and_then(|mut connection| {
                let info: String = redis::cmd("INFO").arg("server").query(&mut connection).ok()?;
                // INFO answers while the data is still being read; PING does not.
                redis::cmd("PING").exec(&mut connection).ok()?;
                Some(info.contains(&format!("process_id:{}\r", child.id())))
            });
            if ours == Some(true) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_passes_the_suite_though_it_is_killed_and_started_again_in_the_middle() {
    let mut server = Server::start();
    let redis = Arc::new(Redis::new(&server.address()).unwrap());
    let fallen = redis.clone();
    let fall = async || {
        server.kill();
        assert_eq!(fallen.domains().await.unwrap_err().code, Code::Unavailable);
        assert!(server.run(), "redis-server starts again on its port");
    };
    all_of_it(redis, fall).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_tells_what_it_keeps() {
    let mut server = Server::start();
    let redis = Redis::new(&server.address()).unwrap();
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Everything);
    let set = |name: &str, value: &str| {
        let mut connection = redis::Client::open(server.address()).unwrap().get_connection().unwrap();
        redis::cmd("CONFIG").arg("SET").arg(name).arg(value).exec(&mut connection).unwrap();
    };
    set("appendfsync", "everysec");
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Behind("everysec".to_owned()));
    set("appendonly", "no");
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Nothing);
    set("save", "60 1000");
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Snapshots);
    server.kill();
    assert_eq!(redis.kept().await.unwrap_err().code, Code::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_redis_is_unavailable_and_passes() {
    let mut server = Server::start();
    let symbol_store = SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    symbol_store.put(DocumentKind::Symbol, &symbol("out-1", json!({"name":"lighthouse"})), &author()).await.unwrap();
    assert_eq!(symbol_store.search("lighthouse", 1, &Within::default()).await.unwrap().len(), 1);
    server.kill();
    for fault in [
        symbol_store.get(DocumentKind::Symbol, "out-1").await.map(drop).unwrap_err(),
        symbol_store.put(DocumentKind::Symbol, &symbol("out-2", json!({})), &author()).await.map(drop).unwrap_err(),
        symbol_store.search("lighthouse", 1, &Within::default()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(fault.code, Code::Unavailable, "{fault}");
        assert!(fault.message.contains("127.0.0.1"), "{fault}");
    }
    assert!(server.run(), "redis-server starts again on its port");
    let found = symbol_store.get(DocumentKind::Symbol, "out-1").await.unwrap().unwrap();
    assert_eq!(found.body["name"], "lighthouse");
    let second =
        symbol_store.put(DocumentKind::Symbol, &symbol("out-1", json!({"name":"harbour"})), &author()).await.unwrap();
    assert_eq!(second.version, 2);
    assert_eq!(symbol_store.search("harbour", 1, &Within::default()).await.unwrap()[0].0.id, "out-1");
}

/// One command on a connection of its own.
fn raw<T: redis::FromRedisValue>(server: &Server, words: &[&str]) -> T {
    let mut connection = redis::Client::open(server.address()).unwrap().get_connection().unwrap();
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| _ = command.arg(*word));
    command.query(&mut connection).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_is_read_and_emptied() {
    let server = Server::start();
    let symbol_store = SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    for id in ["full-1", "full-2"] {
        let written = symbol(id, json!({"name": "lighthouse", "symbol_domain": id}));
        symbol_store.put(DocumentKind::Symbol, &written, &author()).await.unwrap();
    }
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let full = symbol_store.put(DocumentKind::Symbol, &symbol("full-3", json!({})), &author()).await.unwrap_err();
    assert_eq!(full.code, Code::NoSpace, "{full}");
    assert!(full.message.contains("is full"), "{full}");
    assert!(symbol_store.get(DocumentKind::Symbol, "full-1").await.unwrap().is_some());
    assert_eq!(symbol_store.search("lighthouse", 5, &Within::default()).await.unwrap().len(), 2);
    assert!(
        symbol_store.delete(DocumentKind::Symbol, "full-1", &author()).await.unwrap(),
        "what is full can be emptied"
    );
    assert!(symbol_store.get(DocumentKind::Symbol, "full-1").await.unwrap().is_none());
    assert_eq!(symbol_store.search("lighthouse", 5, &Within::default()).await.unwrap().len(), 1);
    assert_eq!(symbol_store.backend().domains().await.unwrap(), ["full-2"]);
    let ledger = symbol_store.backend().ledger(DocumentKind::Symbol, "full-1").await.unwrap();
    assert_eq!(ledger.last().unwrap().act, crate::services::symbols::change::LedgerAction::Delete);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_redis_is_noticed_by_every_host() {
    let server = Server::start();
    let host = || SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    let (here, there) = (host(), host());
    here.put(DocumentKind::Symbol, &symbol("gone-1", json!({"name": "lighthouse"})), &author()).await.unwrap();
    assert_eq!(there.search("lighthouse", 5, &Within::default()).await.unwrap().len(), 1);
    raw::<()>(&server, &["FLUSHALL"]);
    for number in 0..5 {
        let written = symbol(&format!("new-{number}"), json!({"name": "harbour"}));
        here.put(DocumentKind::Symbol, &written, &author()).await.unwrap();
    }
    for host in [&here, &there] {
        assert!(host.search("lighthouse", 5, &Within::default()).await.unwrap().is_empty());
        let names = host.names(DocumentKind::Symbol);
        assert_eq!(names, ["new-0", "new-1", "new-2", "new-3", "new-4"], "it is longer, and another history");
    }
    // The catalogue is put in again.
    crate::services::symbols::service::ready(&here).await.unwrap();
    let shipped = here.names(DocumentKind::Symbol).len();
    assert!(shipped > 30);
    raw::<()>(&server, &["FLUSHALL"]);
    crate::services::symbols::service::ready(&here).await.unwrap();
    assert_eq!(here.names(DocumentKind::Symbol).len(), shipped - 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_have_a_prefix_and_ledgers_an_end() {
    let server = Server::start();
    let symbol_store = SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    for number in 0..300 {
        let written = symbol("long-1", json!({"name": format!("number {number}"), "symbol_domain": "d"}));
        symbol_store.put(DocumentKind::Symbol, &written, &author()).await.unwrap();
    }
    let keys: Vec<String> = raw(&server, &["KEYS", "*"]);
    assert!(!keys.is_empty() && keys.iter().all(|key| key.starts_with("acheron:")), "{keys:?}");
    let ledger = symbol_store.backend().ledger(DocumentKind::Symbol, "long-1").await.unwrap();
    assert_eq!((ledger.len(), ledger.last().unwrap().version), (256, 300));
    // A host that slept through more changes than are kept looks at everything again.
    let other = SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    assert_eq!(other.search("number", 5, &Within::default()).await.unwrap().len(), 1);
    let many: Vec<_> =
        (0..10_100).map(|number| (DocumentKind::Symbol, symbol(&format!("many-{number}"), json!({})))).collect();
    symbol_store.put_many(&many, false, &author()).await.unwrap();
    let kept: u64 = raw(&server, &["LLEN", "acheron:changed"]);
    assert_eq!(kept, 10_000);
    other.search("number", 5, &Within::default()).await.unwrap();
    assert_eq!(other.names(DocumentKind::Symbol).len(), 10_101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_inside_a_transaction_is_told_as_it_is() {
    let server = Server::start();
    let symbol_store = SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap()));
    raw::<()>(&server, &["SET", "acheron:ids:symbol", "not a list"]);
    raw::<()>(&server, &["SET", "ids:symbol", "not a list"]);
    let wrong = symbol_store.put(DocumentKind::Symbol, &symbol("wrong-1", json!({})), &author()).await.unwrap_err();
    assert_eq!(wrong.code, Code::ExecutionFailed, "{wrong}");
    assert!(wrong.message.contains("WRONGTYPE") && !wrong.message.contains("does not answer"), "{wrong}");
}

/// The listing of a second host follows, without a question to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_host_lists_what_the_first_one_changes() {
    let mut server = Server::start();
    let host = || Arc::new(SymbolStore::new(Arc::new(Redis::new(&server.address()).unwrap())));
    let (here, there) = (host(), host());
    there.follow_others();
    let lists = async |id: &str, there_now: bool| {
        let guard = Instant::now() + Duration::from_secs(60);
        while there.has(DocumentKind::Symbol, id) != there_now && Instant::now() < guard {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        there.has(DocumentKind::Symbol, id) == there_now
    };
    here.put(DocumentKind::Symbol, &symbol("two-1", json!({})), &author()).await.unwrap();
    assert!(lists("two-1", true).await);
    here.delete(DocumentKind::Symbol, "two-1", &author()).await.unwrap();
    assert!(lists("two-1", false).await);
    server.kill();
    assert!(server.run(), "redis-server starts again on its port");
    here.put(DocumentKind::Symbol, &symbol("two-2", json!({})), &author()).await.unwrap();
    assert!(lists("two-2", true).await, "also after an outage");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_come_from_the_environment() {
    let server = Server::start();
    raw::<()>(&server, &["ACL", "SETUSER", "ada", "on", ">secret", "~*", "&*", "+@all"]);
    raw::<()>(&server, &["ACL", "SETUSER", "default", "off"]);
    let spec = SymbolsSpec {
        backend: SymbolsBackend::Redis,
        url: Some(server.address()),
        user_env: Some("SYMBOLS_USER".to_owned()),
        password_env: Some("SYMBOLS_PASSWORD".to_owned()),
        ..SymbolsSpec::default()
    };
    let variable = |name: &str| match name {
        "SYMBOLS_USER" => Some("ada".to_owned()),
        "SYMBOLS_PASSWORD" => Some("secret".to_owned()),
        _ => None,
    };
    Redis::of(&spec, variable).unwrap().answers().await.unwrap();
    let wrong = Redis::of(&spec, |_| Some("ada".to_owned())).unwrap().answers().await.unwrap_err();
    assert!(!wrong.message.contains("does not answer"), "a refusal is no outage: {wrong}");
    let missing = Redis::of(&spec, |_| None).map(drop).unwrap_err();
    assert_eq!(missing.message, "symbols.user_env: the environment has no variable SYMBOLS_USER");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_drops_what_it_has_no_room_for_says_so() {
    let server = Server::start();
    let redis = Redis::new(&server.address()).unwrap();
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory", "100mb"]);
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Everything, "our keys do not expire");
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_eq!(redis.kept().await.unwrap(), RedisDurability::Evicts("allkeys-lru".to_owned()));
}

/// `rediss://` on a server with a certificate of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_is_spoken_to_with_tls() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (key, certificate) = (file("key.pem"), file("cert.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ])
        .stderr(Stdio::null())
        .status()
        .expect("openssl is needed for this test");
    assert!(made.success());
    let server = Server::start();
    raw::<()>(
        &server,
        &[
            "CONFIG",
            "SET",
            "tls-cert-file",
            &certificate,
            "tls-key-file",
            &key,
            "tls-ca-cert-file",
            &certificate,
            "tls-auth-clients",
            "no",
        ],
    );
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    raw::<()>(&server, &["CONFIG", "SET", "tls-port", &port]);
    let stranger = Redis::new(&format!("rediss://localhost:{port}/0")).unwrap().answers().await.unwrap_err();
    assert!(stranger.message.contains("ertificate"), "a certificate that nobody vouches for: {stranger}");
    let spec = SymbolsSpec {
        backend: SymbolsBackend::Redis,
        url: Some(format!("rediss://localhost:{port}/0")),
        ca_file: Some(certificate),
        ..SymbolsSpec::default()
    };
    let symbol_store = SymbolStore::new(Arc::new(Redis::of(&spec, |_| None).unwrap()));
    symbol_store.put(DocumentKind::Symbol, &symbol("tls-1", json!({})), &author()).await.unwrap();
    assert!(symbol_store.get(DocumentKind::Symbol, "tls-1").await.unwrap().is_some());
}

#[test]
fn an_address_that_is_none_is_refused_without_repeating_its_password() {
    let fault = Redis::new("http://user:secret@example").map(drop).unwrap_err();
    assert_eq!(fault.code, Code::InvalidPayload);
    assert!(!fault.message.contains("secret"), "{fault}");
}
