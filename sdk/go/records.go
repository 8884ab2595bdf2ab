package becket

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// What the emitted types need to encode and decode themselves.

// encodeRecord returns the JSON of a struct, with its tag first and its other members last.
func encodeRecord(tag, value string, fields any, others map[string]any) ([]byte, error) {
	text, err := encodeJSON(fields)
	if err != nil {
		return nil, err
	}
	var parts [][]byte
	if tag != "" {
		member, _ := encodeJSON(map[string]string{tag: value})
		parts = append(parts, member[1:len(member)-1])
	}
	if !isEmptyObject(text) {
		parts = append(parts, text[1:len(text)-1])
	}
	others = maps.Clone(others)
	for _, member := range children(text) {
		delete(others, string(member.name))
	}
	if delete(others, tag); len(others) > 0 {
		more, err := encodeJSON(others)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more[1:len(more)-1])
	}
	return append(append([]byte{'{'}, bytes.Join(parts, []byte(","))...), '}'), nil
}

// decodeOthers decodes the members that are no fields.
func decodeOthers(data []byte, others *map[string]any, known ...string) error {
	if err := scanJSON(data); err != nil {
		return err
	}
	*others = nil
	d := decoder{}
	for _, member := range children(data) {
		name := string(member.name)
		if slices.Contains(known, name) {
			continue
		}
		if *others == nil {
			*others = map[string]any{}
		}
		(*others)[name] = d.decodeAny(data[member.start:member.end], "")
	}
	return nil
}

// decodeTag returns the member that tells the cases of a union apart.
func decodeTag(data []byte, member string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return "", err
	}
	var tag string
	if raw := members[member]; raw != nil {
		if err := json.Unmarshal(raw, &tag); err != nil {
			return "", err
		}
	}
	return tag, nil
}

// decodeCase decodes one case of a union.
func decodeCase[T any](data []byte) (T, error) {
	var value T
	return value, json.Unmarshal(data, &value)
}
