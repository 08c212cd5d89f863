//! T1 and T2 of the contract, and the traits that capabilities imply.

use super::*;

#[track_caller]
fn check_name(name: &str, expected: Result<(), DefinitionError>) {
    assert_eq!(ToolName::parse(name).map(|_| ()), expected, "{name}");
}

#[test]
fn t1_names_are_letters_digits_and_underscores() {
    let long = "x".repeat(65);
    check_name(&"x".repeat(64), Ok(()));
    check_name(&long, Err(DefinitionError::LongName(long.clone())));
    check_name("", Err(DefinitionError::EmptyName));
    check_name("9a", Err(DefinitionError::NameStart("9a".into())));
    check_name("_a", Ok(()));
    check_name("a-b", Err(DefinitionError::NameCharacter("a-b".into())));
    check_name("a.b", Err(DefinitionError::NameCharacter("a.b".into())));
    check_name("工具", Ok(()));
    check_name(&"工".repeat(64), Ok(()));
}

#[test]
fn a_blank_description_is_refused() {
    let schema = InputSchema::object();
    let name = ToolName::parse("a").unwrap();
    let error = ToolDefinition::new(name, " \n", schema).unwrap_err();
    assert_eq!(error, DefinitionError::BlankDescription);
}

#[test]
fn capabilities_imply_the_traits_of_a_call() {
    use Capability::{Agent, Execute, Mcp, Network, Read, Write};
    let table: [(Capabilities, bool, bool); 8] = [
        (Capabilities::default(), true, false),
        ([Read].into(), true, false),
        ([Read, Write].into(), false, true),
        ([Write].into(), false, true),
        ([Execute].into(), false, true),
        ([Network].into(), false, false),
        ([Mcp].into(), false, false),
        ([Agent].into(), false, false),
    ];
    for (capabilities, read_only, destructive) in table {
        assert_eq!(capabilities.read_only(), read_only, "{capabilities:?}");
        assert_eq!(capabilities.destructive(), destructive, "{capabilities:?}");
    }
}
