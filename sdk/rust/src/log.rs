//! Log lines on stderr, in the form `LEVEL:logger:message` from which hosts take the level.

use std::io::Write;

/// Writes a message to stderr; each line of it becomes a line of the log.
pub(crate) fn write_stderr(level: &str, logger: &str, message: &str) {
    let logger = logger.replace(':', ".");
    let mut text = String::new();
    for line in message.split('\n') {
        text.extend([level, ":", &logger, ":", line.trim_end_matches('\r'), "\n"]);
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes()); // without a reader there is no log
}
