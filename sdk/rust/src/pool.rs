//! Threads for handlers: a thread is started when none is idle, up to a limit, and ends after some idle seconds.
//!
//! A handler that waits for a call of its own keeps its thread, so that nested calls need as many threads as they are
//! deep. The limit is that of concurrent requests: a job never waits for a thread behind handlers that wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::sync::{lock, wait_until};

const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    submitted: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
}

impl Pool {
    /// Runs a job in an idle thread, or in a new one.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            self.submitted.notify_one();
            return;
        }
        drop(state);
        let pool = Arc::clone(self);
        // Without a thread the job waits for one that becomes idle.
        let _ = thread::Builder::new().name("becket-handler".into()).spawn(move || pool.work());
    }

    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            let until = Instant::now() + IDLE;
            state.idle += 1;
            while state.jobs.is_empty() && Instant::now() < until {
                state = wait_until(&self.submitted, state, Some(until));
            }
            state.idle -= 1;
            if state.jobs.is_empty() {
                return;
            }
        }
    }
}
