//! A symmetric JSON-RPC peer: calls both ways at once, cancellation, deadlines, progress, credit and pings.
//!
//! This module has the calls of ours and the state of the link; `inbound` has the other half. One thread reads: it
//! responds to pings, routes responses and hands requests to the threads of the pool. It never runs a handler and never
//! waits for one. Notifications are handled one at a time, in order.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::calls::{Calls, Pending};
use crate::context::{Request, insert_meta, to_json};
use crate::contract::{CallMeta, FEATURES, Initialize, method};
use crate::error::{CallError, Problem};
use crate::framing::FrameReader;
use crate::inbound::{Deadlines, Inbound, cancelled};
use crate::json;
use crate::limits::Limits;
use crate::message::encode_request;
use crate::methods::Methods;
use crate::outbox::Outbox;
use crate::pool::Pool;
use crate::sync::{lock, wait_until};

// Bits in the order of `FEATURES`.
pub(crate) const CANCEL: u8 = 1;
pub(crate) const PROGRESS: u8 = 1 << 1;
pub(crate) const DEADLINE: u8 = 1 << 2;
pub(crate) const CREDIT: u8 = 1 << 3;
pub(crate) const LOG: u8 = 1 << 5;
pub(crate) const NO_PARAMS: u8 = 1 << 6;
const ALL: u8 = (1 << FEATURES.len()) - 1;

/// Why a link has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The remote peer has closed its end.
    Closed,
    /// This peer has ended it, at the request of the remote peer or by [`Peer::close`].
    Stopped,
    /// The remote peer has broken the protocol.
    Violation(String),
}

/// One end of a link. Clones share the link.
#[derive(Clone)]
pub struct Peer(pub(crate) Arc<Link>);

pub(crate) struct Link {
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) methods: Methods,
    pub(crate) limits: Limits,
    pub(crate) features: AtomicU8,
    pub(crate) calls: Mutex<Calls>,
    pub(crate) inbound: Mutex<Inbound>,
    pub(crate) finished: Condvar,
    pub(crate) deadlines: Mutex<Deadlines>,
    pub(crate) deadlines_changed: Condvar,
    pub(crate) end: Mutex<Option<End>>,
    pub(crate) ended: Condvar,
    pub(crate) session: OnceLock<Initialize>,
}

impl Peer {
    /// Serves a link in threads of its own. Until a handshake limits them, all features are assumed.
    pub fn start<R, W>(input: R, output: W, methods: Methods, limits: Limits) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        Self::start_with(ALL, input, output, methods, limits)
    }

    /// Serves a link on which no feature is used until the handshake.
    pub(crate) fn start_without_features<R, W>(input: R, output: W, methods: Methods, limits: Limits) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        Self::start_with(0, input, output, methods, limits)
    }

    fn start_with<R, W>(features: u8, input: R, output: W, methods: Methods, limits: Limits) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let peer = Self(Arc::new(Link {
            outbox: Outbox::new(Box::new(output)),
            pool: Arc::default(),
            methods,
            limits,
            features: AtomicU8::new(features),
            calls: Mutex::new(Calls::new()),
            inbound: Mutex::default(),
            finished: Condvar::new(),
            deadlines: Mutex::default(),
            deadlines_changed: Condvar::new(),
            end: Mutex::new(None),
            ended: Condvar::new(),
            session: OnceLock::new(),
        }));
        let reader = peer.clone();
        thread::spawn(move || reader.read(FrameReader::new(input, reader.0.limits.frame)));
        peer
    }

    // -- calls of ours

    /// Calls a method of the remote peer, on behalf of no request.
    ///
    /// # Errors
    /// There is no result: see [`CallError`].
    pub fn call<P, R>(&self, method: &str, params: &P, timeout: Duration) -> Result<R, CallError>
    where
        P: serde::Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let params = to_json(params)?;
        self.call_within(None, method, Some(&params).filter(|params| *params != "null").map(String::as_str), timeout)
    }

    /// Sends a notification that belongs to no request.
    ///
    /// # Errors
    /// The link has ended, or the notification is too large.
    pub fn notify<P: serde::Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<(), CallError> {
        let params = to_json(params)?;
        self.send_notification(method, Some(params.as_str()).filter(|params| *params != "null"))
    }

    pub(crate) fn call_within<R: DeserializeOwned>(
        &self,
        parent: Option<&Arc<Request>>,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<R, CallError> {
        let text = self.call_raw(parent, method, params, timeout)?;
        let value = serde_json::from_str(&text).map_err(|error| CallError::BadResult {
            method: method.into(),
            problem: Problem::new("", error.to_string()),
        })?;
        json::decode(&value).map_err(|problem| CallError::BadResult { method: method.into(), problem })
    }

    fn call_raw(
        &self,
        parent: Option<&Arc<Request>>,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<Box<str>, CallError> {
        let deadline = Instant::now() + timeout;
        let until = parent.and_then(|parent| parent.deadline).map_or(deadline, |other| other.min(deadline));
        let params = self.add_call_meta(parent, params, until)?;
        let (reply, response) = sync_channel(1);
        let pending = Pending { reply, method: method.into(), parent: parent.cloned() };
        let id = lock(&self.0.calls).open(pending, self.0.limits.outbound_calls)?;
        let is_cancelled = || parent.is_some_and(|parent| parent.is_cancelled());
        let sent = if is_cancelled() {
            Err(CallError::Cancelled) // before the call was in the table, so that nothing else ends it
        } else {
            self.send(&encode_request(Some(id), method, params.as_deref()))
        };
        if let Err(error) = sent {
            lock(&self.0.calls).pending.remove(&id);
            return Err(error);
        }
        match response.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Disconnected) => Err(CallError::Disconnected),
            Err(RecvTimeoutError::Timeout) => {
                self.abandon(id);
                Err(if is_cancelled() { CallError::Cancelled } else { CallError::Timeout { method: method.into() } })
            }
        }
    }

    fn add_call_meta(
        &self,
        parent: Option<&Arc<Request>>,
        params: Option<&str>,
        until: Instant,
    ) -> Result<Option<String>, CallError> {
        let depth = parent.map_or(0, |parent| parent.meta.depth + 1);
        if depth > self.0.limits.call_depth {
            return Err(CallError::NotSent(format!("calls within calls, the limit is {}", self.0.limits.call_depth)));
        }
        if !self.has_feature(DEADLINE) {
            return Ok(params.map(Into::into));
        }
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let open = parent.filter(|parent| parent.is_open());
        let meta = CallMeta {
            timeout_ms: Some(u64::try_from(left).unwrap_or(u64::MAX).max(1)),
            parent: open.and_then(|parent| serde_json::from_str(&parent.id.0).ok()),
            depth,
            ..CallMeta::default()
        };
        Ok(insert_meta(params, meta, self.has_feature(NO_PARAMS)))
    }

    /// Gives up a call: a late response is dropped, and the remote peer is asked to stop.
    fn abandon(&self, id: u32) {
        let mut calls = lock(&self.0.calls);
        if calls.pending.remove(&id).is_none() {
            return;
        }
        calls.remember(id);
        drop(calls);
        self.send_cancel(id);
    }

    fn send_cancel(&self, id: u32) {
        if self.has_feature(CANCEL) {
            // Nothing is lost if it cannot be sent: the remote peer has the deadline, or is gone.
            let _ = self.send(&encode_cancel(id));
        }
    }

    pub(crate) fn send_event(&self, request: &Request, method: &str, params: &str) -> Result<(), CallError> {
        let parent = serde_json::from_str(&request.id.0).ok().filter(|_| self.has_feature(DEADLINE));
        let params = insert_meta(Some(params), CallMeta { parent, ..CallMeta::default() }, self.has_feature(NO_PARAMS));
        self.send_notification(method, params.as_deref())
    }

    pub(crate) fn send_notification(&self, method: &str, params: Option<&str>) -> Result<(), CallError> {
        self.send(&encode_request(None, method, params))
    }

    fn send(&self, body: &str) -> Result<(), CallError> {
        let limit = self.0.limits.frame;
        if body.len() > limit {
            return Err(CallError::NotSent(format!("the message has {} bytes, the limit is {limit}", body.len())));
        }
        self.0.outbox.send(body)
    }

    // -- features and state

    pub(crate) fn has_feature(&self, feature: u8) -> bool {
        self.0.features.load(Ordering::Relaxed) & feature != 0
    }

    /// Uses only those features that the remote peer has announced.
    pub(crate) fn limit_features(&self, announced: &[String]) {
        let bits = FEATURES.iter().enumerate().filter(|(_, name)| announced.iter().any(|other| other == *name));
        self.0.features.store(bits.fold(0, |all, (bit, _)| all | (1 << bit)), Ordering::Relaxed);
    }

    pub(crate) fn session(&self) -> &OnceLock<Initialize> {
        &self.0.session
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.0.limits.call_timeout
    }

    /// Waits until the link has ended, or the time is over; returns why it has ended.
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> Option<End> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut end = lock(&self.0.end);
        loop {
            if end.is_some() {
                return end.clone();
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            end = wait_until(&self.0.ended, end, until);
        }
    }

    /// Ends the link: pending calls fail, running handlers are cancelled, and what is queued is sent for half a second.
    pub fn close(&self) {
        self.fail_calls();
        self.cancel_requests(None);
        self.0.outbox.flush(Duration::from_millis(500));
        self.0.outbox.close();
        self.set_end(End::Stopped);
    }

    /// Ends the link at once, as far as those are concerned who wait for it.
    pub(crate) fn end(&self) {
        self.set_end(End::Stopped);
    }

    pub(crate) fn set_end(&self, reason: End) {
        lock(&self.0.end).get_or_insert(reason);
        self.0.ended.notify_all();
    }

    pub(crate) fn fail_calls(&self) {
        let mut calls = lock(&self.0.calls);
        calls.is_closed = true;
        calls.pending.clear(); // each waiter sees that its channel is closed
        drop(calls);
        self.0.deadlines_changed.notify_all();
    }

    /// Cancels all requests but one, which cancels them itself.
    pub(crate) fn cancel_requests(&self, except: Option<&Arc<Request>>) {
        let requests: Vec<_> = lock(&self.0.inbound).requests.values().cloned().collect();
        for request in requests.iter().filter(|request| except.is_none_or(|one| !Arc::ptr_eq(request, one))) {
            self.interrupt(request, &cancelled());
        }
    }

    /// Waits until at most this many handlers run; returns whether that happened in time.
    pub(crate) fn wait_until_running(&self, most: usize, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut inbound = lock(&self.0.inbound);
        while inbound.running > most || inbound.is_draining {
            if Instant::now() >= until {
                return false;
            }
            inbound = wait_until(&self.0.finished, inbound, Some(until));
        }
        true
    }
}

pub(crate) fn encode_cancel(id: u32) -> String {
    encode_request(None, method::CANCEL_REQUEST, Some(&format!("{{\"id\":{id}}}")))
}
