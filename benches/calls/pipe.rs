//! A client over the standard streams of a server that it has started.

use std::io;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::message::{Call, initialize, initialized, list};

/// A server and the pipes to it.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: Vec<u8>,
    received: Vec<u8>,
    next_id: u64,
}

impl Pipe {
    /// Starts a server and speaks no word to it.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a child without pipes"));
        };
        let output = BufReader::new(output);
        Ok(Self { child, input, output, sent: Vec::new(), received: Vec::new(), next_id: 1 })
    }

    /// Returns the process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Shakes hands up to the server's answer.
    pub(crate) async fn initialize(&mut self) -> io::Result<()> {
        self.ask(&initialize()).await
    }

    /// Ends the handshake and waits until there are tools.
    pub(crate) async fn list(&mut self) -> io::Result<()> {
        self.send(&initialized()).await?;
        self.ask(&list()).await
    }

    async fn ask(&mut self, request: &Value) -> io::Result<()> {
        self.send(request).await?;
        self.receive().await?;
        let answer: Value = serde_json::from_slice(&self.received)?;
        if answer["result"].is_object() {
            return Ok(());
        }
        Err(io::Error::other(format!("{request} was answered with {answer}")))
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).await
    }

    /// Reads the next answer; what is none, such as news of the list, is passed over.
    async fn receive(&mut self) -> io::Result<()> {
        loop {
            self.received.clear();
            if self.output.read_until(b'\n', &mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if memchr::memmem::find(&self.received, br#""id":"#).is_some() {
                return Ok(());
            }
        }
    }

    async fn send_calls(&mut self, call: &Call, count: usize) -> io::Result<()> {
        self.sent.clear();
        for _ in 0..count {
            call.write(self.next_id, &mut self.sent);
            self.sent.push(b'\n');
            self.next_id += 1;
        }
        self.input.write_all(&self.sent).await
    }

    /// Makes `count` calls, of which so many are under way at once.
    ///
    /// So few are small enough for the pipes, so neither side ever waits for the other to read.
    pub(crate) async fn calls(
        &mut self,
        call: &Call,
        count: usize,
        in_flight: usize,
    ) -> io::Result<()> {
        self.send_calls(call, in_flight.min(count)).await?;
        for received in 0..count {
            self.receive().await?;
            call.check(&self.received)?;
            if received + in_flight < count {
                self.send_calls(call, 1).await?;
            }
        }
        Ok(())
    }

    /// Closes the server's input and waits until it is gone.
    pub(crate) async fn end(self) -> io::Result<()> {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait().await.map(drop)
    }
}
