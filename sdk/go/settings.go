package becket

import (
	"context"
	"encoding/json"
)

// EditorResult is what a settings editor returns: EditorRender shows rows; EditorCommitted has the value to store, and
// EditorClosed has none, and both close the editor; EditorTaken is for a committed value. Nil changes nothing.
type EditorResult interface{ isEditorResult() }

func (EditorRender) isEditorResult()    {}
func (EditorCommitted) isEditorResult() {}
func (EditorClosed) isEditorResult()    {}
func (EditorTaken) isEditorResult()     {}

// Editor draws the editor of the extension's own settings. Functions that are nil are not offered.
type Editor struct {
	// Open returns what to show when the user opens a field.
	Open func(ctx context.Context, opened EditorOpen) (EditorResult, error)
	// Key returns what to show after a key was pressed.
	Key func(ctx context.Context, pressed EditorKey) (EditorResult, error)
	// Commit returns what to do with the value that the user chose; nil stores it.
	Commit func(ctx context.Context, chosen EditorCommit) (EditorResult, error)
}

// SetEditor sets the editor of the extension's own settings.
func (e *Extension) SetEditor(editor Editor) {
	if editor.Open != nil {
		e.handlers[MethodSettingsEditorOpen] = editorHandler(e, editor.Open, func(in EditorOpen) (string, string) {
			return in.Category, in.Field
		})
	}
	if editor.Key != nil {
		e.handlers[MethodSettingsEditorKey] = editorHandler(e, editor.Key, func(in EditorKey) (string, string) {
			return in.Category, in.Field
		})
	}
	if editor.Commit != nil {
		e.handlers[MethodSettingsEditorCommit] = e.whenReady(func(ctx context.Context, params json.RawMessage) (any, error) {
			chosen, err := decodeParams[EditorCommit](params)
			if err != nil {
				return nil, err
			}
			result, err := editor.Commit(ctx, chosen)
			if err != nil {
				return nil, err
			}
			return e.commitResult(ctx, chosen, result)
		})
	}
}

func editorHandler[T any](
	e *Extension, handle func(context.Context, T) (EditorResult, error), fieldOf func(T) (category, field string),
) handlerFunc {
	return e.whenReady(func(ctx context.Context, params json.RawMessage) (any, error) {
		in, err := decodeParams[T](params)
		if err != nil {
			return nil, err
		}
		result, err := handle(ctx, in)
		if err != nil {
			return nil, err
		}
		if render, isRender := result.(EditorRender); isRender {
			category, field := fieldOf(in)
			return EditorOpened{Category: category, Field: field, Render: &render}, nil
		}
		if taken, isTaken := result.(EditorTaken); isTaken {
			return taken, nil
		}
		return nil, e.closeEditor(ctx, result)
	})
}

// closeEditor sends the notification for a result that closes the editor.
func (e *Extension) closeEditor(ctx context.Context, result EditorResult) error {
	switch result.(type) {
	case EditorCommitted:
		return e.peer.notify(ctx, MethodSettingsEditorCommit, result)
	case EditorClosed:
		return e.peer.notify(ctx, MethodSettingsEditorClose, result)
	}
	return nil
}

// commitResult returns the value to store, never null: hosts would store the text "null".
func (e *Extension) commitResult(ctx context.Context, chosen EditorCommit, result EditorResult) (any, error) {
	switch result := result.(type) {
	case EditorTaken:
		return result, nil
	case EditorRender:
		return EditorTaken{Value: chosen.Value, Render: &result}, nil
	case EditorCommitted:
		return result.Value, e.closeEditor(ctx, result)
	default:
		return chosen.Value, e.closeEditor(ctx, result)
	}
}
