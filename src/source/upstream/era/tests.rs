//! Servers that answer in time, late, or never.

use std::io;
use std::sync::{Arc, Mutex};

use rmcp::model::NumberOrString;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::client::era_question;
use super::*;

/// A server of which the test says when it answers what.
struct Server {
    says: mpsc::UnboundedReceiver<ServerJsonRpcMessage>,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Transport<RoleClient> for Server {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.heard.lock().unwrap().push(serde_json::to_value(&item).unwrap());
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.says.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

struct Bench {
    says: mpsc::UnboundedSender<ServerJsonRpcMessage>,
    heard: Arc<Mutex<Vec<Value>>>,
    asked: Asked<Server>,
}

impl Bench {
    fn new() -> Self {
        let (says, receiver) = mpsc::unbounded_channel();
        let heard = Arc::default();
        let server = Server { says: receiver, heard: Arc::clone(&heard) };
        Self { says, heard, asked: Asked::unasked(server) }
    }

    async fn ask(&mut self, patience: u64) -> Heard {
        self.asked.ask(era_question(), Duration::from_secs(patience)).await
    }

    async fn received(&mut self) -> Value {
        serde_json::to_value(self.asked.receive().await.unwrap()).unwrap()
    }
}

fn message(value: Value) -> ServerJsonRpcMessage {
    serde_json::from_value(value).unwrap()
}

fn refusal(id: &str) -> ServerJsonRpcMessage {
    let error = json!({"code": -32601, "message": "no such method"});
    message(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The question as the library asks it.
fn library() -> ClientJsonRpcMessage {
    let question = ClientRequest::DiscoverRequest(era_question());
    ClientJsonRpcMessage::request(question, NumberOrString::Number(0))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_long_answers_the_question_of_the_library() {
    let mut bench = Bench::new();
    let says = bench.says.clone();
    tokio::join!(
        async {
            tokio::time::sleep(Duration::from_secs(17)).await;
            says.send(refusal(QUESTION)).unwrap();
        },
        async { assert_eq!(bench.ask(20).await, Heard::Something) },
    );
    bench.asked.send(library()).await.unwrap();
    let answer = bench.received().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(0), &json!(-32601)));
    // It was asked once, with all that it has to know of us.
    let heard = bench.heard.lock().unwrap().clone();
    let [asked] = heard.as_slice() else { panic!("{heard:?}") };
    let version = &asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!((&asked["method"], version), (&json!("server/discover"), &json!("2026-07-28")));
}

#[tokio::test(start_paused = true)]
async fn a_second_question_of_the_library_is_the_servers() {
    let mut bench = Bench::new();
    bench.says.send(refusal(QUESTION)).unwrap();
    bench.ask(20).await;
    bench.asked.send(library()).await.unwrap();
    bench.received().await;
    bench.asked.send(library()).await.unwrap();
    assert_eq!(bench.heard.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_taken_for_no_other() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(20).await, Heard::Nothing);
    bench.says.send(refusal(QUESTION)).unwrap();
    bench.says.send(message(json!({"jsonrpc": "2.0", "id": 0, "result": {}}))).unwrap();
    assert_eq!(bench.received().await["id"], 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_before_the_answer_is_heard_in_its_order() {
    let mut bench = Bench::new();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    bench.says.send(message(notification)).unwrap();
    bench.says.send(message(json!({"jsonrpc": "2.0", "id": "other", "result": {}}))).unwrap();
    bench.says.send(refusal(QUESTION)).unwrap();
    assert_eq!(bench.ask(20).await, Heard::Something);
    bench.asked.send(library()).await.unwrap();
    assert_eq!(bench.received().await["method"], "notifications/tools/list_changed");
    assert_eq!(bench.received().await["id"], "other");
    assert_eq!(bench.received().await["id"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_is_no_silent_one() {
    let Bench { says, heard: _, mut asked } = Bench::new();
    drop(says);
    assert_eq!(asked.ask(era_question(), Duration::from_secs(20)).await, Heard::Something);
    assert!(asked.receive().await.is_none());
}
