//! Takes stdin and stdout for the wire, and leaves harmless streams under their numbers.
//!
//! After it, what the program or its children print goes to stderr, and what they read is empty: neither can disturb the
//! wire.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns private copies of stdin and stdout, and replaces the originals by the null device and stderr.
pub(crate) fn take() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    replace(0, &null)?;
    replace(1, &io::stderr())?;
    Ok((input.into(), output.into()))
}

fn replace(number: i32, by: &impl AsFd) -> io::Result<()> {
    if dup2(by.as_fd().as_raw_fd(), number) < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

// The one foreign function of the kit. The standard library duplicates descriptors, but cannot replace one; the only
// other ways are a dependency, and a second process. It touches no memory, and both numbers stay open and owned by the
// standard library: only what they lead to changes.
#[allow(unsafe_code)]
mod foreign {
    unsafe extern "C" {
        pub(super) safe fn dup2(old: i32, new: i32) -> i32;
    }
}
use foreign::dup2;
