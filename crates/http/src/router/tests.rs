use std::io::{Read, Write};
use std::net::{TcpListener as StdListener, TcpStream as StdStream};

use super::*;

/// A router with one endless body, which tells when it is dropped.
fn endless(dropped: std::sync::mpsc::Sender<()>) -> Router {
    struct Told(std::sync::mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            _ = self.0.send(());
        }
    }
    Router::new().fallback(move || {
        let told = Told(dropped.clone());
        let pieces = futures_util::stream::repeat_with(move || {
            let _told = &told;
            Ok::<_, io::Error>(vec![b'x'; 1 << 16])
        });
        async move { axum::body::Body::from_stream(pieces) }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_cut_and_a_silent_one_makes_room() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (dropped, told) = std::sync::mpsc::channel();
    let stall_time = Duration::from_millis(100);
    let limits = RouterLimits { stall_time, connections: 2, ..RouterLimits::default() };
    let served = serve_router(listener, None, endless(dropped), limits).unwrap();
    let client = tokio::task::spawn_blocking(move || {
        let mut deaf = StdStream::connect(address).unwrap();
        deaf.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        let silent: Vec<StdStream> = (0..5).map(|_| StdStream::connect(address).unwrap()).collect();
        let mut other = StdStream::connect(address).unwrap();
        other.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut some = [0; 8];
        other.read_exact(&mut some).unwrap();
        drop(silent);
        some
    });
    assert_eq!(&client.await.unwrap(), b"HTTP/1.1");
    served.close().await;
    assert!(StdStream::connect(address).is_err());
}
