//! An extension and its host: the handshake, what it offers, what it uses of the host, and its end.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use becket::contract::{
    ConfigChanged, EditorRender, EditorRow, HookKind, HookMatch, HookResult, HookSubscription, LogLevel, Model,
    Provider, ProviderResult, Query, TaskKind,
};
use becket::{EditorResponse, End, Extension, RpcError, Schema, Served, Tool, code};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::remote::{FEATURES, PATIENCE, Remote};

fn serve(extension: Extension) -> (Remote, JoinHandle<Served>) {
    let (remote, input, output) = Remote::connect();
    (remote, thread::spawn(move || extension.serve(input, output)))
}

fn notes() -> Extension {
    Extension::new("notes", "1.0.0")
}

fn ready(extension: Extension) -> (Remote, JoinHandle<Served>) {
    let (mut remote, served) = serve(extension);
    remote.initialize(&FEATURES);
    (remote, served)
}

#[derive(Deserialize)]
struct Count {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
}

fn counter() -> Extension {
    let input = Schema::object().required("text", Schema::string());
    notes().tool(Tool::new("count", "Counts letters.", input).with_read_only(true), |input: Count, _| {
        Ok(input.text.len() + input.tags.len())
    })
}

#[test]
fn the_handshake_declares_what_the_extension_offers() {
    let hook = HookSubscription::new(HookKind::BeforeToolCall).with_match(HookMatch::default().with_tool("bash"));
    let (mut remote, _) = serve(counter().hook(hook, |_, _| Ok(HookResult::Continue)));
    let declared = remote.initialize(&FEATURES);
    assert_eq!(declared["protocol_version"], 1);
    assert_eq!(declared["features"], json!(FEATURES));
    assert_eq!(declared["info"]["build"], json!({"backend": "cpu", "version": "1.0.0"}));
    assert_eq!(
        declared["capabilities"],
        json!({
            "tools": [{"name": "count", "description": "Counts letters.", "read_only": true, "input_schema": {
                "type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": false,
                "required": ["text"],
            }}],
            "hooks": [{"hook": "before_tool_call", "match": {"tool": "bash"}}],
        })
    );
}

#[test]
fn without_features_only_the_contract_is_used() {
    let (mut remote, _) = serve(notes().tool(Tool::new("log", "Logs.", Schema::object()), |_: Value, ctx| {
        ctx.progress("half")?;
        ctx.host().log(LogLevel::Info, "to stderr");
        Ok(ctx.host().config().get("theme")?)
    }));
    let declared = remote.initialize(&[]);
    assert_eq!((declared.get("features"), declared.get("info")), (None, None));
    remote.request(1, "tool.call", json!({"name": "log", "input": {}}));
    let call = remote.receive();
    assert_eq!(call["params"], json!({"key": "theme"}));
    remote.send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": {"value": "dark"}}));
    assert_eq!(remote.receive()["result"], "dark");
}

#[test]
fn another_version_is_refused_with_those_that_are_supported() {
    let (mut remote, _) = serve(notes());
    let error = remote.error(1, "initialize", json!({"extension_protocol_version": 2}));
    assert_eq!((&error["code"], &error["data"]), (&json!(1008), &json!({"supported": [1]})));
    let error = remote.error(2, "initialize", json!({"extension_protocol_version": 1}));
    assert_eq!(error["data"]["problems"][0]["pointer"], "/plugin_id");
}

#[test]
fn requests_before_and_a_second_handshake_are_not_ready() {
    let (mut remote, _) = serve(counter());
    assert_eq!(remote.error(1, "tool.call", json!({"name": "count", "input": {}}))["code"], code::NOT_READY);
    remote.initialize(&FEATURES);
    let again = json!({"extension_protocol_version": 1, "plugin_id": "notes", "plugin_root": null, "config": {}});
    assert_eq!(remote.error(2, "initialize", again)["code"], code::NOT_READY);
}

#[test]
fn a_failed_start_may_be_tried_again() {
    let tries = Mutex::new(0);
    let (mut remote, _) = serve(notes().on_start(move |_| {
        *tries.lock().unwrap() += 1;
        if *tries.lock().unwrap() == 1 { Err(RpcError::new(code::BUSY, "not yet").into()) } else { Ok(()) }
    }));
    let params = json!({"extension_protocol_version": 1, "plugin_id": "notes", "plugin_root": null, "config": {}});
    assert_eq!(remote.error(1, "initialize", params.clone())["code"], code::BUSY);
    assert_eq!(remote.result(2, "initialize", params)["protocol_version"], 1);
}

#[test]
fn tools_get_their_input_and_problems_have_pointers() {
    let (mut remote, _) = ready(counter());
    let mut call = |input: Value| {
        remote.request(1, "tool.call", json!({"name": "count", "input": input}));
        remote.receive()
    };
    assert_eq!(call(json!({"text": "milk"}))["result"], 4);
    for (input, pointer) in [
        (json!({}), "/input/text"),
        (json!({"text": 1}), "/input/text"),
        (json!({"text": "a", "tags": ["b", 2]}), "/input/tags/1"),
        (json!([]), "/input"),
    ] {
        let error = call(input)["error"].take();
        assert_eq!((&error["code"], &error["data"]["problems"][0]["pointer"]), (&json!(-32602), &json!(pointer)));
    }
    remote.request(2, "tool.call", json!({"name": "none", "input": {}}));
    let error = remote.receive()["error"].take();
    assert_eq!((&error["code"], &error["data"]["problems"][0]["pointer"]), (&json!(-32602), &json!("/name")));
    assert_eq!(remote.error(3, "hook.handle", json!({}))["code"], code::UNKNOWN_METHOD); // it has none
}

#[test]
fn a_command_sends_output_and_tasks() {
    let (mut remote, _) = ready(notes().command("index", |files, out| {
        out.text("**start**")?;
        out.task("Indexing", TaskKind::Rebuild, Some(1), |task| {
            task.log(&files[0])?;
            Ok(task.advance(1, Some("half"))?)
        })?;
        let failed: becket::Result<()> = out.task("Failing", TaskKind::Generic, None, |_| Err("secret".into()));
        assert!(failed.is_err());
        out.table(&["file"], &[["a.md"]])?;
        Ok(files.len())
    }));
    let params = json!({"command": "index", "args": ["a.md"], "request_id": "r1", "_meta": {"becket": {"credit": 99}}});
    remote.request(7, "command.invoke", params);
    let mut events = Vec::new();
    let response = loop {
        let mut message = remote.receive();
        if message.get("id").is_some() {
            break message;
        }
        let meta = message["params"].as_object_mut().unwrap().remove("_meta");
        assert_eq!(meta, Some(json!({"becket": {"parent": 7}})));
        events.push((message["method"].as_str().unwrap().to_string(), message["params"].take()));
    };
    assert_eq!(response["result"], 1);
    let output = |event: Value| ("command.output".to_string(), json!({"request_id": "r1", "event": event}));
    assert_eq!(
        events,
        [
            output(json!({"kind": "text", "content": "**start**"})),
            ("task.start".into(), json!({"id": "r1/1", "label": "Indexing", "kind": "rebuild"})),
            ("task.update".into(), json!({"id": "r1/1", "current": 0, "total": 1})),
            ("task.log".into(), json!({"id": "r1/1", "line": "a.md"})),
            ("task.update".into(), json!({"id": "r1/1", "current": 1, "total": 1, "message": "half"})),
            ("task.done".into(), json!({"id": "r1/1"})),
            ("task.start".into(), json!({"id": "r1/2", "label": "Failing", "kind": "generic"})),
            ("task.done".into(), json!({"id": "r1/2", "error": "failed"})),
            output(json!({"kind": "table", "headers": ["file"], "rows": [["a.md"]]})),
            output(json!({"kind": "done"})),
        ]
    );
}

#[test]
fn a_provider_streams_events_only_where_they_are_wanted() {
    let provider = Provider::new("local", "Local", "A model.", [Model::new("small")]);
    let (mut remote, _) = ready(notes().provider(provider, |request, out| {
        out.thinking("hm")?;
        out.text(&request.model_id)?;
        out.tool_use("t1", "count", &Map::new())?;
        out.error("slow")?;
        Ok(ProviderResult::new([json!({"type": "text", "text": out.is_wanted().to_string()})]))
    }));
    let mut request = json!({
        "provider_id": "local", "model_id": "small", "model": "notes:local:small", "temperature": null, "tools": [],
        "messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "x"}]}],
        "system_prompt": null, "max_tokens": null, "thinking_budget": 0, "later": 1,
    });
    assert_eq!(remote.result(1, "provider.complete", request.clone())["content"][0]["text"], "false");
    remote.request(2, "provider.stream", request.clone());
    let kinds: Vec<Value> = (0..5).map(|_| remote.receive()["params"]["type"].take()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "error", "done"]);
    assert_eq!(remote.receive()["result"]["content"][0]["text"], "true");
    request["model_id"] = json!("large");
    assert_eq!(remote.error(3, "provider.stream", request)["data"]["problems"][0]["pointer"], "/model_id");
}

#[test]
fn a_hook_searches_the_input_in_the_order_of_its_text() {
    let part = HookMatch::default().with_input_contains(r#""to":1.0,"from":"b""#);
    let hook = HookSubscription::new(HookKind::BeforeToolCall).with_match(part);
    let (mut remote, _) = serve(notes().hook(hook, |_, _| Ok(HookResult::Block { reason: "no".into() })));
    remote.initialize(&FEATURES);
    for (id, input, action) in
        [(1, r#"{ "to": 1.0, "from": "b" }"#, "block"), (2, r#"{"from":"b","to":1.0}"#, "continue")]
    {
        remote.send_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"hook.handle","params":{{"kind":"before_tool_call","tool_input":{input}}}}}"#
        ));
        assert_eq!(remote.receive()["result"]["action"], action);
    }
}

#[test]
fn the_first_hook_that_matches_and_does_not_continue_counts() {
    let subscribe = |kind, matching: HookMatch| HookSubscription::new(kind).with_match(matching);
    let on_bash = HookMatch::default().with_tool("bash").with_input_contains("rm");
    let (mut remote, _) = ready(
        notes()
            .hook(subscribe(HookKind::BeforeToolCall, on_bash), |_, _| Ok(HookResult::Block { reason: "no".into() }))
            .hook(HookSubscription::new(HookKind::BeforeMessage), |event, _| {
                Ok(HookResult::Inject { content: event.message.clone().unwrap_or_default() })
            })
            .hook(HookSubscription::new(HookKind::BeforeMessage), |_, _| {
                Ok(HookResult::Inject { content: "two".into() })
            }),
    );
    let tool = |name: &str, command: &str| json!({"kind": "before_tool_call", "tool_name": name, "tool_input": {"command": command}});
    assert_eq!(remote.result(1, "hook.handle", tool("bash", "rm x")), json!({"action": "block", "reason": "no"}));
    assert_eq!(remote.result(2, "hook.handle", tool("bash", "ls")), json!({"action": "continue"}));
    assert_eq!(remote.result(3, "hook.handle", tool("read", "rm x")), json!({"action": "continue"}));
    let message = json!({"kind": "before_message", "message": "one"});
    assert_eq!(remote.result(4, "hook.handle", message), json!({"action": "inject", "content": "one\n\ntwo"}));
    assert_eq!(remote.result(5, "hook.handle", json!({"kind": "a_later_kind"})), json!({"action": "continue"}));
}

#[test]
fn memory_configuration_and_log_of_the_host_are_used() {
    let (mut remote, _) = ready(notes().tool(Tool::new("keep", "Keeps.", Schema::object()), |_: Value, ctx| {
        let host = ctx.host();
        assert_eq!((host.extension(), host.info().unwrap().name.as_str()), ("notes", "test"));
        assert_eq!(host.initial_config().unwrap()["theme"], "dark");
        host.log(LogLevel::Warning, "kept");
        host.memory().append("milk", &["home"])?;
        let denied = host.config().set("theme", "light").unwrap_err();
        assert_eq!(denied.code(), Some(code::PERMISSION_DENIED));
        Ok(host.memory().query(Query::default().with_limit(5))?.len())
    }));
    remote.request(1, "tool.call", json!({"name": "keep", "input": {}}));
    let log = remote.receive();
    assert_eq!(log["params"], json!({"level": "warning", "logger": "notes", "message": "kept"}));
    let mut answer = |expected: Value, outcome: (&str, Value)| {
        let mut call = remote.receive();
        call["params"].as_object_mut().unwrap().remove("_meta");
        assert_eq!(json!([call["method"], call["params"]]), expected);
        let mut response = json!({"jsonrpc": "2.0", "id": call["id"]});
        response[outcome.0] = outcome.1;
        remote.send(&response);
    };
    answer(
        json!(["memory.append", {"namespace": "notes", "content": "milk", "tags": ["home"]}]),
        ("result", json!({"ok": true, "timestamp_ms": 1, "id": 1})),
    );
    let denied = json!({"code": 1003, "message": "permission denied: config.write required"});
    answer(json!(["config.set", {"key": "theme", "value": "light"}]), ("error", denied));
    let record = json!({"namespace": "notes", "timestamp_ms": 1, "content": "milk", "tags": [], "later": true});
    answer(json!(["memory.query", {"namespace": "notes", "limit": 5}]), ("result", json!({"records": [record]})));
    assert_eq!(remote.receive()["result"], 1);
}

#[test]
fn changes_of_the_configuration_are_handled() {
    let (mut remote, _) = ready(
        notes()
            .on_config_change(|change: ConfigChanged, ctx| {
                Ok(ctx.peer().notify("seen", &json!([change.key, change.value, change.revision]))?)
            })
            .method("own.add", |(a, b): (i64, i64), _| Ok(a + b)),
    );
    remote.notify("config.changed", &json!({"key": "theme", "value": null, "revision": 3}));
    assert_eq!(remote.receive()["params"], json!(["theme", null, 3]));
    assert_eq!(remote.result(1, "own.add", json!([1, 2])), 3);
}

#[test]
fn the_editor_of_a_setting_renders_commits_and_closes() {
    let (mut remote, _) = ready(
        notes()
            .on_editor_open(|_, _| Ok(EditorResponse::Render(EditorRender::new([EditorRow::new("white")]))))
            .on_editor_key(|pressed, _| {
                Ok(match pressed.key.as_str() {
                    "Enter" => EditorResponse::Commit(json!("white")),
                    "Esc" => EditorResponse::Close(Some("bye".into())),
                    _ => EditorResponse::Unchanged,
                })
            }),
    );
    let opened = remote.result(1, "settings.editor.open", json!({"category": "lamp", "field": "colour"}));
    assert_eq!(opened, json!({"category": "lamp", "field": "colour", "render": {"rows": [{"label": "white"}]}}));
    let key = |key: &str| json!({"category": "lamp", "field": "colour", "key": key});
    assert_eq!(remote.result(2, "settings.editor.key", key("x")), Value::Null);
    remote.request(3, "settings.editor.key", key("Enter"));
    let committed = remote.receive();
    assert_eq!(
        (&committed["method"], &committed["params"]["value"]),
        (&json!("settings.editor.commit"), &json!("white"))
    );
    assert_eq!(remote.receive()["result"], Value::Null);
    remote.request(4, "settings.editor.key", key("Esc"));
    assert_eq!(remote.receive()["params"]["reason"], "bye");
    assert_eq!(remote.receive()["result"], Value::Null);
    let value = json!({"category": "lamp", "field": "colour", "value": "blue"});
    assert_eq!(remote.result(5, "settings.editor.commit", value), "blue");
}

fn blocking(stopped: Sender<()>) -> Extension {
    let stopped = Mutex::new(stopped);
    notes()
        .tool(Tool::new("wait", "Waits.", Schema::object()), |_: Value, ctx| Ok(ctx.sleep(PATIENCE)?))
        .on_stop(move |_| Ok(stopped.lock().unwrap().send(())?))
}

#[test]
fn shutdown_cancels_handlers_and_stops() {
    let (stopped, is_stopped) = channel();
    let (mut remote, served) = ready(blocking(stopped));
    remote.request(1, "tool.call", json!({"name": "wait", "input": {}}));
    remote.request(2, "shutdown", Value::Null);
    let first = remote.receive();
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!(1), &json!(code::CANCELLED)));
    assert_eq!(remote.receive(), json!({"jsonrpc": "2.0", "id": 2, "result": null}));
    is_stopped.recv_timeout(PATIENCE).unwrap();
    let Served { end, is_stuck, .. } = served.join().unwrap();
    assert_eq!((end, is_stuck), (End::Stopped, false));
}

#[test]
fn the_end_of_the_stream_stops_and_requests_before_it_are_responded_to() {
    let (stopped, is_stopped) = channel();
    let (mut remote, served) = ready(blocking(stopped).method("slow", |_: Value, ctx| {
        ctx.sleep(Duration::from_millis(50))?;
        Ok("done")
    }));
    remote.request(1, "slow", Value::Null);
    remote.close();
    assert_eq!(remote.receive()["result"], "done");
    is_stopped.recv_timeout(PATIENCE).unwrap();
    assert_eq!(served.join().unwrap().end, End::Closed);
}

#[test]
fn a_handler_that_never_returns_does_not_keep_the_extension() {
    let never = Arc::new(Mutex::new(()));
    let held = never.lock().unwrap();
    let inside = Arc::clone(&never);
    let (mut remote, served) = ready(notes().method("block", move |_: Value, _| {
        drop(inside.lock());
        Ok(())
    }));
    remote.request(1, "block", Value::Null);
    remote.close();
    assert!(served.join().unwrap().is_stuck);
    drop(held);
}

#[test]
fn a_stop_that_never_returns_does_not_keep_the_extension() {
    let never = Arc::new(Mutex::new(()));
    let held = never.lock().unwrap();
    let inside = Arc::clone(&never);
    let (mut remote, served) = ready(notes().on_stop(move |_| {
        drop(inside.lock());
        Ok(())
    }));
    remote.request(1, "shutdown", Value::Null);
    assert!(served.join().unwrap().is_stuck);
    drop(held);
}
