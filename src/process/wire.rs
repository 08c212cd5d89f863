//! What the gateway and a guard tell each other over their socket; no I/O.
//!
//! Both ends are the same binary, so there is no version and no negotiation.

/// The size of every [`Report`].
pub(super) const REPORT_BYTES: usize = 5;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned this exit code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its guard was killed, so nobody saw how it ended.
    Lost,
}

impl Exit {
    /// Reports whether the child returned exit code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match nix::sys::signal::Signal::try_from(*number) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
            Self::Lost => f.write_str("killed together with its guard"),
        }
    }
}

/// What a guard tells the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The program runs under this process id.
    Started(i32),
    /// The trampoline could not be started: an errno.
    NotForked(i32),
    /// The trampoline could not become the program: an errno.
    NotExecuted(i32),
    /// The program returned this exit code; others that it started may still run.
    Exited(i32),
    /// This signal ended the program; others that it started may still run.
    Signalled(i32),
}

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT_BYTES] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'+', pid),
            Self::NotForked(errno) => (b'f', errno),
            Self::NotExecuted(errno) => (b'x', errno),
            Self::Exited(code) => (b'e', code),
            Self::Signalled(number) => (b's', number),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode(frame: [u8; REPORT_BYTES]) -> Option<Self> {
        let [tag, a, b, c, d] = frame;
        let value = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'+' => Some(Self::Started(value)),
            b'f' => Some(Self::NotForked(value)),
            b'x' => Some(Self::NotExecuted(value)),
            b'e' => Some(Self::Exited(value)),
            b's' => Some(Self::Signalled(value)),
            _ => None,
        }
    }
}

/// What the gateway tells a guard, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Ask every descendant to end.
    Terminate,
    /// Kill every descendant.
    Kill,
}

impl Order {
    pub(super) fn encode(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::Kill => b'k',
        }
    }

    pub(super) fn decode(byte: u8) -> Option<Self> {
        match byte {
            b't' => Some(Self::Terminate),
            b'k' => Some(Self::Kill),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, Order, Report};

    #[test]
    fn what_is_told_is_what_is_heard() {
        for report in [
            Report::Started(4_194_304),
            Report::NotForked(11),
            Report::NotExecuted(8),
            Report::Exited(255),
            Report::Signalled(9),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        for order in [Order::Terminate, Order::Kill] {
            assert_eq!(Order::decode(order.encode()), Some(order));
        }
    }

    #[test]
    fn noise_is_nothing() {
        assert_eq!(Report::decode(*b"hello"), None);
        assert_eq!(Order::decode(b'\n'), None);
    }

    #[test]
    fn an_exit_reads_like_one() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(15).to_string(), "SIGTERM");
        assert_eq!(Exit::Signal(64).to_string(), "signal 64");
        assert!(Exit::Code(0).success() && !Exit::Lost.success());
    }
}
