// Command example is a complete extension: tools, a command, a provider, a hook and a settings editor.
package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"becket"
)

type greeting struct {
	Name  string `json:"name" doc:"Whom to greet."`
	Times int    `json:"times" doc:"How often." default:"1"`
}

type note struct {
	Text string `json:"text" doc:"What to keep."`
}

func main() {
	ext := becket.New("go", "0.2.0")
	host := ext.Host

	becket.AddTool(ext, "greet", "Greets somebody.", func(ctx context.Context, in greeting) (string, error) {
		word := "Hello"
		if configured, err := host.Config.Get(ctx, "greeting"); err == nil && configured.Value != nil {
			word = *configured.Value
		}
		return strings.Join(slices.Repeat([]string{word + ", " + in.Name + "!"}, in.Times), " "), nil
	})

	becket.AddTool(ext, "keep", "Keeps a note.", func(ctx context.Context, in note) (int, error) {
		if _, err := host.Memory.Append(ctx, becket.Append{Content: in.Text, Tags: []string{"note"}}); err != nil {
			return 0, err
		}
		host.Log(becket.LogLevelInfo, "kept: "+in.Text)
		records, err := host.Memory.Query(ctx, becket.Query{})
		return len(records), err
	})

	becket.AddTool(ext, "wait", "Waits until it is cancelled.", func(ctx context.Context, _ struct{}) (any, error) {
		if err := becket.Progress(ctx, "waiting"); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})

	ext.AddCommand("letters", countLetters)

	ext.AddProvider(becket.Provider{
		ID:          "parrot",
		DisplayName: "Parrot",
		Description: "Repeats what it is told.",
		Models:      []becket.Model{{ID: "small", Capabilities: &becket.ModelCapabilities{Streaming: true}}},
	}, repeat)

	ext.AddHook(becket.HookKindBeforeToolCall, becket.HookMatch{Tool: "bash"}, guard)

	lamp := &lamp{}
	ext.SetEditor(becket.Editor{Open: lamp.open, Key: lamp.press})

	ext.Run()
}

func countLetters(_ context.Context, words []string, out *becket.CommandOutput) (any, error) {
	if len(words) == 0 {
		return nil, out.System("Usage: letters WORD...")
	}
	counts := map[string]int{}
	rows := [][]string{}
	err := out.Task("Counting letters", becket.TaskOptions{Total: int64(len(words))}, func(task *becket.Task) error {
		for _, word := range words {
			counts[word] = len([]rune(word))
			rows = append(rows, []string{word, strconv.Itoa(counts[word])})
			if err := task.Advance(1, word); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, out.Table([]string{"word", "letters"}, rows)
}

func repeat(
	_ context.Context, request becket.ProviderRequest, out *becket.ProviderStream,
) (becket.ProviderResult, error) {
	text := "You said: "
	for _, message := range slices.Backward(request.Messages) {
		if message.Role == "user" {
			text += message.Text()
			break
		}
	}
	words := strings.SplitAfter(text, " ")
	for _, word := range words {
		if err := out.Text(word); err != nil {
			return becket.ProviderResult{}, err
		}
	}
	return becket.TextResult(text), out.Usage(map[string]any{"output_tokens": len(words)})
}

func guard(_ context.Context, event becket.HookEvent) (becket.HookResult, error) {
	input, _ := event.ToolInput.(map[string]any)
	if command, _ := input["command"].(string); strings.Contains(command, "rm -rf") {
		return becket.Block{Reason: "it would delete everything"}, nil
	}
	return becket.Continue{}, nil
}
