package becket

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// decodeMode says what is wrong besides a wrong type.
type decodeMode int

const (
	lenient    decodeMode = iota // results: unknown members are ignored, the last of duplicate ones counts
	ofParams                     // params: unknown members are ignored, duplicate ones are problems
	ofToolCall                   // inputs of tools: both are problems, since a model made them up
)

// decodeValue decodes JSON that was scanned before, and returns all problems, each with its JSON pointer.
func decodeValue(raw json.RawMessage, target any, mode decodeMode) []Problem {
	d := decoder{mode: mode}
	d.decode(raw, reflect.ValueOf(target).Elem(), "")
	return d.problems
}

// decodeParams decodes the params of a request.
func decodeParams[T any](params json.RawMessage) (value T, err error) {
	if params == nil {
		params = json.RawMessage("{}")
	}
	if problems := decodeValue(params, &value, ofParams); len(problems) > 0 {
		return value, InvalidParams(problems...)
	}
	return value, nil
}

type decoder struct {
	mode     decodeMode
	problems []Problem
}

func (d *decoder) add(pointer, format string, arguments ...any) {
	d.problems = append(d.problems, Problem{truncate(pointer), truncate(fmt.Sprintf(format, arguments...))})
}

func (d *decoder) decode(raw json.RawMessage, v reflect.Value, pointer string) {
	if v.Kind() == reflect.Pointer {
		if isNull(raw) {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(raw, v.Elem(), pointer)
		return
	}
	if v.Type() == rawMessageType { // what decodes it finds duplicate members
		v.SetBytes(raw)
		return
	}
	if d.decodeCustom(raw, v, pointer) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.NumMethod() > 0 {
			d.add(pointer, "cannot be decoded to %s", v.Type())
		} else if value := d.decodeAny(raw, pointer); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.Struct:
		d.decodeStruct(raw, v, pointer)
	case reflect.Map:
		d.decodeMap(raw, v, pointer)
	case reflect.Slice, reflect.Array:
		d.decodeSlice(raw, v, pointer)
	default:
		d.decodeScalar(raw, v, pointer)
	}
}

// decodeCustom leaves a value to a type that decodes itself.
func (d *decoder) decodeCustom(raw json.RawMessage, v reflect.Value, pointer string) bool {
	if !v.CanAddr() || v.Type().PkgPath() == "" { // only named types have methods
		return false
	}
	switch custom := v.Addr().Interface().(type) {
	case json.Unmarshaler:
		d.decodeAny(raw, pointer) // for duplicate members
		if err := custom.UnmarshalJSON(raw); err != nil {
			d.add(pointer, "%v", err)
		}
		return true
	case encoding.TextUnmarshaler:
		if raw[0] != '"' {
			d.add(pointer, "expected a string, got %s", kindOf(raw))
		} else if err := custom.UnmarshalText([]byte(unquote(raw))); err != nil {
			d.add(pointer, "%v", err)
		}
		return true
	}
	return false
}

// decodeAny returns a value as maps, slices, strings, booleans and json.Number.
func (d *decoder) decodeAny(raw json.RawMessage, pointer string) any {
	switch raw[0] {
	case '{':
		object := map[string]any{}
		d.eachMember(raw, pointer, func(name string, value json.RawMessage, pointer string) {
			object[name] = d.decodeAny(value, pointer)
		})
		return object
	case '[':
		elements := children(raw)
		array := make([]any, len(elements))
		for i, element := range elements {
			array[i] = d.decodeAny(raw[element.start:element.end:element.end], pointer+"/"+strconv.Itoa(i))
		}
		return array
	case '"':
		return unquote(raw)
	case 't', 'f':
		return raw[0] == 't'
	case 'n':
		return nil
	default:
		return json.Number(raw)
	}
}

// eachMember visits the members of an object; a duplicate one is a problem, or comes last.
func (d *decoder) eachMember(raw json.RawMessage, pointer string, visit func(string, json.RawMessage, string)) {
	members := children(raw)
	if i := findDuplicate(members); i >= 0 && d.mode != lenient {
		d.add(pointer+"/"+escapePointer(string(members[i].name)), "is there twice")
	}
	for _, member := range members {
		name := string(member.name)
		visit(name, raw[member.start:member.end:member.end], pointer+"/"+escapePointer(name))
	}
}

func (d *decoder) decodeStruct(raw json.RawMessage, v reflect.Value, pointer string) {
	if raw[0] != '{' {
		d.add(pointer, "expected an object, got %s", kindOf(raw))
		return
	}
	fields := fieldsOf(v.Type())
	found := make([]bool, len(fields))
	d.eachMember(raw, pointer, func(name string, value json.RawMessage, at string) {
		for i := range fields {
			if fields[i].name == name {
				found[i] = true
				d.decodeField(value, v, &fields[i], at)
				return
			}
		}
		if d.mode == ofToolCall {
			d.add(at, "is unknown")
		} else if d.mode == ofParams {
			d.decodeAny(value, at) // for duplicate members
		}
	})
	for i := range fields {
		if found[i] {
			continue
		}
		if fields[i].fallback != nil {
			d.decode(fields[i].fallback, v.FieldByIndex(fields[i].index), pointer)
		} else if !fields[i].isOptional {
			d.add(pointer+"/"+escapePointer(fields[i].name), "is missing")
		}
	}
}

func (d *decoder) decodeField(raw json.RawMessage, v reflect.Value, field *structField, pointer string) {
	if d.mode != ofToolCall && field.isOptional && isNull(raw) {
		return // the contract has null for absent members
	}
	before := len(d.problems)
	target := v.FieldByIndex(field.index)
	d.decode(raw, target, pointer)
	if len(field.choices) > 0 && len(d.problems) == before && target.Kind() == reflect.String &&
		!slices.Contains(field.choices, target.String()) {
		d.add(pointer, "expected one of %s, got %q", strings.Join(field.choices, ", "), target.String())
	}
}

func (d *decoder) decodeMap(raw json.RawMessage, v reflect.Value, pointer string) {
	if raw[0] != '{' || v.Type().Key().Kind() != reflect.String {
		d.add(pointer, "expected an object, got %s", kindOf(raw))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	d.eachMember(raw, pointer, func(name string, value json.RawMessage, at string) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(value, element, at)
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), element)
	})
}

func (d *decoder) decodeSlice(raw json.RawMessage, v reflect.Value, pointer string) {
	if raw[0] != '[' {
		d.add(pointer, "expected an array, got %s", kindOf(raw))
		return
	}
	elements := children(raw)
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	} else if v.Len() != len(elements) {
		d.add(pointer, "expected %d elements, got %d", v.Len(), len(elements))
		return
	}
	for i, element := range elements {
		d.decode(raw[element.start:element.end:element.end], v.Index(i), pointer+"/"+strconv.Itoa(i))
	}
}

func (d *decoder) decodeScalar(raw json.RawMessage, v reflect.Value, pointer string) {
	isNumber := raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9'
	switch v.Kind() {
	case reflect.String:
		if raw[0] == '"' {
			v.SetString(unquote(raw))
			return
		}
		d.add(pointer, "expected a string, got %s", kindOf(raw))
	case reflect.Bool:
		if raw[0] == 't' || raw[0] == 'f' {
			v.SetBool(raw[0] == 't')
			return
		}
		d.add(pointer, "expected a boolean, got %s", kindOf(raw))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if !isNumber {
			d.add(pointer, "expected an integer, got %s", kindOf(raw))
		} else if number, err := strconv.ParseInt(wholeNumber(raw), 10, 64); err != nil || v.OverflowInt(number) {
			d.add(pointer, "expected an integer of %d bits, got %s", v.Type().Bits(), raw)
		} else {
			v.SetInt(number)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if !isNumber {
			d.add(pointer, "expected an integer, got %s", kindOf(raw))
		} else if number, err := strconv.ParseUint(wholeNumber(raw), 10, 64); err != nil || v.OverflowUint(number) {
			d.add(pointer, "expected an integer of %d bits from 0 on, got %s", v.Type().Bits(), raw)
		} else {
			v.SetUint(number)
		}
	case reflect.Float32, reflect.Float64:
		if !isNumber {
			d.add(pointer, "expected a number, got %s", kindOf(raw))
		} else if number, err := strconv.ParseFloat(string(raw), v.Type().Bits()); err != nil {
			d.add(pointer, "expected a number of %d bits, got %s", v.Type().Bits(), raw)
		} else {
			v.SetFloat(number)
		}
	default:
		d.add(pointer, "cannot be decoded to %s", v.Type())
	}
}

// wholeNumber returns the digits of a number without a fraction: 3.0 is an integer in JSON Schema.
func wholeNumber(raw json.RawMessage) string {
	if isIntegral(raw) {
		return string(raw)
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
		return string(raw)
	}
	return strconv.FormatFloat(number, 'f', 0, 64)
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// -- structs

// structField is a field as its tags describe it.
type structField struct {
	name       string
	index      []int
	kind       reflect.Type
	isOptional bool
	doc        string
	choices    []string
	fallback   json.RawMessage
}

var knownFields sync.Map // reflect.Type to []structField

func fieldsOf(t reflect.Type) []structField {
	if known, isKnown := knownFields.Load(t); isKnown {
		return known.([]structField)
	}
	var fields []structField
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || field.Anonymous && name == "" || name == "-" && options == "" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		one := structField{name: name, index: field.Index, kind: field.Type, doc: field.Tag.Get("doc")}
		one.isOptional = strings.Contains(options, "omit") || field.Type.Kind() == reflect.Pointer
		if choices := field.Tag.Get("enum"); choices != "" {
			one.choices = strings.Split(choices, ",")
		}
		if fallback, has := field.Tag.Lookup("default"); has {
			one.isOptional = true
			if one.fallback = json.RawMessage(fallback); field.Type.Kind() == reflect.String {
				one.fallback, _ = encodeJSON(fallback)
			}
		}
		fields = append(fields, one)
	}
	knownFields.Store(t, fields)
	return fields
}
