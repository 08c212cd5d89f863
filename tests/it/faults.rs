//! Servers that are killed, stopped, hung, restarted and cut off, over and over and by chance: each
//! call gets one answer, nothing is done twice, and nobody else's calls suffer.
//!
//! `IT_FAULTS=SEED:SECONDS` takes another course of as many seconds.

mod client;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use self::client::{Asked, Client};
use self::wire::{Mode, Wire};
use crate::fixture::{Home, eventually};
use crate::process::traces::{Mark, parent};
use crate::remote::Served;
use crate::session::{code, text};

const SEED: u64 = 20_261_201;
const TIME: Duration = Duration::from_secs(16);
/// For how long, of that, nothing goes wrong.
const QUIET: Duration = Duration::from_secs(4);
/// How often each server is called.
const PACE: Duration = Duration::from_millis(150);

/// Servers to which things happen.
const STRUCK: [&str; 5] = ["program", "older", "newer", "oldest", "bare"];
/// Servers to which nothing happens.
const CALM: [&str; 2] = ["calm", "calm_web"];

/// One behind a gateway of its own, for comparison.
const APART: &str = "apart";

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The program is killed, in the middle of whatever it does.
    Kill,
    /// Its guard is killed.
    KillGuard,
    /// It is stopped for a while.
    Stop,
    /// It reads nothing any more, and is killed later.
    Hang,
    /// It ends in the middle of a call.
    Crash,
    /// A server by URL is started anew; it has forgotten its sessions.
    Restart(usize),
    /// Every connection to one is cut.
    Cut(usize),
    /// Nothing gets through to one for a while.
    Stall(usize),
    /// New connections to one are refused for a while.
    Refuse(usize),
    /// A session is forgotten, without a word.
    Forget(usize),
}

/// A course of chance that a number says.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn fault(&mut self) -> Fault {
        let one = usize::try_from(self.below(3)).unwrap();
        let any = usize::try_from(self.below(4)).unwrap();
        match self.below(10) {
            0 => Fault::Kill,
            1 => Fault::KillGuard,
            2 => Fault::Stop,
            3 => Fault::Hang,
            4 => Fault::Crash,
            5 => Fault::Restart(any),
            6 => Fault::Cut(one),
            7 => Fault::Stall(one),
            8 => Fault::Refuse(one),
            _ => Fault::Forget(any),
        }
    }
}

/// Everything there is, and where it can be struck.
struct Stage {
    home: Home,
    mark: Mark,
    /// Those by URL: three behind wires, and a bare one.
    webs: Vec<Web>,
    _calm: Served,
}

struct Web {
    name: &'static str,
    options: Value,
    served: Served,
    wire: Option<Wire>,
}

impl Stage {
    fn new() -> Self {
        let (home, mark) = (Home::new(), Mark::new());
        let web = |name, mut options: Value, path, has_wire| {
            options["tools"] = json!(["work", "forget"]);
            let served = Served::start(&home, options.clone());
            options["port"] = served.port.into();
            let wire: Option<Wire> = Some(served.port).filter(|_| has_wire).map(Wire::to);
            let url = wire.as_ref().map_or_else(|| served.url(path), |wire| wire.url(path));
            (Web { name, options, served, wire }, url)
        };
        let made = [
            web("older", json!({"standing": true}), "/mcp", true),
            web("newer", json!({"era": "modern"}), "/mcp", true),
            web("oldest", json!({"transport": "sse"}), "/sse", true),
            web("bare", json!({}), "/mcp", false),
        ];
        let calm = Served::start(&home, json!({"tools": ["work"]}));
        let mut program = home.server(json!({"tools": ["work", "deafen", "crash"]}));
        program["env"] = json!({"MARK": mark.to_string()});
        let mut servers = json!({ "program": program });
        let mut webs = Vec::new();
        for (web, url) in made {
            servers[web.name] = json!({ "url": url });
            webs.push(web);
        }
        servers["oldest"]["type"] = "sse".into();
        for server in servers.as_object_mut().unwrap().values_mut() {
            server["tool_timeout_sec"] = 2.into();
        }
        servers["calm"] = home.server(json!({"tools": ["work"]}));
        servers["calm_web"] = json!({"url": calm.url("/mcp")});
        home.serve(servers);
        Self { home, mark, webs, _calm: calm }
    }

    /// Returns the program that is struck; none while it starts.
    fn program(&self) -> Option<Pid> {
        let is_program = |pid: &i32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("upstream.py")
                && !line.contains("__guard")
                && !line.contains("__trampoline")
        };
        self.mark.bearers().into_iter().find(is_program).map(Pid::from_raw)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.program() {
            // It may have ended just now.
            let _gone = kill(pid, signal);
        }
    }

    fn strike(&mut self, fault: Fault, client: &Client, chance: &mut Chance) {
        match fault {
            Fault::Kill => self.signal(Signal::SIGKILL),
            Fault::KillGuard => {
                let guard = self.program().and_then(|pid| parent(pid.as_raw()));
                // Below the gateway itself only a guard is.
                if let Some(guard) =
                    guard.filter(|guard| parent(*guard) == Some(client.pid().as_raw()))
                {
                    let _gone = kill(Pid::from_raw(guard), Signal::SIGKILL);
                }
            }
            Fault::Stop => {
                self.signal(Signal::SIGSTOP);
                sleep(chance.ms(50, 3000));
                self.signal(Signal::SIGCONT);
            }
            Fault::Hang => {
                client.call("program", "deafen");
                sleep(chance.ms(50, 3000));
                self.signal(Signal::SIGKILL);
            }
            Fault::Crash => client.call("program", "crash"),
            Fault::Restart(web) => {
                let web = &mut self.webs[web];
                web.served.stop();
                sleep(chance.ms(0, 500));
                web.served = Served::start(&self.home, web.options.clone());
            }
            Fault::Cut(web) => self.wire(web).cut(),
            Fault::Stall(web) => {
                self.wire(web).set(Mode::Stall);
                sleep(chance.ms(50, 3000));
                // Some of what had to wait never comes.
                if chance.below(2) == 0 {
                    self.wire(web).cut();
                }
                self.wire(web).set(Mode::Flow);
            }
            Fault::Refuse(web) => {
                self.wire(web).set(Mode::Refuse);
                self.wire(web).cut();
                sleep(chance.ms(50, 1000));
                self.wire(web).set(Mode::Flow);
            }
            Fault::Forget(web) => client.call(self.webs[web].name, "forget"),
        }
    }

    fn wire(&self, web: usize) -> &Wire {
        self.webs[web].wire.as_ref().unwrap()
    }
}

/// Calls one server again and again until it is over.
fn load(server: &str, client: &Client, quiet: &AtomicBool, over: &AtomicBool) {
    let mut chance = Chance(SEED + u64::try_from(server.len()).unwrap());
    for number in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        client.work(server, number, chance.below(40), quiet.load(Ordering::Relaxed));
        sleep(PACE);
    }
}

fn course() -> (u64, Duration) {
    let Ok(course) = std::env::var("IT_FAULTS") else { return (SEED, TIME) };
    let (seed, seconds) = course.split_once(':').expect("SEED:SECONDS");
    (seed.parse().unwrap(), Duration::from_secs(seconds.parse().unwrap()))
}

#[test]
fn whatever_happens_each_call_has_one_answer_and_nothing_is_done_twice() {
    let mut stage = Stage::new();
    let client = Client::start(&stage.home.arguments(), &stage.home.path("log"));
    client.initialize(3 + 2 * 4 + CALM.len());
    // What this machine does to calls while servers start and die, but to no gateway of theirs.
    let apart = Home::new();
    apart.serve(json!({APART: apart.server(json!({"tools": ["work"]}))}));
    let other = Client::start(&apart.arguments(), &apart.path("log"));
    other.initialize(1);
    let (seed, time) = course();
    let (mut chance, mut faults) = (Chance(seed), BTreeMap::new());
    let (quiet, over) = (AtomicBool::new(true), AtomicBool::new(false));
    thread::scope(|scope| {
        let (quiet, over) = (&quiet, &over);
        for server in STRUCK.into_iter().chain(CALM) {
            let client = &client;
            scope.spawn(move || load(server, client, quiet, over));
        }
        scope.spawn(|| load(APART, &other, quiet, over));
        sleep(QUIET);
        quiet.store(false, Ordering::Relaxed);
        let began = Instant::now();
        while began.elapsed() + QUIET < time {
            let fault = chance.fault();
            *faults.entry(format!("{fault:?}")).or_insert(0) += 1;
            stage.strike(fault, &client, &mut chance);
            sleep(chance.ms(50, 400));
        }
        over.store(true, Ordering::Relaxed);
    });
    eventually("every call has its answer", || client.is_all_answered());
    let (asked, others) = (client.end(), other.end());
    println!("seed {seed}, {time:?}, faults {faults:?}");
    println!("{}{}", figures(&asked), figures(&others));
    check(&stage.home, &asked);
    stage.mark.vanishes();
}

/// Holds every answer against the ledger of what was done.
fn check(home: &Home, asked: &[Asked]) {
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    let ledger = home.ledger();
    for id in ledger.iter().filter_map(|line| line.strip_prefix("run ")) {
        *done.entry(id).or_default() += 1;
    }
    for Asked { server, id, answers, .. } in asked {
        let of = format!("{server} {id:?}: {answers:?}");
        assert_eq!(answers.len(), 1, "one answer: {of}");
        assert!(answers[0].1.get("error").is_none(), "{of}");
        let Some(id) = id else { continue };
        let (result, times) =
            (&answers[0].1["result"], done.get(id.as_str()).copied().unwrap_or(0));
        if result["isError"] != true {
            assert_eq!((text(result), times), (id.as_str(), 1), "done once, and said: {of}");
            continue;
        }
        assert!(!CALM.contains(&server.as_str()), "nothing happened to it: {of}");
        match code(result) {
            "TOOL_OUTCOME_UNKNOWN" => assert!(times <= 1, "done {times} times: {of}"),
            "MCP_CALL_FAILED" => assert_eq!(times, 0, "done, and said not to be: {of}"),
            _ => panic!("{of}"),
        }
    }
}

/// Tells, for each server, what came of its calls and how long the answers took.
fn figures(asked: &[Asked]) -> String {
    let mut said = String::new();
    for server in STRUCK.into_iter().chain(CALM).chain([APART]) {
        for quiet in [true, false] {
            if !asked.iter().any(|one| one.server == server) {
                continue;
            }
            let (mut outcomes, mut times) = (BTreeMap::new(), Vec::new());
            for one in asked
                .iter()
                .filter(|one| one.server == server && one.id.is_some() && one.quiet == quiet)
            {
                for (took, answer) in &one.answers {
                    let result = &answer["result"];
                    let outcome = result["_meta"]["iris/result"]["code"].as_str().unwrap_or("OK");
                    *outcomes.entry(outcome).or_insert(0) += 1;
                    times.push(*took);
                }
            }
            times.sort_unstable();
            let at = |percent: usize| {
                times.get(times.len() * percent / 100).copied().unwrap_or_default()
            };
            let when = if quiet { "quiet " } else { "struck" };
            writeln!(said, "{server:8} {when} p50 {:.1?} p99 {:.1?} {outcomes:?}", at(50), at(99))
                .unwrap();
        }
    }
    said
}
