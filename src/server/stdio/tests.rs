//! Bytes in, bytes out: what the framing answers by itself.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

use super::*;

struct Peer {
    stream: Stream,
    client: DuplexStream,
}

fn peer(limit: usize) -> Peer {
    let (ours, client) = duplex(1 << 20);
    let (input, output) = tokio::io::split(ours);
    Peer { stream: Stream::new(Box::new(input), Box::new(output), limit), client }
}

impl Peer {
    /// Sends bytes and returns the methods that came through and the answers that went out.
    async fn exchange(mut self, bytes: &[u8]) -> (Vec<String>, Vec<Value>) {
        let mut client = self.client;
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let mut methods = Vec::new();
        while let Some(message) = self.stream.receive().await {
            methods.push(match message {
                JsonRpcMessage::Request(request) => request.request.method().to_owned(),
                other => serde_json::to_value(&other).unwrap()["method"].to_string(),
            });
        }
        drop(self.stream);
        let mut written = String::new();
        client.read_to_string(&mut written).await.unwrap();
        (methods, written.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

#[track_caller]
fn error(answer: &Value, id: &Value, code: i64) {
    assert_eq!(&answer.get("id").cloned().unwrap_or_default(), id, "{answer}");
    assert_eq!(answer["error"]["code"], code, "{answer}");
}

#[tokio::test]
async fn what_can_not_be_read_is_answered_and_the_next_message_is_served() {
    let table: [(&[u8], Value, i64); 8] = [
        (b"{", Value::Null, -32700),
        (b"nonsense", Value::Null, -32700),
        (b"\xff\xfe", Value::Null, -32700),
        (b"[]", Value::Null, -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", Value::Null, -32600),
        (b"{}", Value::Null, -32600),
        (b"{\"id\":7,\"method\":\"ping\"}", json!(7), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", Value::Null, -32600),
    ];
    for (line, id, code) in table {
        let input = [line, b"\n\n", PING.as_bytes(), b"\n"].concat();
        let (methods, answers) = peer(1 << 16).exchange(&input).await;
        assert_eq!(methods, ["ping"], "{}", String::from_utf8_lossy(line));
        assert_eq!(answers.len(), 1, "{}", String::from_utf8_lossy(line));
        error(&answers[0], &id, code);
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_answered_and_skipped() {
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"{}\"}}", "x".repeat(200_000));
    let (methods, answers) = peer(100_000).exchange(format!("{long}\n{PING}\n").as_bytes()).await;
    assert_eq!(methods, ["ping"]);
    error(&answers[0], &Value::Null, -32600);
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("max_message_bytes"));
}

#[tokio::test]
async fn a_line_of_exactly_the_limit_passes() {
    let (methods, answers) = peer(PING.len()).exchange(format!("{PING}\n").as_bytes()).await;
    assert_eq!((methods.len(), answers.len()), (1, 0));
    let (methods, answers) = peer(PING.len() - 1).exchange(format!("{PING}\n").as_bytes()).await;
    assert_eq!((methods.len(), answers.len()), (0, 1));
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_first_request_stands() {
    let (methods, answers) = peer(1 << 16).exchange(format!("{PING}\n{PING}\n").as_bytes()).await;
    assert_eq!(methods, ["ping"]);
    error(&answers[0], &json!(1), -32600);
}

#[tokio::test]
async fn a_cancelled_id_can_be_used_again() {
    let cancel =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}";
    let (methods, answers) =
        peer(1 << 16).exchange(format!("{PING}\n{cancel}\n{PING}\n").as_bytes()).await;
    assert_eq!(methods.len(), 3);
    assert_eq!(answers, Vec::<Value>::new());
}

#[tokio::test]
async fn what_comes_before_the_first_request_is_dropped_unless_it_is_one() {
    let early = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}";
    let (methods, answers) =
        peer(1 << 16).exchange(format!("{early}\n{PING}\n{early}\n").as_bytes()).await;
    assert_eq!(methods[0], "ping");
    assert_eq!(methods.len(), 3);
    assert_eq!(answers, Vec::<Value>::new());
}

#[tokio::test]
async fn a_last_line_without_its_end_is_a_message() {
    let (methods, _) = peer(1 << 16).exchange(PING.as_bytes()).await;
    assert_eq!(methods, ["ping"]);
}

#[tokio::test]
async fn reading_can_be_given_up_in_the_middle_of_a_line() {
    let Peer { mut stream, mut client } = peer(1 << 16);
    let (first, second) = PING.split_at(10);
    client.write_all(first.as_bytes()).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(10), stream.receive()).await;
    assert!(waiting.is_err());
    client.write_all(second.as_bytes()).await.unwrap();
    client.write_all(b"\r\n").await.unwrap();
    assert!(matches!(stream.receive().await, Some(JsonRpcMessage::Request(_))));
}

#[tokio::test(start_paused = true)]
async fn of_a_client_that_does_not_read_no_more_is_read() {
    let Peer { mut stream, mut client } = peer(1000);
    let long = || {
        let error = ErrorData::internal_error("x".repeat(BACKLOG / 2), None);
        ServerJsonRpcMessage::error(error, None)
    };
    let sent: Vec<_> = (0..3).map(|_| stream.write(long())).collect();
    let mut writing = std::pin::pin!(join_all(sent));
    client.write_all(format!("{PING}\n").as_bytes()).await.unwrap();
    let moment = Duration::from_mins(1);
    tokio::select! {
        _ = &mut writing => panic!("nobody has read it"),
        early = tokio::time::timeout(moment, stream.receive()) => assert!(early.is_err()),
    }
    // It goes on where the client does.
    let reading = async {
        let mut long = vec![0; BACKLOG / 2 * 3];
        client.read_exact(&mut long).await.unwrap();
    };
    let (message, _, ()) = tokio::join!(stream.receive(), writing, reading);
    assert!(message.is_some());
}
