use super::*;

fn said(text: &'static str) -> Arc<dyn Reply> {
    Arc::new(FixedReply(Bytes::from_static(text.as_bytes())))
}

async fn read(replies: &Replies, offset: u64, size: usize) -> String {
    String::from_utf8(replies.read(offset, size).wait().await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn each_answer_ends_in_one_end_of_file() {
    let replies = Replies::default();
    replies.add(0, [said("one"), said("two")]);
    assert_eq!(read(&replies, 6, 2).await, "on");
    assert_eq!(read(&replies, 8, 9).await, "e");
    assert_eq!(read(&replies, 9, 9).await, "");
    assert_eq!(read(&replies, 9, 9).await, "two");
    assert_eq!(read(&replies, 12, 9).await, "");
    assert_eq!(read(&replies, 12, 9).await, "");
}

#[tokio::test]
async fn a_new_command_ends_the_reading_of_the_last_answer() {
    let replies = Replies::default();
    replies.add(0, [said("one")]);
    assert_eq!(read(&replies, 0, 9).await, "one");
    replies.add(0, [said("two")]);
    assert_eq!(read(&replies, 3, 9).await, "two");
}

#[tokio::test]
async fn a_reader_that_seeks_back_reads_from_the_start() {
    let replies = Replies::default();
    replies.add(0, [said("one")]);
    assert_eq!(read(&replies, 7, 9).await, "one");
    assert_eq!(read(&replies, 0, 2).await, "on");
    assert_eq!(read(&replies, 2, 9).await, "e");
}
