//! What the host offers to its extension: memory, configuration, log, and any other method.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::contract::{
    Append, Appended, ConfigGet, ConfigSaved, ConfigSet, ConfigSubscribe, ConfigSubscribed, ConfigValue, HostInfo,
    LogLevel, LogRecord, Query, Record, Records, method,
};
use crate::error::CallError;
use crate::log::write_stderr;
use crate::message::encode;
use crate::peer::LOG;

/// The host of this extension. Calls belong to the request of the context that it came from.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    context: &'a Context,
}

impl<'a> Host<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context }
    }

    /// The id by which the host knows this extension; empty before `initialize`.
    #[must_use]
    pub fn extension(&self) -> &'a str {
        self.context.peer.session().get().map_or("", |params| &params.plugin_id)
    }

    /// Name and version of the host, if it has sent them.
    #[must_use]
    pub fn info(&self) -> Option<&'a HostInfo> {
        self.context.peer.session().get().and_then(|params| params.host.as_ref())
    }

    /// The folder of this extension, if the host has sent it.
    #[must_use]
    pub fn root(&self) -> Option<&'a str> {
        self.context.peer.session().get().and_then(|params| params.plugin_root.as_deref())
    }

    /// The configuration that the host has sent with `initialize`.
    #[must_use]
    pub fn initial_config(&self) -> Option<&'a serde_json::Map<String, serde_json::Value>> {
        self.context.peer.session().get().map(|params| &params.config)
    }

    /// What the host keeps for this extension.
    #[must_use]
    pub fn memory(&self) -> Memory<'a> {
        Memory { host: *self }
    }

    /// This extension's own configuration.
    #[must_use]
    pub fn config(&self) -> Config<'a> {
        Config { host: *self }
    }

    /// Calls any method of the host.
    ///
    /// # Errors
    /// There is no result: see [`CallError`].
    pub fn call<P, R>(&self, method: &str, params: &P) -> Result<R, CallError>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        self.context.call(method, params)
    }

    /// Sends a notification that belongs to no request, such as a widget.
    ///
    /// # Errors
    /// The link has ended.
    pub fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<(), CallError> {
        self.context.peer.notify(method, params)
    }

    /// Writes to the host's log; to stderr, from where hosts read it, if the host has no other way.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        let record = LogRecord::new(level, self.extension(), message);
        if self.context.peer.has_feature(LOG) && self.context.peer.notify(method::LOG, &record).is_ok() {
            return;
        }
        let level = encode(&record.level).trim_matches('"').to_uppercase();
        write_stderr(&level, &record.logger, &record.message);
    }
}

/// Records that the host keeps for this extension. Needs `memory.read` and `memory.write`.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    host: Host<'a>,
}

impl Memory<'_> {
    /// Stores a text with tags; returns when it is durable.
    ///
    /// # Errors
    /// The host does not allow it, or the text is too large.
    pub fn append(&self, content: impl Into<String>, tags: &[&str]) -> Result<Appended, CallError> {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_string()).collect();
        self.append_record(Append::new("", content).with_tags(tags))
    }

    /// Stores a record; its namespace is set to that of this extension.
    ///
    /// # Errors
    /// The host does not allow it, or the record is too large.
    pub fn append_record(&self, mut record: Append) -> Result<Appended, CallError> {
        record.namespace = self.host.extension().into();
        self.host.call(method::MEMORY_APPEND, &record)
    }

    /// Returns the records for which all conditions hold, newest first: `query(Query::default().with_limit(5))`.
    ///
    /// # Errors
    /// The host does not allow it.
    pub fn query(&self, mut query: Query) -> Result<Vec<Record>, CallError> {
        query.namespace = self.host.extension().into();
        self.host.call(method::MEMORY_QUERY, &query).map(|found: Records| found.records)
    }
}

/// The configuration of this extension. Needs `config.write` to set and `config.subscribe` to watch.
#[derive(Clone, Copy)]
pub struct Config<'a> {
    host: Host<'a>,
}

impl Config<'_> {
    /// Returns a value, `None` if it is not set.
    ///
    /// # Errors
    /// The call has failed.
    pub fn get(&self, key: &str) -> Result<Option<String>, CallError> {
        self.read(key).map(|found| found.value)
    }

    /// Returns a value with its revision.
    ///
    /// # Errors
    /// The call has failed.
    pub fn read(&self, key: &str) -> Result<ConfigValue, CallError> {
        self.host.call(method::CONFIG_GET, &ConfigGet::new(key))
    }

    /// Changes a value; returns when it is durable.
    ///
    /// # Errors
    /// The host does not allow it.
    pub fn set(&self, key: &str, value: impl Into<String>) -> Result<ConfigSaved, CallError> {
        self.host.call(method::CONFIG_SET, &ConfigSet::new(key, value))
    }

    /// Changes a value only if it has not changed since this revision; `ok` says whether it was stored.
    ///
    /// # Errors
    /// The host does not allow it.
    pub fn set_if(&self, key: &str, value: impl Into<String>, revision: u64) -> Result<ConfigSaved, CallError> {
        self.host.call(method::CONFIG_SET, &ConfigSet::new(key, value).with_if_revision(revision))
    }

    /// Subscribes to changes of these keys, of all if there are none: see `Extension::on_config_change`.
    ///
    /// # Errors
    /// The host does not allow it.
    pub fn subscribe(&self, keys: &[&str]) -> Result<ConfigSubscribed, CallError> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_string()).collect();
        let all = ConfigSubscribe::default();
        self.host.call(method::CONFIG_SUBSCRIBE, &if keys.is_empty() { all } else { all.with_keys(keys) })
    }
}
