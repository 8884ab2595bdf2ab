//! Write extensions for becket hosts in Rust.
//!
//! An [`Extension`] declares tools, commands, providers and hooks; [`run`] serves the host that has started the program.
//! Handlers are plain functions that run in threads of their own and may block. Their [`Context`] has cancellation,
//! deadline and progress, and its [`Host`] memory, configuration and log.
//!
//! ```no_run
//! use becket::{Extension, Schema, Tool};
//!
//! #[derive(serde::Deserialize)]
//! struct Count {
//!     text: String,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     becket::run(|| {
//!         let input = Schema::object().required("text", Schema::string());
//!         Extension::new("counter", "1.0.0").tool(
//!             Tool::new("count", "Counts the letters of a text.", input),
//!             |input: Count, _| Ok(input.text.chars().count()),
//!         )
//!     })
//! }
//! ```

mod batch;
mod calls;
mod context;
pub mod contract;
mod error;
mod extension;
pub mod framing;
mod host;
mod inbound;
mod json;
mod limits;
mod log;
mod message;
mod methods;
mod outbox;
mod outputs;
mod peer;
mod pool;
mod run;
mod schema;
mod session;
mod signals;
mod stdio;
mod sync;
pub mod testing;

pub use context::Context;
pub use contract::{Tool, code};
pub use error::{BoxError, CallError, Problem, Result, RpcError};
pub use extension::{EditorResponse, Extension, Served};
pub use host::{Config, Host, Memory};
pub use limits::Limits;
pub use methods::{Methods, Params};
pub use outputs::{CommandOutput, ProviderStream, Task};
pub use peer::{End, Peer};
pub use run::run;
pub use schema::Schema;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
