//! Which era a server is of, asked before anything else and with patience.
//!
//! The library asks `server/discover` and takes ten seconds of silence for an older server. A
//! server that is still starting, by `npx` or on a busy machine, is silent for longer, and its late
//! answer would be taken for one to the next request. So it is asked here, and the library's own
//! question is answered with what came of it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, DiscoverRequest, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// The id of our question; the library counts its own.
const QUESTION: &str = "which-era";
/// How many messages before the answer are kept.
const EARLY: usize = 64;

/// A transport on which the question for the era was asked already.
pub(super) struct Asked<T> {
    transport: T,
    /// What the server said before it answered.
    early: VecDeque<ServerJsonRpcMessage>,
    answer: Option<ServerJsonRpcMessage>,
    /// The library's own question, which is answered next.
    due: Option<RequestId>,
}

/// What came of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// An answer, of whatever kind, or the end of the stream.
    Something,
    /// Nothing for as long as it was waited.
    Nothing,
}

impl<T: Transport<RoleClient>> Asked<T> {
    /// Wraps a transport without asking anything.
    pub(super) fn unasked(transport: T) -> Self {
        Self { transport, early: VecDeque::new(), answer: None, due: None }
    }

    /// Asks, and waits so long for an answer.
    pub(super) async fn ask(&mut self, question: DiscoverRequest, patience: Duration) -> Heard {
        let question = ClientRequest::DiscoverRequest(question);
        let question = ClientJsonRpcMessage::request(question, RequestId::String(QUESTION.into()));
        // One that cannot be sent is found out by the library, which then says so.
        if self.transport.send(question).await.is_err() {
            return Heard::Something;
        }
        tokio::time::timeout(patience, self.hear()).await.unwrap_or(Heard::Nothing)
    }

    async fn hear(&mut self) -> Heard {
        while let Some(message) = self.transport.receive().await {
            if is_answer(&message) {
                self.answer = Some(message);
                return Heard::Something;
            }
            self.early.push_back(message);
            if self.early.len() > EARLY {
                self.early.pop_front();
            }
        }
        Heard::Something
    }
}

fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    let id = match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    matches!(id, Some(RequestId::String(id)) if **id == *QUESTION)
}

fn with_id(mut message: ServerJsonRpcMessage, id: RequestId) -> ServerJsonRpcMessage {
    match &mut message {
        JsonRpcMessage::Response(response) => response.id = id,
        JsonRpcMessage::Error(error) => error.id = Some(id),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
    }
    message
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Asked<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending: BoxFuture<'static, Result<(), T::Error>> = match item {
            JsonRpcMessage::Request(request)
                if self.answer.is_some()
                    && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
            {
                self.due = Some(request.id);
                std::future::ready(Ok(())).boxed()
            }
            item => self.transport.send(item).boxed(),
        };
        sending
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if let Some(early) = self.early.pop_front() {
            return Some(early);
        }
        if let Some(id) = self.due.take()
            && let Some(answer) = self.answer.take()
        {
            return Some(with_id(answer, id));
        }
        loop {
            let message = self.transport.receive().await?;
            // By now it was taken for an older one, and speaks as such.
            if !is_answer(&message) {
                return Some(message);
            }
            tracing::debug!("a server said too late which era it is of");
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests;
