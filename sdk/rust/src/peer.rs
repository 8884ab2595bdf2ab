//! A symmetric JSON-RPC peer: calls both ways at once, cancellation, deadlines, progress, credit and pings.
//!
//! One thread reads. It responds to pings, routes responses and hands requests to the threads of the pool; it never runs
//! a handler and never waits for one. Notifications are handled one at a time, in order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::context::{Context, Request, insert_meta, to_json};
use crate::contract::{CallMeta, FEATURES, Initialize, code, method};
use crate::error::{BoxError, CallError, Problem, RpcError};
use crate::framing::{FrameError, FrameReader};
use crate::json;
use crate::log::write_stderr;
use crate::message::{Content, Id, Message, decode, encode_request, encode_response, parse_id};
use crate::methods::{Methods, parse_params};
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

const MAX_ID: u32 = 2_147_483_647;
const REMEMBERED_IDS: usize = 4096; // of calls that were given up: their late responses are no violation
const STRAY_RESPONSES: u32 = 100; // unexpected responses in one minute that end the link
const MINUTE: Duration = Duration::from_secs(60);

/// The bounds of one link.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one message.
    pub frame: usize,
    /// Requests that are handled at once; the next one is rejected as busy. It bounds the threads, too.
    pub inbound_requests: usize,
    /// Bytes of these requests.
    pub inbound_bytes: usize,
    /// Bytes of notifications that wait for their handler; more end the link.
    pub notification_bytes: usize,
    /// Calls that wait for their response; the next one is not sent.
    pub outbound_calls: usize,
    /// How deep calls may be nested: host, extension, host, and so on.
    pub call_depth: u64,
    /// How long a call waits for its response.
    pub call_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 4 * 1024 * 1024,
            inbound_requests: 256,
            inbound_bytes: 16 * 1024 * 1024,
            notification_bytes: 8 * 1024 * 1024,
            outbound_calls: 1024,
            call_depth: 32,
            call_timeout: Duration::from_secs(60),
        }
    }
}

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
pub struct Peer(Arc<Link>);

struct Link {
    outbox: Arc<Outbox>,
    pool: Arc<Pool>,
    methods: Methods,
    limits: Limits,
    features: AtomicU8,
    calls: Mutex<Calls>,
    inbound: Mutex<Inbound>,
    finished: Condvar,
    deadlines: Mutex<Deadlines>,
    deadlines_changed: Condvar,
    end: Mutex<Option<End>>,
    ended: Condvar,
    session: OnceLock<Initialize>,
}

struct Calls {
    last_id: u32,
    pending: HashMap<u32, Pending>,
    abandoned: HashSet<u32>,
    abandoned_order: VecDeque<u32>,
    stray: u32,
    stray_since: Instant,
    is_closed: bool,
}

struct Pending {
    reply: SyncSender<Result<Box<str>, CallError>>,
    method: String,
    parent: Option<Arc<Request>>,
}

#[derive(Default)]
struct Inbound {
    requests: HashMap<Id, Arc<Request>>,
    running: usize,
    bytes: usize,
    notifications: VecDeque<(String, Option<Box<str>>)>,
    notification_bytes: usize,
    is_draining: bool,
}

#[derive(Default)]
struct Deadlines {
    next: Option<Instant>,
    has_thread: bool,
}

/// The responses to one batch, which are sent together.
pub(crate) struct Batch {
    state: Mutex<BatchState>,
}

struct BatchState {
    missing: usize,
    responses: Vec<(Id, String)>,
    bytes: usize,
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
            calls: Mutex::new(Calls {
                last_id: 0,
                pending: HashMap::new(),
                abandoned: HashSet::new(),
                abandoned_order: VecDeque::new(),
                stray: 0,
                stray_since: Instant::now(),
                is_closed: false,
            }),
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

    fn set_end(&self, reason: End) {
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

    // -- reading

    fn read<R: Read>(&self, mut frames: FrameReader<R>) {
        let end = loop {
            match frames.read() {
                Ok(Some(body)) => self.receive(&body),
                Ok(None) | Err(FrameError::Io(_)) => break End::Closed,
                Err(error) => break End::Violation(error.to_string()),
            }
            if lock(&self.0.end).is_some() {
                break End::Stopped; // for the reason that is there
            }
        };
        self.fail_calls();
        self.set_end(end);
    }

    fn receive(&self, body: &[u8]) {
        match decode(body) {
            Content::One(message) => self.receive_message(message, None),
            Content::Batch(messages) => {
                let is_due = |it: &&Message| matches!(it, Message::Request { .. } | Message::Invalid { .. });
                let missing = messages.iter().filter(is_due).count();
                let state = BatchState { missing, responses: Vec::new(), bytes: 0 };
                let batch = Arc::new(Batch { state: Mutex::new(state) });
                for message in messages {
                    self.receive_message(message, Some(&batch));
                }
            }
        }
    }

    fn receive_message(&self, message: Message, batch: Option<&Arc<Batch>>) {
        match message {
            Message::Request { id, method, params } => self.receive_request(id, method, params, batch),
            Message::Notification { method, params } => self.receive_notification(method, params),
            Message::Response { id, outcome } => self.receive_response(&id, outcome),
            Message::Invalid { id, error } => self.respond_from_reader(&id, Err(&error), batch),
            Message::BadResponse { id: Some(id), problem } => self.fail_call(&id, problem),
            Message::BadResponse { id: None, .. } => self.count_stray(),
        }
    }

    fn receive_request(&self, id: Id, method: String, params: Option<Box<str>>, batch: Option<&Arc<Batch>>) {
        if method == method::PING {
            self.respond_from_reader(&id, Ok("null"), batch);
            return;
        }
        let meta = read_meta(params.as_deref());
        let deadline = meta.timeout_ms.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout)));
        let bytes = params.as_ref().map_or(0, |params| params.len());
        let request = Arc::new(Request::new(id, method, meta, deadline, batch.cloned()));
        if let Err((id, error)) = self.admit(&request, bytes) {
            self.respond_from_reader(&id, Err(&error), batch);
            return;
        }
        if let Some(deadline) = deadline {
            self.watch_deadline(deadline);
        }
        let peer = self.clone();
        self.0.pool.submit(Box::new(move || peer.handle(&request, params.as_deref(), bytes)));
    }

    fn admit(&self, request: &Arc<Request>, bytes: usize) -> Result<(), (Id, RpcError)> {
        let limits = &self.0.limits;
        let mut inbound = lock(&self.0.inbound);
        let key = request.id.key();
        let busy = |what, limit| Err((request.id.clone(), RpcError::busy(what, limit)));
        if inbound.requests.contains_key(&key) {
            return Err((Id::null(), RpcError::invalid_request("the id of a request that is still pending")));
        }
        if inbound.running >= limits.inbound_requests {
            return busy("requests at once", limits.inbound_requests);
        }
        if inbound.running > 0 && inbound.bytes + bytes > limits.inbound_bytes {
            return busy("bytes of requests at once", limits.inbound_bytes);
        }
        if request.meta.depth > limits.call_depth {
            return busy("calls within calls", usize::try_from(limits.call_depth).unwrap_or(usize::MAX));
        }
        inbound.requests.insert(key, Arc::clone(request));
        inbound.running += 1;
        inbound.bytes += bytes;
        Ok(())
    }

    fn receive_notification(&self, method: String, params: Option<Box<str>>) {
        match method.as_str() {
            method::CANCEL_REQUEST => {
                if let Some(request) = self.find_request(params.as_deref()).map(|(request, _)| request) {
                    self.interrupt(&request, &cancelled());
                }
            }
            method::CREDIT => {
                if let Some((request, Some(more))) = self.find_request(params.as_deref()) {
                    request.add_credit(more);
                }
            }
            _ if self.0.methods.find_notification(&method).is_some() => self.queue_notification(method, params),
            _ => {}
        }
    }

    fn find_request(&self, params: Option<&str>) -> Option<(Arc<Request>, Option<u64>)> {
        #[derive(Deserialize)]
        struct Target<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
            n: Option<u64>,
        }
        let target: Target<'_> = serde_json::from_str(params?).ok()?;
        let key = parse_id(target.id.get())?.key();
        let request = lock(&self.0.inbound).requests.get(&key).cloned()?;
        Some((request, target.n))
    }

    fn queue_notification(&self, method: String, params: Option<Box<str>>) {
        let mut inbound = lock(&self.0.inbound);
        inbound.notification_bytes += method.len() + params.as_ref().map_or(0, |params| params.len());
        inbound.notifications.push_back((method, params));
        if inbound.notification_bytes > self.0.limits.notification_bytes {
            inbound.notifications.clear();
            drop(inbound);
            self.set_end(End::Violation("too many notifications wait for their handlers".into()));
        } else if !std::mem::replace(&mut inbound.is_draining, true) {
            drop(inbound);
            let peer = self.clone();
            self.0.pool.submit(Box::new(move || peer.handle_notifications()));
        }
    }

    fn receive_response(&self, id: &Id, outcome: Result<Box<str>, RpcError>) {
        let number = id.0.parse().ok();
        let pending = number.and_then(|number: u32| lock(&self.0.calls).pending.remove(&number));
        match (pending, number) {
            (Some(Pending { reply, method, .. }), _) => {
                // The caller may have given up between the two steps.
                let _ = reply.send(outcome.map_err(|error| CallError::Rejected { method, error }));
            }
            (None, Some(number)) if lock(&self.0.calls).abandoned.remove(&number) => {}
            _ => self.count_stray(),
        }
    }

    fn fail_call(&self, id: &Id, problem: &str) {
        let number = id.0.parse().ok();
        match number.and_then(|number: u32| lock(&self.0.calls).pending.remove(&number)) {
            Some(Pending { reply, method, .. }) => {
                let _ = reply.send(Err(CallError::BadResult { method, problem: Problem::new("", problem) }));
            }
            None => self.count_stray(),
        }
    }

    fn count_stray(&self) {
        let mut calls = lock(&self.0.calls);
        if calls.stray_since.elapsed() > MINUTE {
            calls.stray = 0;
            calls.stray_since = Instant::now();
        }
        calls.stray += 1;
        if calls.stray > STRAY_RESPONSES {
            drop(calls);
            self.set_end(End::Violation(format!("more than {STRAY_RESPONSES} responses to no request in a minute")));
        }
    }

    fn respond_from_reader(&self, id: &Id, outcome: Result<&str, &RpcError>, batch: Option<&Arc<Batch>>) {
        let body = encode_response(id, outcome);
        match batch {
            None => self.0.outbox.send_from_reader(&body),
            Some(batch) => {
                if let Some(body) = batch.add(id.clone(), body, self.0.limits.frame) {
                    self.0.outbox.send_from_reader(&body);
                }
            }
        }
    }

    // -- handling, in threads of the pool

    fn handle(&self, request: &Arc<Request>, params: Option<&str>, bytes: usize) {
        let context = Context::new(self.clone(), Some(Arc::clone(request)));
        let outcome = if request.is_open() {
            catch_unwind(AssertUnwindSafe(|| self.run(request, params, &context)))
                .unwrap_or_else(|panic| Err(format!("the handler has panicked: {}", panic_text(panic.as_ref())).into()))
        } else {
            Err(CallError::Cancelled.into()) // rejected before it could begin
        };
        let outcome = outcome.map_err(|error| to_rpc_error(request, error));
        self.respond(request, outcome.as_deref());
        let mut inbound = lock(&self.0.inbound);
        inbound.running -= 1;
        inbound.bytes -= bytes;
        drop(inbound);
        self.0.finished.notify_all();
        if request.is_last.load(Ordering::SeqCst) {
            self.close();
        }
    }

    fn run(&self, request: &Request, params: Option<&str>, context: &Context) -> crate::Result<String> {
        let handler = self.0.methods.find(&request.method)?;
        let params = parse_params(params, self.means_no_params(&request.meta))?;
        handler(&params, context)
    }

    fn means_no_params(&self, meta: &CallMeta) -> bool {
        meta.no_params.unwrap_or_else(|| !self.has_feature(NO_PARAMS))
    }

    fn respond(&self, request: &Arc<Request>, outcome: Result<&str, &RpcError>) {
        if !request.begin_response() {
            return; // it was cancelled, and rejected then
        }
        lock(&self.0.inbound).requests.remove(&request.id.key());
        let limit = self.0.limits.frame;
        let mut body = encode_response(&request.id, outcome);
        if body.len() > limit {
            body = encode_response(&request.id, Err(&RpcError::too_large(body.len(), limit)));
        }
        let body = match &request.batch {
            None => Some(body),
            Some(batch) => batch.add(request.id.clone(), body, limit),
        };
        if let Some(body) = body {
            let _ = self.0.outbox.send(&body); // without a link there is no caller
        }
    }

    fn handle_notifications(&self) {
        let context = Context::new(self.clone(), None);
        let mut inbound = lock(&self.0.inbound);
        while let Some((method, params)) = inbound.notifications.pop_front() {
            inbound.notification_bytes -= method.len() + params.as_ref().map_or(0, |params| params.len());
            drop(inbound);
            let meta = read_meta(params.as_deref());
            let run = || {
                let Some(handler) = self.0.methods.find_notification(&method) else { return Ok(String::new()) };
                handler(&parse_params(params.as_deref(), self.means_no_params(&meta))?, &context)
            };
            let problem = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(panic) => Some(panic_text(panic.as_ref()).to_string()),
            };
            if let Some(problem) = problem {
                write_stderr("ERROR", "becket", &format!("the handler of {method:?} failed: {problem}"));
            }
            inbound = lock(&self.0.inbound);
        }
        inbound.is_draining = false;
        drop(inbound);
        self.0.finished.notify_all();
    }

    // -- cancellation and deadlines

    /// Rejects a request at once, and cancels its handler and the calls that belong to it. The handler cannot be
    /// stopped: it sees the cancellation in its context, and what it returns is dropped.
    fn interrupt(&self, request: &Arc<Request>, error: &RpcError) {
        let was_open = request.begin_response(); // first: what the handler returns when it is woken is dropped
        request.cancel();
        let ids = lock(&self.0.calls).cancel_children(request);
        for id in ids.into_iter().filter(|_| self.has_feature(CANCEL)) {
            self.0.outbox.send_from_reader(&encode_cancel(id));
        }
        if was_open {
            lock(&self.0.inbound).requests.remove(&request.id.key());
            self.respond_from_reader(&request.id, Err(error), request.batch.as_ref());
        }
    }

    fn watch_deadline(&self, deadline: Instant) {
        let mut deadlines = lock(&self.0.deadlines);
        if !std::mem::replace(&mut deadlines.has_thread, true) {
            let peer = self.clone();
            thread::spawn(move || peer.enforce_deadlines());
        }
        if deadlines.next.is_none_or(|next| deadline < next) {
            deadlines.next = Some(deadline);
            self.0.deadlines_changed.notify_one();
        }
    }

    fn enforce_deadlines(&self) {
        let mut deadlines = lock(&self.0.deadlines);
        while !lock(&self.0.calls).is_closed {
            let now = Instant::now();
            if deadlines.next.is_none_or(|next| now < next) {
                let until = deadlines.next;
                deadlines = wait_until(&self.0.deadlines_changed, deadlines, until);
                continue;
            }
            let requests: Vec<_> = lock(&self.0.inbound).requests.values().cloned().collect();
            deadlines.next = requests.iter().filter_map(|request| request.deadline).filter(|at| *at > now).min();
            drop(deadlines);
            for request in requests.iter().filter(|request| request.deadline.is_some_and(|at| at <= now)) {
                self.interrupt(request, &deadline_passed());
            }
            deadlines = lock(&self.0.deadlines);
        }
    }
}

impl Calls {
    fn open(&mut self, pending: Pending, most: usize) -> Result<u32, CallError> {
        if self.is_closed {
            return Err(CallError::Disconnected);
        }
        if self.pending.len() >= most {
            return Err(CallError::NotSent(format!("{most} calls wait for their responses")));
        }
        loop {
            self.last_id = if self.last_id == MAX_ID { 1 } else { self.last_id + 1 };
            if !self.pending.contains_key(&self.last_id) {
                break;
            }
        }
        self.pending.insert(self.last_id, pending);
        Ok(self.last_id)
    }

    fn remember(&mut self, id: u32) {
        self.abandoned.insert(id);
        self.abandoned_order.push_back(id);
        if self.abandoned_order.len() > REMEMBERED_IDS
            && let Some(oldest) = self.abandoned_order.pop_front()
        {
            self.abandoned.remove(&oldest);
        }
    }

    /// Ends the calls that belong to a request, and returns their ids.
    fn cancel_children(&mut self, request: &Arc<Request>) -> Vec<u32> {
        let is_child = |call: &Pending| call.parent.as_ref().is_some_and(|parent| Arc::ptr_eq(parent, request));
        let ids: Vec<u32> = self.pending.iter().filter(|(_, call)| is_child(call)).map(|(id, _)| *id).collect();
        for id in &ids {
            if let Some(call) = self.pending.remove(id) {
                let _ = call.reply.send(Err(CallError::Cancelled));
            }
            self.remember(*id);
        }
        ids
    }
}

impl Batch {
    /// Adds a response; returns the body of all responses when none is missing.
    fn add(&self, id: Id, response: String, limit: usize) -> Option<String> {
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

/// The one boundary between errors and responses: the text of an unknown error goes to stderr, not to the caller.
fn to_rpc_error(request: &Request, error: BoxError) -> RpcError {
    let error = match error.downcast::<RpcError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast_ref() {
        // A nested call ends at the same moment as the request that it belongs to.
        Some(CallError::Cancelled | CallError::Timeout { .. }) if request.is_overdue() => return deadline_passed(),
        Some(CallError::Cancelled) if request.is_cancelled() => return cancelled(),
        Some(CallError::Disconnected) => return RpcError::new(code::INTERNAL, "internal error"), // to no caller
        _ => {}
    }
    let incident = format!("{:012x}", RandomState::new().hash_one(Instant::now()) >> 16);
    write_stderr(
        "ERROR",
        "becket",
        &format!("incident {incident}: the handler of {:?} failed: {error}", request.method),
    );
    RpcError::new(code::INTERNAL, "internal error").with_data(serde_json::json!({ "incident": incident }))
}

fn encode_cancel(id: u32) -> String {
    encode_request(None, method::CANCEL_REQUEST, Some(&format!("{{\"id\":{id}}}")))
}

fn cancelled() -> RpcError {
    RpcError::new(code::CANCELLED, "cancelled")
}

fn deadline_passed() -> RpcError {
    RpcError::new(code::TIMEOUT, "the caller's deadline has passed")
}

/// Returns `_meta.becket` of params; malformed metadata counts as absent.
fn read_meta(params: Option<&str>) -> CallMeta {
    #[derive(Deserialize)]
    struct Outer {
        #[serde(rename = "_meta")]
        meta: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        becket: CallMeta,
    }
    let params = params.filter(|params| params.contains("\"_meta\""));
    params.and_then(|params| serde_json::from_str::<Outer>(params).ok()).map(|it| it.meta.becket).unwrap_or_default()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a text")
}
