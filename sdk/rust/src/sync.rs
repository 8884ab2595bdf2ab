//! Locks that a panic does not poison: every handler's panic is caught, and no lock is held while one runs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a notification or until this time, for ever without one.
pub(crate) fn wait_until<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> MutexGuard<'a, T> {
    let Some(until) = until else { return wait(condition, guard) };
    let left = until.saturating_duration_since(Instant::now());
    condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
}
