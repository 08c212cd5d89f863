//! What is published of skills, and when it is published anew.

use std::fs;

use serde_json::json;

use super::*;
use crate::registry::Catalogue;
use crate::source::skill::fixture::Home;
use crate::tool::fixture::context as cx;
use crate::tool::{Interrupt, ToolResult};

const ALL: Ways = Ways { told: true, resources: true };

/// A workspace, and what keeps its skills published.
struct Bench {
    home: Home,
    registry: Arc<Registry>,
    keeper: Keeper,
}

impl Bench {
    fn new(require: &[&str], ways: Ways) -> Self {
        let (home, registry) = (Home::new(), Registry::new());
        let require =
            require.iter().map(|name| ((*name).to_owned(), Some("a.yaml:1:2".to_owned())));
        let config = Config { roots: vec!["skills".to_owned()], require: require.collect() };
        let parts = (home.workspace(), Arc::new(Sessions::default()));
        let keeper = Keeper::new(config, parts, ways, &registry);
        Self { home, registry, keeper }
    }

    /// Looks, and returns what there is then.
    fn look(&mut self) -> Arc<Catalogue> {
        self.keeper.look();
        self.registry.snapshot()
    }

    async fn load(&self, name: &str) -> Result<ToolResult, Interrupt> {
        let tool = Arc::clone(self.registry.snapshot().get(LOAD_SKILL).unwrap());
        let arguments = json!({"name": name}).as_object().unwrap().clone();
        let valid = tool.validate(arguments, &cx()).await.unwrap();
        tool.run(&valid, &cx()).await
    }
}

fn text(result: &Result<ToolResult, Interrupt>) -> String {
    result.as_ref().unwrap().model_content()
}

#[test]
fn the_tool_is_there_while_there_is_a_skill_and_is_another_when_it_says_something_else() {
    let mut bench = Bench::new(&[], ALL);
    let found = bench.keeper.scanner.scan();
    bench.keeper.publish(found);
    let empty = bench.registry.snapshot();
    assert!(empty.is_settled() && empty.get(LOAD_SKILL).is_none());
    assert_eq!(empty.offered().skilled(), [0], "clients may ask before there is any");

    bench.home.skill("a");
    let one = bench.look();
    let definition = one.get(LOAD_SKILL).unwrap().definition();
    assert!(definition.description().ends_with("\n- a: does a"));
    assert_eq!((definition.group.as_str(), definition.max_result_chars), ("skill", 50_000));
    assert!(definition.capabilities.read_only() && !definition.deferred);
    assert_eq!(one.offered().resources()[0]["uri"], "skill://a/SKILL.md");
    assert!(one.sources()[0].instructions.as_ref().unwrap().ends_with("\n- a: does a"));
    assert!(one.revision().tools > empty.revision().tools);
    assert!(one.revision().resources > empty.revision().resources);

    // Nothing has changed, so nothing is published.
    assert_eq!(bench.look().version(), one.version());

    // Another text is no other list, but is told.
    let mut events = bench.registry.events().listen();
    bench.home.write("skills/a/SKILL.md", "---\nname: a\ndescription: does a\n---\nOther.");
    let other = bench.look();
    assert_eq!(other.revision().tools, one.revision().tools);
    assert_eq!(other.revision().resources, one.revision().resources);
    let event = events.try_recv().unwrap();
    assert!(
        matches!(&*event, Event::Updated { source, uri, .. } if source == SOURCE && uri == "skill://a/SKILL.md")
    );
    assert!(events.try_recv().is_err());

    fs::remove_dir_all(bench.home.path("skills/a")).unwrap();
    let gone = bench.look();
    assert!(gone.get(LOAD_SKILL).is_none() && gone.offered().resources().is_empty());
    assert_eq!(gone.sources()[0].instructions, None);
}

#[test]
fn where_the_tool_is_hidden_or_asked_for_there_is_no_other_way() {
    for (ways, is_told) in [
        (Ways { told: true, resources: false }, true),
        (Ways { told: false, resources: false }, false),
    ] {
        let mut bench = Bench::new(&[], ways);
        bench.home.skill("a");
        let there = bench.look();
        assert!(there.get(LOAD_SKILL).is_some(), "the view decides about it");
        assert!(there.offered().skilled().is_empty() && there.offered().resources().is_empty());
        assert!(there.offered().askable("skill://a/SKILL.md").is_empty());
        assert!(there.sources()[0].relay.is_none());
        assert_eq!(there.sources()[0].instructions.is_some(), is_told);
    }
}

#[test]
fn what_must_be_there_and_is_not_is_a_failure_that_names_it() {
    let mut bench = Bench::new(&["a", "b"], ALL);
    bench.home.skill("a");
    bench.home.skill("c");
    bench.home.write("skills/b/SKILL.md", "no front matter");
    let State::Failed(cause) = bench.look().sources()[0].state.clone() else {
        panic!("it is ready")
    };
    let said = cause.to_string();
    assert!(
        said.starts_with(
            "the required skill `b` is not in skills (left out: it has no front matter"
        ),
        "{said}"
    );
    assert!(said.ends_with("; there are a, c (a.yaml:1:2)"), "{said}");
    bench.home.skill("b");
    assert_eq!(bench.look().sources()[0].state, State::Ready);
}

#[tokio::test]
async fn a_skill_is_loaded_as_it_is_now() {
    let mut bench = Bench::new(&[], ALL);
    bench.home.skill("b");
    bench.home.skill("a");
    bench.look();
    assert_eq!(text(&bench.load("a").await), "---\nname: a\ndescription: does a\n---\nHow to a.\n");
    let other = format!("---\ndescription: d\n---\n{}", "x".repeat(100_000));
    bench.home.write("skills/a/SKILL.md", &other);
    assert_eq!(text(&bench.load("a").await), other);
    // It counts as read, as a file does.
    let path = bench.home.workspace().resolve("skills/a/SKILL.md").unwrap();
    let session = bench.keeper.stock.sessions().get(&cx().session);
    assert!(session.read_state().get(&path).is_some());

    // One that was not there a moment ago.
    bench.home.skill("new");
    assert!(text(&bench.load("new").await).contains("How to new."));

    let result = bench.load("none").await.unwrap();
    let failure = result.error.unwrap();
    assert_eq!((failure.code.as_str(), failure.retryable), ("SKILL_NOT_FOUND", true));
    assert_eq!(Value::Object(failure.details), json!({"name": "none", "available": ["a", "b"]}));
}

#[tokio::test]
async fn a_skill_that_went_bad_since_it_was_found_is_told() {
    type Break = fn(&Home);
    let rows: [(&str, &str, Break); 6] = [
        ("SKILL_READ_ERROR", "does not exist or is no regular file", |home| {
            fs::remove_dir_all(home.path("skills/a")).unwrap();
        }),
        ("SKILL_READ_ERROR", "does not exist or is no regular file", |home| {
            fs::remove_file(home.path("skills/a/SKILL.md")).unwrap();
            let mode = nix::sys::stat::Mode::S_IRWXU;
            nix::unistd::mkfifo(&home.path("skills/a/SKILL.md"), mode).unwrap();
        }),
        ("SKILL_READ_ERROR", "no valid UTF-8", |home| home.write("skills/a/SKILL.md", b"\xff")),
        ("SKILL_READ_ERROR", "more than 1048576 bytes", |home| {
            home.write("skills/a/SKILL.md", "x".repeat(10 << 20));
        }),
        ("SKILL_PATH_ERROR", "", |home| {
            fs::remove_file(home.path("skills/a/SKILL.md")).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", home.path("skills/a/SKILL.md")).unwrap();
        }),
        ("SKILL_PATH_ERROR", "", |home| {
            fs::remove_dir_all(home.path("skills/a")).unwrap();
            home.write("out/SKILL.md", "secret");
            std::os::unix::fs::symlink("../out", home.path("skills/a")).unwrap();
        }),
    ];
    for (code, reason, spoil) in rows {
        let mut bench = Bench::new(&[], ALL);
        bench.home.skill("a");
        bench.look();
        spoil(&bench.home);
        let failure = bench.load("a").await.unwrap().error.unwrap();
        assert_eq!(failure.code.as_str(), code, "{failure}");
        assert_eq!(failure.retryable, code == "SKILL_READ_ERROR");
        assert_eq!(failure.details["name"], "a");
        if code == "SKILL_READ_ERROR" {
            let said = failure.details["reason"].as_str().unwrap();
            assert!(said.contains(reason), "{said}");
        }
    }
}

#[tokio::test]
async fn what_is_asked_is_answered_and_what_is_not_there_is_refused() {
    let mut bench = Bench::new(&[], ALL);
    bench.home.skill("a");
    bench.home.write("skills/a/sub/x", "x");
    bench.home.write("skills/odd/SKILL.md", "---\nname: other\ndescription: d\n---\n");
    let there = bench.look();
    let told: Vec<_> = there.sources()[0].diagnostics.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(told, ["NAME_MISMATCH", "SKILL_NOT_PUBLISHED"]);
    let relay = there.sources()[0].relay.clone().unwrap();
    let asked = async |method: &str, uri: &str| {
        let params = json!({"uri": uri}).as_object().unwrap().clone();
        relay.request(method, params, &cx()).await.map_err(|error| error.code)
    };
    let listed = asked("skills/list", "").await.unwrap();
    assert_eq!(listed["skills"].as_array().unwrap().len(), 1);
    let one = asked("skills/get", "skill://a/SKILL.md").await.unwrap();
    assert_eq!(one["skill"], listed["skills"][0]);
    assert_eq!(
        asked("resources/read", "skill://a/sub/x").await.unwrap()["contents"][0]["text"],
        "x"
    );
    assert_eq!(
        asked("resources/directory/read", "skill://a").await.unwrap()["resources"][1]["name"],
        "sub"
    );
    for (method, uri, code) in [
        ("skills/get", "skill://none/SKILL.md", -32_602),
        ("skills/get", "skill://a/sub/x", -32_602),
        ("skills/get", "skill://odd/SKILL.md", -32_602),
        ("skills/get", "", -32_602),
        ("resources/directory/read", "skill://a/SKILL.md", -32_602),
        ("resources/directory/read", "skill://none", -32_602),
        ("resources/read", "skill://a/none", -32_002),
        ("resources/read", "skill://a/../a/SKILL.md", -32_002),
        ("resources/read", "skill://odd/SKILL.md", -32_002),
        ("resources/read", "skill://a", -32_002),
        ("resources/read", "file:///etc/passwd", -32_002),
        ("skills/else", "skill://a/SKILL.md", -32_601),
    ] {
        assert_eq!(asked(method, uri).await, Err(code), "{method} {uri}");
    }
}

/// Looks until something is so.
#[track_caller]
fn looked(bench: &mut Bench, is_so: impl Fn(&Catalogue) -> bool) -> Arc<Catalogue> {
    // One more skill at each look, at the least.
    let mut looks = (0..10).map(|_| bench.look());
    looks.find(|there| is_so(there)).expect("it was not noticed")
}

fn listed(there: &Catalogue) -> Vec<&str> {
    there.offered().resources().iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

fn codes(there: &Catalogue) -> Vec<(&str, &str)> {
    let diagnostics = there.sources()[0].diagnostics.iter();
    diagnostics.map(|it| (it.code.as_str(), it.wire_name.as_deref().unwrap())).collect()
}

#[tokio::test]
async fn a_skill_that_cannot_be_published_is_in_no_list_also_where_it_becomes_so() {
    let mut bench = Bench::new(&[], ALL);
    for name in ["a", "b", "c"] {
        bench.home.skill(name);
    }
    let large = fs::File::create(bench.home.path("skills/c/large")).unwrap();
    large.set_len(files::MOST_BYTES).unwrap();
    let there = bench.look();
    assert_eq!(listed(&there), ["skill://a/SKILL.md", "skill://b/SKILL.md"]);
    assert_eq!(codes(&there), [("SKILL_NOT_PUBLISHED", "c")]);
    assert!(there.offered().owner("skill://c/SKILL.md").is_none(), "it may be another's");

    // Neither its folder nor its text are others, but there are more files below.
    fs::create_dir(bench.home.path("skills/b/sub")).unwrap();
    let before = looked(&mut bench, |_| true).revision().resources;
    for number in 0..files::MOST_FILES {
        bench.home.write(&format!("skills/b/sub/{number}"), "");
    }
    let there = looked(&mut bench, |there| codes(there).len() == 2);
    assert_eq!(listed(&there), ["skill://a/SKILL.md"]);
    assert_eq!(codes(&there), [("SKILL_NOT_PUBLISHED", "b"), ("SKILL_NOT_PUBLISHED", "c")]);
    assert!(there.revision().resources > before, "clients hear of it");
    let relay = there.sources()[0].relay.clone().unwrap();
    let skills = relay.request("skills/list", Map::new(), &cx()).await.unwrap();
    assert_eq!(skills["skills"].as_array().unwrap().len(), 1);
    assert!(bench.load("b").await.is_ok());

    fs::remove_file(bench.home.path("skills/b/sub/0")).unwrap();
    large.set_len(0).unwrap();
    let there = looked(&mut bench, |there| codes(there).is_empty());
    assert_eq!(listed(&there).len(), 3);
}

#[tokio::test]
async fn changes_of_watched_files_are_told_and_what_is_not_there_is_not_watched() {
    let mut bench = Bench::new(&[], ALL);
    bench.home.skill("a");
    bench.home.skill("b");
    bench.home.write("skills/a/sub/x", "1");
    bench.home.write("skills/a/y", "1");
    bench.home.write("skills/b/x", "1");
    bench.home.write("skills/odd/SKILL.md", "---\nname: other\ndescription: d\n---\n");
    let relay = bench.look().sources()[0].relay.clone().unwrap();
    for none in
        ["skill://a/none", "skill://none/x", "skill://a/sub", "skill://odd/SKILL.md", "file:///x"]
    {
        let refused = relay.watch(none, &cx()).await.unwrap_err();
        assert_eq!(refused.code, -32_002, "{none}");
    }
    let _text = relay.watch("skill://a/SKILL.md", &cx()).await.unwrap();
    let first = relay.watch("skill://a/sub/x", &cx()).await.unwrap();
    let second = relay.watch("skill://a/sub/x", &cx()).await.unwrap();
    let _other = relay.watch("skill://b/x", &cx()).await.unwrap();
    let mut events = bench.registry.events().listen();
    let mut told = |bench: &mut Bench| {
        bench.look();
        let events = std::iter::from_fn(|| events.try_recv().ok());
        let uris = events.map(|event| match &*event {
            Event::Updated { uri, .. } => uri.clone(),
            event @ Event::Log { .. } => panic!("{event:?}"),
        });
        uris.collect::<Vec<String>>()
    };
    assert!(told(&mut bench).is_empty());
    bench.home.write("skills/a/sub/x", "2");
    bench.home.write("skills/a/y", "2");
    assert_eq!(told(&mut bench), ["skill://a/sub/x"]);
    // Written at once, perhaps in the same moment, and with the same size.
    bench.home.write("skills/a/sub/x", "3");
    assert_eq!(told(&mut bench), ["skill://a/sub/x"]);
    bench.home.write("skills/a/sub/x", "3");
    assert!(told(&mut bench).is_empty(), "the same bytes are no change");
    drop(first);
    fs::remove_dir_all(bench.home.path("skills/a/sub")).unwrap();
    assert_eq!(told(&mut bench), ["skill://a/sub/x"]);
    bench.home.write("skills/a/sub/x", "3");
    fs::remove_dir_all(bench.home.path("skills/b")).unwrap();
    assert_eq!(told(&mut bench), ["skill://a/sub/x", "skill://b/x"]);
    drop(second);
    bench.home.write("skills/a/sub/x", "4");
    assert!(told(&mut bench).is_empty());
}

#[test]
fn another_tool_of_the_name_is_a_failure_and_holds_nothing_up() {
    let mut bench = Bench::new(&[], ALL);
    let others = bench.registry.publisher("embedder");
    let tool: Arc<dyn Tool> = Arc::new(Typed(LoadSkill::new(Arc::clone(&bench.keeper.stock), &[])));
    others
        .publish(Publication {
            state: State::Ready,
            tools: vec![Arc::clone(&tool)],
            ..Publication::default()
        })
        .unwrap();
    bench.home.skill("a");
    let there = bench.look();
    assert!(there.is_settled());
    assert!(Arc::ptr_eq(there.get(LOAD_SKILL).unwrap(), &tool));
    let State::Failed(cause) = &there.sources()[0].state else { panic!("it is ready") };
    assert!(cause.to_string().contains("`load_skill`"), "{cause}");
    assert_eq!(there.sources()[0].instructions, None);
    // Once the name is free, the next change is a good one.
    others.publish(Publication { state: State::Ready, ..Publication::default() }).unwrap();
    bench.home.skill("b");
    assert_eq!(bench.look().sources()[0].state, State::Ready);
}
