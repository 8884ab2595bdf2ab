package becket

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzScanJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+3,"ü\u00e4\n",true,false,null,{}]}`, `[]`, ` 7 `, `"\ud800"`, `{"a":1,}`, `01`, `1.`, `"\x"`, `"`, `{`, `nul`,
		"\"\t\"", `-`, `[1 2]`, `{"a" 1}`, `{1:2}`, `1e`, `"\u12"`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := scanJSON(data)
		if errors.Is(err, errTooLarge) || bytes.Contains(bytes.ToLower(data), []byte(`\ud`)) {
			return
		}
		if valid := json.Valid(data) && utf8.Valid(data); (err == nil) != valid {
			t.Fatalf("%q: got %v, and encoding/json says %v", data, err, valid)
		}
	})
}

func TestTextsThatCostTooMuchAreRejected(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 65) + strings.Repeat("]", 65),
		"[" + strings.Repeat("1,", 50_000) + "1]",
		strings.Repeat("9", 129),
	} {
		if err := scanJSON([]byte(text)); !errors.Is(err, errTooLarge) {
			t.Errorf("%.20s...: got %v", text, err)
		}
	}
	if err := scanJSON([]byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))); err != nil {
		t.Error(err)
	}
}

func TestHalfASurrogatePairIsRejected(t *testing.T) {
	for text, isValid := range map[string]bool{
		`"\ud83d\ude00"`: true, `"\uD83D\uDE00"`: true, `"\ud83d"`: false, `"\ude00"`: false, `"\ud83dx"`: false,
		`"\ud83d\u0041"`: false, `"\ude00\ud83d"`: false, `"\ud83d\ude0"`: false,
	} {
		if err := scanJSON([]byte(text)); (err == nil) != isValid {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestMetadataIsSplitFromParamsAndInserted(t *testing.T) {
	for _, one := range []struct {
		params   string
		noParams bool
		rest     string
	}{
		{`{"_meta":{"becket":{"depth":2}},"a":1}`, true, `{"a":1}`},
		{`{"a":1,"_meta":{"becket":{"depth":2}}}`, true, `{"a":1}`},
		{`{ "a":1 , "_meta" : {"becket":{"depth":2}} , "b":2 }`, true, `{ "a":1 , "b":2 }`},
		{`{"_meta":{"becket":{"depth":2}}}`, false, ``},
		{`{"_meta":{"becket":{"depth":2}}}`, true, `{}`},
		{`{"_meta":{"becket":{"depth":2,"no_params":true}}}`, true, ``},
		{`{"_meta":{"becket":{"depth":2,"no_params":false}}}`, true, `{}`},
	} {
		rest, whole, meta := splitMeta(json.RawMessage(one.params), one.noParams)
		if string(rest) != one.rest || meta.depth != 2 || whole == nil {
			t.Errorf("%s: got %s, %v", one.params, rest, meta)
		}
	}
	if rest, _, meta := splitMeta(json.RawMessage(`{"_meta":{"becket":{"depth":"x"}},"a":1}`), true); string(rest) != `{"a":1}` || meta.depth != 0 {
		t.Errorf("malformed metadata: got %s, %v", rest, meta)
	}
	for _, one := range [][2]string{
		{`{"a":1}`, `{"_meta":{"becket":{"depth":2}},"a":1}`},
		{`{}`, `{"_meta":{"becket":{"depth":2,"no_params":false}}}`},
		{``, `{"_meta":{"becket":{"depth":2,"no_params":true}}}`},
		{`[1]`, `[1]`},
		{`{"a":1,"_meta":{"trace":7}}`, `{"_meta":{"becket":{"depth":2},"trace":7},"a":1}`},
	} {
		var params json.RawMessage
		if one[0] != "" {
			params = json.RawMessage(one[0])
		}
		if got := insertMeta(params, `"depth":2`, true); string(got) != one[1] {
			t.Errorf("got %s, want %s", got, one[1])
		}
	}
}
