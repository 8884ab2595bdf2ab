//! One of everything: tools, a command, a provider, a hook and a settings editor.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use becket::contract::{
    EditorRender, EditorRow, HookEvent, HookKind, HookMatch, HookResult, HookSubscription, LogLevel, MessageContent,
    Model, ModelCapabilities, Provider, ProviderRequest, ProviderResult, Query, TaskKind,
};
use becket::{CommandOutput, Context, EditorResponse, Extension, ProviderStream, Result, Schema, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const COLOURS: [&str; 3] = ["white", "blue", "red"];
const MINUTE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    becket::run(build)
}

fn build() -> Extension {
    let name = Schema::string().describe("Who is greeted.");
    let times = Schema::integer().with("minimum", 1).default_value(1);
    let greeting = Schema::object().required("name", name).optional("times", times);
    let text = Schema::object().required("text", Schema::string());
    Extension::new("rust", "1.0.0")
        .tool(Tool::new("greet", "Greets somebody.", greeting).with_read_only(true), greet)
        .tool(Tool::new("keep", "Keeps a text, and counts what was kept.", text), keep)
        .tool(Tool::new("wait", "Waits until it is cancelled.", Schema::object()), wait)
        .command("letters", letters)
        .provider(parrot(), speak)
        .hook(guarded(), guard)
        .on_editor_open(|_, _| Ok(move_to(0)))
        .on_editor_key(|pressed, _| {
            let cursor = CURSOR.load(Ordering::Relaxed);
            Ok(match pressed.key.as_str() {
                "Up" => move_to(cursor + COLOURS.len() - 1),
                "Down" => move_to(cursor + 1),
                "Enter" => EditorResponse::Commit(COLOURS[cursor].into()),
                "Esc" => EditorResponse::Close(Some("nothing has changed".into())),
                _ => EditorResponse::Unchanged,
            })
        })
}

// -- tools

#[derive(Deserialize)]
struct Greeting {
    name: String,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

fn greet(input: Greeting, ctx: &Context) -> Result<String> {
    let word = ctx.host().config().get("greeting")?.unwrap_or_else(|| "Hello".into());
    Ok(vec![format!("{word}, {}!", input.name); input.times].join(" "))
}

#[derive(Deserialize)]
struct Note {
    text: String,
}

fn keep(input: Note, ctx: &Context) -> Result<usize> {
    let host = ctx.host();
    host.memory().append(&input.text, &["note"])?;
    host.log(LogLevel::Info, format!("kept: {}", input.text));
    Ok(host.memory().query(Query::default())?.len())
}

fn wait(_: Map<String, Value>, ctx: &Context) -> Result<()> {
    ctx.progress("waiting")?;
    loop {
        ctx.sleep(MINUTE)?; // ends with an error when the request is cancelled
    }
}

// -- a command

fn letters(words: &[String], out: &CommandOutput) -> Result<BTreeMap<String, usize>> {
    if words.is_empty() {
        out.system("Usage: letters WORD...")?;
        return Ok(BTreeMap::new());
    }
    let counts = out.task("Counting letters", TaskKind::Generic, Some(words.len() as u64), |task| {
        let mut counts = BTreeMap::new();
        for word in words {
            counts.insert(word.clone(), word.chars().count());
            task.advance(1, Some(word))?;
        }
        Ok(counts)
    })?;
    let rows: Vec<[String; 2]> = words.iter().map(|word| [word.clone(), counts[word].to_string()]).collect();
    out.table(&["word", "letters"], &rows)?;
    Ok(counts)
}

// -- a provider

fn parrot() -> Provider {
    let can_stream = ModelCapabilities::default().with_streaming(true);
    let model = Model::new("small").with_capabilities(can_stream).with_context_window(4096);
    Provider::new("parrot", "Parrot", "Repeats what it was told.", [model])
}

fn speak(request: &ProviderRequest, out: &ProviderStream) -> Result<ProviderResult> {
    let said = request.messages.iter().rev().find(|message| message.role == "user").map(|message| &message.content);
    let said = match said {
        Some(MessageContent::Text(text)) => text.clone(),
        Some(MessageContent::List(blocks)) => blocks.iter().filter_map(|it| it.get("text")?.as_str()).collect(),
        _ => String::new(),
    };
    let answer = format!("You said: {said}");
    for word in answer.split_inclusive(' ') {
        out.text(word)?;
    }
    let usage = json!({ "output_tokens": answer.split_whitespace().count() });
    if let Value::Object(usage) = &usage {
        out.usage(usage.clone())?;
    }
    Ok(ProviderResult::new([json!({ "type": "text", "text": answer })]).with_usage(usage))
}

// -- a hook

fn guarded() -> HookSubscription {
    HookSubscription::new(HookKind::BeforeToolCall).with_match(HookMatch::default().with_tool("bash"))
}

fn guard(event: &HookEvent, _: &Context) -> Result<HookResult> {
    let command = event.tool_input.as_ref().and_then(|input| input.get("command")?.as_str()).unwrap_or_default();
    if command.contains("rm -rf") {
        return Ok(HookResult::Block { reason: "it would delete everything".into() });
    }
    Ok(HookResult::Continue)
}

// -- a settings editor

static CURSOR: AtomicUsize = AtomicUsize::new(0);

fn move_to(place: usize) -> EditorResponse {
    let cursor = place % COLOURS.len();
    CURSOR.store(cursor, Ordering::Relaxed);
    let rows: Vec<EditorRow> = COLOURS.iter().map(|colour| EditorRow::new(*colour).with_data(*colour)).collect();
    EditorResponse::Render(EditorRender::new(rows).with_cursor(cursor as u64))
}
