package becket

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"unicode/utf8"
)

// encoding/json accepts duplicate members, any case of a member's name and invalid UTF-8. Messages are scanned here
// instead, within limits on what parsing them may cost.

const (
	maxNodes  = 50_000 // values in one message
	maxDepth  = 64
	maxDigits = 128
)

var (
	errSyntax   = errors.New("not valid JSON")
	errTooLarge = errors.New("too many values, levels or digits")
)

// span is a value within the scanned data, and for a member of an object its name and where that starts.
type span struct {
	name             []byte
	from, start, end int
}

// fewMembers are compared with each other to find a duplicate; of more, a map is made.
const fewMembers = 16

// findDuplicate returns the index of a member whose name an earlier one has, and -1 if there is none.
func findDuplicate(members []span) int {
	if len(members) <= fewMembers {
		for i := range members {
			for j := range i {
				if string(members[i].name) == string(members[j].name) {
					return i
				}
			}
		}
		return -1
	}
	seen := make(map[string]bool, len(members))
	for i, member := range members {
		if seen[string(member.name)] {
			return i
		}
		seen[string(member.name)] = true
	}
	return -1
}

// scanner checks one JSON text.
type scanner struct {
	data  []byte
	pos   int
	nodes int
}

// scanJSON returns the end of a text that is one valid JSON value.
func scanJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errSyntax
	}
	s := scanner{data: data}
	if err := s.value(0, nil); err != nil {
		return err
	}
	if s.skipSpace(); s.pos != len(data) {
		return errSyntax
	}
	return nil
}

// children returns the members or elements of an object or array that was checked before.
func children(data []byte) []span {
	s := scanner{data: data}
	found := make([]span, 0, 6)
	_ = s.value(0, &found)
	return found
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	s.skipSpace()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// value passes one value; children of the outermost one are added to found.
func (s *scanner) value(depth int, found *[]span) error {
	if s.nodes++; s.nodes > maxNodes {
		return errTooLarge
	}
	switch first := s.peek(); first {
	case '{':
		return s.container(depth+1, '}', true, found)
	case '[':
		return s.container(depth+1, ']', false, found)
	case '"':
		return s.text()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) container(depth int, closing byte, named bool, found *[]span) error {
	if depth > maxDepth {
		return errTooLarge
	}
	s.pos++
	if s.peek() == closing {
		s.pos++
		return nil
	}
	for {
		one := span{}
		s.skipSpace()
		one.from = s.pos
		if named {
			if s.peek() != '"' {
				return errSyntax
			}
			start := s.pos
			if err := s.text(); err != nil {
				return err
			}
			if found != nil {
				one.name = unquoteBytes(s.data[start:s.pos])
			}
			if s.peek() != ':' {
				return errSyntax
			}
			s.pos++
			s.skipSpace()
		}
		one.start = s.pos
		if err := s.value(depth, nil); err != nil {
			return err
		}
		one.end = s.pos
		if found != nil {
			*found = append(*found, one)
		}
		switch s.peek() {
		case ',':
			s.pos++
		case closing:
			s.pos++
			return nil
		default:
			return errSyntax
		}
	}
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return errSyntax
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) text() error {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < ' ':
			return errSyntax
		}
	}
	return errSyntax
}

func (s *scanner) escape() error {
	s.pos++
	if s.pos >= len(s.data) {
		return errSyntax
	}
	switch s.data[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		unit := s.unit()
		if unit < 0xD800 || 0xDFFF < unit && unit < invalidUnit {
			return nil
		}
		// A surrogate has no meaning without the other half.
		if unit <= 0xDBFF && bytes.HasPrefix(s.data[s.pos+1:], []byte(`\u`)) {
			s.pos += 2
			if second := s.unit(); second >= 0xDC00 && second <= 0xDFFF {
				return nil
			}
		}
	}
	return errSyntax
}

const invalidUnit = 1 << 16

// unit passes the four digits of an escape and returns their value, or invalidUnit.
func (s *scanner) unit() uint64 {
	if s.pos+4 >= len(s.data) {
		return invalidUnit
	}
	unit, err := strconv.ParseUint(string(s.data[s.pos+1:s.pos+5]), 16, 16)
	if err != nil {
		return invalidUnit
	}
	s.pos += 4
	return unit
}

func (s *scanner) number() error {
	start := s.pos
	if s.at('-') {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else if s.digits() == 0 {
		return errSyntax
	}
	if s.at('.') {
		s.pos++
		if s.digits() == 0 {
			return errSyntax
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return errSyntax
		}
	}
	if s.pos-start > maxDigits {
		return errTooLarge
	}
	return nil
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

// unquote returns the text of a JSON string that was checked before.
func unquote(quoted []byte) string { return string(unquoteBytes(quoted)) }

// unquoteBytes does the same without a copy, where nothing is escaped.
func unquoteBytes(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text)
	return []byte(text)
}

// kindOf returns the JSON type of a value that was checked before, with its article.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// encodeJSON returns the compact JSON of a value. HTML is not escaped: no browser reads it.
func encodeJSON(value any) ([]byte, error) {
	if raw, isRaw := value.(json.RawMessage); isRaw && len(raw) > 0 {
		return raw, scanJSON(raw)
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.buffer.Reset()
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	text := bytes.Clone(bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n")))
	if e.buffer.Cap() > sendHigh {
		e.buffer = bytes.Buffer{}
	}
	return text, nil
}

type encoder struct {
	*json.Encoder
	buffer bytes.Buffer
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.Encoder = json.NewEncoder(&e.buffer)
	e.SetEscapeHTML(false)
	return e
}}

// isNull returns whether a raw value is absent or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// isIntegral returns whether a JSON number has no fraction and no exponent.
func isIntegral(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }
