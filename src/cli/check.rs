//! `check`: starts everything and says what works, what does not, and what is said in vain.

use clap::Args;

use super::flags::Flags;
use super::terminal::{has_colours, print_verdict, printable};
use super::{CliError, Exit, prepare, waiting};
use crate::app::App;
use crate::app::check::{Check as Found, Cost, Said, Server, Skills};
use crate::process;
use crate::shutdown::signals;

#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    flags: Flags,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Where a text goes: with colours, or without.
#[derive(Clone, Copy, Debug)]
struct Paint {
    colours: bool,
}

impl Check {
    pub(super) async fn run(self) -> Result<Exit, CliError> {
        let mut signals = signals()?;
        let _subreaper = process::become_subreaper();
        let (mut config, processes) = prepare(self.flags, None)?;
        let said = Said::of(&mut config);
        let app = App::start(config, processes).await?;
        let settled = waiting::settled(&app, &mut signals).await;
        let found = settled.map(|catalogue| app.check(said, &catalogue));
        let written = found.as_ref().map(|found| {
            let text = if self.json { as_json(found) } else { as_text(found, Paint::of_stdout()) };
            print_verdict(text)
        });
        app.end().await;
        match (found, written) {
            (None, _) => Ok(Exit::Cancelled),
            (_, Some(Err(error))) => Err(error.into()),
            (Some(found), _) => Ok(if found.ok { Exit::Ok } else { Exit::Failed }),
        }
    }
}

fn as_json(found: &Found) -> String {
    let json = serde_json::to_value(found).unwrap_or_default();
    format!("{json:#}\n")
}

fn as_text(found: &Found, paint: Paint) -> String {
    let mut lines = Vec::new();
    for server in &found.servers {
        add_server(server, paint, &mut lines);
    }
    if let Some(skills) = &found.skills {
        add_skills(skills, paint, &mut lines);
    }
    for missing in found.not_built.iter().chain(&found.never_found) {
        lines.push(format!("{} {}", paint.bad("failed"), printable(missing)));
    }
    if let Some(unkept) = &found.unkept {
        lines.push(format!("{} {}", paint.bad("failed"), printable(unkept)));
    }
    let named = [
        ("switched off", &found.disabled),
        ("own tools", &found.own_tools),
        ("hooks", &found.hooks),
        ("not used here, in the agent file", &found.not_used),
    ];
    for (what, names) in named.into_iter().filter(|(_, names)| !names.is_empty()) {
        lines.push(format!("{what}: {}", printable(&names.join(", "))));
    }
    for renamed in &found.renamed {
        let line = format!("{}: {}", renamed.canonical, renamed.message);
        lines.push(paint.warning(&printable(&line)));
    }
    for idle in &found.idle {
        let line = format!("{}: `{}` concerns nothing there is", idle.setting, idle.value);
        lines.push(match &idle.problem {
            Some(problem) => format!("{} {}", paint.bad("failed"), printable(problem)),
            None => paint.warning(&printable(&line)),
        });
    }
    let Cost { bytes, .. } = found.listed;
    lines.push(format!("clients see {}, {bytes} bytes", cost(found.listed)));
    if found.deferred.tools > found.never_found.len() {
        let Cost { bytes, .. } = found.deferred;
        let found = cost(found.deferred);
        lines.push(format!("not listed, but found by tool_search: {found}, {bytes} bytes"));
    }
    lines.push(match found.problems.len() {
        0 => paint.good("no problems"),
        1 => paint.bad("1 problem"),
        count => paint.bad(&format!("{count} problems")),
    });
    lines.join("\n") + "\n"
}

fn add_server(server: &Server, paint: Paint, lines: &mut Vec<String>) {
    let state = match &server.error {
        None => paint.good("ready "),
        Some(_) => paint.bad("failed"),
    };
    let mut parts = Vec::new();
    if server.error.is_none() {
        parts.extend(match (server.listed.tools, server.deferred.tools) {
            (_, 0) => vec![cost(server.listed)],
            (0, _) => vec![format!("{}, not listed", cost(server.deferred))],
            _ => vec![cost(server.listed), format!("{} more, not listed", cost(server.deferred))],
        });
    }
    if let (Some(era), Some(version)) = (server.era, &server.protocol) {
        parts.push(format!("{version} ({era})"));
    }
    parts.extend(place(server));
    if server.scope == Some("per_client") {
        parts.push("per client".to_owned());
    }
    if server.required == Some(false) {
        parts.push("not required".to_owned());
    }
    parts.extend(server.error.clone());
    let (name, parts) = (printable(&server.name), printable(&parts.join("; ")));
    lines.push(format!("{state} {name}: {parts}"));
    lines.extend(server.stderr.iter().map(|said| format!("       | {}", printable(said))));
    // What is wrong with the entry of a server is the reason already.
    let told = server.diagnostics.iter().filter(|_| server.transport.is_some());
    lines.extend(told.map(|diagnostic| {
        let wire_name = diagnostic.wire_name.as_ref().map(|name| format!("{name}: "));
        let line = format!("{}{}", wire_name.unwrap_or_default(), diagnostic.message);
        format!("       {}", paint.warning(&printable(&line)))
    }));
    lines.extend(
        server
            .beyond_reason()
            .map(|part| format!("       {}", paint.warning(&printable(&part.to_string())))),
    );
}

fn add_skills(skills: &Skills, paint: Paint, lines: &mut Vec<String>) {
    let names: Vec<&str> = skills.there.iter().map(|skill| skill.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    lines.push(match &skills.error {
        None => format!("{} skills: {}", paint.good("ready "), printable(&names)),
        Some(error) => format!("{} skills: {}", paint.bad("failed"), printable(error)),
    });
    lines.extend(skills.diagnostics.iter().map(|said| {
        let name = said.diagnostic.wire_name.as_ref().map(|name| format!("{name}: "));
        let place = said.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let line = format!("{}{}{place}", name.unwrap_or_default(), said.diagnostic.message);
        format!("       {}", paint.warning(&printable(&line)))
    }));
}

fn place(server: &Server) -> Option<String> {
    match (&server.command, &server.program, &server.url) {
        (Some(command), Some(program), _) if program.as_os_str() != command.as_str() => {
            Some(format!("{command} ({})", program.display()))
        }
        (Some(command), _, _) => Some(command.clone()),
        (None, _, url) => {
            let proxy = server.proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}"));
            url.as_ref().map(|url| format!("{url}{}", proxy.unwrap_or_default()))
        }
    }
}

fn cost(cost: Cost) -> String {
    let Cost { tools, tokens, .. } = cost;
    let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    format!("{tools}, about {tokens} tokens")
}

impl Paint {
    fn of_stdout() -> Self {
        Self { colours: has_colours(&std::io::stdout()) }
    }

    fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    fn warning(self, text: &str) -> String {
        self.with("33", text)
    }

    fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    fn with(self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
