//! EX-3.1, T3, T4, and what a snapshot promises.

use super::view::View;
use super::*;
use crate::tool::Patterns;
use crate::tool::fixture::named;

fn tool(name: &str, group: &str, aliases: &[&str], deferred: bool) -> Arc<dyn Tool> {
    named(name, |definition| {
        group.clone_into(&mut definition.group);
        definition.aliases = aliases.iter().map(ToString::to_string).collect();
        definition.deferred = deferred;
    })
}

fn ready(tools: Vec<Arc<dyn Tool>>) -> Publication {
    Publication { state: State::Ready, tools, ..Publication::default() }
}

fn set(names: &[&str]) -> Patterns {
    Patterns::new(names).unwrap()
}

#[test]
fn ex_3_1_deny_then_groups_then_allow_then_deferred() {
    let registry = Registry::new();
    let publisher = registry.publisher("s");
    let tools = vec![
        tool("a", "core", &[], false),
        tool("b", "web", &[], false),
        tool("c", "web", &[], true),
    ];
    publisher.publish(ready(tools)).unwrap();
    let catalogue = registry.snapshot();
    let check = |view: View, active: &[&str], available: &[&str]| {
        let names = |tool: &Arc<dyn Tool>| tool.definition().name.to_string();
        assert_eq!(view.active(&catalogue).map(names).collect::<Vec<_>>(), active, "{view:?}");
        assert_eq!(
            view.available(&catalogue).map(names).collect::<Vec<_>>(),
            available,
            "{view:?}"
        );
    };
    let groups = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
    check(View { include_groups: groups(&["web"]), ..View::default() }, &["b"], &["b", "c"]);
    check(
        View { include_groups: groups(&["core"]), allow: set(&["c"]), ..View::default() },
        &["a", "c"],
        &["a", "c"],
    );
    check(
        View { allow: set(&["c"]), deny: set(&["c"]), ..View::default() },
        &["a", "b"],
        &["a", "b"],
    );
    check(
        View { include_groups: groups(&[]), allow: set(&["a"]), ..View::default() },
        &["a"],
        &["a"],
    );
    check(View::default(), &["a", "b"], &["a", "b", "c"]);
    let view = View::default();
    let specs: Vec<_> = view
        .specs_for(&catalogue, &["c", "a"])
        .map(|tool| tool.definition().name.to_string())
        .collect();
    assert_eq!(specs, ["a", "c"]);
}

#[test]
fn t3_one_conflict_publishes_nothing() {
    let registry = Registry::new();
    let first = registry.publisher("first");
    let second = registry.publisher("second");
    first.publish(ready(vec![tool("a", "core", &["old_a"], false)])).unwrap();
    for clash in [
        tool("a", "core", &[], false),
        tool("old_a", "core", &[], false),
        tool("x", "core", &["a"], false),
        tool("x", "core", &["old_a"], false),
    ] {
        let batch = vec![tool("fine", "core", &[], false), clash];
        second.publish(ready(batch)).unwrap_err();
        assert_eq!(registry.snapshot().tools().len(), 1);
        assert!(registry.snapshot().get("fine").is_none());
    }
    let twice = vec![tool("x", "core", &["x"], false)];
    assert_eq!(second.publish(ready(twice)), Err(NameConflict { name: "x".into() }));
}

#[test]
fn a_tool_is_found_by_name_and_by_alias() {
    let registry = Registry::new();
    let publisher = registry.publisher("s");
    publisher.publish(ready(vec![tool("a", "core", &["b"], false)])).unwrap();
    let catalogue = registry.snapshot();
    assert_eq!(catalogue.get("b").unwrap().definition().name.as_str(), "a");
    assert_eq!(catalogue.get("a").unwrap().definition().name.as_str(), "a");
    assert!(catalogue.get("c").is_none());
}

#[test]
fn the_order_of_listing_is_the_order_of_publishers() {
    let registry = Registry::new();
    let first = registry.publisher("first");
    let second = registry.publisher("second");
    second.publish(ready(vec![tool("b", "core", &[], false)])).unwrap();
    let before = registry.snapshot();
    first.publish(ready(vec![tool("a", "core", &[], false)])).unwrap();
    let names: Vec<_> =
        registry.snapshot().tools().iter().map(|tool| tool.definition().name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(before.tools().len(), 1, "a snapshot never changes");
    assert!(before.version() < registry.snapshot().version());
}

#[test]
fn two_publications_can_swap_a_name_at_once() {
    let registry = Registry::new();
    let first = registry.publisher("first");
    let second = registry.publisher("second");
    first.publish(ready(vec![tool("a", "core", &[], false)])).unwrap();
    assert!(second.publish(ready(vec![tool("a", "core", &[], false)])).is_err());
    let batch =
        vec![(&first, ready(vec![])), (&second, ready(vec![tool("a", "core", &[], false)]))];
    registry.publish(batch).unwrap();
    assert_eq!(registry.snapshot().tools().len(), 1);
    assert_eq!(
        registry.taken_beside(std::slice::from_ref(&first)),
        HashSet::from(["a".to_owned()])
    );
    assert_eq!(registry.taken_beside(&[first, second]), HashSet::new());
}

#[tokio::test]
async fn settled_waits_for_every_source() {
    let registry = Registry::new();
    let first = registry.publisher("first");
    let second = registry.publisher("second");
    first.publish(ready(vec![])).unwrap();
    let waiting =
        tokio::time::timeout(std::time::Duration::from_millis(20), registry.settled()).await;
    assert!(waiting.is_err());
    let failed =
        Publication { state: State::Failed("no".to_owned().into()), ..Publication::default() };
    second.publish(failed).unwrap();
    assert!(registry.settled().await.is_settled());
}
