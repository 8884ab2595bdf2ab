//! Offers everything that the cases of `becket conform` need: docs/conformance.md describes each tool and command.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use becket::contract::{
    EditorRender, EditorRow, HookKind, HookMatch, HookResult, HookSubscription, LogLevel, MessageContent, Model,
    ModelCapabilities, Provider, ProviderResult, TaskKind,
};
use becket::{CallError, EditorResponse, Extension, Result, RpcError, Schema, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    size: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reject {
    code: i64,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    method: String,
    params: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    count: u64,
}

fn main() -> ExitCode {
    becket::run(|| {
        println!("before the first message");
        add_events(add_tools(Extension::new("conform", "1.0.0"))).on_stop(|_| {
            println!("on_stop");
            Ok(())
        })
    })
}

fn tool(name: &str, description: &str, members: &[(&str, Schema)]) -> Tool {
    let input = members.iter().cloned().fold(Schema::object(), |all, (name, schema)| all.required(name, schema));
    Tool::new(name, description, input)
}

fn add_tools(extension: Extension) -> Extension {
    let (text, integer) = (Schema::string, Schema::integer);
    extension
        .tool(tool("conform_echo", "Returns its input.", &[("value", Schema::new(json!({})))]), |it: Echo, _| {
            Ok(it.value)
        })
        .tool(tool("conform_add", "Adds two integers.", &[("a", integer()), ("b", integer())]), |it: Add, _| {
            Ok(it.a + it.b)
        })
        .tool(tool("conform_sleep", "Waits, and can be cancelled.", &[("ms", integer())]), |it: Wait, ctx| {
            ctx.sleep(Duration::from_millis(it.ms))?;
            Ok("slept")
        })
        .tool(tool("conform_block", "Blocks its thread.", &[("ms", integer())]), |it: Wait, _| {
            thread::sleep(Duration::from_millis(it.ms));
            Ok("blocked")
        })
        .tool(tool("conform_fail", "Fails unexpectedly.", &[("text", text())]), |it: Text, _| -> Result<()> {
            Err(it.text.into())
        })
        .tool(
            tool("conform_reject", "Rejects the call.", &[("code", integer()), ("message", text())]),
            |it: Reject, _| -> Result<()> { Err(RpcError::new(it.code, it.message).into()) },
        )
        .tool(
            tool(
                "conform_call",
                "Calls a method of the host.",
                &[("method", text()), ("params", Schema::new(json!({})))],
            ),
            |it: Call, ctx| match ctx.call::<_, Value>(&it.method, &it.params) {
                Ok(result) => Ok(json!({ "result": result })),
                Err(CallError::Rejected { error, .. }) => {
                    Ok(json!({ "error": { "code": error.code, "message": error.message } }))
                }
                Err(error) => Err(error.into()),
            },
        )
        .tool(tool("conform_log", "Writes to the host's log.", &[("message", text())]), |it: Log, ctx| {
            ctx.host().log(LogLevel::Warning, it.message);
            Ok(())
        })
        .tool(tool("conform_progress", "Reports progress.", &[("count", integer())]), |it: Count, ctx| {
            for number in 1..=it.count {
                ctx.progress(&number)?;
            }
            Ok(it.count)
        })
        .tool(tool("conform_print", "Prints to stdout.", &[("text", text())]), |it: Text, _| {
            println!("{}", it.text);
            Ok("printed")
        })
        .tool(tool("conform_stderr", "Writes to stderr.", &[("size", integer())]), |it: Size, _| {
            eprintln!("{}", "x".repeat(it.size));
            Ok("written")
        })
        .tool(tool("conform_text", "Returns a text of this length.", &[("size", integer())]), |it: Size, _| {
            Ok("x".repeat(it.size))
        })
}

fn add_events(extension: Extension) -> Extension {
    let can_stream = ModelCapabilities::default().with_streaming(true);
    let model = Model::new("words").with_context_window(4096).with_capabilities(can_stream);
    let provider = Provider::new("conform", "conform", "Repeats the last message, word by word.", [model]);
    let guarded = HookMatch::default().with_tool("conform_guarded");
    extension
        .command("conform_count", |args, out| {
            let last: u64 = args.first().ok_or("a number is missing")?.parse()?;
            for number in 1..=last {
                out.text(&number.to_string())?;
            }
            Ok(json!({ "count": last }))
        })
        .command("conform_task", |args, out| {
            out.task("Working", TaskKind::Rebuild, Some(2), |task| {
                task.advance(1, None)?;
                task.log("half")?;
                task.advance(1, None)?;
                if args.is_empty() { Ok(()) } else { Err("stopped".into()) }
            })
        })
        .provider(provider, |request, out| {
            let text = match request.messages.last().map(|message| &message.content) {
                Some(MessageContent::Text(text)) => text.as_str(),
                _ => "",
            };
            for word in text.split_whitespace() {
                out.text(word)?;
            }
            Ok(ProviderResult::new([json!({ "type": "text", "text": text })]))
        })
        .hook(HookSubscription::new(HookKind::BeforeToolCall).with_match(guarded), |event, _| {
            let decision = event.tool_input.as_ref().and_then(|input| input.get("decision")?.as_str());
            Ok(match decision {
                Some("block") => HookResult::Block { reason: "blocked by the case".into() },
                Some("modify") => {
                    HookResult::Modify { input: Map::from_iter([("decision".to_string(), json!("modified"))]) }
                }
                _ => HookResult::Continue,
            })
        })
        .on_editor_open(|_, _| {
            Ok(EditorResponse::Render(EditorRender::new([EditorRow::new("white").with_data("white")]).with_cursor(0)))
        })
}
