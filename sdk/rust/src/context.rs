//! The context of a handler: its request, cancellation, deadline, progress, and calls that belong to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::batch::Batch;
use crate::contract::{CallMeta, method};
use crate::error::CallError;
use crate::host::Host;
use crate::message::{Id, encode};
use crate::peer::{CREDIT, PROGRESS, Peer};
use crate::sync::{lock, wait_until};

/// A request that is being handled.
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) meta: CallMeta,
    pub(crate) deadline: Option<Instant>,
    pub(crate) batch: Option<Arc<Batch>>,
    /// Whether the link ends when the response is sent.
    pub(crate) is_last: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    credit: Option<u64>,
    is_responded: bool,
    is_cancelled: bool,
}

impl Request {
    pub(crate) fn new(
        id: Id,
        method: String,
        meta: CallMeta,
        deadline: Option<Instant>,
        batch: Option<Arc<Batch>>,
    ) -> Self {
        let state = State { credit: meta.credit, is_responded: false, is_cancelled: false };
        Self {
            id,
            method,
            meta,
            deadline,
            batch,
            is_last: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Marks the request as responded; returns whether it was open.
    pub(crate) fn begin_response(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).is_responded, true)
    }

    pub(crate) fn cancel(&self) {
        lock(&self.state).is_cancelled = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        lock(&self.state).is_cancelled
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(crate) fn is_open(&self) -> bool {
        !lock(&self.state).is_responded
    }

    pub(crate) fn add_credit(&self, more: u64) {
        let mut state = lock(&self.state);
        if let Some(credit) = &mut state.credit {
            *credit = credit.saturating_add(more);
            self.changed.notify_all();
        }
    }

    /// Uses up one event of the caller's credit; waits while there is none.
    fn take_credit(&self) -> Result<(), CallError> {
        let mut state = lock(&self.state);
        loop {
            if state.is_cancelled {
                return Err(CallError::Cancelled);
            }
            match &mut state.credit {
                Some(0) => state = wait_until(&self.changed, state, None),
                Some(credit) => {
                    *credit -= 1;
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn sleep_until(&self, until: Instant) -> Result<(), CallError> {
        let mut state = lock(&self.state);
        while !state.is_cancelled {
            if Instant::now() >= until {
                return Ok(());
            }
            state = wait_until(&self.changed, state, Some(until));
        }
        Err(CallError::Cancelled)
    }
}

/// What a handler knows of its request, and the way to the remote peer. Clones may be given to other threads.
#[derive(Clone)]
pub struct Context {
    pub(crate) peer: Peer,
    pub(crate) request: Option<Arc<Request>>,
}

impl Context {
    pub(crate) fn new(peer: Peer, request: Option<Arc<Request>>) -> Self {
        Self { peer, request }
    }

    /// The peer that the request came from.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The host: memory, configuration and log. Its calls belong to this request.
    #[must_use]
    pub fn host(&self) -> Host<'_> {
        Host::new(self)
    }

    /// Returns a context without a request, for work that goes on after the response.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::new(self.peer.clone(), None)
    }

    /// The metadata of the call; `None` for a notification.
    #[must_use]
    pub fn meta(&self) -> Option<&CallMeta> {
        self.request.as_ref().map(|request| &request.meta)
    }

    /// When the caller stops waiting, if it has said so.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().and_then(|request| request.deadline)
    }

    /// How long the caller still waits, if it has said so.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the caller no longer waits: the request was cancelled, its deadline has passed, or the link has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.is_cancelled())
    }

    /// Returns an error once the request is cancelled: `ctx.check()?` in a loop ends the handler.
    ///
    /// # Errors
    /// [`CallError::Cancelled`]
    pub fn check(&self) -> Result<(), CallError> {
        if self.is_cancelled() { Err(CallError::Cancelled) } else { Ok(()) }
    }

    /// Sleeps; cancellation ends the sleep.
    ///
    /// # Errors
    /// [`CallError::Cancelled`]
    pub fn sleep(&self, duration: Duration) -> Result<(), CallError> {
        let until = Instant::now() + duration;
        if let Some(request) = &self.request {
            return request.sleep_until(until);
        }
        std::thread::sleep(duration);
        Ok(())
    }

    /// Reports progress to the caller. Does nothing for a notification, or where the remote peer has no progress.
    ///
    /// # Errors
    /// The request is cancelled, or the link has ended.
    pub fn progress<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), CallError> {
        let Some(request) = &self.request else { return Ok(()) };
        if !self.peer.has_feature(PROGRESS) {
            return self.check();
        }
        self.use_credit(request)?;
        let value = to_json(value)?;
        let params = ["{\"token\":", &request.id.0, ",\"value\":", &value, "}"].concat();
        self.peer.send_notification(method::PROGRESS, Some(&params))
    }

    /// Sends a notification that belongs to the request; waits while the caller has granted no credit for it.
    ///
    /// # Errors
    /// The request is cancelled, the link has ended, or the params are no object.
    pub fn notify<T: Serialize + ?Sized>(&self, method: &str, params: &T) -> Result<(), CallError> {
        let params = to_json(params)?;
        let Some(request) = self.request.as_ref().filter(|request| request.is_open() || request.is_cancelled()) else {
            return self.peer.send_notification(method, Some(&params));
        };
        self.use_credit(request)?;
        self.peer.send_event(request, method, &params)
    }

    /// Calls a method of the remote peer as part of this request: with its deadline at most, and cancelled with it.
    ///
    /// # Errors
    /// There is no result: see [`CallError`].
    pub fn call<P, R>(&self, method: &str, params: &P) -> Result<R, CallError>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        self.peer.call_within(self.request.as_ref(), method, Some(&to_json(params)?), self.peer.call_timeout())
    }

    fn use_credit(&self, request: &Request) -> Result<(), CallError> {
        if self.peer.has_feature(CREDIT) { request.take_credit() } else { self.check() }
    }

    /// Ends the link when the response to this request is sent.
    pub(crate) fn end_after_response(&self) {
        if let Some(request) = &self.request {
            request.is_last.store(true, Ordering::SeqCst);
        }
    }
}

pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, CallError> {
    serde_json::to_string(value).map_err(|error| CallError::NotSent(format!("the value has no JSON: {error}")))
}

/// Returns params with metadata in them. Params by position cannot have it, and stay unchanged.
pub(crate) fn insert_meta(params: Option<&str>, mut meta: CallMeta, marks_no_params: bool) -> Option<String> {
    if meta == CallMeta::default() {
        return params.map(Into::into);
    }
    let is_empty = matches!(params, None | Some("{}"));
    if is_empty && marks_no_params {
        meta.no_params = Some(params.is_none());
    }
    let own = encode(&meta);
    match params {
        Some(params) if !params.starts_with('{') => Some(params.into()),
        Some(params) if params.contains("\"_meta\"") => Some(merge_meta(params, &own)),
        Some(params) if !is_empty => Some(["{\"_meta\":{\"becket\":", &own, "},", &params[1..]].concat()),
        _ => Some(["{\"_meta\":{\"becket\":", &own, "}}"].concat()),
    }
}

fn merge_meta(params: &str, meta: &str) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(params) else { return params.into() };
    let own = serde_json::from_str(meta).unwrap_or_default();
    match members.entry("_meta").or_insert_with(|| Value::Object(serde_json::Map::new())) {
        Value::Object(all) => all.insert("becket".into(), own),
        _ => return params.into(), // the caller uses `_meta` for something else
    };
    encode(&members)
}
