//! The stream to a child's server, which loses nothing of what the server says.
//!
//! Results of the requests that we pass on are kept as raw JSON: the library would read them into
//! its own types, and a single field it does not know how to read would cost the whole message.
//! What is no message at all (a banner, a stray print) is skipped, and said once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientRequest, CustomResult, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleClient};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::lines::{Line, Lines};

/// The most characters of a line that is no message that the log shows.
const SHOWN: usize = 200;

/// A message a line, both ways, with raw results.
pub(super) struct Wire<R, W> {
    /// What messages in the log call the server.
    server: String,
    input: Lines<R>,
    output: Arc<tokio::sync::Mutex<W>>,
    /// Ids of open requests whose results stay raw.
    raw: Arc<Mutex<HashSet<RequestId>>>,
    /// How many lines were no messages.
    noise: usize,
}

impl<R: AsyncRead + Unpin, W> Wire<R, W> {
    pub(super) fn new(server: String, input: R, output: W, limit: usize) -> Self {
        let input = Lines::new(input, limit);
        let output = Arc::new(tokio::sync::Mutex::new(output));
        Self { server, input, output, raw: Arc::default(), noise: 0 }
    }

    fn read(&mut self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            self.skip(&String::from_utf8_lossy(line));
            return None;
        };
        let value = match self.raw_response(value) {
            Ok(response) => return Some(response),
            Err(value) => value,
        };
        match serde_json::from_value(value) {
            Ok(message) => Some(message),
            Err(_) => {
                self.skip(&String::from_utf8_lossy(line));
                None
            }
        }
    }

    /// Takes the result out of a response to a request that we pass on.
    fn raw_response(&self, mut value: Value) -> Result<ServerJsonRpcMessage, Value> {
        let id =
            value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        let Some(id) = id.filter(|_| value.get("method").is_none()) else {
            return Err(value);
        };
        if !self.raw.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
            return Err(value);
        }
        if let Some(result) = value.get_mut("result").map(Value::take) {
            let result = ServerResult::CustomResult(CustomResult(result));
            let response = JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result };
            return Ok(JsonRpcMessage::Response(response));
        }
        // An answer it is, whatever stands in it: whoever asked must not wait for another one.
        let error = value.get("error").map(ErrorData::deserialize).and_then(Result::ok);
        let error = error
            .unwrap_or_else(|| ErrorData::internal_error("(an answer that cannot be read)", None));
        Ok(JsonRpcMessage::error(error, Some(id)))
    }

    fn skip(&mut self, line: &str) {
        self.noise += 1;
        let shown: String = line.chars().take(SHOWN).collect();
        if self.noise == 1 {
            tracing::warn!(
                upstream = self.server,
                line = shown,
                "the server wrote something that is no message to its standard output; such lines are skipped"
            );
        } else {
            tracing::debug!(
                upstream = self.server,
                line = shown,
                count = self.noise,
                "a line was skipped"
            );
        }
    }
}

impl<R, W> Transport<RoleClient> for Wire<R, W>
where
    R: AsyncRead + Send + Sync + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    /// What the library's messages call it.
    fn name() -> Cow<'static, str> {
        "standard streams".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item
            && matches!(
                request.request,
                ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
            )
        {
            self.raw.lock().unwrap_or_else(PoisonError::into_inner).insert(request.id.clone());
        }
        let output = Arc::clone(&self.output);
        let bytes = serde_json::to_vec(&item);
        async move {
            let mut bytes = bytes?;
            bytes.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&bytes).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // Lines are in memory by thousands: a flood of noise must not keep this task busy.
            tokio::task::consume_budget().await;
            match self.input.next().await {
                Ok(Some(Line::Whole(line))) if line.is_empty() => {}
                Ok(Some(Line::Whole(line))) => {
                    if let Some(message) = self.read(&line) {
                        return Some(message);
                    }
                }
                Ok(Some(Line::TooLong)) => {
                    tracing::error!(
                        upstream = self.server,
                        "a message was longer than limits.max_message_bytes and was skipped"
                    );
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(upstream = self.server, %error, "the server's output cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.shutdown().await
    }
}
