//! The stream to a child's server, which loses nothing of what the server says.
//!
//! What is no message at all (a banner, a stray print) is skipped, and said once.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};

use super::last_words::Stray;
use super::pending::Pending;
use crate::lines::{Line, Lines};

/// The most characters of a line that is no message that the log shows.
const SHOWN: usize = 200;

/// A message a line, both ways, with raw results.
pub(super) struct Wire {
    /// What messages in the log call the server.
    server: String,
    /// Shared with whoever looks for last words; nobody else reads it while we do.
    input: Arc<tokio::sync::Mutex<Lines<ChildStdout>>>,
    output: Arc<tokio::sync::Mutex<ChildStdin>>,
    pending: Arc<Pending>,
    limit: usize,
    /// How many lines were no messages.
    noise: usize,
    /// The last of them.
    stray: Stray,
}

impl Wire {
    pub(super) fn new(
        server: String,
        (input, output): (ChildStdout, ChildStdin),
        pending: Arc<Pending>,
        limit: usize,
    ) -> Self {
        let input = Arc::new(tokio::sync::Mutex::new(Lines::new(input, limit)));
        let stray = Stray::beside(&input);
        let output = Arc::new(tokio::sync::Mutex::new(output));
        Self { server, input, output, pending, limit, noise: 0, stray }
    }

    /// Returns where the lines are kept that are no messages.
    pub(super) fn stray(&self) -> Stray {
        self.stray.clone()
    }

    fn read(&mut self, line: Vec<u8>) -> Option<ServerJsonRpcMessage> {
        let line = match self.pending.result(line, None) {
            Ok(result) => return Some(result),
            Err(line) => line,
        };
        let message = serde_json::from_slice(&line).ok();
        let message = message.and_then(|value: Value| self.pending.read(value).ok());
        if message.is_none() {
            self.skip(&String::from_utf8_lossy(&line));
            // Half a surrogate, say, or a number beyond all numbers: an answer it is all the same.
            return self.pending.unread(&line);
        }
        message
    }

    fn skip(&mut self, line: &str) {
        self.noise += 1;
        let shown: String = line.chars().take(SHOWN).collect();
        self.stray.push(&shown);
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

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    /// What the library's messages call it.
    fn name() -> Cow<'static, str> {
        "standard streams".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.pending.note(&item);
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
        let input = Arc::clone(&self.input);
        let mut input = input.lock().await;
        loop {
            // Lines are in memory by thousands: a flood of noise must not keep this task busy.
            tokio::task::consume_budget().await;
            match input.next().await {
                Ok(Some(Line::Whole(line))) if line.is_empty() => {}
                Ok(Some(Line::Whole(line))) => {
                    if let Some(message) = self.read(line) {
                        return Some(message);
                    }
                }
                Ok(Some(Line::TooLong)) => {
                    tracing::error!(
                        upstream = self.server,
                        "a message was longer than limits.max_message_bytes and was skipped"
                    );
                    if let Some(answer) = self.pending.too_long(input.ends(), self.limit) {
                        return Some(answer);
                    }
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
