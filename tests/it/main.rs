//! The tests that see the project from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a fixture talks to its test on standard output")]
#![expect(clippy::disallowed_methods, reason = "a fixture is a process that is to be killed")]

mod activity;
mod agent;
mod approvals;
mod artifacts;
mod asks;
mod bad;
mod binary;
mod call;
mod chain;
mod changes;
mod check;
mod command;
mod conformance;
mod discovery;
mod example;
mod examples;
mod faults;
mod fixture;
mod hooks;
mod http;
mod inputs;
mod load;
mod matrix;
mod names;
mod newcomer;
mod peers;
mod process;
mod python;
mod relays;
mod remote;
mod rough;
mod schema;
mod scope;
mod session;
mod six;
mod skills;
mod start;
mod stdio;
mod through;
mod tidy;
mod upstream;
mod web;
