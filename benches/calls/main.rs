//! What a call through the gateway costs, next to the same call without it.
//!
//! `cargo bench --bench calls` prints a table, `-- --json` the same for programs. What is compared
//! is measured in turns, a block of each, so that whatever else the machine does falls on all alike.
//! Nothing here passes or fails by time.

mod figures;
mod gateway;
mod http;
mod message;
mod pipe;
mod upstream;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use self::figures::{Figures, Path, Start};
use self::gateway::{Setup, cpu_time, direct, guard_of, memory};
use self::http::Http;
use self::message::{Call, LEGACY, MODERN};
use self::pipe::Pipe;

/// How many calls of a path are made before it is another's turn.
const BLOCK: usize = 100;
/// How many calls are under way at once where calls in a second are counted.
const IN_FLIGHT: [usize; 3] = [1, 8, 64];
/// The part of the calls that large results get.
const LARGE_SHARE: usize = 50;
/// The place of the direct one among the routes with a large result.
const DIRECT_LARGE: usize = 7;
/// How often calls in a second are counted.
const RATE_ROUNDS: usize = 5;

const USAGE: &str = "usage: cargo bench --bench calls -- [--json] [--calls COUNT] [--starts COUNT]
       [--only TEXT] [--gateway FILE]

  --json          print JSON instead of a table
  --calls COUNT   calls of each kind (5000)
  --starts COUNT  starts of each kind (50)
  --only TEXT     leave out the calls whose name does not contain TEXT
  --gateway FILE  measure this program instead of the one that was built with the benchmark";

struct Options {
    json: bool,
    calls: usize,
    starts: usize,
    only: String,
    gateway: PathBuf,
}

/// The way to a server.
enum Link {
    Pipe(Box<Pipe>),
    Http(Http),
}

/// One way that a call can take.
struct Route {
    path: Path,
    server: usize,
    call: Call,
    /// It gets this part of the calls.
    share: usize,
}

/// The process id of a server and the way to it.
struct Server(u32, Link);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(upstream::ROLE) {
        return match upstream::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let Some(options) = options(std::env::args().skip(1)) else {
        print(USAGE);
        return ExitCode::from(2);
    };
    // One thread, so that the client leaves the other cores to what it measures.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.and_then(|runtime| runtime.block_on(measure(&options)));
    match measured {
        Ok(figures) if options.json => print(&format!("{:#}", figures.json())),
        Ok(figures) => print(&figures.table()),
        Err(error) => {
            print(&format!("error: {error}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let gateway = PathBuf::from(env!("CARGO_BIN_EXE_iris-mcp"));
    let mut options =
        Options { json: false, calls: 5_000, starts: 50, only: String::new(), gateway };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--json" => options.json = true,
            "--calls" => options.calls = args.next()?.parse().ok()?,
            "--starts" => options.starts = args.next()?.parse().ok()?,
            "--only" => options.only = args.next()?,
            "--gateway" => options.gateway = args.next()?.into(),
            _ => return None,
        }
    }
    Some(options)
}

async fn measure(options: &Options) -> io::Result<Figures> {
    let setup = Setup::new(options.gateway.canonicalize()?)?;
    let mut figures =
        Figures { starts: starts(&setup, options.starts).await?, ..Figures::default() };

    let mut alone = Pipe::start(direct()?)?;
    let mut stdio = Pipe::start(setup.with_upstream())?;
    for pipe in [&mut alone, &mut stdio] {
        pipe.initialize().await?;
        pipe.list().await?;
    }
    let served = setup.over_http().await?;
    let (over_stdio, over_http) = (stdio.pid(), served.pid());
    figures.memory.push(("gateway over stdio, idle", memory(over_stdio)?));
    figures.memory.push(("gateway over HTTP, idle", memory(over_http)?));
    let mut servers = [
        Server(alone.pid(), Link::Pipe(Box::new(alone))),
        Server(over_stdio, Link::Pipe(Box::new(stdio))),
        Server(over_http, Link::Http(Http::modern(&served.address).await?)),
        Server(over_http, Link::Http(Http::legacy(&served.address).await?)),
    ];
    let mut routes = routes();
    // All else is shown next to the first.
    let is_wanted = |route: &Route| route.server == 0 || route.path.name.contains(&options.only);
    routes.retain(is_wanted);
    let direct_large = routes.iter().rposition(|route| route.server == 0).unwrap_or_default();
    for route in routes.iter_mut().filter(|route| route.path.direct > 0) {
        route.path.direct = direct_large;
    }

    latencies(&mut servers, &mut routes, options.calls).await?;
    figures.memory.push(("gateway over stdio, after the calls", memory(over_stdio)?));
    figures.memory.push(("gateway over HTTP, after the calls", memory(over_http)?));
    rates(&mut servers, &mut routes, options.calls).await?;
    figures.memory.push(("gateway over stdio, after the load", memory(over_stdio)?));
    figures.memory.push(("gateway over HTTP, after the load", memory(over_http)?));
    figures.memory.push(("guard of one upstream", memory(guard_of(over_stdio)?)?));
    figures.paths = routes.into_iter().map(|route| route.path).collect();
    Ok(figures)
}

fn routes() -> Vec<Route> {
    let route =
        |name, server, call| Route { path: Path::new(name, 0, &IN_FLIGHT), server, call, share: 1 };
    // The first of them is what the others are shown next to.
    let large = |name, server, call| Route {
        path: Path::new(name, DIRECT_LARGE, &IN_FLIGHT),
        server,
        call,
        share: LARGE_SHARE,
    };
    let echo = |version| Call::echo("mcp__bench__echo", version);
    let blob = |version| Call::large("mcp__bench__large", version);
    vec![
        route("direct, stdio", 0, Call::echo("echo", LEGACY)),
        route("stdio, built-in", 1, Call::nothing(LEGACY)),
        route("stdio, proxied", 1, echo(LEGACY)),
        route("HTTP 2026-07-28, built-in", 2, Call::nothing(MODERN)),
        route("HTTP 2026-07-28, proxied", 2, echo(MODERN)),
        route("HTTP 2025-11-25, built-in", 3, Call::nothing(LEGACY)),
        route("HTTP 2025-11-25, proxied", 3, echo(LEGACY)),
        large("direct, stdio, 1 MiB", 0, Call::large("large", LEGACY)),
        large("stdio, proxied, 1 MiB", 1, blob(LEGACY)),
        large("HTTP 2026-07-28, proxied, 1 MiB", 2, blob(MODERN)),
        large("HTTP 2025-11-25, proxied, 1 MiB", 3, blob(LEGACY)),
    ]
}

/// Starts servers, in turns.
async fn starts(setup: &Setup, rounds: usize) -> io::Result<Vec<Start>> {
    let names = [
        "upstream alone, to initialize",
        "gateway, no upstream, to initialize",
        "gateway, one upstream, to initialize",
        "gateway, one upstream, to its list of tools",
    ];
    let mut starts = names.map(|name| Start { name, times: Vec::new() });
    for _ in 0..rounds {
        for (index, command) in
            [direct()?, setup.alone(), setup.with_upstream()].into_iter().enumerate()
        {
            let began = Instant::now();
            let mut pipe = Pipe::start(command)?;
            pipe.initialize().await?;
            starts[index].times.push(began.elapsed());
            if index == 2 {
                pipe.list().await?;
                starts[3].times.push(began.elapsed());
            }
            pipe.end().await?;
        }
    }
    Ok(starts.into())
}

/// Measures single calls, one after the other.
async fn latencies(servers: &mut [Server], routes: &mut [Route], count: usize) -> io::Result<()> {
    for Route { server, call, share, .. } in &*routes {
        servers[*server].1.calls(call, BLOCK / share, 1).await?;
    }
    for _ in 0..count.div_ceil(BLOCK) {
        for Route { path, server, call, share } in &mut *routes {
            let before = cpu_time(servers[*server].0)?;
            for _ in 0..BLOCK / *share {
                let began = Instant::now();
                servers[*server].1.calls(call, 1, 1).await?;
                path.latencies.push(began.elapsed());
            }
            path.cpu_time += cpu_time(servers[*server].0)?.saturating_sub(before);
        }
    }
    Ok(())
}

/// Counts calls in a second.
async fn rates(servers: &mut [Server], routes: &mut [Route], count: usize) -> io::Result<()> {
    // The same for each connection.
    let count = (count / RATE_ROUNDS).next_multiple_of(64);
    for _ in 0..RATE_ROUNDS {
        for Route { path, server, call, share } in &mut *routes {
            let count = (count / *share).next_multiple_of(64);
            for (in_flight, rates) in &mut path.rates {
                let began = Instant::now();
                servers[*server].1.calls(call, count, *in_flight).await?;
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                rates.push(f64::from(count) / began.elapsed().as_secs_f64());
            }
        }
    }
    Ok(())
}

impl Link {
    async fn calls(&mut self, call: &Call, count: usize, in_flight: usize) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.calls(call, count, in_flight).await,
            Self::Http(http) => http.calls(call, count, in_flight).await,
        }
    }
}

#[expect(clippy::print_stdout, reason = "this is what a person at a terminal reads")]
fn print(text: &str) {
    println!("{text}");
}
