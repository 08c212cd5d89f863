//! Plain HTTP/1.1 to a gateway: whole replies, open streams, and the clients of both eras.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::session::{hello, modern};

/// How long the server may be silent.
const SILENCE: Duration = Duration::from_secs(20);
const BOTH: &str = "application/json, text/event-stream";

/// A request under way: its reply has begun, its body is still to be read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    body: BufReader<Body>,
}

/// The bytes of a body, however they are framed.
#[derive(Debug)]
struct Body {
    stream: BufReader<TcpStream>,
    chunked: bool,
    /// What is left of the body or of the current chunk; nothing means until the end.
    left: Option<u64>,
}

/// One client of one endpoint, with the headers that it always sends.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    address: String,
    path: String,
    headers: BTreeMap<String, String>,
    next: u64,
}

impl Web {
    pub(crate) fn new(url: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("a plain URL");
        let (address, path) = rest.split_once('/').expect("a path");
        let headers = [
            ("host", address),
            ("accept", BOTH),
            ("content-type", "application/json"),
            ("connection", "close"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            headers: headers.into(),
            next: 0,
        }
    }

    /// Sends a header with every request from now on; an empty one is left out.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sends everything to another gateway from now on.
    pub(crate) fn at_address(mut self, address: &str) -> Self {
        address.clone_into(&mut self.address);
        self.header("host", address)
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Makes a request and returns when its reply begins.
    #[track_caller]
    pub(crate) fn open(&self, method: &str, body: &str) -> Reply {
        Reply::begin(self.write(method, body))
    }

    /// Makes a request with any bytes and returns when its reply begins.
    #[track_caller]
    pub(crate) fn open_bytes(&self, method: &str, body: &[u8]) -> Reply {
        Reply::begin(self.write_bytes(method, body))
    }

    /// Posts a message and waits for nothing; the connection is closed when it is dropped.
    #[track_caller]
    pub(crate) fn send(&self, message: &Value) -> TcpStream {
        self.write("POST", &message.to_string())
    }

    #[track_caller]
    fn write(&self, method: &str, body: &str) -> TcpStream {
        self.write_bytes(method, body.as_bytes())
    }

    #[track_caller]
    fn write_bytes(&self, method: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(SILENCE)).expect("a limit");
        let headers = self.headers.iter().filter(|(_, value)| !value.is_empty());
        let headers: Vec<String> =
            headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} {} HTTP/1.1\r\n{}content-length: {}\r\n\r\n",
            self.path,
            headers.concat(),
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("written");
        // A server that has refused already need not read the rest.
        drop(stream.write_all(body));
        stream
    }

    #[track_caller]
    pub(crate) fn get(&self) -> Reply {
        self.open("GET", "")
    }

    /// Posts a message and returns the reply.
    #[track_caller]
    pub(crate) fn post(&self, message: &Value) -> Reply {
        self.open("POST", &message.to_string())
    }

    /// Begins a session of the older era; its id goes with every request from now on.
    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        self.initialize_as(&hello("2025-11-25"))
    }

    /// Begins a session of the older era as a client that says this of itself.
    #[track_caller]
    pub(crate) fn initialize_as(&mut self, hello: &Value) -> Value {
        let reply = self.post(&self.message("initialize", hello));
        assert_eq!(reply.status, 200);
        let session = reply.headers["mcp-session-id"].clone();
        let result = reply.answer()["result"].take();
        *self = self
            .clone()
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25");
        self.notify("notifications/initialized", &json!({}));
        result
    }

    #[track_caller]
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        let reply = self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        assert_eq!(reply.status, 202);
    }

    fn message(&self, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.next + 1, "method": method, "params": params})
    }

    /// Begins a request of the older era.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> (u64, Reply) {
        let message = self.message(method, params);
        self.next += 1;
        (self.next, self.post(&message))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the id of the last request.
    pub(crate) fn last(&self) -> u64 {
        self.next
    }

    /// Sends a request of the older era, and waits for nothing.
    #[track_caller]
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> TcpStream {
        let message = self.message(method, params);
        self.next += 1;
        self.send(&message)
    }

    /// Begins a request of the newer era.
    #[track_caller]
    pub(crate) fn ask_modern(&mut self, method: &str, params: &Value) -> Reply {
        Reply::begin(self.begin_modern(method, params))
    }

    /// Sends a request of the newer era, and waits for nothing.
    #[track_caller]
    pub(crate) fn begin_modern(&mut self, method: &str, params: &Value) -> TcpStream {
        self.begin_as(method, &modern(params.clone()))
    }

    /// Makes a request of the newer era as a client that can be asked, and returns the answer.
    #[track_caller]
    pub(crate) fn asked(mut self, method: &str, params: &Value) -> Value {
        let mut params = modern(params.clone());
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        Reply::begin(self.begin_as(method, &params)).answer()
    }

    /// Makes a request of the newer era that says itself what its client is.
    #[track_caller]
    pub(crate) fn ask_as(&mut self, method: &str, params: &Value) -> Reply {
        Reply::begin(self.begin_as(method, params))
    }

    #[track_caller]
    fn begin_as(&mut self, method: &str, params: &Value) -> TcpStream {
        let message = self.message(method, params);
        self.next += 1;
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default();
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name),
            ("mcp-session-id", ""),
        ];
        let client =
            headers.iter().fold(self.clone(), |web, (name, value)| web.header(name, value));
        client.send(&message)
    }

    /// Makes a request of the older era and returns the answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.ask(method, params).1.answer()
    }

    /// Makes a request of the newer era and returns the answer.
    #[track_caller]
    pub(crate) fn modern(&mut self, method: &str, params: &Value) -> Value {
        self.ask_modern(method, params).answer()
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn begin(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let status = line(&mut stream);
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = BTreeMap::new();
        loop {
            let line = line(&mut stream);
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let chunked = headers.get("transfer-encoding").is_some_and(|how| how == "chunked");
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let left = if chunked { Some(0) } else { length };
        let body = BufReader::new(Body { stream, chunked, left });
        Self { status: status.expect("a status"), headers, body }
    }

    /// Returns the whole body.
    #[track_caller]
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).expect("readable");
        text
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// Returns the next message of a stream; nothing at its end.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).expect("an event in time") == 0 {
                return None;
            }
            let data = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// Returns every message up to the end.
    #[track_caller]
    pub(crate) fn messages(mut self) -> Vec<Value> {
        if self.headers.get("content-type").is_some_and(|kind| kind.starts_with("text/event")) {
            return std::iter::from_fn(|| self.event()).collect();
        }
        vec![self.json()]
    }

    /// Returns the last message, which answers the request.
    #[track_caller]
    pub(crate) fn answer(self) -> Value {
        self.messages().pop().expect("an answer")
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunked && self.left == Some(0) {
            let mut size = String::new();
            while size.trim().is_empty() {
                size.clear();
                if self.stream.read_line(&mut size)? == 0 {
                    return Ok(0);
                }
            }
            let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            if size == 0 {
                return Ok(0);
            }
            self.left = Some(size);
        }
        let read = match self.left {
            Some(left) => (&mut self.stream).take(left).read(buffer)?,
            None => self.stream.read(buffer)?,
        };
        self.left = self.left.map(|left| left - read as u64);
        Ok(read)
    }
}

#[track_caller]
fn line(stream: &mut impl io::BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a reply in time");
    line.trim_end().to_owned()
}
