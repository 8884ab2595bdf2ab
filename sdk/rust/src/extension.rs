//! An extension: what it declares, and the handlers of the contract's methods that serve it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::contract::{
    BuildInfo, Capabilities, CapabilityInfo, CommandInvoke, ConfigChanged, DeclaredCapability, EditorClosed,
    EditorCommit, EditorCommitted, EditorKey, EditorOpen, EditorOpened, EditorRender, EditorTaken, ExtensionInfo,
    FEATURES, HookEvent, HookMatch, HookResult, HookSubscription, Initialize, Initialized, PROTOCOL_VERSION, Provider,
    ProviderRequest, ProviderResult, SidecarArgs, Tool, ToolCall, code, method,
};
use crate::error::{Problem, Result, RpcError};
use crate::json;
use crate::log::write_stderr;
use crate::methods::{Methods, Params};
use crate::outputs::{CommandOutput, ProviderStream};
use crate::peer::{End, Limits, Peer};
use crate::sync::{lock, wait_until};

const STOP_GRACE: Duration = Duration::from_secs(5); // a becket host kills its extension after four and a half
const FINISH_GRACE: Duration = Duration::from_secs(1); // for handlers, after the host has closed its end
const CANCEL_GRACE: Duration = Duration::from_secs(1); // and for those that were cancelled then
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200); // for cancelled handlers, while the host waits

type ToolHandler = Box<dyn Fn(&Value, &Context) -> Result<Value> + Send + Sync>;
type CommandHandler = Box<dyn Fn(&[String], &CommandOutput) -> Result<Value> + Send + Sync>;
type ProviderHandler = Box<dyn Fn(&ProviderRequest, &ProviderStream) -> Result<ProviderResult> + Send + Sync>;
type HookHandler = Box<dyn Fn(&HookEvent, &Context) -> Result<HookResult> + Send + Sync>;
type Lifecycle = Box<dyn Fn(&Context) -> Result<()> + Send + Sync>;
type EditorHandler<T> = Box<dyn Fn(&T, &Context) -> Result<EditorResponse> + Send + Sync>;

/// What a settings editor does after it was opened, or after a key or a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EditorResponse {
    /// Shows these rows.
    Render(EditorRender),
    /// Stores this value and closes the editor.
    Commit(Value),
    /// Closes the editor without a value; the reason is shown.
    Close(Option<String>),
    /// Changes nothing.
    Unchanged,
}

/// An extension: declare what it offers, then give it to [`run`](crate::run).
///
/// Handlers run in threads of their own, many at once, and may block.
pub struct Extension {
    id: String,
    version: String,
    limits: Limits,
    methods: Methods,
    tools: Vec<(Tool, ToolHandler)>,
    commands: BTreeMap<String, CommandHandler>,
    providers: Vec<(Provider, ProviderHandler)>,
    hooks: Vec<(HookSubscription, HookHandler)>,
    capabilities: Vec<DeclaredCapability>,
    on_start: Option<Lifecycle>,
    on_stop: Option<Lifecycle>,
    info: Option<ExtensionInfo>,
    sidecar_args: SidecarArgs,
    on_editor_open: Option<EditorHandler<EditorOpen>>,
    on_editor_key: Option<EditorHandler<EditorKey>>,
    on_editor_commit: Option<EditorHandler<EditorCommit>>,
}

impl Extension {
    /// Returns an extension that offers nothing yet. Its id and version are those of its manifest.
    pub fn new(id: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            version: version.into(),
            limits: Limits::default(),
            methods: Methods::new(),
            tools: Vec::new(),
            commands: BTreeMap::new(),
            providers: Vec::new(),
            hooks: Vec::new(),
            capabilities: Vec::new(),
            on_start: None,
            on_stop: None,
            info: None,
            sidecar_args: SidecarArgs::default(),
            on_editor_open: None,
            on_editor_key: None,
            on_editor_commit: None,
        }
    }

    /// Declares a tool: `tool(Tool::new("count", "Counts letters.", schema), |input: Count, ctx| Ok(...))`.
    ///
    /// An input that does not fit the type of the handler is rejected with the JSON pointer of the member.
    #[must_use]
    pub fn tool<I, R, F>(mut self, tool: Tool, handler: F) -> Self
    where
        I: DeserializeOwned,
        R: Serialize,
        F: Fn(I, &Context) -> Result<R> + Send + Sync + 'static,
    {
        let erased = move |input: &Value, ctx: &Context| {
            let input = json::decode(input).map_err(|problem| {
                RpcError::invalid_params([Problem::new(format!("/input{}", problem.pointer), problem.message)])
            })?;
            Ok(serde_json::to_value(handler(input, ctx)?)?)
        };
        self.tools.push((tool, Box::new(erased)));
        self
    }

    /// Declares a command of the manifest. The handler gets the arguments, and an output for events.
    #[must_use]
    pub fn command<R, F>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        R: Serialize,
        F: Fn(&[String], &CommandOutput) -> Result<R> + Send + Sync + 'static,
    {
        let erased = move |args: &[String], out: &CommandOutput| Ok(serde_json::to_value(handler(args, out)?)?);
        self.commands.insert(name.into(), Box::new(erased));
        self
    }

    /// Declares a provider of models. The handler serves `provider.complete` and `provider.stream`: events are sent only
    /// for the latter, and what it returns is the whole result.
    #[must_use]
    pub fn provider<F>(mut self, provider: Provider, handler: F) -> Self
    where
        F: Fn(&ProviderRequest, &ProviderStream) -> Result<ProviderResult> + Send + Sync + 'static,
    {
        self.providers.push((provider, Box::new(handler)));
        self
    }

    /// Declares a hook. Of several hooks that match an event the first result other than `Continue` counts; injected
    /// texts are joined.
    #[must_use]
    pub fn hook<F>(mut self, subscription: HookSubscription, handler: F) -> Self
    where
        F: Fn(&HookEvent, &Context) -> Result<HookResult> + Send + Sync + 'static,
    {
        self.hooks.push((subscription, Box::new(handler)));
        self
    }

    /// Handles a method of your own.
    ///
    /// # Panics
    /// The method is one of the contract.
    #[must_use]
    pub fn method<P, R, F>(mut self, method: &str, handler: F) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
        F: Fn(P, &Context) -> Result<R> + Send + Sync + 'static,
    {
        assert!(!is_reserved(method), "{method} is a method of the contract: use the function for it");
        self.methods = self.methods.handle(method, handler);
        self
    }

    /// Handles a notification of your own; they are handled in the order of their arrival.
    ///
    /// # Panics
    /// The notification is one of the contract.
    #[must_use]
    pub fn notification<P, F>(mut self, method: &str, handler: F) -> Self
    where
        P: DeserializeOwned,
        F: Fn(P, &Context) -> Result<()> + Send + Sync + 'static,
    {
        assert!(!is_reserved(method), "{method} is a notification of the contract: use the function for it");
        self.methods = self.methods.on(method, handler);
        self
    }

    /// Handles changes of the configuration, after `host.config().subscribe(...)`.
    #[must_use]
    pub fn on_config_change<F>(mut self, handler: F) -> Self
    where
        F: Fn(ConfigChanged, &Context) -> Result<()> + Send + Sync + 'static,
    {
        self.methods = self.methods.on(method::CONFIG_CHANGED, handler);
        self
    }

    /// Declares a capability of a kind of your own.
    #[must_use]
    pub fn capability(mut self, capability: DeclaredCapability) -> Self {
        self.capabilities.push(capability);
        self
    }

    /// Runs during `initialize`, before the response. An error fails the start.
    #[must_use]
    pub fn on_start<F>(mut self, handler: F) -> Self
    where
        F: Fn(&Context) -> Result<()> + Send + Sync + 'static,
    {
        self.on_start = Some(Box::new(handler));
        self
    }

    /// Runs once at the end, for at most five seconds. The host may be gone already.
    #[must_use]
    pub fn on_stop<F>(mut self, handler: F) -> Self
    where
        F: Fn(&Context) -> Result<()> + Send + Sync + 'static,
    {
        self.on_stop = Some(Box::new(handler));
        self
    }

    /// Draws the editor of a setting when the user opens it.
    #[must_use]
    pub fn on_editor_open<F>(mut self, handler: F) -> Self
    where
        F: Fn(&EditorOpen, &Context) -> Result<EditorResponse> + Send + Sync + 'static,
    {
        self.on_editor_open = Some(Box::new(handler));
        self
    }

    /// Handles a key that was pressed in an open editor.
    #[must_use]
    pub fn on_editor_key<F>(mut self, handler: F) -> Self
    where
        F: Fn(&EditorKey, &Context) -> Result<EditorResponse> + Send + Sync + 'static,
    {
        self.on_editor_key = Some(Box::new(handler));
        self
    }

    /// Handles the value that the user has chosen in an open editor. Without a handler, or with
    /// [`EditorResponse::Unchanged`], the chosen value is stored.
    #[must_use]
    pub fn on_editor_commit<F>(mut self, handler: F) -> Self
    where
        F: Fn(&EditorCommit, &Context) -> Result<EditorResponse> + Send + Sync + 'static,
    {
        self.on_editor_commit = Some(Box::new(handler));
        self
    }

    /// Sets what `info.get` returns instead of the version and the capabilities.
    #[must_use]
    pub fn info(mut self, info: ExtensionInfo) -> Self {
        self.info = Some(info);
        self
    }

    /// Sets the arguments for starting the extension's sidecar.
    #[must_use]
    pub fn sidecar_args(mut self, args: SidecarArgs) -> Self {
        self.sidecar_args = args;
        self
    }

    /// Sets other limits for the link.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves a host over these streams until the link ends, and returns why. Programs call [`run`](crate::run).
    pub fn serve<R, W>(self, input: R, output: W) -> Served
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let (methods, limits) = (self.methods.clone(), self.limits.clone());
        let session = Arc::new(Session { extension: self, state: Mutex::default(), changed: Condvar::new() });
        let peer = Peer::start_without_features(input, output, session.register(methods), limits);
        session.wait(&peer)
    }

    /// Returns what the extension offers, for people.
    pub(crate) fn usage(&self) -> String {
        let mut lines = vec![
            format!(
                "{} {} is an extension: a host program starts it, and uses its stdin and stdout.",
                self.id, self.version
            ),
            String::new(),
        ];
        lines.extend(self.tools.iter().map(|(tool, _)| format!("tool {}: {}", tool.name, tool.description)));
        lines.extend(self.commands.keys().map(|name| format!("command {name}")));
        lines.extend(self.providers.iter().map(|(it, _)| format!("provider {}: {}", it.id, it.description)));
        lines.join("\n")
    }

    fn describe(&self) -> ExtensionInfo {
        self.info.clone().unwrap_or_else(|| {
            let named = self.capabilities.iter().map(|it| CapabilityInfo::new(it.kind.clone(), it.name.clone()));
            ExtensionInfo::default()
                .with_build(BuildInfo::new("cpu").with_version(self.version.clone()))
                .with_capabilities(named.collect::<Vec<_>>())
        })
    }

    fn declared(&self, has_features: bool) -> Capabilities {
        let declared = Capabilities::default()
            .with_tools(self.tools.iter().map(|(tool, _)| tool.clone()).collect::<Vec<_>>())
            .with_providers(self.providers.iter().map(|(provider, _)| provider.clone()).collect::<Vec<_>>())
            .with_capabilities(self.capabilities.clone());
        if !has_features || self.hooks.is_empty() {
            return declared;
        }
        let mut announced: Vec<HookSubscription> = Vec::new();
        for (subscription, _) in &self.hooks {
            if !announced.contains(subscription) {
                announced.push(subscription.clone());
            }
        }
        declared.with_hooks(announced)
    }
}

/// How serving a host has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Why the link has ended.
    pub end: End,
    /// Whether handlers or `on_stop` did not return in time.
    pub is_stuck: bool,
}

fn is_reserved(method: &str) -> bool {
    const RESERVED: [&str; 13] = [
        method::INITIALIZE,
        method::SHUTDOWN,
        method::TOOL_CALL,
        method::PROVIDER_COMPLETE,
        method::PROVIDER_STREAM,
        method::COMMAND_INVOKE,
        method::HOOK_HANDLE,
        method::INFO_GET,
        method::SIDECAR_SPAWN_ARGS,
        method::SETTINGS_EDITOR_OPEN,
        method::SETTINGS_EDITOR_KEY,
        method::SETTINGS_EDITOR_COMMIT,
        method::CONFIG_CHANGED,
    ];
    RESERVED.contains(&method) || method.starts_with("$/")
}

// -- one session with a host

struct Session {
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
    fn register(self: &Arc<Self>, methods: Methods) -> Methods {
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
            methods =
                methods.handle(method::HOOK_HANDLE, self.ready(|session, event, ctx| session.handle_hook(&event, ctx)));
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
        let params: Initialize = Params(Some(params)).decode()?;
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
    fn wait(self: &Arc<Self>, peer: &Peer) -> Served {
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

    fn handle_hook(&self, event: &HookEvent, ctx: &Context) -> Result<HookResult> {
        let mut injected = Vec::new();
        for (subscription, handler) in &self.extension.hooks {
            if !matches(subscription, event) {
                continue;
            }
            match handler(event, ctx)? {
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

fn matches(subscription: &HookSubscription, event: &HookEvent) -> bool {
    if subscription.hook != event.kind {
        return false;
    }
    let Some(HookMatch { tool, input_contains, input_equals, .. }) = &subscription.r#match else { return true };
    let names = [&event.tool_name, &event.tool_runtime_name];
    let input = event.tool_input.clone().unwrap_or_default();
    (tool.is_none() || names.contains(&tool))
        && input_contains.as_ref().is_none_or(|text| input.to_string().contains(text))
        && input_equals.as_ref().is_none_or(|value| *value == input)
}

fn unknown(member: &str, what: &str, name: &str) -> RpcError {
    RpcError::invalid_params([Problem::new(format!("/{member}"), format!("there is no {what} {name:?} here"))])
}
