//! Collects the responses to one batch.

use std::sync::Mutex;

use crate::error::RpcError;
use crate::message::{Id, encode_response};
use crate::sync::lock;

/// The responses to one batch, which are sent together.
pub(crate) struct Batch {
    state: Mutex<BatchState>,
}

struct BatchState {
    missing: usize,
    responses: Vec<(Id, String)>,
    bytes: usize,
}

impl Batch {
    pub(crate) fn new(missing: usize) -> Self {
        Self { state: Mutex::new(BatchState { missing, responses: Vec::new(), bytes: 0 }) }
    }

    /// Adds a response; returns the body of all responses when none is missing.
    pub(crate) fn add(&self, id: Id, response: String, limit: usize) -> Option<String> {
        let mut state = lock(&self.state);
        state.missing -= 1;
        state.bytes += response.len() + 1;
        let is_too_large = state.bytes >= limit;
        state.responses.push((id, response));
        if is_too_large {
            for (_, response) in &mut state.responses {
                response.clear(); // it cannot be sent any more: only the ids are needed
            }
        }
        if state.missing > 0 {
            return None;
        }
        let error = RpcError::too_large(state.bytes, limit);
        let bodies: Vec<String> = state
            .responses
            .drain(..)
            .map(|(id, response)| if is_too_large { encode_response(&id, Err(&error)) } else { response })
            .collect();
        Some(format!("[{}]", bodies.join(",")))
    }
}
