//! A builder of JSON Schemas for the inputs of tools; any other schema may be given as JSON.

use serde_json::{Map, Value, json};

/// The JSON Schema of a value: `Schema::object().required("text", Schema::string().describe("What to count."))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(Map<String, Value>);

impl Schema {
    fn of_type(name: &str) -> Self {
        Self(Map::new()).with("type", name)
    }

    /// Any schema, given as JSON: `Schema::new(json!({"type": "object"}))`.
    ///
    /// # Panics
    /// The JSON is no object.
    #[must_use]
    pub fn new(schema: Value) -> Self {
        match schema {
            Value::Object(members) => Self(members),
            other => panic!("a JSON Schema is an object, and not {other}"),
        }
    }

    /// An object; members that are not declared are not allowed.
    #[must_use]
    pub fn object() -> Self {
        Self::of_type("object").with("properties", json!({})).with("additionalProperties", false)
    }

    /// A string.
    #[must_use]
    pub fn string() -> Self {
        Self::of_type("string")
    }

    /// A whole number.
    #[must_use]
    pub fn integer() -> Self {
        Self::of_type("integer")
    }

    /// Any number.
    #[must_use]
    pub fn number() -> Self {
        Self::of_type("number")
    }

    /// True or false.
    #[must_use]
    pub fn boolean() -> Self {
        Self::of_type("boolean")
    }

    /// An array of items that all fit one schema.
    #[must_use]
    pub fn array(items: Schema) -> Self {
        Self::of_type("array").with("items", items)
    }

    /// One of these strings.
    #[must_use]
    pub fn one_of(values: &[&str]) -> Self {
        Self::string().with("enum", values.to_vec())
    }

    /// Adds a member that the object must have.
    #[must_use]
    pub fn required(self, name: &str, schema: impl Into<Value>) -> Self {
        let mut whole = self.optional(name, schema);
        if let Value::Array(names) = whole.0.entry("required").or_insert_with(|| json!([])) {
            names.push(name.into());
        }
        whole
    }

    /// Adds a member that the object may have.
    #[must_use]
    pub fn optional(mut self, name: &str, schema: impl Into<Value>) -> Self {
        if let Value::Object(members) = self.0.entry("properties").or_insert_with(|| json!({})) {
            members.insert(name.into(), schema.into());
        }
        self
    }

    /// Says what the value is, for the model.
    #[must_use]
    pub fn describe(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Names the value that is used where the member is left out.
    #[must_use]
    pub fn default_value(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Sets any other keyword: `Schema::integer().with("minimum", 1)`.
    #[must_use]
    pub fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.0.insert(keyword.into(), value.into());
        self
    }
}

impl From<Schema> for Map<String, Value> {
    fn from(schema: Schema) -> Self {
        schema.0
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Self {
        Self::Object(schema.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_lists_its_members() {
        let schema = Schema::object()
            .required("text", Schema::string().describe("What to count."))
            .optional("limit", Schema::integer().with("minimum", 1).default_value(10))
            .optional("kinds", Schema::array(Schema::one_of(&["a", "b"])));
        assert_eq!(
            Value::from(schema),
            json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "What to count."},
                    "limit": {"type": "integer", "minimum": 1, "default": 10},
                    "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                },
                "additionalProperties": false,
                "required": ["text"],
            })
        );
    }
}
