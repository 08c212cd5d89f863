//! EX-11.1 and EX-11.2 by their order; what does not fit is left out.

use std::sync::Arc;

use serde_json::json;

use super::words::words;
use crate::discovery::Candidates;
use crate::tool::fixture::described;
use crate::tool::{Tool, ToolDefinition};

fn tool(name: &str, description: &str, group: &str, tags: &[&str]) -> Arc<dyn Tool> {
    described(name, description, |definition: &mut ToolDefinition| {
        group.clone_into(&mut definition.group);
        definition.metadata.insert("tags".to_owned(), json!(tags));
    })
}

#[track_caller]
fn check(among: &Candidates, query: &str, expected: &[&str]) {
    let found = among.best(query, None, 10);
    let names: Vec<&str> = found.iter().map(|tool| tool.definition().name.as_str()).collect();
    assert_eq!(names, expected, "{query}");
}

fn english() -> Candidates {
    let dense = "search search search search documents";
    let vector = "Find relevant embeddings for semantic retrieval";
    Candidates::new(vec![
        tool("alpha_dense", dense, "research", &["text"]),
        tool("vector_lookup", vector, "research", &["vector", "embedding"]),
        tool("file_search", "Search files", "file", &["file"]),
    ])
}

#[test]
fn ex_11_1_the_tool_with_the_words_of_the_query_is_first() {
    let among = english();
    check(&among, "embedding", &["vector_lookup"]);
    check(&among, "file", &["file_search"]);
    check(&among, "vector search", &["vector_lookup"]);
    check(&among, "search", &["file_search", "alpha_dense"]);
    check(&among, "检索", &[]);
    check(&among, "!!!", &[]);
}

#[test]
fn ex_11_2_scripts_without_spaces_are_searched_by_pairs() {
    let among = Candidates::new(vec![
        tool("vector_lookup", "检索向量知识库", "research", &[]),
        tool("order_lookup", "查询客户订单", "crm", &["订单"]),
        tool("stock_view", "查看库存", "crm", &[]),
    ]);
    check(&among, "查找客户订单", &["order_lookup"]);
    check(&among, "查看库存", &["stock_view"]);
    check(&among, "向量 检索", &["vector_lookup"]);
}

#[test]
fn a_tool_that_has_little_of_the_query_does_not_fit() {
    let among = Candidates::new(vec![
        tool("send_incident", "Sends an incident to the pager", "mcp", &[]),
        tool("send_report", "Sends a report", "mcp", &[]),
        tool("send_sms", "Sends a text message", "mcp", &[]),
    ]);
    check(&among, "send gmail email", &[]);
    check(&among, "please send an SMS", &["send_sms"]);
}

#[test]
fn ex_11_3_identifiers_are_taken_apart_and_endings_taken_off() {
    let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
    check("mcp__git-hub__createPullRequests", &["mcp", "git", "hub", "creat", "pull", "request"]);
    check("HTTPServer2 errors", &["http", "server2", "error"]);
    check("Größe ÄNDERN", &["größe", "ändern"]);
    check("查看库存", &["查看", "看库", "库存", "查", "看", "库", "存"]);
    check("what is the", &[]);
}

#[test]
fn groups_narrow_the_search() {
    let among = english();
    let groups = ["research".to_owned()].into();
    let found = among.best("search", Some(&groups), 10);
    assert_eq!(found.len(), 1);
    assert!(among.best("search", Some(&[].into()), 10).is_empty());
}
