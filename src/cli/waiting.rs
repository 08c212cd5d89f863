//! What is waited for while upstream servers start, on the last line of a terminal.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::terminal::{is_capable, printable};
use crate::app::{App, Catalogue};
use crate::shutdown::Signals;

/// How much of the names of those that are waited for is shown.
const CHARS: usize = 50;
/// After how long it is shown again, in case something was written over it.
const EVERY: Duration = Duration::from_secs(1);

/// The line, as long as it is there; a pipe, or a terminal that cannot clear a line, has none.
struct Line {
    shown: Option<Mutex<Vec<String>>>,
}

/// Waits until no source is starting any more; nothing comes of it where a signal ends the wait.
pub(super) async fn settled(app: &App, signals: &mut Signals) -> Option<Arc<Catalogue>> {
    tokio::select! {
        catalogue = shown(app) => Some(catalogue),
        _ = signals.next() => None,
    }
}

/// Waits until no source is starting any more, and shows meanwhile which are.
pub(super) fn shown(app: &App) -> impl Future<Output = Arc<Catalogue>> + Send + use<> {
    let line = Arc::new(Line::begin());
    let tell = Arc::clone(&line);
    let settled = app.watched(move |starting| tell.set(starting));
    async move {
        let mut settled = std::pin::pin!(settled);
        loop {
            tokio::select! {
                catalogue = &mut settled => {
                    line.show(&[]);
                    return catalogue;
                }
                () = tokio::time::sleep(EVERY) => line.again(),
            }
        }
    }
}

impl Line {
    fn begin() -> Self {
        Self { shown: is_capable(&std::io::stderr()).then(Mutex::default) }
    }

    fn set(&self, starting: &[&str]) {
        if let Some(shown) = &self.shown {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            *shown = starting.iter().map(|&name| name.to_owned()).collect();
            self.show(&shown);
        }
    }

    fn again(&self) {
        if let Some(shown) = &self.shown {
            self.show(&shown.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Shows what is waited for; nothing clears the line.
    fn show(&self, starting: &[String]) {
        if self.shown.is_none() {
            return;
        }
        let mut names: String = starting.join(", ").chars().take(CHARS + 1).collect();
        if names.chars().count() > CHARS {
            names.pop();
            names.push('…');
        }
        let line = match starting.len() {
            0 => String::new(),
            count => format!("waiting for {count}: {}", printable(&names)),
        };
        // It is not wrapped, since of several lines only the last one would be cleared. A terminal
        // that is gone is no reason to stop.
        let line = format!("\r\x1b[2K\x1b[?7l{line}\x1b[?7h");
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
}

impl Drop for Line {
    // Whoever stops waiting has something else to say there.
    fn drop(&mut self) {
        self.show(&[]);
    }
}
