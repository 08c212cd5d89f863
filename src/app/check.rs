//! What `check` finds: every server, what became of its tools, and what is said and does nothing.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::App;
use crate::config::Config;
use crate::exposure::names::{Names, Renamed};
use crate::exposure::surface::BYTES_A_TOKEN;
use crate::permission::FORBID;
use crate::registry::view::View;
use crate::registry::{Catalogue, Cause, Diagnostic, SourceStatus, State};
use crate::server::list;
use crate::source::skill;
use crate::source::upstream::about::{About, Reached};
use crate::source::upstream::clients::Scope;
use crate::tool::suffix::worded;
use crate::tool::{Tool, ToolDefinition};

/// What the settings say, as far as it can turn out to mean nothing.
#[derive(Clone, Debug)]
pub struct Said {
    not_used: Vec<String>,
    not_built: Vec<String>,
    disabled: Vec<String>,
    /// Servers with a section of their own.
    operator: Vec<String>,
    view: View,
}

/// All that was found. Its fields are what `check --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// The upstream servers, in their order.
    pub servers: Vec<Server>,
    /// Those that are switched off.
    pub disabled: Vec<String>,
    /// The skills, unless they are off.
    pub skills: Option<Skills>,
    /// Our own tools that clients see.
    pub own_tools: Vec<String>,
    /// The hooks, in order, each with its event.
    pub hooks: Vec<String>,
    /// What the list of all tools costs a model.
    pub listed: Cost,
    /// What those tools would cost that are not listed, since they are found by a search.
    pub deferred: Cost,
    /// The tools that clients see under another name than they would have.
    pub renamed: Vec<Other>,
    /// Keys of the agent file that a tool server has no use for.
    pub not_used: Vec<String>,
    /// What the agent file turns on and this version does not have.
    pub not_built: Vec<String>,
    /// Why long results, images and files cannot be kept; none where they can.
    pub unkept: Option<String>,
    /// The tools that nobody can find, one sentence each.
    pub never_found: Vec<String>,
    /// Settings that concern nothing there is.
    pub idle: Vec<Idle>,
}

/// One upstream server.
#[derive(Clone, Debug, Serialize)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// `ready` or `failed`.
    pub state: &'static str,
    /// Whether its failure can end a run; none where its entry could not be read.
    pub required: Option<bool>,
    /// `stdio`, `streamable-http` or `sse`.
    pub transport: Option<&'static str>,
    /// The command as it is written, without arguments.
    pub command: Option<String>,
    /// The file that the command means.
    pub program: Option<PathBuf>,
    /// The URL as it is written, without user and query.
    pub url: Option<String>,
    /// The proxy that it is reached through.
    pub proxy: Option<String>,
    /// `shared` or `per_client`.
    pub scope: Option<&'static str>,
    /// `modern` or `legacy`.
    pub era: Option<&'static str>,
    /// The version of the protocol that is spoken.
    pub protocol: Option<String>,
    /// What its tools in the list cost.
    pub listed: Cost,
    /// What its other tools would cost there.
    pub deferred: Cost,
    /// Why it failed.
    pub error: Option<String>,
    /// What it wrote before it failed, to standard error or else to standard output.
    pub stderr: Vec<String>,
    /// What was left out, renamed or put right.
    pub diagnostics: Vec<Diagnostic>,
}

/// The skills of the workspace.
#[derive(Clone, Debug, Serialize)]
pub struct Skills {
    /// Those that can be loaded.
    pub there: Vec<skill::About>,
    /// Which one is missing that must be there.
    pub error: Option<String>,
    /// What was left out, and what is odd.
    pub diagnostics: Vec<Placed>,
}

/// A diagnostic with the file that it is about.
#[derive(Clone, Debug, Serialize)]
pub struct Placed {
    /// What is wrong.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// Where, as file, line and column as far as that is known.
    pub place: Option<String>,
}

/// What a list of tools costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// How many tools are in it.
    pub tools: usize,
    /// Their bytes in the list.
    pub bytes: usize,
    /// About how many tokens that is.
    pub tokens: usize,
}

/// The tools that clients see, those that they have to search for, and what they call them.
#[derive(Clone, Copy)]
struct Lists<'a> {
    listed: &'a [Arc<dyn Tool>],
    deferred: &'a [Arc<dyn Tool>],
    names: &'a Names,
}

/// A tool that clients see under another name than it would have.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    /// Its canonical name.
    pub canonical: String,
    /// The name that clients see.
    pub name: String,
    /// Why.
    pub message: String,
}

/// A setting that concerns nothing there is.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    /// The setting.
    pub setting: String,
    /// What it names.
    pub value: String,
    /// What is wrong, where a person believes that it keeps something away.
    #[serde(skip)]
    pub problem: Option<String>,
}

impl Said {
    /// Notes what the settings say, before a run takes them.
    ///
    /// What this version does not have is taken out of them, so that the rest can be started.
    pub fn of(config: &mut Config) -> Self {
        let not_built = std::mem::take(&mut config.not_built);
        let Config { upstream, exposure, not_used, .. } = config;
        Self {
            not_used: not_used.clone(),
            not_built: not_built.iter().map(ToString::to_string).collect(),
            disabled: upstream.loaded.disabled.clone(),
            operator: upstream.operator.keys().cloned().collect(),
            view: exposure.view.clone(),
        }
    }
}

impl App {
    /// Says what became of everything that was said; for when no source is starting any more.
    pub fn check(&self, said: Said, catalogue: &Catalogue) -> Check {
        let (tools, names) = (self.visible(catalogue), self.names(catalogue));
        let hidden =
            |tool: &Arc<dyn Tool>| self.exposure().is_deferred(catalogue, tool.definition());
        let mut deferred = self.exposure().all(catalogue);
        deferred.retain(hidden);
        let lists = Lists { listed: &tools, deferred: &deferred, names: &names };
        let of_skills = self.sources.of_skills(catalogue);
        let servers = servers(&self.sources.upstreams.about(), catalogue, lists, of_skills);
        let own = tools.iter().map(|tool| tool.definition()).filter(|tool| tool.origin.is_none());
        let own_tools = own.map(|tool| names.wire(tool).to_owned()).collect();
        let mut problems = said.not_built.clone();
        problems.extend(servers.iter().filter_map(problem));
        problems.extend(servers.iter().flat_map(Server::beyond_reason).map(ToString::to_string));
        let skills = of_skills.map(|source| skills(self.skills(), source));
        let missing = skills.iter().filter_map(|skills| skills.error.as_ref());
        problems.extend(missing.map(|error| format!("{} failed: {error}", skill::SOURCE)));
        let idle = self.idle(&said, &servers, catalogue);
        problems.extend(idle.iter().filter_map(|idle| idle.problem.clone()));
        problems.extend(servers.iter().flat_map(misspelt));
        let lost = deferred.iter().filter(|_| self.exposure().searches_nothing());
        let never_found: Vec<String> = lost.map(|tool| never_found(tool.definition())).collect();
        problems.extend(never_found.clone());
        let unkept = self.unkept();
        problems.extend(unkept.clone());
        Check {
            ok: problems.is_empty(),
            problems,
            never_found,
            idle,
            servers,
            disabled: said.disabled,
            skills,
            own_tools,
            hooks: self.hooks(),
            listed: cost(&tools, &names),
            deferred: cost(&deferred, &names),
            renamed: names.renamed().iter().map(other).collect(),
            not_used: said.not_used,
            not_built: said.not_built,
            unkept,
        }
    }

    fn idle(&self, said: &Said, servers: &[Server], catalogue: &Catalogue) -> Vec<Idle> {
        let rules = self.idle_rules(catalogue).into_iter();
        let rules = rules.map(|idle| match idle.flag {
            FORBID => Idle::in_vain(FORBID, &idle.glob, &said.disabled),
            flag => Idle::of(flag, &idle.glob),
        });
        let View { include_groups, allow, deny } = &said.view;
        let definitions = || catalogue.tools().iter().map(|tool| tool.definition());
        let spellings = || definitions().flat_map(ToolDefinition::spellings);
        let allow = allow.unused(spellings()).into_iter().map(|glob| Idle::of("view.allow", glob));
        let deny = deny.unused(spellings()).into_iter();
        let deny = deny.map(|glob| Idle::in_vain("view.deny", glob, &said.disabled));
        let is_group = |name: &&String| definitions().any(|tool| tool.group == **name);
        let groups = include_groups.iter().flatten().filter(|name| !is_group(name));
        let groups = groups.map(|name| Idle::of("view.include_groups", name));
        let is_server = |name: &String| {
            said.disabled.contains(name) || servers.iter().any(|server| server.name == *name)
        };
        let operator = said.operator.iter().filter(|name| !is_server(name));
        let operator = operator.map(|name| Idle::of("upstream", name));
        let names = self.names(catalogue);
        let is_called = |name: &str| {
            spellings().any(|spelling| spelling == name)
                || definitions().any(|tool| names.wire(tool) == name)
        };
        let hooks = self.extensions.hooks.filters().filter(|(_, tool)| !is_called(tool));
        let hooks = hooks.map(|(hook, tool)| {
            Idle::in_vain(&format!("hooks, {hook}: tools"), tool, &said.disabled)
        });
        rules.chain(groups).chain(allow).chain(deny).chain(operator).chain(hooks).collect()
    }
}

fn never_found(definition: &ToolDefinition) -> String {
    format!(
        "the tool `{0}` has to be searched for (`deferred`), and nothing can be: set `context_policy.deferred_tools: true` in the agent file or `--defer auto`, or list it with view.allow",
        definition.name
    )
}

impl Idle {
    fn of(setting: &str, value: &str) -> Self {
        Self { setting: setting.to_owned(), value: value.to_owned(), problem: None }
    }

    /// Makes one that keeps nothing away, unless it may be meant for what is switched off.
    fn in_vain(setting: &str, value: &str, disabled: &[String]) -> Self {
        let is_for_later =
            |server: &String| value.contains(server.as_str()) || value.contains(&worded(server));
        let problem = (!disabled.iter().any(is_for_later))
            .then(|| format!("{setting}: `{value}` matches no tool, so it keeps nothing away"));
        Self { problem, ..Self::of(setting, value) }
    }
}

fn servers(
    about: &[About],
    catalogue: &Catalogue,
    lists: Lists<'_>,
    of_skills: Option<&SourceStatus>,
) -> Vec<Server> {
    // What is ours has no server of its own, and comes before every one that might be called so.
    let source = |name: &str| catalogue.sources().iter().rev().find(|one| one.source == name);
    let known = about.iter().filter_map(|about| {
        let is_its = |tool: &ToolDefinition| {
            tool.origin.as_ref().is_some_and(|it| it.server == about.server)
        };
        let costs = [lists.listed, lists.deferred].map(|tools| {
            let its = tools.iter().filter(|tool| is_its(tool.definition())).cloned();
            cost(&its.collect::<Vec<_>>(), lists.names)
        });
        Some(server(about, source(&about.server)?, costs))
    });
    let unread = catalogue.sources().iter().filter(|source| {
        matches!(source.state, State::Failed(_))
            && of_skills.is_none_or(|skills| !std::ptr::eq(skills, *source))
            && !about.iter().any(|about| about.server == source.source)
    });
    known.chain(unread.map(unreadable)).collect()
}

/// Describes the skills that there are, and what is wrong with others.
fn skills(there: Vec<skill::About>, source: &SourceStatus) -> Skills {
    let placed = |said: &Diagnostic| Placed { diagnostic: said.clone(), place: said.place.clone() };
    let error = match &source.state {
        State::Failed(cause) => Some(cause.to_string()),
        State::Starting | State::Ready => None,
    };
    let diagnostics = source.diagnostics.iter().map(placed).collect();
    Skills { there, error, diagnostics }
}

fn server(about: &About, source: &SourceStatus, [listed, deferred]: [Cost; 2]) -> Server {
    let About { server, required, reached, scope, protocol, failure, last_words } = about.clone();
    let (transport, (command, program), (url, proxy)) = match reached {
        Reached::Command { command, program } => ("stdio", (Some(command), program), (None, None)),
        Reached::Url { transport, url, proxy } => (transport, (None, None), (Some(url), proxy)),
    };
    let (is_newer, protocol) = protocol.unzip();
    Server {
        name: server,
        state: if failure.is_none() { "ready" } else { "failed" },
        required: Some(required),
        transport: Some(transport),
        command,
        program,
        url,
        proxy,
        scope: Some(if scope == Scope::Shared { "shared" } else { "per_client" }),
        era: is_newer.map(|is_newer| if is_newer { "modern" } else { "legacy" }),
        protocol,
        listed,
        deferred,
        error: failure,
        stderr: last_words,
        diagnostics: source.diagnostics.clone(),
    }
}

/// Describes a server whose entry in its file is wrong.
fn unreadable(source: &SourceStatus) -> Server {
    let error = match &source.state {
        State::Failed(cause) => Some(cause),
        State::Starting | State::Ready => None,
    };
    // What is below the reason are the words of whoever said it.
    let words: Vec<String> =
        error.iter().flat_map(|cause| cause.reason.lines().skip(1)).map(str::to_owned).collect();
    let error = error.map(|cause| {
        let reason = cause.reason.lines().next().unwrap_or_default().to_owned();
        Cause { reason, detail: cause.detail.clone() }.to_string()
    });
    Server {
        name: source.source.clone(),
        state: "failed",
        required: None,
        transport: None,
        command: None,
        program: None,
        url: None,
        proxy: None,
        scope: None,
        era: None,
        protocol: None,
        listed: Cost::default(),
        deferred: Cost::default(),
        error,
        stderr: words,
        diagnostics: source.diagnostics.clone(),
    }
}

impl Server {
    /// Returns what is wrong beside the reason why it failed, where each is about a part of it.
    pub fn beyond_reason(&self) -> impl Iterator<Item = &Diagnostic> {
        let parts = self.diagnostics.iter().filter(|_| self.transport.is_none());
        parts.filter(|part| part.left_out().is_some()).skip(1)
    }
}

/// Returns the names in a server's filter that are no tool's: what was to be hidden is not, or
/// what was wanted is not there.
fn misspelt(server: &Server) -> impl Iterator<Item = String> + use<'_> {
    let is_filter = |said: &&Diagnostic| {
        matches!(said.field.as_deref(), Some("enabled_tools" | "disabled_tools"))
    };
    server.diagnostics.iter().filter(is_filter).map(ToString::to_string)
}

fn problem(server: &Server) -> Option<String> {
    server.error.as_ref().map(|error| format!("{} failed: {error}", server.name))
}

fn cost(tools: &[Arc<dyn Tool>], names: &Names) -> Cost {
    if tools.is_empty() {
        return Cost::default();
    }
    let bytes = list::bytes(tools, names);
    Cost { tools: tools.len(), bytes, tokens: bytes.div_ceil(BYTES_A_TOKEN) }
}

fn other(renamed: &Renamed) -> Other {
    let Renamed { canonical, wire, .. } = renamed;
    Other { canonical: canonical.clone(), name: wire.clone(), message: renamed.to_string() }
}
