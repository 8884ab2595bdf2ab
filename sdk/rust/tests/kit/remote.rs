//! A remote peer for tests: raw frames over pipes, with time bounds.

use std::io::{PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use becket::framing::{FrameReader, write_frame};
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_secs(30);
pub const FEATURES: [&str; 7] = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"];

/// The other end of a link.
pub struct Remote {
    output: Option<PipeWriter>,
    received: Receiver<Value>,
}

impl Remote {
    /// Returns a remote peer, and the streams of the peer under test.
    pub fn connect() -> (Self, PipeReader, PipeWriter) {
        let (their_input, output) = std::io::pipe().unwrap();
        let (input, their_output) = std::io::pipe().unwrap();
        let (send, received) = channel();
        thread::spawn(move || {
            let mut frames = FrameReader::new(input, 64 * 1024 * 1024);
            while let Ok(Some(body)) = frames.read() {
                if send.send(serde_json::from_slice(&body).unwrap()).is_err() {
                    return;
                }
            }
        });
        (Self { output: Some(output), received }, their_input, their_output)
    }

    pub fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub fn send_text(&mut self, body: &str) {
        let mut frame = Vec::new();
        write_frame(body.as_bytes(), &mut frame);
        self.send_bytes(&frame);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn request(&mut self, id: u32, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Returns the next message, whatever it is.
    pub fn receive(&self) -> Value {
        self.received.recv_timeout(PATIENCE).expect("no message in time")
    }

    pub fn result(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        let mut message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        message["result"].take()
    }

    pub fn error(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        let mut message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        message["error"].take()
    }

    pub fn initialize(&mut self, features: &[&str]) -> Value {
        self.result(
            0,
            "initialize",
            json!({
                "extension_protocol_version": 1, "plugin_id": "notes", "plugin_root": null, "config": {"theme": "dark"},
                "host": {"name": "test", "version": "1"}, "features": features,
            }),
        )
    }

    pub fn close(&mut self) {
        self.output = None;
    }
}
