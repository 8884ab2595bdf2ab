//! The limits of a link, with their defaults.

use std::time::Duration;

/// The bounds of one link.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one message.
    pub frame: usize,
    /// Requests that are handled at once; the next one is rejected as busy. It bounds the threads, too.
    pub inbound_requests: usize,
    /// Bytes of these requests.
    pub inbound_bytes: usize,
    /// Bytes of notifications that wait for their handler; more end the link.
    pub notification_bytes: usize,
    /// Calls that wait for their response; the next one is not sent.
    pub outbound_calls: usize,
    /// How deep calls may be nested: host, extension, host, and so on.
    pub call_depth: u64,
    /// How long a call waits for its response.
    pub call_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 4 * 1024 * 1024,
            inbound_requests: 256,
            inbound_bytes: 16 * 1024 * 1024,
            notification_bytes: 8 * 1024 * 1024,
            outbound_calls: 1024,
            call_depth: 32,
            call_timeout: Duration::from_secs(60),
        }
    }
}
