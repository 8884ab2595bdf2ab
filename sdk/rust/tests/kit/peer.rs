//! The peer over real pipes: calls both ways, cancellation, deadlines, credit, pings, batches, limits.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use becket::{CallError, End, Limits, Methods, Peer, RpcError, code};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::remote::{PATIENCE, Remote};

fn start(methods: Methods) -> (Remote, Peer) {
    start_with(methods, Limits::default())
}

fn start_with(methods: Methods, limits: Limits) -> (Remote, Peer) {
    let (remote, input, output) = Remote::connect();
    let peer = Peer::start(input, output, methods, limits);
    (remote, peer)
}

#[derive(Deserialize)]
struct Count {
    to: u32,
}

fn echo() -> Methods {
    Methods::new().handle("echo", |params: Value, _| Ok(params)).handle("count", |params: Count, _| Ok(params.to))
}

#[test]
fn requests_are_responded_to_with_their_id() {
    let (mut remote, _peer) = start(echo());
    for id in ["1", "1.0", "\"a\"", "null"] {
        remote.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo","params":{{"text":"käse"}}}}"#));
        let expected: Value = serde_json::from_str(id).unwrap();
        assert_eq!(remote.receive(), json!({"jsonrpc": "2.0", "id": expected, "result": {"text": "käse"}}));
    }
}

#[test]
fn errors_have_codes_and_pointers() {
    let (mut remote, _peer) = start(echo());
    assert_eq!(remote.error(1, "none", Value::Null), json!({"code": -32601, "message": "unknown method: none"}));
    let error = remote.error(2, "count", json!({"to": "3"}));
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"]["problems"][0]["pointer"], "/to");
    remote.send_text(r#"{"jsonrpc":"2.0","id":3,"method":"count","params":{"to":1,"to":2}}"#);
    assert_eq!(remote.receive()["error"]["data"]["problems"][0]["pointer"], "/to");
    remote.send_text(r#"{"jsonrpc":"2.0","id":4,"method":"count","params":7}"#);
    assert_eq!(remote.receive()["error"]["code"], -32602);
    remote.send_text("hello");
    assert_eq!(remote.receive()["error"]["code"], -32700);
    assert_eq!(remote.result(5, "count", json!({"to": 4})), 4);
}

#[test]
fn errors_and_panics_of_handlers_do_not_leak() {
    let methods = Methods::new()
        .handle("fail", |_: Value, _| -> becket::Result<()> { Err("secret".into()) })
        .handle("panic", |_: Value, _| -> becket::Result<()> { panic!("secret") })
        .handle("refuse", |_: Value, _| -> becket::Result<()> { Err(RpcError::new(7, "no").with_data(1).into()) });
    let (mut remote, _peer) = start(methods);
    for (id, method) in [(1, "fail"), (2, "panic")] {
        let error = remote.error(id, method, Value::Null);
        assert_eq!(error["code"], code::INTERNAL);
        assert_eq!(error["message"], "internal error");
        assert_eq!(error["data"]["incident"].as_str().unwrap().len(), 12);
    }
    assert_eq!(remote.error(3, "refuse", Value::Null), json!({"code": 7, "message": "no", "data": 1}));
}

#[test]
fn handlers_run_at_once_and_call_back() {
    let together = Arc::new(Barrier::new(2));
    let methods = Methods::new().handle("meet", move |_: Value, ctx| {
        together.wait();
        let sum: u32 = ctx.call("add", &json!({"a": 20, "b": 22}))?;
        Ok(sum)
    });
    let (mut remote, _peer) = start(methods);
    let meta = json!({"_meta": {"becket": {"timeout_ms": 60000, "depth": 2}}, "x": 1});
    remote.request(1, "meet", meta.clone());
    remote.request(2, "meet", meta);
    let calls = [remote.receive(), remote.receive()];
    let mut parents: Vec<u64> = Vec::new();
    for call in &calls {
        let meta = &call["params"]["_meta"]["becket"];
        assert_eq!((&call["method"], &meta["depth"]), (&json!("add"), &json!(3)));
        assert!((1..=60000).contains(&meta["timeout_ms"].as_u64().unwrap()));
        parents.push(meta["parent"].as_u64().unwrap());
        remote.send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": 42}));
    }
    parents.sort_unstable();
    assert_eq!(parents, [1, 2]);
    assert_eq!((remote.receive()["result"].clone(), remote.receive()["result"].clone()), (json!(42), json!(42)));
}

#[test]
fn two_peers_call_each_other() {
    let (input, their_output) = std::io::pipe().unwrap();
    let (their_input, output) = std::io::pipe().unwrap();
    let one = Peer::start(input, output, echo(), Limits::default());
    let other = Peer::start(their_input, their_output, echo(), Limits::default());
    let text: String = one.call("echo", &json!(["a"]), PATIENCE).map(|it: Vec<String>| it.concat()).unwrap();
    assert_eq!(text, "a");
    let error = other.call::<_, Value>("count", &json!({"to": -1}), PATIENCE).unwrap_err();
    assert_eq!(error.code(), Some(code::INVALID_PARAMS));
    let error = one.call::<_, u8>("count", &json!({"to": 256}), PATIENCE).unwrap_err();
    assert!(matches!(error, CallError::BadResult { .. }), "{error}");
    let absent: Value = one.call("echo", &Value::Null, PATIENCE).unwrap();
    assert_eq!(absent, Value::Null);
    let empty: Value = one.call("echo", &json!({}), PATIENCE).unwrap();
    assert_eq!(empty, json!({}));
}

#[test]
fn a_cancelled_request_is_rejected_and_its_calls_are_cancelled() {
    let (send, ended) = channel();
    let methods = Methods::new().handle("work", move |_: Value, ctx| -> becket::Result<()> {
        let error = ctx.call::<_, Value>("slow", &json!({})).unwrap_err();
        assert!(ctx.is_cancelled() && ctx.check().is_err() && ctx.sleep(PATIENCE).is_err());
        send.send(error.clone()).unwrap();
        Err(error.into())
    });
    let (mut remote, _peer) = start(methods);
    remote.request(1, "work", Value::Null);
    let call = remote.receive();
    remote.notify("$/cancelRequest", &json!({"id": 1}));
    let (one, other) = (remote.receive(), remote.receive()); // in either order
    let (cancel, response) = if one.get("method").is_some() { (one, other) } else { (other, one) };
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("$/cancelRequest"), &call["id"]));
    assert_eq!(response, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "cancelled"}}));
    assert_eq!(ended.recv_timeout(PATIENCE).unwrap(), CallError::Cancelled);
}

#[test]
fn a_deadline_rejects_the_request_while_its_handler_blocks() {
    let (release, blocked) = channel::<()>();
    let blocked = Mutex::new(blocked);
    let methods = Methods::new().handle("block", move |_: Value, _| {
        let _ = blocked.lock().unwrap().recv();
        Ok(())
    });
    let (mut remote, _peer) = start(methods);
    remote.request(1, "block", json!({"_meta": {"becket": {"timeout_ms": 20}}}));
    assert_eq!(remote.receive()["error"]["code"], code::TIMEOUT);
    drop(release);
}

#[test]
fn a_call_without_a_response_times_out_and_is_cancelled() {
    let (mut remote, peer) = start(Methods::new());
    let error = peer.call::<_, Value>("slow", &json!({}), Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }));
    let call = remote.receive();
    assert_eq!(remote.receive()["params"]["id"], call["id"]);
    remote.send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": 1})); // late: dropped
    remote.request(1, "$/ping", Value::Null);
    assert_eq!(remote.receive()["result"], Value::Null);
}

#[test]
fn the_reader_responds_to_pings_while_all_handlers_block() {
    let gate = Arc::new(Barrier::new(9));
    let inside = Arc::clone(&gate);
    let methods = Methods::new().handle("block", move |_: Value, _| {
        inside.wait();
        inside.wait();
        Ok(())
    });
    let mut limits = Limits::default();
    limits.inbound_requests = 8;
    let (mut remote, _peer) = start_with(methods, limits);
    for id in 1..=8 {
        remote.request(id, "block", Value::Null);
    }
    gate.wait();
    assert_eq!(remote.result(9, "$/ping", Value::Null), Value::Null);
    assert_eq!(remote.error(10, "block", Value::Null)["code"], code::BUSY);
    gate.wait();
    let mut ids: Vec<u64> = (0..8).map(|_| remote.receive()["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn events_wait_for_credit() {
    let methods = Methods::new().handle("count", |_: Value, ctx| {
        ctx.progress(&1)?;
        ctx.notify("tick", &json!({"n": 2}))?;
        ctx.progress(&3)?;
        Ok("done")
    });
    let (mut remote, _peer) = start(methods);
    remote.request(1, "count", json!({"_meta": {"becket": {"credit": 1}}}));
    assert_eq!(remote.receive()["params"], json!({"token": 1, "value": 1}));
    remote.request(2, "$/ping", Value::Null);
    assert_eq!(remote.receive()["id"], 2); // the next event waits
    remote.notify("$/credit", &json!({"id": 1, "n": 1}));
    let tick = remote.receive();
    assert_eq!(tick["params"], json!({"_meta": {"becket": {"parent": 1}}, "n": 2}));
    remote.notify("$/credit", &json!({"id": 1, "n": 5}));
    assert_eq!(remote.receive()["params"]["value"], 3);
    assert_eq!(remote.receive()["result"], "done");
}

#[test]
fn cancellation_ends_the_wait_for_credit() {
    let (send, ended) = channel();
    let methods = Methods::new().handle("count", move |_: Value, ctx| -> becket::Result<()> {
        ctx.progress(&1)?;
        send.send(ctx.progress(&2)).unwrap();
        Ok(())
    });
    let (mut remote, _peer) = start(methods);
    remote.request(1, "count", json!({"_meta": {"becket": {"credit": 1}}}));
    assert_eq!(remote.receive()["params"]["value"], 1); // it runs
    remote.notify("$/cancelRequest", &json!({"id": 1}));
    assert_eq!(remote.receive()["error"]["code"], code::CANCELLED);
    assert_eq!(ended.recv_timeout(PATIENCE).unwrap(), Err(CallError::Cancelled));
}

#[test]
fn notifications_are_handled_in_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&seen);
    let methods = Methods::new()
        .on("note", move |n: Vec<u32>, _| {
            inside.lock().unwrap().extend(n);
            Ok(())
        })
        .on("last", |_: Value, ctx| Ok(ctx.peer().notify("over", &json!({}))?));
    let (mut remote, _peer) = start(methods);
    for n in 0..100 {
        remote.notify("note", &json!([n]));
    }
    remote.notify("unknown", &json!({}));
    remote.notify("note", &json!("not a list")); // logged, and dropped
    remote.notify("last", &json!({}));
    assert_eq!(remote.receive()["method"], "over");
    assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<u32>>());
    assert_eq!(remote.error(1, "note", json!([1]))["code"], code::INVALID_REQUEST);
}

#[test]
fn a_batch_is_responded_to_in_one_array() {
    let (mut remote, _peer) = start(echo());
    remote.send(&json!([
        {"jsonrpc": "2.0", "id": 1, "method": "echo", "params": ["a"]},
        {"jsonrpc": "2.0", "method": "echo"},
        {"jsonrpc": "2.0", "id": 2, "method": "none"},
        7,
    ]));
    let responses = remote.receive();
    let mut codes: Vec<Option<i64>> =
        responses.as_array().unwrap().iter().map(|it| it["error"]["code"].as_i64()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [None, Some(-32601), Some(-32600)]);
}

#[test]
fn the_id_of_a_pending_request_is_not_taken_again() {
    let gate = Arc::new(Barrier::new(2));
    let inside = Arc::clone(&gate);
    let methods = Methods::new().handle("block", move |_: Value, _| {
        inside.wait();
        Ok(1)
    });
    let (mut remote, _peer) = start(methods);
    remote.request(1, "block", Value::Null);
    remote.request(1, "block", Value::Null);
    let error = remote.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32600)));
    gate.wait();
    assert_eq!(remote.receive()["result"], 1);
}

#[test]
fn large_messages_are_refused_and_the_link_stays_open() {
    let methods = Methods::new()
        .handle("large", |_: Value, _| Ok("x".repeat(2000)))
        .handle("ask", |_: Value, ctx| Ok(ctx.call::<_, Value>("echo", &"x".repeat(2000)).unwrap_err().to_string()));
    let mut limits = Limits::default();
    limits.frame = 1000;
    let (mut remote, _peer) = start_with(methods, limits);
    assert_eq!(remote.error(1, "large", Value::Null)["code"], code::TOO_LARGE);
    assert!(remote.result(2, "ask", Value::Null).as_str().unwrap().contains("the limit is 1000"));
}

#[test]
fn requests_beyond_the_budget_of_bytes_are_rejected() {
    let gate = Arc::new(Barrier::new(2));
    let inside = Arc::clone(&gate);
    let methods = Methods::new().handle("block", move |_: Map<String, Value>, _| {
        inside.wait();
        Ok(())
    });
    let mut limits = Limits::default();
    limits.inbound_bytes = 100;
    let (mut remote, _peer) = start_with(methods, limits);
    remote.request(1, "block", json!({"text": "x".repeat(200)})); // one always fits
    assert_eq!(remote.error(2, "block", json!({"text": "x"}))["code"], code::BUSY);
    gate.wait();
    assert_eq!(remote.receive()["id"], 1);
}

#[test]
fn a_remote_peer_that_does_not_read_stops_neither_the_reader_nor_other_requests() {
    let (input, mut to_peer) = std::io::pipe().unwrap();
    let (from_peer, output) = std::io::pipe().unwrap();
    let (send, handled) = channel();
    let methods = Methods::new()
        .handle("large", |_: Value, _| Ok("x".repeat(300_000)))
        .on("note", move |_: Value, _| Ok(send.send(())?));
    let _peer = Peer::start(input, output, methods, Limits::default());
    let mut write = |message: Value| {
        let mut frame = Vec::new();
        becket::framing::write_frame(message.to_string().as_bytes(), &mut frame);
        std::io::Write::write_all(&mut to_peer, &frame).unwrap();
    };
    for id in 0..10 {
        write(json!({"jsonrpc": "2.0", "id": id, "method": "large"}));
        write(json!({"jsonrpc": "2.0", "id": 100 + id, "method": "$/ping"}));
    }
    write(json!({"jsonrpc": "2.0", "method": "note", "params": {}}));
    handled.recv_timeout(PATIENCE).expect("the reader is stuck");
    let mut frames = becket::framing::FrameReader::new(from_peer, 1_000_000);
    let count = thread::spawn(move || (0..20).filter(|_| matches!(frames.read(), Ok(Some(_)))).count());
    assert_eq!(count.join().unwrap(), 20);
}

#[test]
fn the_end_of_the_link_fails_pending_calls() {
    let (mut remote, peer) = start(Methods::new());
    let other = peer.clone();
    let call = thread::spawn(move || other.call::<_, Value>("slow", &json!({}), PATIENCE));
    remote.receive();
    remote.close();
    assert_eq!(call.join().unwrap(), Err(CallError::Disconnected));
    assert_eq!(peer.wait(Some(PATIENCE)), Some(End::Closed));
    assert_eq!(peer.call::<_, Value>("slow", &json!({}), PATIENCE), Err(CallError::Disconnected));
}

#[test]
fn stray_text_and_too_many_strange_responses_end_the_link() {
    let (mut remote, peer) = start(Methods::new());
    remote.send_bytes(b"hello world\n");
    let Some(End::Violation(problem)) = peer.wait(Some(PATIENCE)) else { panic!() };
    assert!(problem.contains("hello world"));
    let (mut remote, peer) = start(Methods::new());
    for id in 1000..1101 {
        remote.send(&json!({"jsonrpc": "2.0", "id": id, "result": 1}));
    }
    assert!(matches!(peer.wait(Some(PATIENCE)), Some(End::Violation(_))));
}
