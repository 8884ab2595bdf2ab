package becket

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

const (
	maxBatch  = 50
	maxID     = 256  // bytes of an id, which is kept and sent back
	maxMethod = 1024 // bytes of a method's name

	maxTimeoutMS = int64(24 * time.Hour / time.Millisecond)
)

// message is one decoded JSON-RPC message; members that it does not have are nil.
type message struct {
	id        json.RawMessage
	method    string
	hasMethod bool
	params    json.RawMessage
	result    json.RawMessage
	failure   json.RawMessage
}

func (m *message) isResponse() bool {
	return !m.hasMethod && (m.result != nil || m.failure != nil)
}

// parseMessage decodes an object that was scanned before. The id of an invalid message is kept where it is usable.
func parseMessage(raw json.RawMessage) (m message, problem *Error) {
	invalid := func(text string) {
		if problem == nil {
			problem = Errorf(CodeInvalidRequest, "invalid request: %s", text)
		}
	}
	if raw[0] != '{' {
		invalid("expected an object, got " + kindOf(raw))
		return m, problem
	}
	var version json.RawMessage
	ids := 0
	members := children(raw)
	if i := findDuplicate(members); i >= 0 {
		invalid("duplicate member: " + truncate(string(members[i].name)))
	}
	for _, member := range members {
		value := raw[member.start:member.end:member.end]
		switch string(member.name) {
		case "jsonrpc":
			version = value
		case "id":
			m.id = value
			ids++
		case "method":
			m.hasMethod = true
			if value[0] != '"' {
				invalid("the method must be a string")
			} else if m.method = unquote(value); len(m.method) > maxMethod {
				invalid("the method has " + strconv.Itoa(len(m.method)) + " bytes")
			}
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failure = value
		}
	}
	if m.id != nil && !isUsableID(m.id) {
		invalid("the id must be a string of at most 256 bytes, a number or null")
		m.id = nil
	}
	if ids > 1 {
		m.id = nil
	}
	if isNull(m.failure) && m.result != nil {
		m.failure = nil
	}
	if string(version) != `"2.0"` {
		invalid("the member jsonrpc must be \"2.0\"")
	}
	if !m.hasMethod && m.result == nil && m.failure == nil {
		invalid("there is neither a method nor a result nor an error")
	}
	if string(m.params) == "null" {
		m.params = nil
	}
	return m, problem
}

// findID returns the id of a message that cannot be scanned to its end, if it stands before what is too large.
func findID(body []byte) json.RawMessage {
	var found []span
	s := scanner{data: body}
	if s.peek() == '{' {
		_ = s.value(0, &found)
	}
	for _, member := range found {
		if value := body[member.start:member.end]; string(member.name) == "id" && isUsableID(value) {
			return value
		}
	}
	return nil
}

func isUsableID(id []byte) bool {
	switch id[0] {
	case '"':
		return len(unquote(id)) <= maxID
	case '{', '[', 't', 'f':
		return false
	default:
		return len(id) <= maxID
	}
}

// idKey returns the same text for all forms of one id: a string may be escaped in several ways.
func idKey(id json.RawMessage) string {
	if id[0] == '"' {
		return `"` + unquote(id)
	}
	return string(id)
}

// callMeta is what params carry for the link itself, in `_meta.becket`.
type callMeta struct {
	timeout  time.Duration // 0 if there is none
	depth    int64
	credit   int64 // -1 if there is none
	noParams string
}

// parseMeta returns the metadata of a call; malformed metadata counts as absent.
func parseMeta(raw json.RawMessage) callMeta {
	meta := callMeta{credit: -1}
	if raw[0] != '{' {
		return meta
	}
	for _, member := range children(raw) {
		value := string(raw[member.start:member.end])
		number, err := strconv.ParseInt(value, 10, 64)
		switch string(member.name) {
		case "timeout_ms":
			if value != "null" {
				meta.timeout = time.Duration(max(1, min(number, maxTimeoutMS))) * time.Millisecond
			}
		case "depth":
			meta.depth = number
		case "credit":
			if meta.credit = number; value == "null" {
				meta.credit = -1
			}
		case "no_params":
			meta.noParams, err = value, nil
		default:
			continue
		}
		if err != nil && value != "null" || number < 0 {
			return callMeta{credit: -1}
		}
	}
	return meta
}

// splitMeta returns the params without `_meta`, the whole of `_meta`, and becket's part of it. Malformed metadata counts
// as absent.
func splitMeta(params json.RawMessage, tellsNoParams bool) (rest, whole json.RawMessage, meta callMeta) {
	meta.credit = -1
	if len(params) == 0 || params[0] != '{' {
		return params, nil, meta
	}
	members := children(params)
	at := -1
	for i, member := range members {
		if string(member.name) == "_meta" {
			at = i
		}
	}
	if at < 0 {
		return params, nil, meta
	}
	whole = params[members[at].start:members[at].end]
	if whole[0] == '{' {
		for _, member := range children(whole) {
			if string(member.name) == "becket" {
				meta = parseMeta(whole[member.start:member.end])
			}
		}
	}
	switch {
	case len(members) > 1 && at+1 < len(members): // up to the next member
		rest = append(append(rest, params[:members[at].from]...), params[members[at+1].from:]...)
	case len(members) > 1: // from the end of the member before it
		rest = append(append(rest, params[:members[at-1].end]...), params[members[at].end:]...)
	case tellsNoParams && meta.noParams != "true":
		rest = json.RawMessage("{}")
	}
	return rest, whole, meta
}

// insertMeta returns params with these members of `_meta.becket`. Params in an array cannot have it.
func insertMeta(params json.RawMessage, meta string, tellsNoParams bool) json.RawMessage {
	head := `{"_meta":{"becket":{` + meta
	switch {
	case params != nil && params[0] != '{':
		return params
	case bytes.Contains(params, []byte(`"_meta"`)):
		return mergeMeta(params, meta)
	case params != nil && !isEmptyObject(params):
		return append(json.RawMessage(head+"}},"), params[1:]...)
	case tellsNoParams:
		return json.RawMessage(head + `,"no_params":` + strconv.FormatBool(params == nil) + "}}}")
	case params == nil:
		return json.RawMessage(head + "}}}")
	default:
		return json.RawMessage(head + "}} }")
	}
}

// mergeMeta keeps the metadata that params already have.
func mergeMeta(params json.RawMessage, meta string) json.RawMessage {
	rest, whole, _ := splitMeta(params, true)
	others := map[string]json.RawMessage{}
	_ = json.Unmarshal(whole, &others)
	others["becket"] = json.RawMessage("{" + meta + "}")
	text, _ := encodeJSON(others)
	merged := append(append(json.RawMessage(`{"_meta":`), text...), '}')
	if isEmptyObject(rest) {
		return merged
	}
	return append(append(merged[:len(merged)-1], ','), rest[1:]...)
}

func isEmptyObject(object json.RawMessage) bool {
	return len(bytes.TrimSpace(object[1:])) == 1
}

// -- encoding: the members in the order of docs/wire.md

func encodeRequest(id int64, method string, params json.RawMessage) []byte {
	body := make([]byte, 0, len(params)+len(method)+64)
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendInt(body, id, 10)
	return appendCall(append(body, ','), method, params)
}

func encodeNotification(method string, params json.RawMessage) []byte {
	body := make([]byte, 0, len(params)+len(method)+48)
	return appendCall(append(body, `{"jsonrpc":"2.0",`...), method, params)
}

func appendCall(body []byte, method string, params json.RawMessage) []byte {
	name, _ := encodeJSON(method)
	body = append(append(body, `"method":`...), name...)
	if params != nil {
		body = append(append(body, `,"params":`...), params...)
	}
	return append(body, '}')
}

func encodeResult(id, result json.RawMessage) []byte {
	body := make([]byte, 0, len(result)+len(id)+32)
	body = append(append(append(body, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
	return append(append(body, result...), '}')
}

func encodeError(id json.RawMessage, failure *Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := encodeJSON(failure)
	if err != nil { // its data has no JSON
		text, _ = encodeJSON(&Error{Code: failure.Code, Message: failure.Message})
	}
	return append(append(append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":`...), text...), '}')
}
