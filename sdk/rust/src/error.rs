//! Errors: what a handler may respond with, and why a call of ours has failed.
//!
//! The two are unrelated on purpose: a call that fails inside a handler is not forwarded to the host's caller. It becomes
//! an internal error, unless the handler turns it into an [`RpcError`].

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::code;

/// Any error. A handler may return one with `?`; the host gets "internal error" and an incident id, stderr the text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a handler.
pub type Result<T> = std::result::Result<T, BoxError>;

/// An error to respond with: return it from a handler, and the caller gets exactly this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The number; see [`code`].
    pub code: i64,
    /// A text for people.
    #[serde(default)]
    pub message: String,
    /// Anything else that the caller may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Returns an error with this code and text.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data for the caller.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Returns the error for params that do not fit, with the JSON pointer of each problem.
    pub fn invalid_params(problems: impl IntoIterator<Item = Problem>) -> Self {
        let problems: Vec<Problem> = problems.into_iter().collect();
        let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Self::new(code::INVALID_PARAMS, format!("invalid params: {}", text.join("; ")))
            .with_data(json!({ "problems": problems }))
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(code::UNKNOWN_METHOD, format!("unknown method: {method}"))
    }

    pub(crate) fn busy(what: &str, limit: usize) -> Self {
        Self::new(code::BUSY, format!("busy: {what}, the limit is {limit}"))
    }

    pub(crate) fn too_large(size: usize, limit: usize) -> Self {
        Self::new(code::TOO_LARGE, format!("the result has {size} bytes, the limit is {limit}"))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// One thing that is wrong with a JSON value, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The JSON pointer of the value.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    /// Returns a problem of the value at this pointer.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{at}: {}", self.message)
    }
}

/// Why a call to the remote peer has no result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// The remote peer has responded with an error.
    Rejected {
        /// The method that was called.
        method: String,
        /// The error of the response.
        error: RpcError,
    },
    /// There was no response in time.
    Timeout {
        /// The method that was called.
        method: String,
    },
    /// The request that the call belongs to was cancelled, or its deadline has passed.
    Cancelled,
    /// The link has ended.
    Disconnected,
    /// The message was not sent: it is too large, or too much is pending.
    NotSent(String),
    /// The result does not fit the expected type.
    BadResult {
        /// The method that was called.
        method: String,
        /// What does not fit, and where.
        problem: Problem,
    },
}

impl CallError {
    /// Returns the code of the remote peer's error, if it has responded with one.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Rejected { error, .. } => Some(error.code),
            _ => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { method, error } => write!(f, "{method}: {error}"),
            Self::Timeout { method } => write!(f, "{method}: no response in time"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Disconnected => f.write_str("the link has ended"),
            Self::NotSent(why) => write!(f, "not sent: {why}"),
            Self::BadResult { method, problem } => write!(f, "{method}: undecodable result: {problem}"),
        }
    }
}

impl std::error::Error for CallError {}
