//! The serving half of a peer: reads messages, runs handlers, responds, and enforces cancellation and deadlines.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::batch::Batch;
use crate::calls::{Pending, STRAY_RESPONSES};
use crate::context::{Context, Request};
use crate::contract::{CallMeta, code, method};
use crate::error::{BoxError, CallError, Problem, RpcError};
use crate::framing::{FrameError, FrameReader};
use crate::log::write_stderr;
use crate::message::{Content, Id, Message, decode, encode_response, parse_id};
use crate::methods::parse_params;
use crate::peer::{CANCEL, End, NO_PARAMS, Peer, encode_cancel};
use crate::sync::{lock, wait_until};

/// The requests that are handled, and the notifications that wait for it.
#[derive(Default)]
pub(crate) struct Inbound {
    pub(crate) requests: HashMap<Id, Arc<Request>>,
    pub(crate) running: usize,
    bytes: usize,
    notifications: VecDeque<(String, Option<Box<str>>)>,
    notification_bytes: usize,
    pub(crate) is_draining: bool,
}

/// When the next request expires, and whether a thread waits for it.
#[derive(Default)]
pub(crate) struct Deadlines {
    next: Option<Instant>,
    has_thread: bool,
}

impl Peer {
    // -- reading

    pub(crate) fn read<R: Read>(&self, mut frames: FrameReader<R>) {
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
                let batch = Arc::new(Batch::new(missing));
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
        self.0.pool.submit(Box::new(move || peer.handle(&request, params, bytes)));
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
            (None, Some(number)) if lock(&self.0.calls).forget(number) => {}
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
        if lock(&self.0.calls).count_stray() {
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

    fn handle(&self, request: &Arc<Request>, params: Option<Box<str>>, bytes: usize) {
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

    fn run(&self, request: &Request, params: Option<Box<str>>, context: &Context) -> crate::Result<String> {
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
                handler(&parse_params(params, self.means_no_params(&meta))?, &context)
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
    pub(crate) fn interrupt(&self, request: &Arc<Request>, error: &RpcError) {
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

pub(crate) fn cancelled() -> RpcError {
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
