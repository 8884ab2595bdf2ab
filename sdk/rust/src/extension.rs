//! An extension: what it declares.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::contract::{
    BuildInfo, Capabilities, CapabilityInfo, ConfigChanged, DeclaredCapability, EditorCommit, EditorKey, EditorOpen,
    EditorRender, ExtensionInfo, HookEvent, HookResult, HookSubscription, Provider, ProviderRequest, ProviderResult,
    SidecarArgs, Tool, method,
};
use crate::error::{Problem, Result, RpcError};
use crate::json;
use crate::limits::Limits;
use crate::methods::Methods;
use crate::outputs::{CommandOutput, ProviderStream};
use crate::peer::{End, Peer};
use crate::session::Session;

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
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) limits: Limits,
    pub(crate) methods: Methods,
    pub(crate) tools: Vec<(Tool, ToolHandler)>,
    pub(crate) commands: BTreeMap<String, CommandHandler>,
    pub(crate) providers: Vec<(Provider, ProviderHandler)>,
    pub(crate) hooks: Vec<(HookSubscription, HookHandler)>,
    pub(crate) capabilities: Vec<DeclaredCapability>,
    pub(crate) on_start: Option<Lifecycle>,
    pub(crate) on_stop: Option<Lifecycle>,
    pub(crate) info: Option<ExtensionInfo>,
    pub(crate) sidecar_args: SidecarArgs,
    pub(crate) on_editor_open: Option<EditorHandler<EditorOpen>>,
    pub(crate) on_editor_key: Option<EditorHandler<EditorKey>>,
    pub(crate) on_editor_commit: Option<EditorHandler<EditorCommit>>,
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
        let (session, peer) = self.start(input, output);
        session.wait(&peer)
    }

    pub(crate) fn start<R, W>(self, input: R, output: W) -> (Arc<Session>, Peer)
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let (methods, limits) = (self.methods.clone(), self.limits.clone());
        let session = Session::new(self);
        let peer = Peer::start_without_features(input, output, session.register(methods), limits);
        (session, peer)
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

    /// Returns the response to `info.get`.
    pub(crate) fn describe(&self) -> ExtensionInfo {
        self.info.clone().unwrap_or_else(|| {
            let named = self.capabilities.iter().map(|it| CapabilityInfo::new(it.kind.clone(), it.name.clone()));
            ExtensionInfo::default()
                .with_build(BuildInfo::new("cpu").with_version(self.version.clone()))
                .with_capabilities(named.collect::<Vec<_>>())
        })
    }

    /// Returns the capabilities for the response to `initialize`.
    pub(crate) fn declared(&self, has_features: bool) -> Capabilities {
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
