package becket

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// handleHook asks the hooks that fit an event, one after the other. Texts to inject are joined; the first other result
// but Continue counts.
func (e *Extension) handleHook(ctx context.Context, params json.RawMessage) (any, error) {
	event, err := decodeParams[HookEvent](params)
	if err != nil {
		return nil, err
	}
	input := toolInputOf(params)
	var injected []string
	for _, one := range e.hooks {
		if one.kind != event.Kind || !one.match.fits(event, input) {
			continue
		}
		result, err := one.handle(ctx, event)
		if err != nil {
			return nil, err
		}
		switch result := result.(type) {
		case nil, Continue:
		case Inject:
			if !allows(event.Kind, result) {
				return nil, fmt.Errorf("a hook of %s cannot return %T", event.Kind, result)
			}
			injected = append(injected, result.Content)
		default:
			if !allows(event.Kind, result) {
				return nil, fmt.Errorf("a hook of %s cannot return %T", event.Kind, result)
			}
			return result, nil
		}
	}
	if len(injected) > 0 {
		return Inject{Content: strings.Join(injected, "\n\n")}, nil
	}
	return Continue{}, nil
}

// allows returns whether a host accepts this result, which is not Continue, from hooks of a kind.
func allows(kind HookKind, result HookResult) bool {
	switch result.(type) {
	case Block:
		return kind == HookKindBeforeToolCall || kind == HookKindBeforeMessage
	case Confirm, Modify:
		return kind == HookKindBeforeToolCall
	case Replace:
		return kind == HookKindAfterToolCall
	case Inject:
		return kind == HookKindBeforeMessage || kind == HookKindOnSessionStart
	}
	return false
}

// fits returns whether all conditions hold. Several hooks of a kind may have different ones.
func (m HookMatch) fits(event HookEvent, input json.RawMessage) bool {
	if m.Tool != "" && m.Tool != event.ToolName && m.Tool != event.ToolRuntimeName {
		return false
	}
	if m.InputContains != "" {
		var compact bytes.Buffer
		if json.Compact(&compact, input) != nil || !strings.Contains(compact.String(), m.InputContains) {
			return false
		}
	}
	return m.InputEquals == nil || canonical(m.InputEquals) == canonical(event.ToolInput)
}

// canonical returns the same text for equal values: members are sorted.
func canonical(value any) string {
	text, _ := encodeJSON(value)
	if raw, isRaw := value.(json.RawMessage); isRaw && scanJSON(raw) == nil {
		d := decoder{}
		text, _ = encodeJSON(d.decodeAny(raw, ""))
	}
	return string(text)
}

// toolInputOf returns the tool's input as the host wrote it.
func toolInputOf(params json.RawMessage) json.RawMessage {
	for _, member := range children(params) {
		if string(member.name) == "tool_input" {
			return params[member.start:member.end]
		}
	}
	return json.RawMessage("null")
}
