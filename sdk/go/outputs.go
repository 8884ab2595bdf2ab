package becket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// CommandOutput sends the output of a command. The final event is sent when the command returns.
type CommandOutput struct {
	ctx     context.Context
	request *Request
	id      string

	mu    sync.Mutex
	tasks int
}

// Text sends text for the user, in Markdown.
func (o *CommandOutput) Text(content string) error { return o.send(Text{Content: content}) }

// System sends a remark that is not part of the output.
func (o *CommandOutput) System(content string) error { return o.send(SystemText{Content: content}) }

// Error sends an error; the command may go on.
func (o *CommandOutput) Error(content string) error {
	if content == "" {
		return errors.New("becket: the error of a command must have a text")
	}
	return o.send(ErrorText{Content: content})
}

// Table sends a table.
func (o *CommandOutput) Table(headers []string, rows [][]string) error {
	return o.send(Table{Headers: headers, Rows: rows})
}

func (o *CommandOutput) send(event CommandOutputEvent) error {
	return o.notify(MethodCommandOutput, CommandOutputParams{RequestID: o.id, Event: event})
}

func (o *CommandOutput) notify(method string, params any) error {
	text, err := encodeParams(params)
	if err != nil {
		return err
	}
	return o.request.send(o.ctx, method, text)
}

// TaskOptions describe a task.
type TaskOptions struct {
	// Kind is TaskKindGeneric unless it is set.
	Kind TaskKind
	// Total is how much there is to do; 0 is unknown.
	Total int64
}

// Task runs a task whose progress the host shows. It ends with the function, and has failed if that returns an error.
func (o *CommandOutput) Task(label string, options TaskOptions, run func(task *Task) error) error {
	if options.Kind == "" {
		options.Kind = TaskKindGeneric
	}
	o.mu.Lock()
	o.tasks++
	task := &Task{out: o, id: fmt.Sprintf("%s/%d", o.id, o.tasks), total: options.Total}
	o.mu.Unlock()
	if err := o.notify(MethodTaskStart, TaskStarted{ID: task.id, Label: label, Kind: options.Kind}); err != nil {
		return err
	}
	if task.total > 0 {
		if err := task.Update(0, ""); err != nil {
			return err
		}
	}
	isDone := false
	defer func() {
		if !isDone { // a panic
			task.end("failed")
		}
	}()
	err := run(task)
	isDone = true
	if err == nil {
		return o.notify(MethodTaskDone, TaskEnded{ID: task.id})
	}
	task.end(failureText(o.ctx, err))
	return err
}

// failureText returns what the host may know of an error: as in a response, only the text of an Error.
func failureText(ctx context.Context, err error) string {
	var failure *Error
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &failure) && failure.Message != "":
		return failure.Message
	}
	return "failed"
}

// Task is a running task of a command.
type Task struct {
	out     *CommandOutput
	id      string
	total   int64
	mu      sync.Mutex
	current int64
}

// Advance adds to what is done, and sends a message unless it is empty.
func (t *Task) Advance(by int64, message string) error {
	t.mu.Lock()
	current := t.current + by
	t.mu.Unlock()
	return t.Update(current, message)
}

// Update sends how much is done, and a message unless it is empty.
func (t *Task) Update(current int64, message string) error {
	if current < 0 {
		return fmt.Errorf("becket: a task cannot be done to %d", current)
	}
	t.mu.Lock()
	t.current = current
	t.mu.Unlock()
	update := TaskUpdated{ID: t.id, Current: &current, Message: message}
	if t.total > 0 {
		update.Total = &t.total
	}
	return t.out.notify(MethodTaskUpdate, update)
}

// Log sends a log line of the task.
func (t *Task) Log(line string) error {
	return t.out.notify(MethodTaskLog, TaskLogged{ID: t.id, Line: line})
}

// end reports a failure. It does not wait for credit: the request may be cancelled.
func (t *Task) end(problem string) {
	if text, err := encodeParams(TaskEnded{ID: t.id, Error: problem}); err == nil {
		_ = t.out.request.peer.writer.send(encodeNotification(MethodTaskDone, text))
	}
}

// ProviderStream sends the parts of a model's response. If the host wants none, they are dropped.
type ProviderStream struct {
	ctx     context.Context
	request *Request
}

// IsWanted returns whether the host wants events.
func (s *ProviderStream) IsWanted() bool { return s.request != nil }

// Text sends the next piece of the text.
func (s *ProviderStream) Text(delta string) error { return s.send(TextDelta{Delta: delta}) }

// Thinking sends the next piece of the model's thinking.
func (s *ProviderStream) Thinking(delta string) error { return s.send(ThinkingDelta{Delta: delta}) }

// ToolUse sends a tool use of the model.
func (s *ProviderStream) ToolUse(id, name string, input map[string]any) error {
	if id == "" || name == "" {
		return errors.New("becket: a tool use must have an id and a name")
	}
	return s.send(ToolUse{ID: id, Name: name, Input: input})
}

// Usage sends usage figures under the names of the provider.
func (s *ProviderStream) Usage(values map[string]any) error {
	return s.send(Usage{Others: values})
}

// Error sends an error; the provider may still return a result.
func (s *ProviderStream) Error(message string) error {
	if message == "" {
		return errors.New("becket: the error of a provider must have a text")
	}
	return s.send(ProviderFailed{Message: message})
}

func (s *ProviderStream) send(event ProviderEvent) error {
	if s.request == nil {
		return context.Cause(s.ctx)
	}
	text, err := encodeParams(event)
	if err != nil {
		return err
	}
	return s.request.send(s.ctx, MethodProviderStreamEvent, text)
}

// TextResult returns a result of one text block.
func TextResult(text string) ProviderResult {
	return ProviderResult{Content: []any{map[string]any{"type": "text", "text": text}}}
}

// Text returns the text of a message: its content, or that of its text blocks.
func (m Message) Text() string {
	if m.Content.String != nil {
		return *m.Content.String
	}
	var text strings.Builder
	for _, block := range m.Content.Array {
		if block["type"] == "text" {
			part, _ := block["text"].(string)
			text.WriteString(part)
		}
	}
	return text.String()
}

func sortedNames[T any](values map[string]T) []string {
	return slices.Sorted(maps.Keys(values))
}
