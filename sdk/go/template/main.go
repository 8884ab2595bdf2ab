// Command {{module}} is an extension.
package main

import (
	"context"

	"{{module}}/becket"
)

type greeting struct {
	Name string `json:"name" doc:"Whom to greet."`
}

func greet(_ context.Context, in greeting) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func main() {
	ext := becket.New("{{id}}", "0.1.0")
	becket.AddTool(ext, "greet", "Greets somebody.", greet, becket.ReadOnly)
	ext.Run()
}
