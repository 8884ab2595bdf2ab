//! The methods and notifications that a peer handles, by name.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::error::{Problem, Result, RpcError};
use crate::json;

pub(crate) type Handler = Arc<dyn Fn(&Params, &Context) -> Result<String> + Send + Sync>;

/// The params of a request or notification, without the metadata of the call.
#[derive(Debug, Clone, Default)]
pub struct Params {
    pub(crate) value: Option<Value>,
    /// As the remote peer has written them.
    pub(crate) text: Option<Box<str>>,
}

impl Params {
    /// Returns the params as JSON, `None` if there are none.
    #[must_use]
    pub fn as_value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Decodes the params; absent ones are decoded as null, and as an empty object where null does not fit.
    ///
    /// # Errors
    /// They do not fit; the error names the member, and is the response if the handler returns it.
    pub fn decode<T: DeserializeOwned>(&self) -> std::result::Result<T, RpcError> {
        let decoded = match &self.value {
            Some(params) => json::decode(params),
            None => json::decode(&Value::Null).or_else(|_| json::decode(&Value::Object(serde_json::Map::new()))),
        };
        decoded.map_err(|problem| RpcError::invalid_params([problem]))
    }
}

/// A registry of handlers: `Methods::new().handle("add", |(a, b): (i64, i64), _| Ok(a + b))`.
#[derive(Clone, Default)]
pub struct Methods {
    requests: HashMap<String, Handler>,
    notifications: HashMap<String, Handler>,
}

impl Methods {
    /// Returns a registry without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the handler of a method. Params that do not fit its type are rejected with their JSON pointer.
    #[must_use]
    pub fn handle<P, R, F>(self, method: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
        F: Fn(P, &Context) -> Result<R> + Send + Sync + 'static,
    {
        self.handle_params(method, move |params, ctx| handler(params.decode()?, ctx))
    }

    /// Registers the handler of a method that decodes the params itself.
    #[must_use]
    pub(crate) fn handle_params<R, F>(mut self, method: impl Into<String>, handler: F) -> Self
    where
        R: Serialize,
        F: Fn(&Params, &Context) -> Result<R> + Send + Sync + 'static,
    {
        let erased = move |params: &Params, ctx: &Context| encode(&handler(params, ctx)?);
        self.requests.insert(method.into(), Arc::new(erased));
        self
    }

    /// Registers the handler of a notification. They are handled one at a time, in the order of their arrival.
    #[must_use]
    pub fn on<P, F>(mut self, method: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned,
        F: Fn(P, &Context) -> Result<()> + Send + Sync + 'static,
    {
        let erased = move |params: &Params, ctx: &Context| encode(&handler(params.decode()?, ctx)?);
        self.notifications.insert(method.into(), Arc::new(erased));
        self
    }

    pub(crate) fn find(&self, method: &str) -> std::result::Result<Handler, RpcError> {
        match self.requests.get(method) {
            Some(handler) => Ok(Arc::clone(handler)),
            None if self.notifications.contains_key(method) => {
                Err(RpcError::invalid_request(format!("{method} is a notification: send it without an id")))
            }
            None => Err(RpcError::unknown_method(method)),
        }
    }

    pub(crate) fn find_notification(&self, method: &str) -> Option<Handler> {
        self.notifications.get(method).cloned()
    }
}

fn encode<T: Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// Parses the params of a request, without `_meta.becket`.
pub(crate) fn parse_params(text: Option<Box<str>>, has_no_params: bool) -> std::result::Result<Params, RpcError> {
    let Some(text) = text else { return Ok(Params::default()) };
    let mut value = json::parse(&text).map_err(|problem| RpcError::invalid_params([problem]))?;
    match &mut value {
        Value::Object(members) => {
            if let Some(Value::Object(meta)) = members.get_mut("_meta")
                && meta.remove("becket").is_some()
                && meta.is_empty()
            {
                members.remove("_meta");
                if members.is_empty() && has_no_params {
                    return Ok(Params::default());
                }
            }
        }
        Value::Array(_) => {}
        _ => return Err(RpcError::invalid_params([Problem::new("", "expected an object or an array")])),
    }
    Ok(Params { value: Some(value), text: Some(text) })
}
