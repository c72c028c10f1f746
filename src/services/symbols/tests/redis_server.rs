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

#[test]
fn an_address_that_is_none_is_refused_without_repeating_its_password() {
    let fault = Redis::new("http://user:secret@example").map(drop).unwrap_err();
    assert_eq!(fault.code, Code::InvalidPayload);
    assert!(!fault.message.contains("secret"), "{fault}");
}
