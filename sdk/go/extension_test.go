package becket

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type echoInput struct {
	Text  string `json:"text"`
	Times int    `json:"times" default:"1"`
}

func newTestExtension() *Extension {
	ext := New("test", "1.2.3")
	AddTool(ext, "echo", "Repeats a text.", func(_ context.Context, in echoInput) (string, error) {
		return strings.Repeat(in.Text, in.Times), nil
	}, ReadOnly)
	return ext
}

func TestTheHandshakeDeclaresWhatWasAdded(t *testing.T) {
	ext := newTestExtension()
	ext.AddProvider(Provider{ID: "p", DisplayName: "P", Description: "A provider.", Models: []Model{{ID: "m"}}},
		func(context.Context, ProviderRequest, *ProviderStream) (ProviderResult, error) {
			return TextResult("x"), nil
		})
	ext.AddCapability(DeclaredCapability{Kind: "voice", Name: "speak"})
	ext.AddHook(HookKindBeforeToolCall, HookMatch{Tool: "bash"}, func(context.Context, HookEvent) (HookResult, error) { return nil, nil })
	ext.AddHook(HookKindBeforeToolCall, HookMatch{Tool: "bash"}, func(context.Context, HookEvent) (HookResult, error) { return nil, nil })
	ext.AddHook(HookKindOnSessionStart, HookMatch{}, func(context.Context, HookEvent) (HookResult, error) { return nil, nil })
	host := connect(t, ext)
	declared := host.declared
	if declared.ProtocolVersion != 1 || !reflect.DeepEqual(declared.Features, Features) || declared.ID != "" {
		t.Errorf("got %+v", declared)
	}
	capabilities := declared.Capabilities
	tool := capabilities.Tools[0]
	if tool.Name != "echo" || !tool.ReadOnly || tool.OutputSchema["type"] != "string" || tool.InputSchema["type"] != "object" {
		t.Errorf("got %+v", tool)
	}
	match := &HookMatch{Tool: "bash"}
	if want := []HookSubscription{{HookKindBeforeToolCall, match}, {Hook: HookKindOnSessionStart}}; !reflect.DeepEqual(capabilities.Hooks, want) {
		t.Errorf("got %+v", capabilities.Hooks)
	}
	if declared.Info.Build.Version != "1.2.3" || declared.Info.Capabilities[0].Name != "speak" || capabilities.Providers[0].ID != "p" {
		t.Errorf("got %+v", declared)
	}
	if ext.ID() != "test" || ext.Root() != "/opt/test" || ext.Config()["theme"] != "dark" || ext.Host.Info().Name != "tester" {
		t.Error("the extension does not know its session")
	}
	var info ExtensionInfo
	if err := host.invoke(MethodInfoGet, nil, &info); err != nil || info.Build.Backend != "cpu" {
		t.Errorf("got %+v, %v", info, err)
	}
	var args SidecarArgs
	if err := host.invoke(MethodSidecarSpawnArgs, nil, &args); err != nil {
		t.Error(err)
	}
}

func TestRequestsBeforeTheHandshakeAndASecondOneAreRejected(t *testing.T) {
	link := connectRaw(t, newTestExtension())
	link.send(`{"jsonrpc":"2.0","id":1,"method":"tool.call","params":{"name":"echo","input":{"text":"x"}}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeNotReady {
		t.Errorf("got %v", failure)
	}
	link.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"extension_protocol_version":2}}`)
	_, failure := failureOf(t, link.receive())
	if data, _ := encodeJSON(failure.Data); failure.Code != CodeIncompatible || string(data) != `{"supported":[1]}` {
		t.Errorf("got %+v", failure)
	}
	link.send(`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"extension_protocol_version":1}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeInvalidParams || !strings.Contains(failure.Message, "/plugin_id") {
		t.Errorf("got %v", failure)
	}
	link.initialize("[]")
	link.send(`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"extension_protocol_version":1,"plugin_id":"a","plugin_root":null,"config":{}}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeNotReady {
		t.Errorf("got %v", failure)
	}
}

func TestWithoutFeaturesOnlyTheContractIsUsed(t *testing.T) {
	ext := New("other", "1")
	ext.AddHook(HookKindBeforeMessage, HookMatch{}, func(context.Context, HookEvent) (HookResult, error) { return nil, nil })
	ext.AddMethod("report", func(ctx context.Context, _ json.RawMessage) (any, error) {
		return nil, errors.Join(Progress(ctx, 1), ext.Host.Notify(ctx, "host/news", nil))
	})
	link := connectRaw(t, ext)
	link.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"extension_protocol_version":1,"plugin_id":"test","plugin_root":null,"config":{}}}`)
	link.expect(`{"jsonrpc":"2.0","id":1,"result":{"protocol_version":1,"capabilities":{}}}`)
	link.send(`{"jsonrpc":"2.0","id":2,"method":"report"}`)
	link.expect(`{"jsonrpc":"2.0","method":"host/news"}`)
	link.expect(`{"jsonrpc":"2.0","id":2,"result":null}`)
}

func TestAToolGetsItsInputOrTheHostThePathOfTheProblem(t *testing.T) {
	host := connect(t, newTestExtension())
	var result string
	if err := host.invoke(MethodToolCall, ToolCall{"echo", map[string]any{"text": "x", "times": 3}}, &result); err != nil || result != "xxx" {
		t.Errorf("got %q, %v", result, err)
	}
	failure := mustFailWith(t, host.invoke(MethodToolCall, ToolCall{"echo", map[string]any{"text": 5, "more": 1}}, nil), CodeInvalidParams)
	var data struct{ Problems []Problem }
	if err := json.Unmarshal(failure.Data, &data); err != nil || len(data.Problems) != 2 {
		t.Fatalf("got %s", failure.Data)
	}
	if data.Problems[0].Pointer != "/input/more" && data.Problems[1].Pointer != "/input/more" {
		t.Errorf("got %v", data.Problems)
	}
	failure = mustFailWith(t, host.invoke(MethodToolCall, ToolCall{"none", map[string]any{}}, nil), CodeInvalidParams)
	if !strings.Contains(failure.Message, `/name: there is no tool "none" here`) {
		t.Errorf("got %v", failure)
	}
	mustFailWith(t, host.invoke(MethodToolCall, map[string]any{"name": "echo", "input": 7}, nil), CodeInvalidParams)
	mustFailWith(t, host.invoke(MethodCommandInvoke, CommandInvoke{"c", nil, "r"}, nil), CodeUnknownMethod)
}

func TestACommandSendsOutputAndTasks(t *testing.T) {
	ext := New("test", "1")
	ext.AddCommand("show", func(_ context.Context, args []string, out *CommandOutput) (any, error) {
		err := out.Task("Work", TaskOptions{Kind: TaskKindRebuild, Total: 2}, func(task *Task) error {
			return errors.Join(task.Advance(1, "half"), task.Log("a line"))
		})
		failed := out.Task("Fail", TaskOptions{}, func(*Task) error { return errors.New("a secret") })
		if failed == nil {
			return nil, errors.New("it did not fail")
		}
		return args, errors.Join(err, out.Text("t"), out.System("s"), out.Error("e"), out.Table(nil, [][]string{{"a"}}))
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	link.send(`{"jsonrpc":"2.0","id":5,"method":"command.invoke","params":{"command":"show","args":["x"],"request_id":"r"}}`)
	event := func(method, params string) {
		t.Helper()
		link.expect(`{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"becket":{"parent":5}},` + params + `}}`)
	}
	event("task.start", `"id":"r/1","label":"Work","kind":"rebuild"`)
	event("task.update", `"id":"r/1","current":0,"total":2`)
	event("task.update", `"id":"r/1","current":1,"total":2,"message":"half"`)
	event("task.log", `"id":"r/1","line":"a line"`)
	event("task.done", `"id":"r/1"`)
	event("task.start", `"id":"r/2","label":"Fail","kind":"generic"`)
	link.expect(`{"jsonrpc":"2.0","method":"task.done","params":{"id":"r/2","error":"failed"}}`)
	event("command.output", `"request_id":"r","event":{"kind":"text","content":"t"}`)
	event("command.output", `"request_id":"r","event":{"kind":"system","content":"s"}`)
	event("command.output", `"request_id":"r","event":{"kind":"error","content":"e"}`)
	event("command.output", `"request_id":"r","event":{"kind":"table","headers":[],"rows":[["a"]]}`)
	event("command.output", `"request_id":"r","event":{"kind":"done"}`)
	link.expect(`{"jsonrpc":"2.0","id":5,"result":["x"]}`)
	link.send(`{"jsonrpc":"2.0","id":6,"method":"command.invoke","params":{"command":"none","args":[],"request_id":"r"}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeInvalidParams || !strings.Contains(failure.Message, "but: show") {
		t.Errorf("got %v", failure)
	}
}

func TestAProviderStreamsOrCompletes(t *testing.T) {
	ext := New("test", "1")
	ext.AddProvider(Provider{ID: "p", DisplayName: "P", Description: "d", Models: []Model{{ID: "m"}}},
		func(_ context.Context, request ProviderRequest, out *ProviderStream) (ProviderResult, error) {
			err := errors.Join(out.Thinking("hm"), out.Text("a"), out.ToolUse("1", "t", nil), out.Error("odd"), out.Usage(map[string]any{"n": 1}))
			if out.IsWanted() {
				return ProviderResult{}, err
			}
			return TextResult(request.Messages[0].Text()), err
		})
	link := connectRaw(t, ext)
	link.initialize("[]")
	request := `{"provider_id":"p","model_id":"m","model":"test:p:m","messages":[{"role":"user","content":"hi"}],` +
		`"system_prompt":null,"tools":[],"temperature":null,"max_tokens":null,"thinking_budget":0}`
	link.send(`{"jsonrpc":"2.0","id":1,"method":"provider.complete","params":` + request + `}`)
	link.expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"hi","type":"text"}]}}`)
	link.send(`{"jsonrpc":"2.0","id":2,"method":"provider.stream","params":` + request + `}`)
	for _, event := range []string{
		`{"type":"thinking","delta":"hm"}`, `{"type":"text","delta":"a"}`, `{"type":"tool_use","id":"1","name":"t"}`,
		`{"type":"error","message":"odd"}`, `{"type":"usage","n":1}`, `{"type":"done"}`,
	} {
		link.expect(`{"jsonrpc":"2.0","method":"provider.stream.event","params":` + event + `}`)
	}
	link.expect(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`)
	for _, wrong := range []string{`"provider_id":"x","model_id":"m"`, `"provider_id":"p","model_id":"x"`} {
		link.send(`{"jsonrpc":"2.0","id":3,"method":"provider.complete","params":{` + wrong + `,"model":"","messages":[]}}`)
		if _, failure := failureOf(t, link.receive()); failure.Code != CodeInvalidParams {
			t.Errorf("got %v", failure)
		}
	}
}

func TestHooksThatFitAreAsked(t *testing.T) {
	ext := New("test", "1")
	returns := func(result HookResult) HookFunc {
		return func(context.Context, HookEvent) (HookResult, error) { return result, nil }
	}
	ext.AddHook(HookKindBeforeToolCall, HookMatch{Tool: "bash", InputContains: `"rm `}, returns(Block{Reason: "no"}))
	ext.AddHook(HookKindBeforeToolCall, HookMatch{InputEquals: map[string]any{"n": 1}}, returns(Modify{Input: map[string]any{"n": 2}}))
	ext.AddHook(HookKindBeforeToolCall, HookMatch{Tool: "odd"}, returns(Inject{Content: "x"}))
	ext.AddHook(HookKindBeforeMessage, HookMatch{}, returns(Inject{Content: "a"}))
	ext.AddHook(HookKindBeforeMessage, HookMatch{}, returns(nil))
	ext.AddHook(HookKindBeforeMessage, HookMatch{}, returns(Inject{Content: "b"}))
	host := connect(t, ext)
	for _, one := range []struct {
		event HookEvent
		want  string
	}{
		{HookEvent{Kind: HookKindBeforeToolCall, ToolName: "bash", ToolInput: map[string]any{"command": "rm -r"}}, `{"action":"block","reason":"no"}`},
		{HookEvent{Kind: HookKindBeforeToolCall, ToolName: "bash", ToolInput: map[string]any{"command": "ls"}}, `{"action":"continue"}`},
		{HookEvent{Kind: HookKindBeforeToolCall, ToolName: "x", ToolInput: map[string]any{"n": 1}}, `{"action":"modify","input":{"n":2}}`},
		{HookEvent{Kind: HookKindBeforeMessage, Message: "hi"}, `{"action":"inject","content":"a\n\nb"}`},
		{HookEvent{Kind: "on_something_new"}, `{"action":"continue"}`},
	} {
		var got json.RawMessage
		if err := host.invoke(MethodHookHandle, one.event, &got); err != nil || string(got) != one.want {
			t.Errorf("got %s, %v, want %s", got, err, one.want)
		}
	}
	mustFailWith(t, host.invoke(MethodHookHandle, HookEvent{Kind: HookKindBeforeToolCall, ToolName: "odd"}, nil), CodeInternal)
}

func TestTheEditorRendersCommitsAndCloses(t *testing.T) {
	ext := New("test", "1")
	render := EditorRender{Rows: []EditorRow{{Label: "white", Data: "white"}}}
	ext.SetEditor(Editor{
		Open: func(context.Context, EditorOpen) (EditorResult, error) { return render, nil },
		Key: func(_ context.Context, pressed EditorKey) (EditorResult, error) {
			if pressed.Key == "Enter" {
				return EditorCommitted{Value: "white"}, nil
			}
			return EditorClosed{Reason: "no"}, nil
		},
		Commit: func(_ context.Context, chosen EditorCommit) (EditorResult, error) {
			switch chosen.Value {
			case "render":
				return render, nil
			case "taken":
				return EditorTaken{Value: "x", Intent: 1}, nil
			case "committed":
				return EditorCommitted{Value: "y"}, nil
			}
			return nil, nil
		},
	})
	host := connect(t, ext)
	shown := `{"rows":[{"label":"white","data":"white"}]}`
	call := func(method, value string) string {
		var got json.RawMessage
		params := map[string]any{"category": "lamp", "field": "colour", "key": value, "value": value}
		if err := host.invoke(method, params, &got); err != nil {
			t.Error(err)
		}
		return string(got)
	}
	for _, one := range [][3]string{
		{MethodSettingsEditorOpen, "", `{"category":"lamp","field":"colour","render":` + shown + `}`},
		{MethodSettingsEditorKey, "Enter", "null"},
		{MethodSettingsEditorKey, "Esc", "null"},
		{MethodSettingsEditorCommit, "render", `{"value":"render","render":` + shown + `}`},
		{MethodSettingsEditorCommit, "taken", `{"value":"x","intent":1}`},
		{MethodSettingsEditorCommit, "committed", `"y"`},
		{MethodSettingsEditorCommit, "plain", `"plain"`},
	} {
		if got := call(one[0], one[1]); got != one[2] {
			t.Errorf("%s %s: got %s, want %s", one[0], one[1], got, one[2])
		}
	}
	if params := host.await(MethodSettingsEditorCommit); string(params) != `{"value":"white"}` {
		t.Errorf("got %s", params)
	}
	if params := host.await(MethodSettingsEditorClose); string(params) != `{"reason":"no"}` {
		t.Errorf("got %s", params)
	}
}

func TestTheHostKeepsRecordsConfigurationAndLogs(t *testing.T) {
	ext := New("test", "1")
	changes := make(chan ConfigChanged, 1)
	ext.Host.Config.OnChange(func(_ context.Context, change ConfigChanged) { changes <- change })
	ext.AddMethod("work", func(ctx context.Context, _ json.RawMessage) (any, error) {
		ext.Host.Log(LogLevelWarning, "careful")
		kept, err := ext.Host.Memory.Append(ctx, Append{Content: "milk", Tags: []string{"home"}})
		limit := int64(5)
		records, err2 := ext.Host.Memory.Query(ctx, Query{ContentContains: "milk", Limit: &limit})
		value, err3 := ext.Host.Config.Get(ctx, "theme")
		saved, err4 := ext.Host.Config.Set(ctx, "theme", "light")
		subscribed, err5 := ext.Host.Config.Subscribe(ctx, "theme")
		if !kept.OK || len(records) != 1 || *value.Value != "dark" || !saved.OK || !subscribed.OK {
			return nil, errors.New("an answer is wrong")
		}
		return nil, errors.Join(err, err2, err3, err4, err5)
	})
	host := connect(t, ext)
	for method, one := range map[string][2]string{
		MethodMemoryAppend:    {`{"namespace":"test","content":"milk","tags":["home"]}`, `{"ok":true,"timestamp_ms":1}`},
		MethodMemoryQuery:     {`{"namespace":"test","content_contains":"milk","limit":5}`, `{"records":[{"namespace":"test","timestamp_ms":1,"content":"milk","tags":[]}]}`},
		MethodConfigGet:       {`{"key":"theme"}`, `{"value":"dark","revision":0}`},
		MethodConfigSet:       {`{"key":"theme","value":"light"}`, `{"ok":true}`},
		MethodConfigSubscribe: {`{"keys":["theme"]}`, `{"ok":true,"snapshot":{}}`},
	} {
		host.serve(method, func(_ context.Context, params json.RawMessage) (any, error) {
			if string(params) != one[0] {
				t.Errorf("%s: got %s, want %s", method, params, one[0])
			}
			return json.RawMessage(one[1]), nil
		})
	}
	if err := host.invoke("work", nil, nil); err != nil {
		t.Error(err)
	}
	if record := host.await(MethodLog); string(record) != `{"level":"warning","logger":"test","message":"careful"}` {
		t.Errorf("got %s", record)
	}
	if err := host.notify(context.Background(), MethodConfigChanged, map[string]any{"key": "theme", "value": nil, "revision": 2}); err != nil {
		t.Error(err)
	}
	if change := <-changes; change.Value != nil || change.Revision != 2 {
		t.Errorf("got %+v", change)
	}
}

func TestShutdownCancelsHandlersRunsOnStopAndEndsTheLink(t *testing.T) {
	ext := New("test", "1")
	order := make(chan string, 4)
	started := make(chan struct{})
	ext.OnStart(func(context.Context) error { order <- "start"; return nil })
	ext.OnStop(func(context.Context) error { order <- "stop"; return nil })
	ext.AddMethod("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(started)
		<-ctx.Done()
		order <- context.Cause(ctx).Error()
		return nil, ctx.Err()
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	link.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	<-started
	link.send(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`)
	link.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}`)
	link.expect(`{"jsonrpc":"2.0","id":2,"result":null}`)
	select {
	case err := <-link.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the link is still open")
	}
	close(order)
	var got []string
	for one := range order {
		got = append(got, one)
	}
	if want := []string{"start", ErrStopping.Error(), "stop"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAFailedStartCanBeTriedAgain(t *testing.T) {
	ext := New("test", "1")
	tries := 0
	ext.OnStart(func(context.Context) error {
		if tries++; tries == 1 {
			return Errorf(1, "not yet")
		}
		return nil
	})
	link := connectRaw(t, ext)
	link.initialize("[]")
	link.initialize("[]")
	if tries != 2 {
		t.Errorf("it was tried %d times", tries)
	}
}

func TestNamesAreDeclaredOnce(t *testing.T) {
	command := func(context.Context, []string, *CommandOutput) (any, error) { return nil, nil }
	for _, declare := range []func(*Extension){
		func(ext *Extension) { ext.AddCommand("c", command) },
		func(ext *Extension) { ext.AddProvider(Provider{ID: "c"}, nil) },
		func(ext *Extension) { ext.AddRawTool(Tool{Name: "c"}, nil) },
	} {
		ext := New("test", "1")
		declare(ext)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a second declaration was accepted")
				}
			}()
			declare(ext)
		}()
	}
}
