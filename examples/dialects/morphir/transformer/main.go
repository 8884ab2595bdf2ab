// An extension as authors of Morphir write them, in Go: it gives a model back with its modules sorted by name.
// `go build -o transformer main.go` makes it; it needs nothing but the standard library.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

type request struct {
	ID     uint64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// A result of nil is left out, as many programs do: the host takes that for null.
type response struct {
	ID     uint64  `json:"id"`
	Result any     `json:"result,omitempty"`
	Error  *string `json:"error,omitempty"`
}

type module struct {
	Name string `json:"name"`
}

type model struct {
	IR struct {
		Modules []module `json:"modules"`
	} `json:"ir"`
}

func transform(params json.RawMessage) (any, error) {
	var given model
	if err := json.Unmarshal(params, &given); err != nil {
		return nil, fmt.Errorf("invalid IR structure: %w", err)
	}
	modules := given.IR.Modules
	sort.Slice(modules, func(i, j int) bool { return modules[i].Name < modules[j].Name })
	return map[string]any{"transformed": true, "modules": modules}, nil
}

var handlers = map[string]func(json.RawMessage) (any, error){
	"initialize": func(json.RawMessage) (any, error) {
		return map[string]string{"status": "ready"}, nil
	},
	"capabilities": func(json.RawMessage) (any, error) {
		return []map[string]string{
			{"name": "transform", "description": "Sorts the modules of a model."},
			{"name": "reset", "description": "Forgets everything, of which there is nothing."},
		}, nil
	},
	"transform": transform,
	"reset":     func(json.RawMessage) (any, error) { return nil, nil },
}

func answer(asked request) response {
	handler, ok := handlers[asked.Method]
	if !ok {
		text := "Unknown method: " + asked.Method
		return response{ID: asked.ID, Error: &text}
	}
	result, err := handler(asked.Params)
	if err != nil {
		text := err.Error()
		return response{ID: asked.ID, Error: &text}
	}
	return response{ID: asked.ID, Result: result}
}

func main() {
	lines := bufio.NewReader(os.Stdin) // a Scanner would stop at lines of 64 KiB
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintf(os.Stderr, "not a request: %v\n", err)
			continue
		}
		if err := output.Encode(answer(asked)); err != nil {
			return
		}
	}
}
