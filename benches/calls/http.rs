//! A client over HTTP: its own HTTP/1.1, on connections that are kept.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::message::{Call, LEGACY, MODERN, initialize, initialized};

/// The most connections that are used.
const CONNECTIONS: usize = 8;

/// A client of one era.
#[derive(Debug)]
pub(crate) struct Http {
    connections: Vec<Connection>,
    /// What every head begins with; the length of the body is missing.
    head: String,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    stream: BufReader<TcpStream>,
    sent: Vec<u8>,
    line: Vec<u8>,
    body: Vec<u8>,
    next_id: u64,
}

impl Http {
    /// Connects to the server at `address` as a client without a session.
    pub(crate) async fn modern(address: &str) -> io::Result<Self> {
        let head = head(address, MODERN, &[("Mcp-Method", "tools/call")]);
        Ok(Self { connections: connect(address).await?, head })
    }

    /// Connects to the server at `address` and begins a session.
    pub(crate) async fn legacy(address: &str) -> io::Result<Self> {
        let mut connections = connect(address).await?;
        let first = &mut connections[0];
        let session = first.post(&head(address, LEGACY, &[]), &initialize()).await?;
        let session = session.ok_or_else(|| io::Error::other("there is no session"))?;
        let head = head(address, LEGACY, &[("Mcp-Session-Id", &session)]);
        first.post(&head, &initialized()).await?;
        Ok(Self { connections, head })
    }

    /// Makes `count` calls, of which so many are under way at once, over all connections.
    pub(crate) async fn calls(
        &mut self,
        call: &Call,
        count: usize,
        in_flight: usize,
    ) -> io::Result<()> {
        let used = in_flight.min(CONNECTIONS);
        let head = format!("{}Mcp-Name: {}\r\n", self.head, call.tool);
        let connections = self.connections[..used].iter_mut();
        let calls = connections.map(|one| one.calls(&head, call, count / used, in_flight / used));
        futures_util::future::try_join_all(calls).await.map(drop)
    }
}

impl Connection {
    async fn calls(
        &mut self,
        head: &str,
        call: &Call,
        count: usize,
        in_flight: usize,
    ) -> io::Result<()> {
        self.send_calls(head, call, in_flight.min(count)).await?;
        for received in 0..count {
            self.receive().await?;
            call.check(&self.body)?;
            if received + in_flight < count {
                self.send_calls(head, call, 1).await?;
            }
        }
        Ok(())
    }

    async fn send_calls(&mut self, head: &str, call: &Call, count: usize) -> io::Result<()> {
        self.sent.clear();
        for _ in 0..count {
            begin(&mut self.sent, head, call.length(self.next_id));
            call.write(self.next_id, &mut self.sent);
            self.next_id += 1;
        }
        self.stream.write_all(&self.sent).await
    }

    /// Sends one message and returns the session that the answer names.
    async fn post(&mut self, head: &str, message: &Value) -> io::Result<Option<String>> {
        let body = message.to_string();
        self.sent.clear();
        begin(&mut self.sent, head, body.len());
        self.sent.extend_from_slice(body.as_bytes());
        self.stream.write_all(&self.sent).await?;
        self.receive().await
    }

    /// Reads one response: its body is kept, and its session returned.
    async fn receive(&mut self) -> io::Result<Option<String>> {
        self.read_line().await?;
        let status = String::from_utf8_lossy(&self.line).into_owned();
        let (mut length, mut chunked, mut session) = (0, false, None);
        loop {
            self.read_line().await?;
            let line = self.line.trim_ascii();
            if line.is_empty() {
                break;
            }
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                length = number(value, 10)?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                chunked = true;
            } else if name.eq_ignore_ascii_case(b"mcp-session-id") {
                session = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
        self.body.clear();
        if chunked {
            self.read_chunks().await?;
        } else {
            self.read_body(length).await?;
        }
        if status.starts_with("HTTP/1.1 2") {
            return Ok(session);
        }
        Err(io::Error::other(format!("{status}{}", String::from_utf8_lossy(&self.body))))
    }

    async fn read_chunks(&mut self) -> io::Result<()> {
        loop {
            self.read_line().await?;
            let length = number(self.line.trim_ascii(), 16)?;
            self.read_body(length).await?;
            self.read_line().await?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    async fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.stream.read_until(b'\n', &mut self.line).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn read_body(&mut self, length: usize) -> io::Result<()> {
        let start = self.body.len();
        self.body.resize(start + length, 0);
        self.stream.read_exact(&mut self.body[start..]).await.map(drop)
    }
}

async fn connect(address: &str) -> io::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for index in 0..CONNECTIONS as u64 {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        let (sent, line, body) = (Vec::new(), Vec::new(), Vec::new());
        // All may belong to one session, in which no two requests have the same id.
        let next_id = (index + 1) << 32;
        connections.push(Connection { stream, sent, line, body, next_id });
    }
    Ok(connections)
}

fn head(address: &str, version: &str, more: &[(&str, &str)]) -> String {
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n"
    );
    for (name, value) in more {
        // Writing to a string cannot fail.
        _ = write!(head, "{name}: {value}\r\n");
    }
    head
}

fn begin(sent: &mut Vec<u8>, head: &str, length: usize) {
    sent.extend_from_slice(head.as_bytes());
    sent.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
}

fn number(digits: &[u8], radix: u32) -> io::Result<usize> {
    let digits = String::from_utf8_lossy(digits);
    usize::from_str_radix(&digits, radix).map_err(io::Error::other)
}
