//! Calls of ours: their ids, their waiters, and which of them were given up.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use crate::context::Request;
use crate::error::CallError;

const MAX_ID: u32 = 2_147_483_647;
const REMEMBERED_IDS: usize = 4096; // of calls that were given up: their late responses are no violation
pub(crate) const STRAY_RESPONSES: u32 = 100; // unexpected responses in one minute that end the link
const MINUTE: Duration = Duration::from_secs(60);

/// The calls that wait for their responses, and the ids of those that were given up.
pub(crate) struct Calls {
    last_id: u32,
    pub(crate) pending: HashMap<u32, Pending>,
    abandoned: HashSet<u32>,
    abandoned_order: VecDeque<u32>,
    stray: u32,
    stray_since: Instant,
    pub(crate) is_closed: bool,
}

/// A call that waits for its response.
pub(crate) struct Pending {
    pub(crate) reply: SyncSender<Result<Box<str>, CallError>>,
    pub(crate) method: String,
    pub(crate) parent: Option<Arc<Request>>,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            last_id: 0,
            pending: HashMap::new(),
            abandoned: HashSet::new(),
            abandoned_order: VecDeque::new(),
            stray: 0,
            stray_since: Instant::now(),
            is_closed: false,
        }
    }

    /// Files a call and returns its id.
    pub(crate) fn open(&mut self, pending: Pending, most: usize) -> Result<u32, CallError> {
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

    /// Remembers a call that was given up: its late response is no violation.
    pub(crate) fn remember(&mut self, id: u32) {
        self.abandoned.insert(id);
        self.abandoned_order.push_back(id);
        if self.abandoned_order.len() > REMEMBERED_IDS
            && let Some(oldest) = self.abandoned_order.pop_front()
        {
            self.abandoned.remove(&oldest);
        }
    }

    /// Ends the calls that belong to a request, and returns their ids.
    pub(crate) fn cancel_children(&mut self, request: &Arc<Request>) -> Vec<u32> {
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

    /// Returns whether a call with this id was given up, and forgets it.
    pub(crate) fn forget(&mut self, id: u32) -> bool {
        self.abandoned.remove(&id)
    }

    /// Counts a response to no call; returns whether there were too many in a minute.
    pub(crate) fn count_stray(&mut self) -> bool {
        if self.stray_since.elapsed() > MINUTE {
            self.stray = 0;
            self.stray_since = Instant::now();
        }
        self.stray += 1;
        self.stray > STRAY_RESPONSES
    }
}
