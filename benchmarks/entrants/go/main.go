// The extension of the other entrants, on the Go kit.
package main

import (
	"context"
	"encoding/json"
	"os"
	"syscall"

	"becket"
)

type echo struct {
	Text string `json:"text"`
}

func main() {
	ext := becket.New("extension", "1.0.0")
	becket.AddTool(ext, "echo", "Returns the text that it is given.", func(_ context.Context, in echo) (string, error) {
		return in.Text, nil
	})
	ext.AddMethod("usage", func(context.Context, json.RawMessage) (any, error) {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return nil, err
		}
		seconds := float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
		return map[string]any{"pid": os.Getpid(), "cpu": seconds}, nil
	})
	ext.Run()
}
