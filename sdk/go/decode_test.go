package becket

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type inner struct {
	Size  uint8    `json:"size"`
	Names []string `json:"names,omitempty"`
}

type sample struct {
	Text   string           `json:"text" doc:"Any text."`
	Limit  int              `json:"limit" default:"10"`
	Mode   string           `json:"mode" enum:"fast,slow" default:"fast"`
	Ratio  *float64         `json:"ratio"`
	Inner  inner            `json:"inner,omitempty"`
	Many   map[string]inner `json:"many,omitempty"`
	At     time.Time        `json:"at,omitempty"`
	Any    any              `json:"any,omitempty"`
	Raw    json.RawMessage  `json:"raw,omitempty"`
	Hidden string           `json:"-"`
}

func TestAnInputIsDecodedToItsType(t *testing.T) {
	var got sample
	input := `{"text":"a\u0041","ratio":0.5,"inner":{"size":3.0,"names":["x"]},"many":{"m":{"size":1}},` +
		`"at":"2026-01-02T03:04:05Z","any":{"n":12345678901234567890},"raw":[1, 2]}`
	if problems := decodeValue(json.RawMessage(input), &got, ofToolCall); problems != nil {
		t.Fatal(problems)
	}
	half := 0.5
	want := sample{
		Text: "aA", Limit: 10, Mode: "fast", Ratio: &half, Inner: inner{3, []string{"x"}}, Many: map[string]inner{"m": {Size: 1}},
		At:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Any: map[string]any{"n": json.Number("12345678901234567890")}, Raw: json.RawMessage("[1, 2]"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEachProblemHasItsPointer(t *testing.T) {
	input := `{"limit":"3","mode":"odd","inner":{"size":300,"names":["x",7]},"many":{"a/b":{}},"at":"yesterday",` +
		`"any":{"a":1,"a":2},"extra":1,"text":"x","text":"y"}`
	var got sample
	found := map[string]string{}
	for _, problem := range decodeValue(json.RawMessage(input), &got, ofToolCall) {
		found[problem.Pointer] = problem.Message
	}
	for _, pointer := range []string{
		"/limit", "/mode", "/inner/size", "/inner/names/1", "/many/a~1b/size", "/at", "/any/a", "/extra", "/text",
	} {
		if found[pointer] == "" {
			t.Errorf("there is no problem at %s: %v", pointer, found)
		}
	}
	if len(found) != 9 {
		t.Errorf("got %v", found)
	}
}

func TestParamsMayHaveUnknownMembersAndNulls(t *testing.T) {
	var got sample
	if problems := decodeValue(json.RawMessage(`{"text":"x","limit":null,"extra":{"deep":1}}`), &got, ofParams); problems != nil {
		t.Error(problems)
	}
	problems := decodeValue(json.RawMessage(`{"text":"x","extra":{"deep":1,"deep":2}}`), &got, ofParams)
	if len(problems) != 1 || problems[0].Pointer != "/extra/deep" {
		t.Errorf("a duplicate member: got %v", problems)
	}
	if problems := decodeValue(json.RawMessage(`{"text":"x","text":"y"}`), &got, lenient); problems != nil || got.Text != "y" {
		t.Errorf("a result: got %v, %q", problems, got.Text)
	}
}

func TestASchemaDescribesAType(t *testing.T) {
	got, err := encodeJSON(SchemaOf[sample]())
	if err != nil {
		t.Fatal(err)
	}
	inner := `{"additionalProperties":false,"properties":{"names":{"items":{"type":"string"},"type":"array"},` +
		`"size":{"minimum":0,"type":"integer"}},"required":["size"],"type":"object"}`
	want := `{"additionalProperties":false,"properties":{"any":{},"at":{"format":"date-time","type":"string"},` +
		`"inner":` + inner + `,"limit":{"default":10,"type":"integer"},"many":{"additionalProperties":` + inner + `,"type":"object"},` +
		`"mode":{"default":"fast","enum":["fast","slow"],"type":"string"},"ratio":{"type":["number","null"]},"raw":{},` +
		`"text":{"description":"Any text.","type":"string"}},"required":["text"],"type":"object"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type node struct {
	Label string `json:"label"`
	Next  *node  `json:"next"`
}

func TestATypeThatContainsItselfHasADefinition(t *testing.T) {
	got, _ := encodeJSON(SchemaOf[node]())
	inner := `{"additionalProperties":false,"properties":{"label":{"type":"string"},` +
		`"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["label"],"type":"object"}`
	if want := `{"$defs":{"node":` + inner + `},` + inner[1:]; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestResultsMayBeNullWhereGoHasNil(t *testing.T) {
	got, _ := encodeJSON(outputSchema[[]string]())
	if string(got) != `{"items":{"type":"string"},"type":["array","null"]}` {
		t.Errorf("got %s", got)
	}
	if schema := outputSchema[any](); schema != nil {
		t.Errorf("got %v", schema)
	}
}
