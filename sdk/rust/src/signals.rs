//! SIGTERM and SIGINT: the first of them calls a function, in a thread of its own.

use std::io::{self, PipeWriter, Read, Write};
use std::sync::OnceLock;
use std::thread;

const SIGINT: i32 = 2; // both numbers are the same on every Unix
const SIGTERM: i32 = 15;

static WAKE: OnceLock<PipeWriter> = OnceLock::new();

/// Calls a function at the first signal that asks the program to end. A second one ends the program at once.
pub(crate) fn on_first(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    if WAKE.set(writer).is_err() {
        return Ok(()); // `becket::run` was called before: the signals end the extension of that call
    }
    thread::spawn(move || {
        if reader.read_exact(&mut [0]).is_ok() {
            run();
        }
    });
    for number in [SIGTERM, SIGINT] {
        signal(number, Some(wake));
    }
    Ok(())
}

/// Interrupts any code, so that it may neither lock nor allocate: it reads an atomic, and makes two system calls.
extern "C" fn wake(number: i32) {
    signal(number, None);
    if let Some(mut writer) = WAKE.get() {
        let _ = writer.write(&[0]);
    }
}

// The standard library cannot handle a signal, and a dependency would declare the same function. It touches no memory.
// No handler is the null pointer: the default action, which ends the program.
#[allow(unsafe_code)]
mod foreign {
    unsafe extern "C" {
        pub(super) safe fn signal(number: i32, handler: Option<extern "C" fn(i32)>) -> usize;
    }
}
use foreign::signal;
