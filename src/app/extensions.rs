//! What a user's configuration and an embedder put around calls, in order.

use std::sync::Arc;

use crate::hook::{Declared, Handler, Registration};
use crate::middleware::Middleware;
use crate::source::python::Python;

/// Makes the hooks and the middleware: those of the agent file first, then an embedder's.
pub(super) fn made(
    declared: &[Declared],
    python: Option<&Python>,
    theirs: (Vec<Registration>, Vec<Arc<dyn Middleware>>),
) -> (Vec<Registration>, Vec<Arc<dyn Middleware>>) {
    let mut numbers = 0..;
    let made = declared.iter().filter_map(|declared| match &declared.handler {
        Handler::Python { .. } => {
            let number = numbers.next()?;
            python.map(|python| declared.with(python.hook(number)))
        }
        Handler::Command(_) => None,
    });
    let hooks = made.chain(theirs.0).collect();
    let middleware = python.into_iter().flat_map(Python::middleware).chain(theirs.1).collect();
    (hooks, middleware)
}
