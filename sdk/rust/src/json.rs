//! JSON values: parsing that refuses duplicate members, and decoding whose errors have JSON pointers.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use crate::error::Problem;

/// Parses a JSON text in which no object has a member twice.
pub(crate) fn parse(text: &str) -> Result<Value, Problem> {
    let state = ParseState::default();
    let mut input = serde_json::Deserializer::from_str(text);
    match (ValueSeed { state: &state }).deserialize(&mut input).and_then(|value| input.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(error) => {
            Err(state.duplicate.take().unwrap_or_else(|| Problem::new(state.pointer.take(), error.to_string())))
        }
    }
}

/// Returns a text without the spaces between its values.
pub(crate) fn compact(text: &str) -> String {
    let (mut is_string, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let was_string = is_string;
        is_string ^= *character == '"' && !is_escaped;
        is_escaped = was_string && *character == '\\' && !is_escaped;
        was_string || !character.is_ascii_whitespace()
    };
    text.chars().filter(is_kept).collect()
}

/// Decodes a value to a type; the problem names the member that does not fit.
pub(crate) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Problem> {
    T::deserialize(At(value)).map_err(|Misfit(problem)| problem)
}

// -- parsing

#[derive(Default)]
struct ParseState {
    pointer: RefCell<String>,
    duplicate: RefCell<Option<Problem>>,
}

struct ValueSeed<'a> {
    state: &'a ParseState,
}

impl ValueSeed<'_> {
    /// Runs `read` with the pointer of a member; the pointer stays there if it fails.
    fn within<T, E>(&self, token: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let before = self.state.pointer.borrow().len();
        push_token(&mut self.state.pointer.borrow_mut(), token);
        let result = read()?;
        self.state.pointer.borrow_mut().truncate(before);
        Ok(result)
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        let mut next = || {
            let state = self.state;
            self.within(&found.len().to_string(), || items.next_element_seed(ValueSeed { state }))
                .map(|item| item.map(|item| found.push(item)).is_some())
        };
        while next()? {}
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let state = self.state;
            let value = self.within(&name, || {
                if found.contains_key(&name) {
                    let problem = Problem::new(state.pointer.borrow().clone(), "duplicate member");
                    *state.duplicate.borrow_mut() = Some(problem);
                    return Err(A::Error::custom("duplicate member"));
                }
                members.next_value_seed(ValueSeed { state })
            })?;
            found.insert(name, value);
        }
        Ok(Value::Object(found))
    }
}

// -- decoding

/// A value to decode. Each array and object puts its own token in front of the pointer of an error within it.
struct At<'de>(&'de Value);

#[derive(Debug)]
struct Misfit(Problem);

impl Misfit {
    fn within(mut self, token: &str) -> Self {
        let mut pointer = String::new();
        push_token(&mut pointer, token);
        self.0.pointer.insert_str(0, &pointer);
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Misfit {}

impl Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Problem::new("", message.to_string()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom("is missing").within(field)
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::custom("is unknown").within(field)
    }
}

fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

impl<'de> Deserializer<'de> for At<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::String(value) => visitor.visit_borrowed_str(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Object(members) => visitor.visit_map(Members { members: members.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if self.0.is_array() {
            return Err(Misfit::invalid_type(Unexpected::Seq, &"an object")); // serde would take it by position
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Object(members) => match (members.iter().next(), members.len()) {
                (Some((name, value)), 1) => visitor.visit_enum(Case { name, value }),
                _ => Err(Misfit::custom("expected an object with one member")),
            },
            _ => Err(Misfit::invalid_type(unexpected(self.0), &"string or object")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(value) => Unexpected::Str(value),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct Items<'de> {
    items: &'de [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let index = self.next;
        let Some(item) = self.items.get(index) else { return Ok(None) };
        self.next += 1;
        seed.deserialize(At(item)).map(Some).map_err(|error| error.within(&index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Members<'de> {
    members: serde_json::map::Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let (name, value) = self.value.take().ok_or_else(|| Misfit::custom("a value without a name"))?;
        seed.deserialize(At(value)).map_err(|error| error.within(name))
    }
}

struct Case<'de> {
    name: &'de str,
    value: &'de Value,
}

impl<'de> EnumAccess<'de> for Case<'de> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Misfit> {
        Ok((seed.deserialize(BorrowedStrDeserializer::new(self.name))?, self))
    }
}

impl<'de> Case<'de> {
    fn read<T>(self, read: impl FnOnce(At<'de>) -> Result<T, Misfit>) -> Result<T, Misfit> {
        read(At(self.value)).map_err(|error| error.within(self.name))
    }
}

impl<'de> VariantAccess<'de> for Case<'de> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        self.read(serde::Deserialize::deserialize)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Misfit> {
        self.read(|value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.read(|value| value.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Misfit> {
        self.read(|value| value.deserialize_any(visitor))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Note {
        text: String,
        #[serde(default)]
        lines: Vec<u8>,
        #[serde(default)]
        shape: Option<Shape>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        Point,
        Circle { radius: u32 },
        Line(u32, u32),
    }

    fn pointer_of(value: &Value) -> (String, String) {
        let problem = decode::<Note>(value).unwrap_err();
        (problem.pointer, problem.message)
    }

    #[test]
    fn values_that_fit_are_decoded() {
        let value = json!({"text": "a", "lines": [1, 2], "shape": {"circle": {"radius": 3}}});
        let note = Note { text: "a".into(), lines: vec![1, 2], shape: Some(Shape::Circle { radius: 3 }) };
        assert_eq!(decode::<Note>(&value), Ok(note));
        assert_eq!(decode::<Shape>(&json!("point")), Ok(Shape::Point));
        assert_eq!(decode::<Shape>(&json!({"line": [1, 2]})), Ok(Shape::Line(1, 2)));
        assert_eq!(decode::<Vec<Option<f64>>>(&json!([1, 1.5, null])), Ok(vec![Some(1.0), Some(1.5), None]));
    }

    #[test]
    fn a_problem_has_the_pointer_of_the_member() {
        assert_eq!(pointer_of(&json!({})), ("/text".into(), "is missing".into()));
        assert_eq!(pointer_of(&json!({"text": "a", "a/b": 1})), ("/a~1b".into(), "is unknown".into()));
        assert_eq!(pointer_of(&json!({"text": 1})).0, "/text");
        assert_eq!(pointer_of(&json!({"text": "a", "lines": [1, 300]})).0, "/lines/1");
        assert_eq!(pointer_of(&json!({"text": "a", "shape": {"circle": {"radius": "x"}}})).0, "/shape/circle/radius");
        assert_eq!(pointer_of(&json!({"text": "a", "shape": 1})).0, "/shape");
        assert_eq!(pointer_of(&json!(["a"])).0, "");
    }

    #[test]
    fn duplicate_members_are_refused_with_their_pointer() {
        let problem = parse(r#"{"a": [{"b": 1, "b": 2}]}"#).unwrap_err();
        assert_eq!(problem, Problem::new("/a/0/b", "duplicate member"));
    }

    #[test]
    fn a_compact_text_has_spaces_in_strings_only() {
        let text = r#" { "b" : [ 1.0 , "x \" , \\" ] , "a" : null } "#;
        assert_eq!(compact(text), r#"{"b":[1.0,"x \" , \\"],"a":null}"#);
    }

    #[test]
    fn text_that_is_no_json_is_refused() {
        for text in ["", "{", "{} {}", "[1,]", "NaN", "1e999", r#""\ud800""#] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
