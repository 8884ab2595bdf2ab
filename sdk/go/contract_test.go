package becket

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

func TestTaggedUnionsKeepTheirTag(t *testing.T) {
	for text, want := range map[string]any{
		`{"action":"continue"}`:                      Continue{},
		`{"action":"block","reason":"a <b>"}`:        Block{Reason: "a <b>"},
		`{"action":"modify","input":{}}`:             Modify{Input: map[string]any{}},
		`{"type":"usage","input_tokens":5}`:          Usage{Others: map[string]any{"input_tokens": json.Number("5")}},
		`{"type":"done"}`:                            ProviderDone{},
		`{"kind":"table","headers":["a"],"rows":[]}`: Table{Headers: []string{"a"}, Rows: [][]string{}},
		`{"type":"init","config":{}}`:                SidecarInit{},
	} {
		encoded, err := encodeJSON(want)
		if err != nil || string(encoded) != text {
			t.Errorf("got %s, %v, want %s", encoded, err, text)
		}
		var got any
		switch want.(type) {
		case HookResult:
			got, err = UnmarshalHookResult([]byte(text))
		case ProviderEvent:
			got, err = UnmarshalProviderEvent([]byte(text))
		case CommandOutputEvent:
			got, err = UnmarshalCommandOutputEvent([]byte(text))
		default:
			got, err = UnmarshalSidecarCommand([]byte(text))
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"action":"dance"}`, `{}`, `7`, `{"action":1}`} {
		if got, err := UnmarshalHookResult([]byte(text)); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestAUnionWithinARecordIsDecoded(t *testing.T) {
	text := `{"request_id":"r","event":{"kind":"text","content":"x"}}`
	var params CommandOutputParams
	if err := json.Unmarshal([]byte(text), &params); err != nil || params.Event != (Text{Content: "x"}) || params.RequestID != "r" {
		t.Errorf("got %#v, %v", params, err)
	}
	if again, _ := encodeJSON(params); string(again) != text {
		t.Errorf("got %s", again)
	}
}

func TestRequiredArraysAreNeverNull(t *testing.T) {
	for want, value := range map[string]any{
		`{"content":[]}`: ProviderResult{},
		`{"rows":[]}`:    EditorRender{},
		`{"kind":"table","headers":[],"rows":[]}`: Table{},
		`{"label":"x"}`: EditorRow{Label: "x"},
		`{"id":"m","capabilities":{"streaming":true,"vision":2}}`: Model{
			ID: "m", Capabilities: &ModelCapabilities{Streaming: true, Others: map[string]any{"vision": 2, "streaming": false}},
		},
	} {
		if got, err := encodeJSON(value); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestTheContentOfAMessageIsTextOrBlocks(t *testing.T) {
	for text, want := range map[string]string{
		`{"role":"user","content":"hi"}`: "hi",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}`: "ab",
	} {
		message, err := decodeParams[Message](json.RawMessage(text))
		if err != nil || message.Text() != want {
			t.Errorf("%s: got %q, %v", text, message.Text(), err)
		}
	}
	if _, err := decodeParams[Message](json.RawMessage(`{"role":"user","content":7}`)); err == nil {
		t.Error("a number was decoded")
	}
}

func TestEveryExportedNameHasADocComment(t *testing.T) {
	isSource := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", isSource, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name, text string) {
		if ast.IsExported(name) && text == "" {
			t.Errorf("%s has no doc comment", name)
		}
	}
	found := doc.New(packages["becket"], "becket", doc.AllDecls)
	for _, one := range found.Types {
		check(one.Name, one.Doc)
		for _, method := range append(one.Methods, one.Funcs...) {
			if ast.IsExported(one.Name) {
				check(method.Name, method.Doc)
			}
		}
	}
	for _, one := range found.Funcs {
		check(one.Name, one.Doc)
	}
	if found.Doc == "" {
		t.Error("the package has no doc comment")
	}
}
