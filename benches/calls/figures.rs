//! Numbers as they were measured, and how they are shown.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Memory;

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) paths: Vec<Path>,
    pub(crate) starts: Vec<Start>,
    pub(crate) memory: Vec<(&'static str, Memory)>,
}

/// One way that a call can take; the first is the direct one.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    /// The place of the path that this one is shown next to.
    pub(crate) direct: usize,
    /// How long each call took.
    pub(crate) latencies: Vec<Duration>,
    /// How long its server was on a core for all of them.
    pub(crate) cpu_time: Duration,
    /// Calls in a second, for so many in flight.
    pub(crate) rates: Vec<(usize, Vec<f64>)>,
}

/// One way to start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) name: &'static str,
    pub(crate) times: Vec<Duration>,
}

/// What the latencies of a path come to, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Summary {
    p50: f64,
    p99: f64,
    mean: f64,
    /// On a core, for each call; that is less at the mercy of whatever else runs.
    cpu: f64,
}

impl Path {
    pub(crate) fn new(name: &'static str, direct: usize, in_flight: &[usize]) -> Self {
        let rates = in_flight.iter().map(|count| (*count, Vec::new())).collect();
        Self { name, direct, latencies: Vec::new(), cpu_time: Duration::ZERO, rates }
    }

    fn summary(&self) -> Summary {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let total: f64 = sorted.iter().copied().map(micros).sum();
        let count = as_float(sorted.len().max(1));
        let (mean, cpu) = (total / count, micros(self.cpu_time) / count);
        Summary { p50: quantile(&sorted, 50), p99: quantile(&sorted, 99), mean, cpu }
    }
}

impl Start {
    fn median(&self) -> f64 {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        quantile(&sorted, 50) / 1e3
    }
}

impl Figures {
    fn direct(&self, path: &Path) -> Option<Summary> {
        self.paths.get(path.direct).map(Path::summary)
    }

    /// Returns a table for people.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).unwrap_or_else(|_| unreachable!("a string takes everything"));
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Some(first) = self.paths.first() else { return Ok(()) };
        write!(
            out,
            "{:<32} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "call", "p50 µs", "p99 µs", "mean µs", "CPU µs", "× direct", "+ µs"
        )?;
        for (in_flight, _) in &first.rates {
            write!(out, " {:>10}", format!("/s, {in_flight} at once"))?;
        }
        writeln!(out)?;
        for path in &self.paths {
            let summary @ Summary { p50, p99, mean, cpu } = path.summary();
            let direct = self.direct(path).unwrap_or(summary);
            let (ratio, added) = (p50 / direct.p50, p50 - direct.p50);
            let name = path.name;
            write!(
                out,
                "{name:<32} {p50:>8.1} {p99:>8.1} {mean:>8.1} {cpu:>8.1} {ratio:>8.2} {added:>8.1}"
            )?;
            for (in_flight, rates) in &path.rates {
                let width = format!("/s, {in_flight} at once").len().max(10);
                write!(out, " {:>width$.0}", median(rates))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\n{:<44} {:>9}", "start", "p50 ms")?;
        for start in &self.starts {
            writeln!(out, "{:<44} {:>9.2}", start.name, start.median())?;
        }
        writeln!(out, "\n{:<44} {:>9} {:>9}", "memory", "resident", "private")?;
        for (name, Memory { resident, private }) in &self.memory {
            let (resident, private) = (mebibytes(*resident), mebibytes(*private));
            writeln!(out, "{name:<44} {resident:>5.1} MiB {private:>5.1} MiB")?;
        }
        Ok(())
    }

    /// Returns the same for programs.
    pub(crate) fn json(&self) -> Value {
        let calls = self.paths.iter().map(|path| {
            let Summary { p50, p99, mean, cpu } = path.summary();
            let direct = self.direct(path);
            let rates = path.rates.iter().map(|(in_flight, rates)| {
                json!({"in_flight": in_flight, "calls_per_second": median(rates)})
            });
            json!({
                "name": path.name,
                "calls": path.latencies.len(),
                "p50_us": p50,
                "p99_us": p99,
                "mean_us": mean,
                "cpu_us": cpu,
                "ratio_to_direct": direct.map(|direct| p50 / direct.p50),
                "added_us": direct.map(|direct| p50 - direct.p50),
                "throughput": rates.collect::<Vec<_>>(),
            })
        });
        let starts = self.starts.iter().map(
            |start| json!({"name": start.name, "rounds": start.times.len(), "p50_ms": start.median()}),
        );
        let memory = self.memory.iter().map(|(name, Memory { resident, private })| {
            json!({"name": name, "resident_kib": resident, "private_kib": private})
        });
        json!({
            "calls": calls.collect::<Vec<_>>(),
            "starts": starts.collect::<Vec<_>>(),
            "memory": memory.collect::<Vec<_>>(),
        })
    }
}

/// Returns a quantile in microseconds.
fn quantile(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().map(micros).unwrap_or_default()
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn mebibytes(kib: u64) -> f64 {
    as_float(usize::try_from(kib).unwrap_or(usize::MAX)) / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
fn as_float(count: usize) -> f64 {
    count as f64
}
