use super::*;

#[tokio::test]
async fn answers_find_their_requests_and_a_dropped_one_is_cancelled() {
    let (peer, mut sent) = Peer::new();
    let (first, second) = (peer.clone(), peer.clone());
    let first = tokio::spawn(async move { first.request("a", json!({}), None).await });
    assert_eq!(sent.recv().await.unwrap()["id"], 1);
    let second = tokio::spawn(async move { second.request("b", json!({}), None).await });
    assert_eq!(sent.recv().await.unwrap()["method"], "b");
    peer.receive(Incoming::Answer { id: 2, outcome: Ok(json!("two")) });
    peer.receive(Incoming::Answer { id: 9, outcome: Ok(json!("nobody's")) });
    assert_eq!(second.await.unwrap().unwrap(), "two");
    first.abort();
    let told = sent.recv().await.unwrap();
    assert_eq!(
        (told["method"].as_str(), told["params"]["requestId"].as_u64()),
        (Some("notifications/cancelled"), Some(1))
    );
}

#[tokio::test]
async fn a_connection_that_ends_fails_what_waits_and_what_comes() {
    let (peer, mut sent) = Peer::new();
    let asked = peer.clone();
    let waiting = tokio::spawn(async move { asked.request("a", json!({}), None).await });
    sent.recv().await.unwrap();
    peer.close(Error::unavailable("it died"));
    for outcome in [waiting.await.unwrap(), peer.request("b", json!({}), None).await] {
        assert!(matches!(outcome, Err(RequestFailure::Unanswered(error)) if error.message == "it died"));
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_is_not_waited_for() {
    let (peer, _sent) = Peer::new();
    for number in 0..WAITING + 10 {
        peer.receive(Incoming::Request { id: number.into(), method: "ping".to_owned() });
    }
    let outcome = peer.request("a", json!({}), None).await;
    assert!(matches!(outcome, Err(RequestFailure::Unanswered(error)) if error.message.contains("does not read")));
}
