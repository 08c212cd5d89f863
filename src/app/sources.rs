//! The sources of a run that start things or look after them: started in order, and ended.

use std::sync::Arc;

use super::StartError;
use crate::permission::{Effect, Policy};
use crate::process::{Grace, Processes};
use crate::registry::view::View;
use crate::registry::{Catalogue, Registry, SourceStatus, State};
use crate::shutdown::{Shutdown, beside_others};
use crate::source::builtin;
use crate::source::python;
use crate::source::skill::{self, Skills};
use crate::source::upstream::{self, Upstreams};

/// The sources of a run.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) skills: Option<Skills>,
    pub(super) upstreams: Upstreams,
}

/// What each of them is made of.
#[derive(Debug)]
pub(super) struct Plans {
    /// Nothing where they are off.
    pub(super) skills: Option<(skill::Config, skill::Ways)>,
    pub(super) upstream: upstream::Config,
}

impl Sources {
    /// Starts them, in the order of listing; what takes long is not waited for.
    pub(super) fn start(
        Plans { skills, upstream }: Plans,
        parts: &builtin::Parts,
        registry: &Arc<Registry>,
        processes: Processes,
        shutdown: &Shutdown,
    ) -> Self {
        let skills = skills.map(|(config, ways)| {
            let parts = (Arc::clone(&parts.workspace), Arc::clone(&parts.sessions));
            beside_others(|| skill::start(config, parts, ways, registry, shutdown))
        });
        let kept = (Arc::clone(&parts.artifacts), Arc::clone(&parts.sessions));
        let upstreams = Upstreams::start(upstream, registry, processes, kept, shutdown);
        Self { skills, upstreams }
    }

    /// Ends what they have started.
    pub(super) async fn stop(self) {
        self.upstreams.stop(Grace::default()).await;
    }

    /// Returns what a catalogue knows of the skills, if they are on.
    pub(super) fn of_skills<'a>(&self, catalogue: &'a Catalogue) -> Option<&'a SourceStatus> {
        self.skills.as_ref()?;
        // An upstream may be called so, too, but comes later.
        catalogue.sources().iter().find(|source| source.source == skill::SOURCE)
    }

    /// Returns the first source that is required and failed, and why.
    ///
    /// Python tools are always required, and so are the skills that are said to be: the agent's file
    /// has nothing to say otherwise.
    pub(super) fn required_failure(&self, catalogue: &Catalogue) -> Option<StartError> {
        let python = catalogue.sources().iter().find_map(|source| match &source.state {
            State::Failed(cause) if source.source == python::SOURCE => Some(cause.to_string()),
            _ => None,
        });
        let skills = self.of_skills(catalogue).and_then(|source| match &source.state {
            State::Failed(cause) => Some(StartError::Skills(cause.to_string())),
            State::Starting | State::Ready => None,
        });
        let required = |(server, reason)| StartError::Required { server, reason };
        let upstream = || self.upstreams.required_failure(catalogue).map(required);
        python.map(StartError::Python).or(skills).or_else(upstream)
    }
}

/// Says which ways to skills there are: no other one where the tool that loads them is hidden, and
/// none around the question or the refusal of a call of it.
pub(super) fn ways(view: &View, policy: &Policy) -> skill::Ways {
    let tool = skill::definition();
    let told = view.is_available(&tool);
    let decision = policy.decide((&tool, tool.name.as_str()), tool.traits(), None);
    skill::Ways { told, resources: told && decision.effect == Effect::Allow }
}
