package main

import (
	"context"
	"sync"

	"becket"
)

var colours = []string{"white", "blue", "red"}

// lamp is the editor of the colour of a lamp.
type lamp struct {
	mu     sync.Mutex
	cursor int64
}

func (l *lamp) open(context.Context, becket.EditorOpen) (becket.EditorResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cursor = 0
	return l.render(), nil
}

func (l *lamp) press(_ context.Context, pressed becket.EditorKey) (becket.EditorResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch pressed.Key {
	case "Up":
		l.cursor = max(l.cursor-1, 0)
	case "Down":
		l.cursor = min(l.cursor+1, int64(len(colours))-1)
	case "Enter":
		return becket.EditorCommitted{Value: colours[l.cursor]}, nil
	case "Esc":
		return becket.EditorClosed{Reason: "nothing has changed"}, nil
	}
	return l.render(), nil
}

func (l *lamp) render() becket.EditorRender {
	cursor := l.cursor
	rows := make([]becket.EditorRow, len(colours))
	for i, colour := range colours {
		rows[i] = becket.EditorRow{Label: colour, Data: colour}
	}
	return becket.EditorRender{Rows: rows, Cursor: &cursor}
}
