use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::*;

/// Reads bodies, and answers when it may.
struct Patient {
    read: AtomicUsize,
    may: Semaphore,
}

impl RequestHandler for Patient {
    async fn answer(self: Arc<Self>, request: IncomingRequest) -> OutgoingAnswer {
        let read = request.read(MAX_HELD).await;
        if let Err(error) = &read {
            let status = if error.code == acheron_base::Code::Busy { 429 } else { 500 };
            return OutgoingAnswer::json(status, &serde_json::json!(error.message));
        }
        self.read.fetch_add(1, Ordering::SeqCst);
        _ = self.may.acquire().await;
        OutgoingAnswer::json(200, &serde_json::json!("read"))
    }
}

/// Sends a body and reads the first line of the answer.
async fn post(mut stream: TcpStream, bytes: usize) -> String {
    let head = format!("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses reads no further.
    _ = stream.write_all(&vec![b'x'; bytes]).await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_bodies_at_once_do_not_fill_the_memory() {
    const LARGE: usize = MAX_HELD / 2;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handler = Arc::new(Patient { read: AtomicUsize::new(0), may: Semaphore::new(0) });
    let _served = serve(listener, handler.clone()).unwrap();
    let connect = || async move { TcpStream::connect(address).await.unwrap() };
    let first: Vec<_> = [connect().await, connect().await].map(|stream| tokio::spawn(post(stream, LARGE))).into();
    while handler.read.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let third = post(connect().await, 1).await;
    assert!(third.contains("429"), "{third}");
    handler.may.close();
    for held in first {
        assert!(held.await.unwrap().contains("200"));
    }
    assert!(post(connect().await, LARGE).await.contains("200"), "there is room again");
}
