//! The outputs of commands and providers, whose methods send the events of the contract.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::contract::{TaskEnded, TaskKind, TaskLogged, TaskStarted, TaskUpdated, method};
use crate::error::{CallError, Result, RpcError};

/// The output of a running command. The final `done` event is sent when the command returns.
pub struct CommandOutput {
    context: Context,
    request_id: String,
    tasks: AtomicU64,
}

impl CommandOutput {
    pub(crate) fn new(context: Context, request_id: String) -> Self {
        Self { context, request_id, tasks: AtomicU64::new(0) }
    }

    /// The context of the command: cancellation, deadline, host.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Sends text for the user, in Markdown.
    ///
    /// # Errors
    /// The command is cancelled, or the link has ended; so do all methods.
    pub fn text(&self, content: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "kind": "text", "content": content }))
    }

    /// Sends a remark that is not part of the output.
    ///
    /// # Errors
    /// As [`CommandOutput::text`].
    pub fn system(&self, content: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "kind": "system", "content": content }))
    }

    /// Sends an error, which must not be empty; the command may go on.
    ///
    /// # Errors
    /// As [`CommandOutput::text`].
    pub fn error(&self, content: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "kind": "error", "content": content }))
    }

    /// Sends a table.
    ///
    /// # Errors
    /// As [`CommandOutput::text`].
    pub fn table<H, R, C>(&self, headers: &[H], rows: &[R]) -> std::result::Result<(), CallError>
    where
        H: AsRef<str>,
        R: AsRef<[C]>,
        C: AsRef<str>,
    {
        let headers: Vec<&str> = headers.iter().map(AsRef::as_ref).collect();
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.as_ref().iter().map(AsRef::as_ref).collect()).collect();
        self.send(&json!({ "kind": "table", "headers": headers, "rows": rows }))
    }

    /// Runs `work` as a task whose progress the host shows. The task ends with it, with an error if it fails.
    ///
    /// # Errors
    /// That of `work`, or of the task's own events.
    pub fn task<T>(
        &self,
        label: &str,
        kind: TaskKind,
        total: Option<u64>,
        work: impl FnOnce(&mut Task<'_>) -> Result<T>,
    ) -> Result<T> {
        let id = format!("{}/{}", self.request_id, self.tasks.fetch_add(1, Ordering::Relaxed) + 1);
        self.context.notify(method::TASK_START, &TaskStarted::new(id.clone(), label).with_kind(kind))?;
        let mut task = Task { context: &self.context, id: id.clone(), current: 0, total };
        if total.is_some() {
            task.update(0, None)?;
        }
        let outcome = work(&mut task);
        let mut ended = TaskEnded::new(id);
        if let Err(error) = &outcome {
            // As in a response, only the text of an RpcError leaves the process.
            let text = error.downcast_ref::<RpcError>().map_or("failed", |error| &error.message);
            ended = ended.with_error(if self.context.is_cancelled() { "cancelled" } else { text });
        }
        if self.context.is_cancelled() {
            let _ = self.context.detached().notify(method::TASK_DONE, &ended); // credit no longer counts
            return outcome;
        }
        let sent = self.context.notify(method::TASK_DONE, &ended);
        let value = outcome?;
        sent?;
        Ok(value)
    }

    pub(crate) fn done(&self) -> std::result::Result<(), CallError> {
        self.send(&json!({ "kind": "done" }))
    }

    fn send(&self, event: &Value) -> std::result::Result<(), CallError> {
        self.context.notify(method::COMMAND_OUTPUT, &json!({ "request_id": self.request_id, "event": event }))
    }
}

/// A running task of a command.
pub struct Task<'a> {
    context: &'a Context,
    id: String,
    current: u64,
    total: Option<u64>,
}

impl Task<'_> {
    /// Adds to the completed amount, and shows a message if there is one.
    ///
    /// # Errors
    /// The command is cancelled, or the link has ended.
    pub fn advance(&mut self, by: u64, message: Option<&str>) -> std::result::Result<(), CallError> {
        self.update(self.current + by, message)
    }

    /// Sets the completed amount, and shows a message if there is one.
    ///
    /// # Errors
    /// The command is cancelled, or the link has ended.
    pub fn update(&mut self, current: u64, message: Option<&str>) -> std::result::Result<(), CallError> {
        self.current = current;
        let mut update = TaskUpdated::new(self.id.clone()).with_current(current);
        update.total = self.total;
        update.message = message.map(Into::into);
        self.context.notify(method::TASK_UPDATE, &update)
    }

    /// Sends a log line of the task.
    ///
    /// # Errors
    /// The command is cancelled, or the link has ended.
    pub fn log(&self, line: &str) -> std::result::Result<(), CallError> {
        self.context.notify(method::TASK_LOG, &TaskLogged::new(self.id.clone(), line))
    }
}

/// The events of a provider. If the host called `provider.complete`, they are dropped.
pub struct ProviderStream {
    context: Context,
    is_wanted: bool,
}

impl ProviderStream {
    pub(crate) fn new(context: Context, is_wanted: bool) -> Self {
        Self { context, is_wanted }
    }

    /// The context of the request: cancellation, deadline, host.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Whether the host called `provider.stream`; otherwise events need not be produced.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Sends the next piece of the text.
    ///
    /// # Errors
    /// The request is cancelled, or the link has ended; so do all methods.
    pub fn text(&self, delta: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "type": "text", "delta": delta }))
    }

    /// Sends the next piece of the model's thinking.
    ///
    /// # Errors
    /// As [`ProviderStream::text`].
    pub fn thinking(&self, delta: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "type": "thinking", "delta": delta }))
    }

    /// Sends a tool use of the model; neither the id nor the name may be empty.
    ///
    /// # Errors
    /// As [`ProviderStream::text`].
    pub fn tool_use(&self, id: &str, name: &str, input: &Map<String, Value>) -> std::result::Result<(), CallError> {
        self.send(&json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
    }

    /// Sends usage figures under the names of the provider.
    ///
    /// # Errors
    /// As [`ProviderStream::text`].
    pub fn usage(&self, mut values: Map<String, Value>) -> std::result::Result<(), CallError> {
        values.insert("type".into(), "usage".into());
        self.send(&Value::Object(values))
    }

    /// Sends an error, which must not be empty; the request may still have a result.
    ///
    /// # Errors
    /// As [`ProviderStream::text`].
    pub fn error(&self, message: &str) -> std::result::Result<(), CallError> {
        self.send(&json!({ "type": "error", "message": message }))
    }

    pub(crate) fn done(&self) -> std::result::Result<(), CallError> {
        self.send(&json!({ "type": "done" }))
    }

    fn send(&self, event: &Value) -> std::result::Result<(), CallError> {
        if !self.is_wanted {
            return self.context.check();
        }
        self.context.notify(method::PROVIDER_STREAM_EVENT, event)
    }
}
