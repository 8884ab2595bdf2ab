//! A host for tests: serves an extension in this process, over pipes.

use std::time::Duration;
use std::{io, thread};

use serde::Serialize;
use serde_json::{Value, json};

use crate::contract::{FEATURES, PROTOCOL_VERSION, method};
use crate::error::{CallError, Result};
use crate::extension::Extension;
use crate::limits::Limits;
use crate::methods::Methods;
use crate::peer::Peer;

const PATIENCE: Duration = Duration::from_secs(30);

/// A host with one extension, which ends with it.
pub struct TestHost(Peer);

impl TestHost {
    /// Starts an extension and completes the handshake. `methods` are those of the host that the extension calls.
    ///
    /// # Errors
    /// The extension does not start.
    pub fn start(extension: Extension, methods: Methods) -> Result<Self> {
        let (input, their_output) = io::pipe()?;
        let (their_input, output) = io::pipe()?;
        thread::spawn(move || extension.serve(their_input, their_output));
        let host = Self(Peer::start(input, output, methods, Limits::default()));
        let params = json!({
            "extension_protocol_version": PROTOCOL_VERSION, "plugin_id": "test", "plugin_root": null, "config": {},
            "features": FEATURES,
        });
        host.call(method::INITIALIZE, &params)?;
        Ok(host)
    }

    /// Runs a tool and returns its result.
    ///
    /// # Errors
    /// The tool has failed, or does not exist.
    pub fn call_tool(&self, name: &str, input: &Value) -> std::result::Result<Value, CallError> {
        self.call(method::TOOL_CALL, &json!({ "name": name, "input": input }))
    }

    /// Calls any method of the extension.
    ///
    /// # Errors
    /// There is no result: see [`CallError`].
    pub fn call<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> std::result::Result<Value, CallError> {
        self.0.call(method, params, PATIENCE)
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.0.close();
    }
}
