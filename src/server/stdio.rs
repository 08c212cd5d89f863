//! Serving one client over our standard streams: a message a line, and nothing else.
//!
//! The framing is ours, since a message that cannot be read still gets an answer: bad JSON,
//! a batch, a line that is too long, an id that is in use. What comes before the handshake and is
//! no request is dropped, where the library would end the session.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{
    RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::envelope;
use super::message::{self, Read};
use crate::lines::{Line, Lines};

/// How long answers that are nearly there are waited for when no more requests can come.
///
/// A script that pipes its requests in gets its answers; a client that is gone keeps nothing alive.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// How many bytes of answers may wait for the client to read them before no more is read of it; as
/// much as two of the longest messages, if that is more.
const BACKLOG: usize = 16 << 20;

type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// Serves the client at the other end of our standard streams until it closes them.
pub async fn serve(gateway: Gateway) -> io::Result<()> {
    let stdin = reader(io::stdin().as_fd().try_clone_to_owned()?)?;
    let stdout = writer(io::stdout().as_fd().try_clone_to_owned()?)?;
    Box::pin(serve_over(gateway, stdin, stdout)).await
}

/// Serves a client over any two streams until it closes the first.
pub async fn serve_over<R, W>(gateway: Gateway, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Sync + Unpin + 'static,
    W: AsyncWrite + Send + Sync + Unpin + 'static,
{
    let served = serve_until_closed(gateway.clone(), Box::new(input), Box::new(output)).await;
    // With HTTP beside it, the run goes on.
    gateway.end_session();
    served
}

async fn serve_until_closed(gateway: Gateway, input: Reader, output: Writer) -> io::Result<()> {
    let limit = gateway.config().max_message_bytes;
    // Not one of the shutdown, at which the last answers go out first.
    let connection = CancellationToken::new();
    let stream = Stream::new(input, output, limit).until(gateway.parts().shutdown.child());
    let (input_ended, open) = (stream.input_ended.clone(), Arc::clone(&stream.open));
    let deaf = Arc::clone(&stream.deaf);
    let serving = serve_server_with_ct(gateway, stream, connection.clone());
    let service = match Box::pin(serving).await {
        Ok(service) => service,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return deaf.verdict();
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    let mut waiting = std::pin::pin!(service.waiting());
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = long_ended(input_ended) => {
            open.lock().unwrap_or_else(PoisonError::into_inner).clear();
            connection.cancel();
            waiting.await
        }
    };
    ended.map_err(io::Error::other)?;
    deaf.verdict()
}

/// Waits until the input has ended and the last answers had their time.
async fn long_ended(input_ended: CancellationToken) {
    input_ended.cancelled().await;
    tokio::time::sleep(LAST_ANSWERS).await;
}

/// Reads a stream without a thread of its own where it is a pipe or a socket.
fn reader(stream: OwnedFd) -> io::Result<Reader> {
    let kind = std::fs::File::from(stream.try_clone()?).metadata()?.file_type();
    if kind.is_fifo() {
        // Opened anew, so that making it non-blocking concerns nobody else.
        let own = tokio::net::unix::pipe::OpenOptions::new().open_receiver("/proc/self/fd/0");
        if let Ok(own) = own {
            return Ok(Box::new(own));
        }
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(stream)?));
    }
    Ok(Box::new(tokio::io::stdin()))
}

fn writer(stream: OwnedFd) -> io::Result<Writer> {
    let kind = std::fs::File::from(stream.try_clone()?).metadata()?.file_type();
    if kind.is_fifo() {
        let own = tokio::net::unix::pipe::OpenOptions::new().open_sender("/proc/self/fd/1");
        if let Ok(own) = own {
            return Ok(Box::new(own));
        }
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(stream)?));
    }
    Ok(Box::new(tokio::io::stdout()))
}

fn socket(stream: OwnedFd) -> io::Result<tokio::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(stream);
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

/// Whether the client can still be written to.
#[derive(Default)]
struct Deaf {
    why: OnceLock<io::Error>,
    /// Cancelled when it cannot.
    since: CancellationToken,
}

impl Deaf {
    fn note(&self, error: io::Error) {
        if self.why.set(error).is_ok()
            && let Some(error) = self.why.get()
        {
            tracing::warn!(%error, "the client cannot be written to; its session ends");
        }
        self.since.cancel();
    }

    /// Says whether serving failed; that the client has gone is no failure.
    fn verdict(&self) -> io::Result<()> {
        match self.why.get() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                let message = format!("the client cannot be written to: {error}");
                Err(io::Error::new(error.kind(), message))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// A message a line, both ways.
struct Stream {
    input: Lines<Reader>,
    output: Arc<tokio::sync::Mutex<Writer>>,
    limit: usize,
    /// Ids of requests that have no answer yet and are to have one.
    open: Arc<Mutex<HashSet<RequestId>>>,
    /// Whether a request has come yet.
    begun: bool,
    /// The answer to a bad message, as far as it is not written yet; reading goes on after it.
    answering: Option<BoxFuture<'static, ()>>,
    /// Cancelled when nothing more can come.
    input_ended: CancellationToken,
    /// Cancelled when nothing more is to come.
    ending: CancellationToken,
    deaf: Arc<Deaf>,
    /// How many bytes are to be written.
    backlog: watch::Sender<usize>,
}

/// Bytes that are to be written, until this is dropped.
struct Unread(watch::Sender<usize>, usize);

impl Unread {
    fn new(backlog: &watch::Sender<usize>, bytes: usize) -> Self {
        backlog.send_modify(|all| *all += bytes);
        Self(backlog.clone(), bytes)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.send_modify(|all| *all -= self.1);
    }
}

impl Stream {
    fn new(input: Reader, output: Writer, limit: usize) -> Self {
        Self {
            input: Lines::new(input, limit),
            output: Arc::new(tokio::sync::Mutex::new(output)),
            limit,
            open: Arc::default(),
            begun: false,
            answering: None,
            input_ended: CancellationToken::new(),
            ending: CancellationToken::new(),
            deaf: Arc::default(),
            backlog: watch::Sender::default(),
        }
    }

    /// Takes the end of a run for the end of the input.
    fn until(self, ending: CancellationToken) -> Self {
        Self { ending, ..self }
    }

    fn read(&self, line: &Line) -> Read {
        match line {
            Line::TooLong => {
                let message = format!(
                    "a message has at most {} bytes (limits.max_message_bytes)",
                    self.limit
                );
                Read::Bad(None, ErrorData::invalid_request(message, None))
            }
            Line::Whole(line) if line.is_empty() => Read::Nothing,
            Line::Whole(line) => message::read(line),
        }
    }

    /// Takes note of what a message does to the open requests; false if it must not go on.
    fn admit(&mut self, message: &ClientJsonRpcMessage) -> Result<bool, (RequestId, ErrorData)> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            JsonRpcMessage::Request(request) => {
                self.begun = true;
                if !open.insert(request.id.clone()) {
                    let error = ErrorData::invalid_request(
                        "a request with this id is still being answered",
                        None,
                    );
                    return Err((request.id.clone(), error));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    open.remove(id);
                }
                return Ok(self.begun);
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Ok(self.begun),
        }
        Ok(true)
    }

    /// Writes a message; if that fails, nothing more is read either.
    fn write(&self, message: ServerJsonRpcMessage) -> impl Future<Output = ()> + Send + use<> {
        let (output, deaf) = (Arc::clone(&self.output), Arc::clone(&self.deaf));
        let bytes = envelope::written(message);
        let unread = Unread::new(&self.backlog, bytes.as_ref().map_or(0, Vec::len));
        async move {
            let _unread = unread;
            let written = async {
                let mut bytes = bytes?;
                bytes.push(b'\n');
                let mut output = output.lock().await;
                output.write_all(&bytes).await?;
                output.flush().await
            };
            if let Err(error) = written.await {
                deaf.note(error);
            }
        }
    }
}

impl Transport<RoleServer> for Stream {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        // A request that was cancelled has no answer, nor has one whose client is gone.
        let wanted = answered
            .is_none_or(|id| self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id));
        let written = wanted.then(|| self.write(item));
        async move {
            if let Some(written) = written {
                written.await;
            }
            Ok(())
        }
    }

    /// Cancel-safe: a line that was begun and an answer that is half written stay.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Lines are in memory by thousands: a flood of blank ones must not keep this task busy.
            tokio::task::consume_budget().await;
            if let Some(answering) = &mut self.answering {
                answering.await;
                self.answering = None;
            }
            let mut backlog = self.backlog.subscribe();
            let most = BACKLOG.max(self.limit.saturating_mul(2));
            let line = tokio::select! {
                biased;
                () = self.deaf.since.cancelled() => Ok(None),
                () = self.ending.cancelled() => Ok(None),
                line = async {
                    // Of a client that reads nothing, nothing more is read: its answers are in memory.
                    drop(backlog.wait_for(|bytes| *bytes <= most).await);
                    self.input.next().await
                } => line,
            };
            let line = match line {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.input_ended.cancel();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read");
                    self.input_ended.cancel();
                    return None;
                }
            };
            let (id, error) = match self.read(&line) {
                Read::Nothing => continue,
                Read::Bad(id, error) => (id, error),
                Read::Message(message) => match self.admit(&message) {
                    Ok(true) => return Some(*message),
                    Ok(false) => {
                        tracing::debug!("a message before the first request was dropped");
                        continue;
                    }
                    Err((id, error)) => (Some(id), error),
                },
            };
            tracing::debug!(code = error.code.0, message = %error.message, "a message was refused");
            self.answering = Some(Box::pin(self.write(ServerJsonRpcMessage::error(error, id))));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.answering = None;
        if let Err(error) = self.output.lock().await.flush().await {
            self.deaf.note(error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
