use std::collections::VecDeque;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::*;
use acheron_proxy::HostRule;

/// Rules, and what was refused.
#[derive(Default)]
struct Policy {
    rules: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
    opened: Mutex<Vec<String>>,
}

impl ProxyPolicy for Policy {
    fn rules(&self) -> HostRules {
        self.rules.lock().iter().map(|text| text.parse::<HostRule>().unwrap()).collect()
    }

    fn opened(&self, to: &Destination) {
        self.opened.lock().push(to.to_string());
    }

    fn refused(&self, _to: &Destination, refusal: &HostRefusal) {
        self.refused.lock().push(refusal.why.clone());
    }
}

/// Answers each question with the next list; the last one stays.
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>, Mutex<usize>);

#[async_trait]
impl ResolveHost for Answers {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        *self.1.lock() += 1;
        let mut answers = self.0.lock();
        Ok(if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() })
    }
}

struct Place {
    policy: Arc<Policy>,
    answers: Arc<Answers>,
    served: ServedProxy,
    address: SocketAddr,
}

/// A proxy with these rules and these answers of the resolver.
fn place(rules: &[String], answers: &[&[&str]]) -> Place {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let policy = Arc::new(Policy { rules: Mutex::new(rules.to_vec()), ..Policy::default() });
    let parsed = answers.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect();
    let answers = Arc::new(Answers(Mutex::new(parsed), Mutex::new(0)));
    let served = serve_proxy(listener, policy.clone(), answers.clone()).unwrap();
    Place { policy, answers, served, address }
}

/// A server that says who it is to every client, and what it heard first.
async fn server(address: &str, says: &'static str) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = [0; 4096];
                let count = stream.read(&mut heard).await.unwrap_or(0);
                _ = stream.write_all(says.as_bytes()).await;
                _ = stream.write_all(&heard[..count]).await;
                // A tunnel stays open until the client closes it; a request of plain HTTP is over.
                if !heard.starts_with(b"GET ") && !heard.starts_with(b"POST ") {
                    while stream.read(&mut heard).await.is_ok_and(|count| count > 0) {}
                }
            });
        }
    });
    (port, serving)
}

async fn connect(place: &Place, head: &str) -> (TcpStream, String) {
    let mut client = TcpStream::connect(place.address).await.unwrap();
    client.write_all(head.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    while !said.windows(4).any(|four| four == b"\r\n\r\n") {
        if client.read_buf(&mut said).await.unwrap() == 0 {
            break;
        }
    }
    let first = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
    (client, first)
}

/// Says something, and waits until it hears what is expected.
async fn says(client: &mut TcpStream, bytes: &[u8], expected: &str) {
    client.write_all(bytes).await.unwrap();
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains(expected) {
        let read = tokio::time::timeout(Duration::from_secs(60), client.read_buf(&mut heard)).await;
        assert!(read.is_ok_and(|read| read.unwrap() > 0), "{expected}: {:?}", String::from_utf8_lossy(&heard));
    }
}

#[tokio::test]
async fn a_tunnel_goes_to_the_host_that_a_rule_names_and_nowhere_else() {
    let (port, _server) = server("127.0.0.1:0", "one ").await;
    let place = place(&[format!("localhost:{port}")], &[&["127.0.0.1"]]);
    let (mut client, first) = connect(&place, &format!("CONNECT localhost:{port} HTTP/1.0\r\n\r\n")).await;
    assert_eq!(first, "HTTP/1.1 200 Connection established");
    says(&mut client, b"hello", "one hello").await;
    let (_, first) = connect(&place, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(first, "HTTP/1.1 403 evil.example:443 is not in network");
    assert_eq!(*place.answers.1.lock(), 1, "what is refused by its name is not even resolved");
    assert_eq!(*place.policy.refused.lock(), ["evil.example:443 is not in network"]);
    assert_eq!(*place.policy.opened.lock(), [format!("localhost:{port}")]);
}

#[tokio::test]
async fn a_name_that_changes_where_it_leads_is_reached_where_it_was_checked() {
    let (port, _one) = server("127.0.0.2:0", "checked ").await;
    let (_, _two) = server(&format!("127.0.0.3:{port}"), "rebound ").await;
    // The name leads to an address that is allowed, and a moment later to another.
    let rules = [format!("rebind.example:{port}"), format!("127.0.0.2:{port}")];
    let rebinding = place(&rules, &[&["127.0.0.2"], &["127.0.0.3"]]);
    let head = format!("CONNECT rebind.example:{port} HTTP/1.1\r\n\r\n");
    let (mut client, first) = connect(&rebinding, &head).await;
    assert_eq!(first, "HTTP/1.1 200 Connection established");
    says(&mut client, b"x", "checked x").await;
    assert_eq!(*rebinding.answers.1.lock(), 1, "it was resolved once");
    let (_, first) = connect(&rebinding, &head).await;
    let why = format!(
        "rebind.example:{port} leads to 127.0.0.3, an address of this machine itself, and only a rule that names it allows that"
    );
    assert_eq!(first, format!("HTTP/1.1 403 {why}"));
    // Among several addresses only those are tried that are allowed.
    let mixed = place(&rules, &[&["127.0.0.3", "::ffff:127.0.0.3", "10.0.0.1", "127.0.0.2"]]);
    let (mut client, _) = connect(&mixed, &head).await;
    says(&mut client, b"x", "checked x").await;
}

#[tokio::test]
async fn tls_for_another_server_ends_the_tunnel() {
    let (port, _server) = server("127.0.0.1:0", "inside ").await;
    let place = place(&[format!("localhost:{port}")], &[&["127.0.0.1"]]);
    let head = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    let (mut client, _) = connect(&place, &head).await;
    let hello = hello("localhost");
    // In two pieces.
    client.write_all(&hello[..10]).await.unwrap();
    says(&mut client, &hello[10..], "inside ").await;
    let (mut client, _) = connect(&place, &head).await;
    client.write_all(&self::hello("other.example")).await.unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, [21, 3, 3, 0, 2, 2, 112], "an alert, and nothing of the server");
    assert_eq!(*place.policy.refused.lock(), [format!("localhost:{port} was asked for and TLS names other.example")]);
}

/// The first message of TLS to a server of this name.
fn hello(name: &str) -> Vec<u8> {
    let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let list = long(&[&[0], &long(name.as_bytes())[..]].concat());
    let extensions = long(&[&[0, 0], &long(&list)[..]].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &long(&[19, 1]), &[1, 0], &extensions].concat();
    let message = [&[1, 0][..], &long(&body)].concat();
    [&[22, 3, 1][..], &long(&message)].concat()
}

#[tokio::test]
async fn plain_http_is_passed_on_by_the_same_rules_one_request_at_a_time() {
    let (port, _server) = server("127.0.0.1:0", "HTTP/1.1 200 OK\r\n\r\nheard: ").await;
    let place = place(&[format!("localhost:{port}")], &[&["127.0.0.1"]]);
    let mut client = TcpStream::connect(place.address).await.unwrap();
    let second = "GET http://evil.example/ HTTP/1.1\r\n\r\n";
    let both =
        format!("POST http://localhost:{port}/a HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\nhi{second}");
    client.write_all(both.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.unwrap();
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard.contains(&format!("heard: POST /a HTTP/1.1\r\nhost: localhost:{port}\r\n")), "{heard}");
    assert!(heard.contains("connection: close\r\n\r\n") && !heard.contains("evil.example"), "{heard}");
    let (_, first) = connect(&place, second).await;
    assert_eq!(first, "HTTP/1.1 403 evil.example:80 is not in network");
    let (_, first) = connect(&place, "GET / HTTP/1.1\r\n\r\n").await;
    assert!(first.starts_with("HTTP/1.1 400 this is the proxy to the network"), "{first}");
}

#[tokio::test]
async fn a_rule_that_is_taken_away_ends_its_tunnels_and_no_others() {
    let (port, _server) = server("127.0.0.1:0", "hi ").await;
    let (other, _other) = server("127.0.0.1:0", "other ").await;
    let place = place(&[format!("localhost:{port}"), format!("127.0.0.1:{other}")], &[&["127.0.0.1"]]);
    let (mut lost, _) = connect(&place, &format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n")).await;
    let (mut kept, _) = connect(&place, &format!("CONNECT 127.0.0.1:{other} HTTP/1.1\r\n\r\n")).await;
    says(&mut lost, b"x", "hi x").await;
    says(&mut kept, b"x", "other x").await;
    place.policy.rules.lock().remove(0);
    place.served.rules_changed();
    assert_eq!(lost.read(&mut [0; 10]).await.unwrap_or(0), 0);
    kept.write_all(b"y").await.unwrap();
    assert_eq!(*place.policy.refused.lock(), [format!("localhost:{port} is not in network")]);
    // And all end with the proxy.
    let (address, policy) = (place.address, place.policy.clone());
    drop(place);
    assert_eq!(kept.read(&mut [0; 10]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
    assert_eq!(policy.refused.lock().len(), 1);
}
