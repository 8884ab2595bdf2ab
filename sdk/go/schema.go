package becket

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType            = reflect.TypeFor[time.Time]()
	numberType          = reflect.TypeFor[json.Number]()
	rawMessageType      = reflect.TypeFor[json.RawMessage]()
)

// SchemaOf returns the JSON Schema of the values that a type decodes from. Fields are named by their `json` tags; those
// without omitempty, a pointer or a `default` tag are required. The tags `doc` and `enum` (names with commas between
// them) describe them further.
func SchemaOf[T any]() map[string]any {
	return buildSchema(reflect.TypeFor[T](), false)
}

// outputSchema returns the schema of a tool's results, and nil if they may be anything.
func outputSchema[T any]() map[string]any {
	if schema := buildSchema(reflect.TypeFor[T](), true); len(schema) > 0 {
		return schema
	}
	return nil
}

// buildSchema describes what a type decodes from or, for outputs, what it is encoded to: a nil slice is null.
func buildSchema(t reflect.Type, isOutput bool) map[string]any {
	b := schemaBuilder{isOutput: isOutput, definitions: map[string]any{}}
	schema := b.build(t)
	if len(b.definitions) > 0 {
		schema["$defs"] = b.definitions
	}
	return schema
}

type schemaBuilder struct {
	isOutput    bool
	within      []reflect.Type // structs that are being described
	definitions map[string]any // those that contain themselves
}

func (b *schemaBuilder) build(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(b.build(t.Elem()))
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == numberType:
		return map[string]any{"type": "number"}
	case reflect.PointerTo(t).Implements(unmarshalerType) || t.Implements(marshalerType):
		return map[string]any{}
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return b.nilable(map[string]any{"type": "array", "items": b.build(t.Elem())})
	case reflect.Array:
		return map[string]any{"type": "array", "items": b.build(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return b.nilable(map[string]any{"type": "object", "additionalProperties": b.build(t.Elem())})
	case reflect.Struct:
		return b.object(t)
	default: // an interface: any value
		return map[string]any{}
	}
}

func (b *schemaBuilder) nilable(schema map[string]any) map[string]any {
	if b.isOutput {
		return nullable(schema)
	}
	return schema
}

func (b *schemaBuilder) object(t reflect.Type) map[string]any {
	for _, one := range b.within {
		if one == t {
			if b.definitions[t.Name()] == nil {
				b.definitions[t.Name()] = map[string]any{} // found again within itself
				inner := schemaBuilder{isOutput: b.isOutput, definitions: b.definitions}
				b.definitions[t.Name()] = inner.object(t)
			}
			return map[string]any{"$ref": "#/$defs/" + t.Name()}
		}
	}
	b.within = append(b.within, t)
	defer func() { b.within = b.within[:len(b.within)-1] }()
	properties, required := map[string]any{}, []string{}
	for _, field := range fieldsOf(t) {
		schema := b.build(field.kind)
		if field.doc != "" {
			schema["description"] = field.doc
		}
		if len(field.choices) > 0 {
			schema["enum"] = field.choices
		}
		if field.fallback != nil {
			schema["default"] = field.fallback
		}
		properties[field.name] = schema
		if !field.isOptional {
			required = append(required, field.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func nullable(schema map[string]any) map[string]any {
	if kind, isText := schema["type"].(string); isText {
		schema["type"] = []string{kind, "null"}
		return schema
	}
	if len(schema) == 0 {
		return schema
	}
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}
