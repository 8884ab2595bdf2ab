//! Runs an extension as a program, over stdin and stdout.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use crate::extension::Extension;
use crate::log::write_stderr;
use crate::peer::End;
use crate::{signals, stdio};

const EXIT_STOPPED: u8 = 0; // the host has sent shutdown, has closed stdin or has sent a signal
const EXIT_USAGE: u8 = 2; // started in a terminal: there is no host
const EXIT_PROTOCOL_ERROR: u8 = 3; // the host has broken the protocol
const EXIT_STUCK: u8 = 4; // a handler or `on_stop` did not return in time

/// Serves the host that has started this program, until the link ends; return its code from `main`.
///
/// `build` returns the extension. It runs after stdin and stdout were taken for the wire, so that nothing it prints gets
/// there: what is printed from then on goes to stderr.
pub fn run(build: impl FnOnce() -> Extension) -> ExitCode {
    ExitCode::from(serve(build))
}

fn serve(build: impl FnOnce() -> Extension) -> u8 {
    if io::stdin().is_terminal() {
        println!("{}", build().usage());
        return EXIT_USAGE;
    }
    let (input, output) = match stdio::take() {
        Ok(streams) => streams,
        Err(error) => {
            write_stderr("ERROR", "becket", &format!("stdin and stdout cannot be used: {error}"));
            return EXIT_USAGE;
        }
    };
    let (session, peer) = build().start(input, output);
    let stopped = (Arc::clone(&session), peer.clone());
    if let Err(error) = signals::on_first(move || stopped.0.stop(&stopped.1)) {
        write_stderr("ERROR", "becket", &format!("signals end the program at once: {error}"));
    }
    let served = session.wait(&peer);
    if let End::Violation(problem) = &served.end {
        write_stderr("ERROR", "becket", &format!("the host has broken the protocol: {problem}"));
        return EXIT_PROTOCOL_ERROR;
    }
    if served.is_stuck {
        write_stderr("ERROR", "becket", "a handler did not return in time: given up");
        return EXIT_STUCK;
    }
    EXIT_STOPPED
}
