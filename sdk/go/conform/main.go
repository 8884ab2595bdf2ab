// Command conform offers everything that the cases of `becket conform` need.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"becket"
)

type value struct {
	Value any `json:"value"`
}

type pair struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

type duration struct {
	MS int64 `json:"ms"`
}

type text struct {
	Text string `json:"text"`
}

type rejection struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type call struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

type message struct {
	Message string `json:"message"`
}

type count struct {
	Count int `json:"count"`
}

type size struct {
	Size int `json:"size"`
}

func main() {
	ext := becket.New("conform", "1.0.0")
	addTools(ext)
	ext.AddCommand("conform_count", countUp)
	ext.AddCommand("conform_task", runTask)
	window := int64(4096)
	ext.AddProvider(becket.Provider{
		ID: "conform", DisplayName: "conform", Description: "Repeats the last message, word by word.",
		Models: []becket.Model{{
			ID: "words", ContextWindow: &window, Capabilities: &becket.ModelCapabilities{Streaming: true},
		}},
	}, repeat)
	ext.AddHook(becket.HookKindBeforeToolCall, becket.HookMatch{Tool: "conform_guarded"}, guard)
	ext.SetEditor(becket.Editor{Open: func(context.Context, becket.EditorOpen) (becket.EditorResult, error) {
		cursor := int64(0)
		return becket.EditorRender{Rows: []becket.EditorRow{{Label: "white", Data: "white"}}, Cursor: &cursor}, nil
	}})
	ext.OnStop(func(context.Context) error { fmt.Println("on_stop"); return nil })
	ext.Run()
}

func addTools(ext *becket.Extension) {
	becket.AddTool(ext, "conform_echo", "Returns its input.", func(_ context.Context, in value) (any, error) {
		return in.Value, nil
	})
	becket.AddTool(ext, "conform_add", "Adds two integers.", func(_ context.Context, in pair) (int64, error) {
		return in.A + in.B, nil
	})
	becket.AddTool(ext, "conform_sleep", "Waits, and can be cancelled.", func(ctx context.Context, in duration) (string, error) {
		select {
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			return "slept", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	becket.AddTool(ext, "conform_block", "Blocks its thread.", func(_ context.Context, in duration) (string, error) {
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		return "blocked", nil
	})
	becket.AddTool(ext, "conform_fail", "Fails with an unexpected error.", func(_ context.Context, in text) (any, error) {
		return nil, errors.New(in.Text)
	})
	becket.AddTool(ext, "conform_reject", "Rejects the call with this error.", func(_ context.Context, in rejection) (any, error) {
		return nil, becket.Errorf(in.Code, "%s", in.Message)
	})
	becket.AddTool(ext, "conform_call", "Calls a method of the host.", func(ctx context.Context, in call) (any, error) {
		var result any
		var failure *becket.RemoteError
		err := ext.Host.Call(ctx, in.Method, in.Params, &result)
		if errors.As(err, &failure) {
			return map[string]any{"error": map[string]any{"code": failure.Code, "message": failure.Message}}, nil
		}
		return map[string]any{"result": result}, err
	})
	becket.AddTool(ext, "conform_log", "Writes a line to the host's log.", func(_ context.Context, in message) (any, error) {
		ext.Host.Log(becket.LogLevelWarning, in.Message)
		return nil, nil
	})
	becket.AddTool(ext, "conform_progress", "Reports progress.", func(ctx context.Context, in count) (int, error) {
		for number := 1; number <= in.Count; number++ {
			if err := becket.Progress(ctx, number); err != nil {
				return 0, err
			}
		}
		return in.Count, nil
	})
	becket.AddTool(ext, "conform_print", "Prints to stdout.", func(_ context.Context, in text) (string, error) {
		fmt.Println(in.Text)
		return "printed", nil
	})
	becket.AddTool(ext, "conform_stderr", "Writes to stderr.", func(_ context.Context, in size) (string, error) {
		fmt.Fprintln(os.Stderr, strings.Repeat("x", in.Size))
		return "written", nil
	})
	becket.AddTool(ext, "conform_text", "Returns a text of this many characters.", func(_ context.Context, in size) (string, error) {
		return strings.Repeat("x", in.Size), nil
	})
}

func countUp(_ context.Context, args []string, out *becket.CommandOutput) (any, error) {
	last, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		return nil, err
	}
	for number := 1; number <= last; number++ {
		if err := out.Text(strconv.Itoa(number)); err != nil {
			return nil, err
		}
	}
	return map[string]int{"count": last}, nil
}

func runTask(_ context.Context, args []string, out *becket.CommandOutput) (any, error) {
	options := becket.TaskOptions{Kind: becket.TaskKindRebuild, Total: 2}
	return nil, out.Task("Working", options, func(task *becket.Task) error {
		if err := errors.Join(task.Advance(1, ""), task.Log("half"), task.Advance(1, "")); err != nil {
			return err
		}
		if len(args) > 0 {
			return errors.New("stopped")
		}
		return nil
	})
}

func repeat(_ context.Context, request becket.ProviderRequest, out *becket.ProviderStream) (becket.ProviderResult, error) {
	if len(request.Messages) == 0 {
		return becket.TextResult(""), nil
	}
	text := request.Messages[len(request.Messages)-1].Text()
	for _, word := range strings.Fields(text) {
		if err := out.Text(word); err != nil {
			return becket.ProviderResult{}, err
		}
	}
	return becket.TextResult(text), nil
}

func guard(_ context.Context, event becket.HookEvent) (becket.HookResult, error) {
	input, _ := event.ToolInput.(map[string]any)
	switch input["decision"] {
	case "block":
		return becket.Block{Reason: "blocked by the case"}, nil
	case "modify":
		return becket.Modify{Input: map[string]any{"decision": "modified"}}, nil
	}
	return becket.Continue{}, nil
}
