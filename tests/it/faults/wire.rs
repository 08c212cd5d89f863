//! A network to a server that can be cut, stalled and refused.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What becomes of bytes and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Flow,
    /// What is sent waits; connections stay.
    Stall,
    /// New connections are closed at once; those there are stay.
    Refuse,
}

/// A wire to a port of this machine.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    mode: AtomicU8,
    ends: Mutex<Vec<TcpStream>>,
}

impl Wire {
    pub(super) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        // It ends with the process of the test.
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if !shared.is(Mode::Refuse)
                    && let Ok(far) = TcpStream::connect(("127.0.0.1", target))
                {
                    shared.join(&near, &far);
                }
            }
        });
        Self { port, state }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn set(&self, mode: Mode) {
        self.state.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Ends every connection there is.
    pub(super) fn cut(&self) {
        for end in self.state.ends.lock().unwrap().drain(..) {
            // Already gone is as good.
            drop(end.shutdown(Shutdown::Both));
        }
    }
}

impl State {
    fn is(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::Relaxed) == mode as u8
    }

    fn join(self: &Arc<Self>, near: &TcpStream, far: &TcpStream) {
        let copy = |stream: &TcpStream| stream.try_clone().unwrap();
        self.ends.lock().unwrap().extend([copy(near), copy(far)]);
        for (from, to) in [(copy(near), copy(far)), (copy(far), copy(near))] {
            let state = Arc::clone(self);
            thread::spawn(move || state.carry(from, to));
        }
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while self.is(Mode::Stall) {
                thread::sleep(Duration::from_millis(2));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        for end in [from, to] {
            drop(end.shutdown(Shutdown::Both));
        }
    }
}
