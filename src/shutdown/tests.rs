//! Tests of the shutdown.

use std::time::Duration;

use super::{Drained, ECHO, Shutdown, Signal, ignored, signals};

#[tokio::test(start_paused = true)]
async fn drain_waits_for_tasks_that_heed_the_token() {
    let shutdown = Shutdown::new();
    let child = shutdown.child();
    shutdown.spawn("heeds", async move { child.cancelled().await });
    shutdown.cancel();
    assert_eq!(shutdown.drain(Duration::from_secs(1)).await, Drained::All);
}

#[tokio::test(start_paused = true)]
async fn drain_counts_the_tasks_that_do_not_end() {
    let shutdown = Shutdown::new();
    shutdown.spawn("stubborn", std::future::pending::<()>());
    shutdown.spawn("stubborn too", std::future::pending::<()>());
    shutdown.cancel();
    assert_eq!(shutdown.drain(Duration::from_secs(1)).await, Drained::Left(2));
}

#[tokio::test]
async fn a_cancelled_child_leaves_the_rest_alone() {
    let shutdown = Shutdown::new();
    shutdown.child().cancel();
    assert!(!shutdown.token().is_cancelled());
}

#[tokio::test]
async fn a_signal_is_named() {
    let mut signals = signals().unwrap();
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(signals.next().await, Signal::Terminate);
    assert_eq!(Signal::Terminate.to_string(), "SIGTERM");
}

#[tokio::test]
async fn a_second_signal_is_one_that_does_not_come_with_the_first() {
    let raise = || nix::sys::signal::raise(nix::sys::signal::Signal::SIGHUP).unwrap();
    let (mut early, mut late) = (signals().unwrap(), signals().unwrap());
    raise();
    let mut second = std::pin::pin!(early.second());
    tokio::select! {
        biased;
        _ = &mut second => panic!("there was one only"),
        _ = late.next() => {}
    }
    raise();
    let echo = tokio::time::timeout(ECHO + Duration::from_millis(100), &mut second);
    assert!(echo.await.is_err(), "it came with the first");
    raise();
    assert_eq!(second.await, Signal::Hangup);
}

#[test]
fn ignored_signals_are_read_from_the_status() {
    assert_eq!(ignored("Name:\tsh\nSigIgn:\t0000000000000001\nSigCgt:\t00\n"), 1);
    assert_eq!(ignored(""), 0);
}
