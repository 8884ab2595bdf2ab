//! Tests of the kit over real pipes, against a remote peer that reads and writes raw frames.

mod extension;
mod peer;
mod remote;
