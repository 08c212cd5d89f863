//! Tools that have to be searched for: when, how they are found, and how they are called then.

use serde_json::json;

use super::*;
use crate::registry::Publisher;
use crate::tool::fixture::described;
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{CallContext, Origin, fixture};

/// A gate over tools of an upstream, with its own tools published before them.
struct Bench {
    exposure: Arc<Exposure>,
    registry: Arc<Registry>,
    upstream: Publisher,
    session: Arc<Session>,
}

fn upstream_tool(server: &str, name: &str, description: &str, group: &str) -> Arc<dyn Tool> {
    described(name, description, |definition| {
        definition.origin = Some(Origin { server: server.to_owned(), tool: name.to_owned() });
        group.clone_into(&mut definition.group);
    })
}

fn research() -> Vec<Arc<dyn Tool>> {
    let dense = "search search search search documents";
    let vector = "Find relevant embeddings for semantic retrieval";
    vec![
        upstream_tool("lab", "alpha_dense", dense, "research"),
        upstream_tool("lab", "vector_lookup", vector, "research"),
        upstream_tool("disk", "file_search", "Search files", "file"),
    ]
}

impl Bench {
    fn new(config: Config, tools: Vec<Arc<dyn Tool>>) -> Self {
        let registry = Registry::new();
        let exposure = Exposure::new(Arc::clone(&registry), config, Arc::new(Local));
        let own = Publication { tools: exposure.tools(), ..ready() };
        registry.publisher("built-in").publish(own).unwrap();
        let upstream = registry.publisher("upstream");
        upstream.publish(Publication { tools, ..ready() }).unwrap();
        let session = Sessions::default().get(&SessionId::new("s"));
        Self { exposure, registry, upstream, session }
    }

    fn deferring() -> Self {
        Self::new(config(Defer::Always), research())
    }

    fn listed(&self, era: Era) -> Vec<String> {
        let tools = self.exposure.listed(&self.registry.snapshot(), &self.session, era);
        tools.iter().map(|tool| tool.definition().name.to_string()).collect()
    }

    fn resolve(&self, name: &str, arguments: Value) -> Result<Resolved, Unresolved> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.exposure.resolve(&self.registry.snapshot(), &self.session, name, arguments)
    }

    #[track_caller]
    fn refused(&self, name: &str, arguments: Value) -> Failure {
        match self.resolve(name, arguments) {
            Err(Unresolved::Refused(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    async fn search(&self, arguments: Value) -> Result<ToolResult, Failure> {
        let Resolved { tool, arguments, .. } = self.resolve("tool_search", arguments).unwrap();
        let cx: CallContext = fixture::context();
        let call = tool.validate(arguments, &cx).await?;
        Ok(tool.run(&call, &cx).await.unwrap())
    }
}

fn ready() -> Publication {
    Publication { state: State::Ready, ..Publication::default() }
}

fn config(defer: Defer) -> Config {
    let (view, naming) = (View::default(), Naming::default());
    Config { view, naming, defer, disclosure: Disclosure::Both }
}

#[test]
fn the_tools_of_upstreams_are_deferred_when_asked_for() {
    assert_eq!(Bench::deferring().listed(Era::Modern), ["tool_search", "call_tool"]);
    let all = ["alpha_dense", "vector_lookup", "file_search"];
    assert_eq!(Bench::new(config(Defer::Never), research()).listed(Era::Modern), all);
    let without = Config { disclosure: Disclosure::Session, ..config(Defer::Always) };
    assert_eq!(Bench::new(without, research()).listed(Era::Modern), ["tool_search"]);
}

#[test]
fn a_list_over_its_budget_is_deferred_and_one_that_shrinks_no_more() {
    // A token a tool.
    let measure: Measure = |tools, _| 4 * tools.len();
    let bench = Bench::new(config(Defer::Auto { budget_tokens: 2, measure }), research());
    assert_eq!(bench.listed(Era::Modern), ["tool_search", "call_tool"]);
    let two = research().into_iter().take(2).collect();
    bench.upstream.publish(Publication { tools: two, ..ready() }).unwrap();
    assert_eq!(bench.listed(Era::Modern), ["alpha_dense", "vector_lookup"]);
    // While nothing is deferred there is nothing to find.
    let unknown = bench.resolve("tool_search", json!({})).unwrap_err();
    assert_eq!(unknown, Unresolved::Unknown { nearest: vec![], missing: None });
}

#[test]
fn what_the_view_allows_is_listed_and_what_it_hides_is_not_found() {
    let view = View {
        allow: Patterns::new(["file_search"]).unwrap(),
        deny: Patterns::new(["alpha_dense"]).unwrap(),
        ..View::default()
    };
    let bench = Bench::new(Config { view, ..config(Defer::Always) }, research());
    assert_eq!(bench.listed(Era::Modern), ["tool_search", "call_tool", "file_search"]);
    let surface = bench.exposure.surface(&bench.registry.snapshot());
    let found = surface.candidates().tools().iter().map(|tool| tool.definition().name.to_string());
    assert_eq!(found.collect::<Vec<_>>(), ["vector_lookup", "file_search"]);
}

#[tokio::test]
async fn ex_11_4_each_query_selects_a_tool_or_null() {
    let bench = Bench::deferring();
    let result = bench.search(json!({"queries": [" embedding ", "zzz"]})).await.unwrap();
    let description = "Find relevant embeddings for semantic retrieval";
    let selections = json!([
        {"query": "embedding", "tool": "vector_lookup"},
        {"query": "zzz", "tool": null},
    ]);
    let seed = json!({
        "selections": selections,
        "tools": [{"name": "vector_lookup", "description": description, "group": "research"}],
    });
    assert_eq!(Value::Object(result.data.clone()), seed);
    let answer: Value = serde_json::from_str(&result.model_content()).unwrap();
    assert_eq!(answer["selections"], selections);
    let tool = &answer["tools"][0];
    assert_eq!(tool["name"], "vector_lookup");
    assert_eq!(tool["input_schema"]["type"], "object");
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert_eq!(answer.get("hint"), None);
    let native = result.native.as_deref().unwrap().to_value();
    assert_eq!(native["structuredContent"], answer);
    assert_eq!(result.metadata["context_revealed_tools"], json!(["vector_lookup"]));
}

#[tokio::test]
async fn a_tool_that_answers_twice_is_described_once() {
    let bench = Bench::deferring();
    let queries = json!({"queries": ["file search", "embedding", "search files"]});
    let result = bench.search(queries).await.unwrap();
    let names = |key: &str, of: &str| {
        let list = result.data[key].as_array().unwrap();
        list.iter().map(|one| one[of].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("selections", "tool"), ["file_search", "vector_lookup", "file_search"]);
    assert_eq!(names("tools", "name"), ["file_search", "vector_lookup"]);
}

#[tokio::test]
async fn a_search_that_finds_nothing_says_what_there_is() {
    let bench = Bench::deferring();
    let result = bench.search(json!({"queries": ["zzz"]})).await.unwrap();
    let answer: Value = serde_json::from_str(&result.model_content()).unwrap();
    assert_eq!(answer["hint"], "nothing fits; there are tools of lab (2), disk (1)");
    let none = json!({"queries": ["embedding"], "include_groups": []});
    let result = bench.search(none).await.unwrap();
    assert_eq!(result.data["selections"][0]["tool"], Value::Null);
    let file = json!({"queries": ["search"], "include_groups": ["file"]});
    let result = bench.search(file).await.unwrap();
    assert_eq!(result.data["selections"][0]["tool"], "file_search");
}

#[tokio::test]
async fn queries_are_texts_that_are_not_blank() {
    let bench = Bench::deferring();
    let wrong = [
        json!({}),
        json!({"queries": []}),
        json!({"queries": ["a", " "]}),
        json!({"queries": [""]}),
        json!({"query": "a", "limit": 3}),
    ];
    for arguments in wrong {
        let failure = bench.search(arguments.clone()).await.unwrap_err();
        assert_eq!(failure.code, VALIDATION_ERROR, "{arguments}: {failure}");
        assert!(failure.message.contains("tool_search"), "{failure}");
    }
}

#[tokio::test]
async fn schemas_that_would_make_an_answer_too_long_are_left_out_and_named() {
    let long = |name: &str| {
        described(name, "a thing", |definition| {
            definition.origin = Some(Origin { server: "s".into(), tool: name.into() });
            let schema = json!({"type": "object", "title": "x".repeat(30_000)});
            let schema = schema.as_object().unwrap().clone();
            definition.input_schema = InputSchema::compile(schema).unwrap();
        })
    };
    let bench = Bench::new(config(Defer::Always), vec![long("apple"), long("pear")]);
    let result = bench.search(json!({"queries": ["apple", "pear"]})).await.unwrap();
    let text = result.model_content();
    assert!(text.chars().count() <= 41_000);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(answer["tools"][0]["input_schema"].is_object());
    assert!(answer["tools"][1]["input_schema"].is_null());
    assert_eq!(answer["without_schema"], json!(["pear"]));
}

#[test]
fn a_found_tool_is_called_by_its_name_and_listed_for_older_clients() {
    let bench = Bench::deferring();
    let failure = bench.refused("vector_lookup", json!({}));
    assert_eq!(failure.code, TOOL_NOT_ALLOWED);
    let metadata = [("context_revealed_tools".to_owned(), json!(["vector_lookup"]))];
    let metadata = metadata.into_iter().collect();
    let result = ToolResult { metadata, ..ToolResult::default() };
    assert!(bench.exposure.disclose(&bench.session, &result));
    assert!(!bench.exposure.disclose(&bench.session, &result));
    assert_eq!(bench.resolve("vector_lookup", json!({"a": 1})).unwrap().arguments["a"], 1);
    assert_eq!(bench.listed(Era::Legacy), ["tool_search", "call_tool", "vector_lookup"]);
    assert_eq!(bench.listed(Era::Modern), ["tool_search", "call_tool"]);
}

#[test]
fn a_call_through_call_tool_is_the_call_of_that_tool() {
    let bench = Bench::deferring();
    bench.session.reveal("vector_lookup");
    let check = |arguments: Value| {
        let resolved = bench.resolve("call_tool", arguments).unwrap();
        assert_eq!(resolved.name, "vector_lookup");
        assert_eq!(resolved.tool.definition().name.as_str(), "vector_lookup");
        Value::Object(resolved.arguments)
    };
    let a = json!({"a": [1]});
    assert_eq!(check(json!({"name": "vector_lookup", "arguments": a})), a);
    assert_eq!(check(json!({"name": "vector_lookup"})), json!({}));
    assert_eq!(check(json!({"name": "vector_lookup", "arguments": r#"{"a": [1]}"#})), a);
}

#[test]
fn a_wrong_call_of_call_tool_says_what_is_wrong() {
    let bench = Bench::deferring();
    let check = |arguments: Value, code: ErrorCode, part: &str| {
        let failure = bench.refused("call_tool", arguments);
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.message.contains(part), "{failure}");
    };
    check(json!({}), VALIDATION_ERROR, "name");
    check(json!({"name": "call_tool", "arguments": {}}), VALIDATION_ERROR, "itself");
    check(json!({"name": "file_search", "arguments": "no"}), VALIDATION_ERROR, "arguments");
    check(json!({"name": "file_search", "arguments": [1]}), VALIDATION_ERROR, "arguments");
    check(json!({"name": "file_search", "args": {}}), VALIDATION_ERROR, "args");
    check(json!({"name": "nope"}), NOT_FOUND, "unknown tool: nope");
    check(json!({"name": "file_search"}), TOOL_NOT_ALLOWED, "tool_search");
}

#[test]
fn the_search_says_which_servers_have_tools_to_find() {
    let many = (0..200).map(|at| {
        upstream_tool(&format!("server_{at}"), &format!("tool_{at}"), "does a thing", "mcp")
    });
    let bench = Bench::new(config(Defer::Always), many.collect());
    let tools = bench.exposure.listed(&bench.registry.snapshot(), &bench.session, Era::Modern);
    let description = tools[0].definition().description();
    assert!(description.contains("server_0 (1), server_1 (1)"), "{description}");
    assert!(description.ends_with(" more."), "{description}");
    assert!(description.len() < 800, "{description}");
}
