//! Sends frames: at once while the remote peer reads, else from a queue that is bounded in bytes.
//!
//! A handler writes its own frame where no other one is being written. The reader never writes: what it sends goes to
//! the queue, so that a remote peer that does not read cannot stop it.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::CallError;
use crate::framing::write_frame;
use crate::sync::{lock, wait, wait_until};

const HIGH: usize = 256 * 1024; // above it handlers wait until the remote peer reads
const MOST: usize = 8 * 1024 * 1024; // above it the reader waits too
const PATIENCE: Duration = Duration::from_secs(60); // for room in the queue

pub(crate) struct Outbox {
    output: Mutex<Box<dyn Write + Send>>,
    state: Mutex<State>,
    queued: Condvar,
    drained: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    is_writing: bool,
    is_closed: bool,
    has_writer: bool,
    waiting: usize,
}

impl Outbox {
    pub(crate) fn new(output: Box<dyn Write + Send>) -> Arc<Self> {
        Arc::new(Self {
            output: Mutex::new(output),
            state: Mutex::default(),
            queued: Condvar::new(),
            drained: Condvar::new(),
        })
    }

    /// Sends a message from a handler; waits while the remote peer is behind with reading.
    pub(crate) fn send(self: &Arc<Self>, body: &str) -> Result<(), CallError> {
        let frame = to_frame(body);
        let mut state = self.wait_until_below(HIGH)?;
        if state.is_writing || !state.queue.is_empty() {
            self.enqueue(&mut state, frame);
            return Ok(());
        }
        state.is_writing = true;
        drop(state);
        self.write(&frame);
        let mut state = lock(&self.state);
        state.is_writing = false;
        if !state.queue.is_empty() {
            self.queued.notify_one();
        }
        self.report_drained(&state);
        if state.is_closed { Err(CallError::Disconnected) } else { Ok(()) }
    }

    /// Sends a message from the reader, which waits only when the whole queue is full.
    pub(crate) fn send_from_reader(self: &Arc<Self>, body: &str) {
        if let Ok(mut state) = self.wait_until_below(MOST) {
            self.enqueue(&mut state, to_frame(body));
        }
    }

    /// Waits until all frames are written, or the time is over.
    pub(crate) fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut state = lock(&self.state);
        while (state.is_writing || !state.queue.is_empty()) && !state.is_closed {
            if Instant::now() >= until {
                return;
            }
            state.waiting += 1;
            state = wait_until(&self.drained, state, Some(until));
            state.waiting -= 1;
        }
    }

    /// Drops all that is queued and closes the stream; nothing is sent any more.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.queue.clear();
        state.bytes = 0;
        drop(state);
        self.queued.notify_all();
        self.drained.notify_all();
        if let Ok(mut output) = self.output.try_lock() {
            *output = Box::new(std::io::sink()); // else a frame is being written to a peer that does not read
        }
    }

    fn wait_until_below(&self, most: usize) -> Result<MutexGuard<'_, State>, CallError> {
        let mut state = lock(&self.state);
        let mut until = None;
        while state.bytes > most && !state.is_closed {
            let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
            if Instant::now() >= until {
                return Err(CallError::NotSent(format!("the remote peer has not read {} bytes", state.bytes)));
            }
            state.waiting += 1;
            state = wait_until(&self.drained, state, Some(until));
            state.waiting -= 1;
        }
        if state.is_closed { Err(CallError::Disconnected) } else { Ok(state) }
    }

    fn enqueue(self: &Arc<Self>, state: &mut State, frame: Vec<u8>) {
        state.bytes += frame.len();
        state.queue.push_back(frame);
        if !state.has_writer {
            state.has_writer = true;
            let outbox = Arc::clone(self);
            thread::spawn(move || outbox.write_queue());
        } else if !state.is_writing {
            self.queued.notify_one();
        }
    }

    fn write_queue(&self) {
        let mut state = lock(&self.state);
        while !state.is_closed {
            let next = if state.is_writing { None } else { state.queue.pop_front() };
            let Some(frame) = next else {
                state = wait(&self.queued, state);
                continue;
            };
            state.is_writing = true;
            drop(state);
            self.write(&frame);
            state = lock(&self.state);
            state.is_writing = false;
            state.bytes = state.bytes.saturating_sub(frame.len());
            self.report_drained(&state);
        }
    }

    fn report_drained(&self, state: &State) {
        if state.waiting > 0 {
            self.drained.notify_all();
        }
    }

    fn write(&self, frame: &[u8]) {
        let mut output = lock(&self.output);
        if output.write_all(frame).and_then(|()| output.flush()).is_err() {
            drop(output);
            self.close(); // the reader sees the end of its own stream
        }
    }
}

fn to_frame(body: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    write_frame(body.as_bytes(), &mut frame);
    frame
}
