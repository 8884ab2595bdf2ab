// Package becket is the runtime for extensions of becket hosts: programs that a host starts, and that it calls over
// stdin and stdout.
//
//	type greeting struct {
//		Name string `json:"name" doc:"Whom to greet."`
//	}
//
//	func main() {
//		ext := becket.New("greeter", "1.0.0")
//		becket.AddTool(ext, "greet", "Greets somebody.", func(ctx context.Context, in greeting) (string, error) {
//			return "Hello, " + in.Name + "!", nil
//		})
//		ext.Run()
//	}
//
// Handlers run in goroutines of their own. Their context ends when the host cancels the request, when the host's
// deadline passes, and when the extension stops. A handler returns an *Error to choose what the host gets; any other
// error, and a panic, is logged, and the host gets "internal error".
//
// In values of type any that were decoded, numbers are of type json.Number.
package becket

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	stopGrace       = 3 * time.Second        // for OnStop; a becket host kills its extension after four
	cancelledGrace  = 200 * time.Millisecond // for cancelled handlers, before OnStop
	unfinishedGrace = 1 * time.Second        // for handlers of requests before the end of stdin
)

// Extension is what a program offers to its host. Add tools, commands and all else before Run or Serve.
type Extension struct {
	// Host is what the host offers: memory, configuration, a log. It can be used from OnStart on.
	Host *Host

	id, version  string
	handlers     map[string]handlerFunc
	tools        []*tool
	commands     map[string]CommandFunc
	providers    []*provider
	hooks        []*hook
	capabilities []DeclaredCapability
	hasOwnInfo   bool
	onStart      func(context.Context) error
	onStop       func(context.Context) error
	onChange     []func(context.Context, ConfigChanged)
	own          map[string]func(context.Context, json.RawMessage)

	mu         sync.Mutex
	state      sessionState
	hasStarted bool
	params     Initialize
	peer       *peer
	stopOnce   sync.Once
	wire       stdio
}

type sessionState string

const (
	stateNew      sessionState = "the host has not sent initialize yet"
	stateStarting sessionState = "it is starting"
	stateReady    sessionState = "it has been initialized already"
	stateStopping sessionState = "it is stopping"
)

type tool struct {
	declared Tool
	call     func(ctx context.Context, input json.RawMessage) (any, error)
}

type provider struct {
	declared Provider
	complete ProviderFunc
}

type hook struct {
	kind   HookKind
	match  HookMatch
	handle HookFunc
}

// New returns an extension without tools. The id is the one in its manifest.
//
// In a program whose stdin and stdout are pipes, as those of an extension are, it takes both for the host: whatever is
// printed from then on goes to stderr.
func New(id, version string) *Extension {
	e := &Extension{
		id: id, version: version, state: stateNew, commands: map[string]CommandFunc{},
		own: map[string]func(context.Context, json.RawMessage){},
	}
	e.Host = newHost(e)
	e.handlers = map[string]handlerFunc{
		MethodInitialize: e.initialize,
		MethodShutdown:   e.shutdown,
	}
	e.SetInfo(e.defaultInfo)
	e.hasOwnInfo = false
	e.handlers[MethodSidecarSpawnArgs] = e.whenReady(func(context.Context, json.RawMessage) (any, error) {
		return SidecarArgs{}, nil
	})
	e.wire.takeFromHost()
	return e
}

// -- declarations

// AddTool adds a tool. Its schemas are those of the types: see SchemaOf. An input that does not fit them is rejected as
// invalid params, with the path of each problem.
func AddTool[In, Out any](
	e *Extension, name, description string, call func(ctx context.Context, input In) (Out, error), options ...ToolOption,
) {
	declared := Tool{
		Name: name, Description: description, InputSchema: SchemaOf[In](), OutputSchema: outputSchema[Out](),
	}
	for _, option := range options {
		option(&declared)
	}
	e.AddRawTool(declared, func(ctx context.Context, input json.RawMessage) (any, error) {
		var in In
		if problems := decodeValue(input, &in, ofToolCall); len(problems) > 0 {
			for i := range problems {
				problems[i].Pointer = "/input" + problems[i].Pointer
			}
			return nil, InvalidParams(problems...)
		}
		return call(ctx, in)
	})
}

// ToolOption changes what is declared of a tool.
type ToolOption func(declared *Tool)

// ReadOnly declares that a tool changes nothing outside of its process.
func ReadOnly(declared *Tool) { declared.ReadOnly = true }

// AddRawTool adds a tool with schemas of its own. It gets its input as JSON, an object.
func (e *Extension) AddRawTool(declared Tool, call func(ctx context.Context, input json.RawMessage) (any, error)) {
	mustBeNamed("tool", declared.Name)
	for _, one := range e.tools {
		if one.declared.Name == declared.Name {
			panic(fmt.Sprintf("becket: the tool %q is declared twice", declared.Name))
		}
	}
	e.tools = append(e.tools, &tool{declared, call})
	e.handlers[MethodToolCall] = e.whenReady(e.callTool)
}

// CommandFunc runs a command. The host gets what it returns when it has ended.
type CommandFunc func(ctx context.Context, args []string, out *CommandOutput) (any, error)

// AddCommand adds a command. The manifest declares it too, for hosts to list.
func (e *Extension) AddCommand(name string, run CommandFunc) {
	mustBeNamed("command", name)
	if e.commands[name] != nil {
		panic(fmt.Sprintf("becket: the command %q is declared twice", name))
	}
	e.commands[name] = run
	e.handlers[MethodCommandInvoke] = e.whenReady(e.invokeCommand)
}

// ProviderFunc completes a request to a model. It sends the parts as events, and returns the whole at the end.
type ProviderFunc func(ctx context.Context, request ProviderRequest, out *ProviderStream) (ProviderResult, error)

// AddProvider adds a provider of models.
func (e *Extension) AddProvider(declared Provider, complete ProviderFunc) {
	mustBeNamed("provider", declared.ID)
	for _, one := range e.providers {
		if one.declared.ID == declared.ID {
			panic(fmt.Sprintf("becket: the provider %q is declared twice", declared.ID))
		}
	}
	e.providers = append(e.providers, &provider{declared, complete})
	e.handlers[MethodProviderComplete] = e.whenReady(e.complete)
	e.handlers[MethodProviderStream] = e.whenReady(e.stream)
}

// HookFunc decides about an event; nil is Continue.
type HookFunc func(ctx context.Context, event HookEvent) (HookResult, error)

// AddHook has events of a kind handled that fit the match; the zero match fits all of them.
func (e *Extension) AddHook(kind HookKind, match HookMatch, handle HookFunc) {
	e.hooks = append(e.hooks, &hook{kind, match, handle})
	e.handlers[MethodHookHandle] = e.whenReady(e.handleHook)
}

// AddCapability declares a capability of a kind of the extension's own.
func (e *Extension) AddCapability(capability DeclaredCapability) {
	e.capabilities = append(e.capabilities, capability)
}

// AddMethod adds a method of the extension's own. Its params are JSON without `_meta`, or nil.
func (e *Extension) AddMethod(name string, call func(ctx context.Context, params json.RawMessage) (any, error)) {
	mustBeNamed("method", name)
	if name == MethodInitialize || name == MethodShutdown {
		panic(fmt.Sprintf("becket: the method %q belongs to the contract", name))
	}
	e.handlers[name] = e.whenReady(call)
}

// OnNotification has a function called with each notification of this name, one after the other.
func (e *Extension) OnNotification(name string, handle func(ctx context.Context, params json.RawMessage)) {
	e.own[name] = handle
}

// OnStart has a function run during the handshake. An error fails the start.
func (e *Extension) OnStart(run func(ctx context.Context) error) { e.onStart = run }

// OnStop has a function run once at the end, for three seconds at most. The host may be gone already.
func (e *Extension) OnStop(run func(ctx context.Context) error) { e.onStop = run }

// SetInfo sets what the extension reports about itself.
func (e *Extension) SetInfo(info func(ctx context.Context) (ExtensionInfo, error)) {
	e.hasOwnInfo = true
	e.handlers[MethodInfoGet] = e.whenReady(func(ctx context.Context, _ json.RawMessage) (any, error) { return info(ctx) })
}

// SetSidecarArgs sets how the host starts the extension's sidecar.
func (e *Extension) SetSidecarArgs(args func(ctx context.Context) (SidecarArgs, error)) {
	e.handlers[MethodSidecarSpawnArgs] = e.whenReady(func(ctx context.Context, _ json.RawMessage) (any, error) {
		return args(ctx)
	})
}

func (e *Extension) defaultInfo(context.Context) (ExtensionInfo, error) {
	info := ExtensionInfo{Build: &BuildInfo{Backend: "cpu", Version: e.version}}
	for _, one := range e.capabilities {
		info.Capabilities = append(info.Capabilities, CapabilityInfo{Kind: one.Kind, Name: one.Name})
	}
	return info, nil
}

func mustBeNamed(what, name string) {
	if strings.TrimSpace(name) == "" {
		panic("becket: a " + what + " needs a name")
	}
}

// -- the session

// Config returns the configuration that the host sent with the handshake. Host.Config has the current values.
func (e *Extension) Config() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.params.Config
}

// Root returns the folder of the extension as the host sent it, or "".
func (e *Extension) Root() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.params.PluginRoot == nil {
		return ""
	}
	return *e.params.PluginRoot
}

// ID returns the id that the host uses for this extension; before the handshake, the extension's own.
func (e *Extension) ID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.params.PluginID != "" {
		return e.params.PluginID
	}
	return e.id
}

// Serve serves a host over a stream until the host ends it or requests shutdown, or the context ends. An extension
// serves one host once. The error is nil unless the host broke the protocol.
func (e *Extension) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	p := newPeer(out, e.id)
	p.findHandler = func(method string) handlerFunc { return e.handlers[method] }
	p.findNotification = e.findNotification
	e.mu.Lock()
	if e.peer != nil {
		e.mu.Unlock()
		return fmt.Errorf("becket: %s serves a host already: make another Extension for another one", e.id)
	}
	e.peer = p
	e.mu.Unlock()

	ended := make(chan error, 1)
	go func() { ended <- p.read(in) }()
	var err error
	select {
	case err = <-ended:
		p.waitIdle(unfinishedGrace, 0) // what was requested before the end still gets its response
	case <-p.stopped: // after the response to shutdown
	case <-p.writer.failed: // the host does not read any more
	case <-ctx.Done():
	}
	e.stop(nil)
	p.fail(ErrClosed)
	p.writer.close()
	p.cancel(ErrStopping)
	return err
}

func (e *Extension) findNotification(method string) handlerFunc {
	if method == MethodConfigChanged && len(e.onChange) > 0 {
		return e.changeConfig
	}
	if handle := e.own[method]; handle != nil {
		return func(ctx context.Context, params json.RawMessage) (any, error) {
			handle(ctx, params)
			return nil, nil
		}
	}
	return nil
}

// whenReady rejects requests before the handshake and during the end.
func (e *Extension) whenReady(serve handlerFunc) handlerFunc {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		e.mu.Lock()
		state := e.state
		e.mu.Unlock()
		if state != stateReady {
			return nil, e.notReady(state)
		}
		return serve(ctx, params)
	}
}

func (e *Extension) notReady(state sessionState) error {
	return Errorf(CodeNotReady, "%s is not ready: %s", e.ID(), state)
}

// setState changes the state if it is the expected one, and returns what it was.
func (e *Extension) setState(from, to sessionState) sessionState {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.state
	if before == from {
		e.state = to
	}
	return before
}

func (e *Extension) initialize(ctx context.Context, raw json.RawMessage) (any, error) {
	if err := e.checkVersion(raw); err != nil { // another version may have other params
		return nil, err
	}
	params, err := decodeParams[Initialize](raw)
	if err != nil {
		return nil, err
	}
	if state := e.setState(stateNew, stateStarting); state != stateNew {
		return nil, e.notReady(state)
	}
	e.mu.Lock()
	e.params = params
	e.mu.Unlock()
	e.peer.limitFeatures(params.Features)
	if e.onStart != nil {
		if err := e.onStart(ctx); err != nil {
			e.setState(stateStarting, stateNew) // the host may try again
			return nil, err
		}
	}
	e.mu.Lock()
	e.hasStarted = true
	e.mu.Unlock()
	if state := e.setState(stateStarting, stateReady); state != stateStarting {
		return nil, e.notReady(state)
	}
	return e.describe(ctx, params), nil
}

func (e *Extension) checkVersion(raw json.RawMessage) error {
	var given struct {
		Version *json.Number `json:"extension_protocol_version"`
	}
	if raw == nil || json.Unmarshal(raw, &given) != nil || given.Version == nil || !isIntegral([]byte(*given.Version)) {
		return nil
	}
	if version := given.Version.String(); version != fmt.Sprint(ProtocolVersion) {
		failure := Errorf(CodeIncompatible, "%s supports version %d of the contract, not %s", e.id, ProtocolVersion, version)
		failure.Data = map[string]any{"supported": []int{ProtocolVersion}}
		return failure
	}
	return nil
}

func (e *Extension) describe(ctx context.Context, params Initialize) Initialized {
	declared := Capabilities{Capabilities: e.capabilities}
	for _, one := range e.tools {
		declared.Tools = append(declared.Tools, one.declared)
	}
	for _, one := range e.providers {
		declared.Providers = append(declared.Providers, one.declared)
	}
	result := Initialized{ProtocolVersion: ProtocolVersion}
	if len(params.Features) > 0 {
		declared.Hooks = e.subscriptions()
		result.Features = Features // all of them are supported
		if !e.hasOwnInfo {         // one of the author's may take long or fail: the host sends info.get for it
			info, _ := e.defaultInfo(ctx)
			result.Info = &info
		}
		if e.id != params.PluginID {
			result.ID = e.id
		}
	}
	result.Capabilities = &declared
	return result
}

func (e *Extension) subscriptions() []HookSubscription {
	var found []HookSubscription
	seen := map[string]bool{}
	for _, one := range e.hooks {
		subscription := HookSubscription{Hook: one.kind}
		if canonical(one.match) != "{}" {
			subscription.Match = &one.match
		}
		if text, _ := encodeJSON(subscription); !seen[string(text)] {
			seen[string(text)] = true
			found = append(found, subscription)
		}
	}
	return found
}

func (e *Extension) shutdown(ctx context.Context, _ json.RawMessage) (any, error) {
	request := RequestOf(ctx)
	e.stop(request)
	request.onAnswered = sync.OnceFunc(func() { close(e.peer.stopped) })
	return nil, nil
}

// stop cancels all handlers but that of a request, and runs OnStop once; a second caller waits for the first.
func (e *Extension) stop(but *Request) {
	e.stopOnce.Do(func() {
		e.mu.Lock()
		e.state = stateStopping
		hasStarted := e.hasStarted
		e.mu.Unlock()
		others := 0
		if but != nil {
			others = 1
		}
		e.peer.cancelAll(ErrStopping, but)
		e.peer.waitIdle(cancelledGrace, others)
		if e.onStop == nil || !hasStarted {
			return
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), stopGrace, ErrStopping)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := e.peer.run(ctx, &Request{Method: "OnStop"}, func(ctx context.Context, _ json.RawMessage) (any, error) {
				return nil, e.onStop(ctx)
			})
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				logToStderr(LogLevelError, e.id, fmt.Sprintf("OnStop failed: %v", err))
			}
		case <-ctx.Done():
			logToStderr(LogLevelError, e.id, fmt.Sprintf("OnStop took longer than %s: given up", stopGrace))
		}
	})
}

// -- serving the contract

func unknownName(member, what, name string, known ...string) error {
	text := fmt.Sprintf("there is no %s %q here", what, truncate(name))
	if len(known) > 0 {
		text += ", but: " + truncate(strings.Join(known, ", "))
	}
	return InvalidParams(Problem{"/" + member, text})
}

func (e *Extension) callTool(ctx context.Context, params json.RawMessage) (any, error) {
	call, err := decodeParams[rawToolCall](params)
	if err != nil {
		return nil, err
	}
	if call.Input[0] != '{' {
		return nil, InvalidParams(Problem{"/input", "expected an object, got " + kindOf(call.Input)})
	}
	for _, one := range e.tools {
		if one.declared.Name == call.Name {
			return one.call(ctx, call.Input)
		}
	}
	return nil, unknownName("name", "tool", call.Name)
}

// rawToolCall is ToolCall with its input undecoded: the type of the tool decodes it.
type rawToolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (e *Extension) invokeCommand(ctx context.Context, params json.RawMessage) (any, error) {
	invoke, err := decodeParams[CommandInvoke](params)
	if err != nil {
		return nil, err
	}
	run := e.commands[invoke.Command]
	if run == nil {
		return nil, unknownName("command", "command", invoke.Command, sortedNames(e.commands)...)
	}
	out := &CommandOutput{ctx: ctx, request: RequestOf(ctx), id: invoke.RequestID}
	result, err := run(ctx, invoke.Args, out)
	if err != nil {
		return nil, err
	}
	return result, out.send(CommandDone{})
}

func (e *Extension) complete(ctx context.Context, params json.RawMessage) (any, error) {
	return e.runProvider(ctx, params, &ProviderStream{ctx: ctx})
}

func (e *Extension) stream(ctx context.Context, params json.RawMessage) (any, error) {
	return e.runProvider(ctx, params, &ProviderStream{ctx: ctx, request: RequestOf(ctx)})
}

func (e *Extension) runProvider(ctx context.Context, params json.RawMessage, out *ProviderStream) (any, error) {
	request, err := decodeParams[ProviderRequest](params)
	if err != nil {
		return nil, err
	}
	for _, one := range e.providers {
		if one.declared.ID != request.ProviderID {
			continue
		}
		for _, model := range one.declared.Models {
			if model.ID == request.ModelID {
				result, err := one.complete(ctx, request, out)
				if err != nil {
					return nil, err
				}
				if result.Content == nil {
					result.Content = []any{}
				}
				return result, out.send(ProviderDone{})
			}
		}
		return nil, unknownName("model_id", "model", request.ModelID)
	}
	return nil, unknownName("provider_id", "provider", request.ProviderID)
}
