//! One session of an extension with its host, from `initialize` to the end.

use std::cell::LazyCell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::context::Context;
use crate::contract::{
    CommandInvoke, EditorClosed, EditorCommit, EditorCommitted, EditorKey, EditorOpen, EditorOpened, EditorTaken,
    FEATURES, HookEvent, HookMatch, HookResult, HookSubscription, Initialize, Initialized, PROTOCOL_VERSION,
    ProviderRequest, ProviderResult, ToolCall, code, method,
};
use crate::error::{Problem, Result, RpcError};
use crate::extension::{EditorResponse, Extension, Served};
use crate::json;
use crate::log::write_stderr;
use crate::methods::{Methods, Params};
use crate::outputs::{CommandOutput, ProviderStream};
use crate::peer::{End, Peer};
use crate::sync::{lock, wait_until};

const STOP_GRACE: Duration = Duration::from_secs(5); // a becket host kills its extension after four and a half
const FINISH_GRACE: Duration = Duration::from_secs(1); // for handlers, after the host has closed its end
const CANCEL_GRACE: Duration = Duration::from_secs(1); // and for those that were cancelled then
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200); // for cancelled handlers, while the host waits

/// The state of one link, and the handlers of the contract's methods.
pub(crate) struct Session {
    extension: Extension,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    phase: Phase,
    has_started: bool,
    stop: Stop,
    is_stuck: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Phase {
    #[default]
    New,
    Starting,
    Ready,
    Stopping,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Stop {
    #[default]
    NotRun,
    Running,
    Done,
}

impl Session {
    pub(crate) fn new(extension: Extension) -> Arc<Self> {
        Arc::new(Self { extension, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Adds the handlers of the contract to those of the author.
    pub(crate) fn register(self: &Arc<Self>, methods: Methods) -> Methods {
        let methods = methods
            .handle(method::INITIALIZE, self.bind(|session, params, ctx| session.initialize(params, ctx)))
            .handle(method::SHUTDOWN, self.bind(Self::shut_down))
            .handle(method::INFO_GET, self.ready(|session, _: Value, _| Ok(session.extension.describe())))
            .handle(
                method::SIDECAR_SPAWN_ARGS,
                self.ready(|session, _: Value, _| Ok(session.extension.sidecar_args.clone())),
            );
        let methods = self.register_offers(methods);
        let (on_open, on_key) = (&self.extension.on_editor_open, &self.extension.on_editor_key);
        if on_open.is_none() && on_key.is_none() && self.extension.on_editor_commit.is_none() {
            return methods;
        }
        methods
            .handle(method::SETTINGS_EDITOR_OPEN, self.ready(|session, open, ctx| session.open_editor(&open, ctx)))
            .handle(method::SETTINGS_EDITOR_KEY, self.ready(|session, key, ctx| session.press_key(&key, ctx)))
            .handle(
                method::SETTINGS_EDITOR_COMMIT,
                self.ready(|session, params, ctx| session.commit_value(params, ctx)),
            )
    }

    fn register_offers(self: &Arc<Self>, mut methods: Methods) -> Methods {
        let extension = &self.extension;
        if !extension.tools.is_empty() {
            methods =
                methods.handle(method::TOOL_CALL, self.ready(|session, params, ctx| session.call_tool(params, ctx)));
        }
        if !extension.commands.is_empty() {
            methods = methods
                .handle(method::COMMAND_INVOKE, self.ready(|session, params, ctx| session.invoke_command(params, ctx)));
        }
        if !extension.providers.is_empty() {
            methods = methods
                .handle(method::PROVIDER_COMPLETE, self.ready(|session, it, ctx| session.run_provider(&it, ctx, false)))
                .handle(method::PROVIDER_STREAM, self.ready(|session, it, ctx| session.run_provider(&it, ctx, true)));
        }
        if !extension.hooks.is_empty() {
            let session = Arc::clone(self);
            methods = methods.handle_params(method::HOOK_HANDLE, move |params, ctx| {
                session.check_ready()?;
                session.handle_hook(params, ctx)
            });
        }
        methods
    }

    fn bind<P, R, F>(self: &Arc<Self>, handler: F) -> impl Fn(P, &Context) -> Result<R> + Send + Sync + 'static
    where
        F: Fn(&Arc<Self>, P, &Context) -> Result<R> + Send + Sync + 'static,
    {
        let session = Arc::clone(self);
        move |params, ctx| handler(&session, params, ctx)
    }

    /// Binds a handler that is available between `initialize` and `shutdown`.
    fn ready<P, R, F>(self: &Arc<Self>, handler: F) -> impl Fn(P, &Context) -> Result<R> + Send + Sync + 'static
    where
        F: Fn(&Arc<Self>, P, &Context) -> Result<R> + Send + Sync + 'static,
    {
        self.bind(move |session, params, ctx| {
            session.check_ready()?;
            handler(session, params, ctx)
        })
    }

    fn check_ready(&self) -> std::result::Result<(), RpcError> {
        self.enter(Phase::Ready, Phase::Ready)
    }

    /// Enters the next phase; in any other than the expected one, the request is rejected.
    fn enter(&self, expected: Phase, next: Phase) -> std::result::Result<(), RpcError> {
        let mut state = lock(&self.state);
        if state.phase == expected {
            state.phase = next;
            return Ok(());
        }
        let why = match state.phase {
            Phase::New => "the host has not sent initialize yet",
            Phase::Starting => "it is starting",
            Phase::Ready => "it has been initialized already",
            Phase::Stopping => "it is ending",
        };
        Err(RpcError::new(code::NOT_READY, format!("{} is not ready: {why}", self.extension.id)))
    }

    // -- start

    fn initialize(&self, params: Value, ctx: &Context) -> Result<Initialized> {
        // The version first: another one may have other params.
        let version = params.get("extension_protocol_version").and_then(Value::as_i64);
        if let Some(version) = version.filter(|version| *version != i64::from(PROTOCOL_VERSION)) {
            let id = &self.extension.id;
            let text = format!("{id} supports version {PROTOCOL_VERSION} of the extension protocol, not {version}");
            let supported = json!({ "supported": [PROTOCOL_VERSION] });
            return Err(RpcError::new(code::INCOMPATIBLE, text).with_data(supported).into());
        }
        let params: Initialize = Params { value: Some(params), text: None }.decode()?;
        self.enter(Phase::New, Phase::Starting)?;
        ctx.peer().limit_features(&params.features);
        let own_id = if params.plugin_id == self.extension.id { String::new() } else { self.extension.id.clone() };
        let has_features = !params.features.is_empty();
        let _ = ctx.peer().session().set(params); // a second try has the same host
        if let Some(on_start) = &self.extension.on_start
            && let Err(error) = on_start(ctx)
        {
            self.enter(Phase::Starting, Phase::New)?; // the host may try again
            return Err(error);
        }
        lock(&self.state).has_started = true;
        self.enter(Phase::Starting, Phase::Ready)?; // `shutdown` may have come meanwhile
        let declared = Initialized::new(PROTOCOL_VERSION).with_capabilities(self.extension.declared(has_features));
        if !has_features {
            return Ok(declared);
        }
        let features = FEATURES.map(String::from).to_vec();
        Ok(declared.with_features(features).with_info(self.extension.describe()).with_id(own_id))
    }

    // -- end

    #[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
    fn shut_down(self: &Arc<Self>, _: Value, ctx: &Context) -> Result<()> {
        self.begin_stopping(ctx.peer());
        ctx.peer().cancel_requests(ctx.request.as_ref());
        ctx.peer().wait_until_running(1, SHUTDOWN_GRACE);
        self.stop_once(ctx);
        ctx.end_after_response();
        Ok(())
    }

    /// Ends the session as `shutdown` does, at a signal.
    pub(crate) fn stop(self: &Arc<Self>, peer: &Peer) {
        self.begin_stopping(peer);
        peer.cancel_requests(None);
        peer.wait_until_running(0, SHUTDOWN_GRACE);
        self.stop_once(&Context::new(peer.clone(), None));
        peer.close();
    }

    /// Rejects further requests, and limits the rest of the extension's time.
    fn begin_stopping(self: &Arc<Self>, peer: &Peer) {
        if std::mem::replace(&mut lock(&self.state).phase, Phase::Stopping) == Phase::Stopping {
            return;
        }
        let (session, peer) = (Arc::clone(self), peer.clone());
        thread::spawn(move || {
            thread::sleep(STOP_GRACE);
            lock(&session.state).is_stuck = true; // nothing happens if it has ended before
            session.changed.notify_all();
            peer.end();
        });
    }

    /// Runs `on_stop`, or waits until its first run has ended.
    fn stop_once(&self, ctx: &Context) {
        let mut state = lock(&self.state);
        if state.stop == Stop::NotRun {
            state.stop = Stop::Running;
            let has_started = state.has_started;
            drop(state);
            if let Some(on_stop) = self.extension.on_stop.as_ref().filter(|_| has_started) {
                let problem = match catch_unwind(AssertUnwindSafe(|| on_stop(ctx))) {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it has panicked".to_string()),
                };
                if let Some(problem) = problem {
                    write_stderr("ERROR", &self.extension.id, &format!("on_stop failed: {problem}"));
                }
            }
            state = lock(&self.state);
            state.stop = Stop::Done;
            drop(state);
            self.changed.notify_all();
            return;
        }
        while state.stop != Stop::Done {
            state = wait_until(&self.changed, state, None);
        }
    }

    /// Waits for the end of the link and of the extension, both within bounds.
    pub(crate) fn wait(self: &Arc<Self>, peer: &Peer) -> Served {
        let end = peer.wait(None).unwrap_or(End::Stopped);
        if end != End::Stopped {
            self.finish(peer);
        }
        Served { end, is_stuck: lock(&self.state).is_stuck }
    }

    /// Ends after the host has closed its end: running handlers may finish, then they are cancelled.
    fn finish(self: &Arc<Self>, peer: &Peer) {
        let is_idle = peer.wait_until_running(0, FINISH_GRACE) || {
            peer.cancel_requests(None);
            peer.wait_until_running(0, CANCEL_GRACE)
        };
        self.begin_stopping(peer);
        let (session, context) = (Arc::clone(self), Context::new(peer.clone(), None));
        thread::spawn(move || session.stop_once(&context));
        let mut state = lock(&self.state);
        while state.stop != Stop::Done && !state.is_stuck {
            state = wait_until(&self.changed, state, None);
        }
        state.is_stuck |= !is_idle;
        drop(state);
        peer.close();
    }

    // -- requests

    fn call_tool(&self, call: ToolCall, ctx: &Context) -> Result<Value> {
        let found = self.extension.tools.iter().find(|(tool, _)| tool.name == call.name);
        let Some((_, handler)) = found else { return Err(unknown("name", "tool", &call.name).into()) };
        handler(&Value::Object(call.input), ctx)
    }

    fn invoke_command(&self, invoke: CommandInvoke, ctx: &Context) -> Result<Value> {
        let Some(handler) = self.extension.commands.get(&invoke.command) else {
            return Err(unknown("command", "command", &invoke.command).into());
        };
        let out = CommandOutput::new(ctx.clone(), invoke.request_id);
        let result = handler(&invoke.args, &out)?;
        out.done()?;
        Ok(result)
    }

    fn run_provider(&self, request: &ProviderRequest, ctx: &Context, is_stream: bool) -> Result<ProviderResult> {
        let found = self.extension.providers.iter().find(|(provider, _)| provider.id == request.provider_id);
        let Some((provider, handler)) = found else {
            return Err(unknown("provider_id", "provider", &request.provider_id).into());
        };
        if !provider.models.iter().any(|model| model.id == request.model_id) {
            return Err(unknown("model_id", "model", &request.model_id).into());
        }
        let out = ProviderStream::new(ctx.clone(), is_stream);
        let result = handler(request, &out)?;
        out.done()?;
        Ok(result)
    }

    fn handle_hook(&self, params: &Params, ctx: &Context) -> Result<HookResult> {
        let event = params.decode()?;
        let input = LazyCell::new(|| json::compact(tool_input_of(params)));
        let mut injected = Vec::new();
        for (subscription, handler) in &self.extension.hooks {
            if !matches(subscription, &event, &input) {
                continue;
            }
            match handler(&event, ctx)? {
                HookResult::Continue => {}
                HookResult::Inject { content } => injected.push(content),
                other => return Ok(other),
            }
        }
        if injected.is_empty() {
            return Ok(HookResult::Continue);
        }
        Ok(HookResult::Inject { content: injected.join("\n\n") })
    }

    fn open_editor(&self, open: &EditorOpen, ctx: &Context) -> Result<Value> {
        let Some(handler) = &self.extension.on_editor_open else { return Ok(Value::Null) };
        show(handler(open, ctx)?, &open.category, &open.field, ctx)
    }

    fn press_key(&self, key: &EditorKey, ctx: &Context) -> Result<Value> {
        let Some(handler) = &self.extension.on_editor_key else { return Ok(Value::Null) };
        show(handler(key, ctx)?, &key.category, &key.field, ctx)
    }

    /// Returns the value to store, never null: a host would store the text "null".
    fn commit_value(&self, commit: EditorCommit, ctx: &Context) -> Result<Value> {
        let Some(handler) = &self.extension.on_editor_commit else { return Ok(commit.value) };
        match handler(&commit, ctx)? {
            EditorResponse::Render(render) => {
                Ok(serde_json::to_value(EditorTaken::new(commit.value).with_render(render))?)
            }
            EditorResponse::Commit(value) => {
                ctx.notify(method::SETTINGS_EDITOR_COMMIT, &EditorCommitted::new(value.clone()))?;
                Ok(value)
            }
            other => {
                show(other, &commit.category, &commit.field, ctx)?;
                Ok(commit.value)
            }
        }
    }
}

/// Returns the result for opening an editor and for a key; what closes the editor is sent as a notification.
fn show(response: EditorResponse, category: &str, field: &str, ctx: &Context) -> Result<Value> {
    match response {
        EditorResponse::Render(render) => {
            return Ok(serde_json::to_value(EditorOpened::new(category, field).with_render(render))?);
        }
        EditorResponse::Commit(value) => ctx.notify(method::SETTINGS_EDITOR_COMMIT, &EditorCommitted::new(value))?,
        EditorResponse::Close(reason) => {
            ctx.notify(method::SETTINGS_EDITOR_CLOSE, &EditorClosed { reason })?;
        }
        EditorResponse::Unchanged => {}
    }
    Ok(Value::Null)
}

/// Returns the tool's input as the host has written it: a decoded one has lost the order of its members.
fn tool_input_of(params: &Params) -> &str {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        tool_input: Option<&'a RawValue>,
    }
    let event = params.text.as_deref().and_then(|text| serde_json::from_str::<Event<'_>>(text).ok());
    event.and_then(|event| event.tool_input).map_or("null", RawValue::get)
}

fn matches(subscription: &HookSubscription, event: &HookEvent, text: &impl Deref<Target = String>) -> bool {
    if subscription.hook != event.kind {
        return false;
    }
    let Some(HookMatch { tool, input_contains, input_equals, .. }) = &subscription.r#match else { return true };
    let names = [&event.tool_name, &event.tool_runtime_name];
    let input = event.tool_input.as_ref().unwrap_or(&Value::Null);
    (tool.is_none() || names.contains(&tool))
        && input_contains.as_ref().is_none_or(|part| text.contains(part))
        && input_equals.as_ref().is_none_or(|value| value == input)
}

fn unknown(member: &str, what: &str, name: &str) -> RpcError {
    RpcError::invalid_params([Problem::new(format!("/{member}"), format!("there is no {what} {name:?} here"))])
}
