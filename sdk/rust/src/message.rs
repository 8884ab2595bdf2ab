//! JSON-RPC 2.0 messages: decodes the body of a frame into one message or a batch, and encodes messages.
//!
//! A message that is none gets an error response under its id, wherever an id can be read.

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::contract::code;
use crate::error::RpcError;

const ID_BYTES: usize = 256;
const METHOD_BYTES: usize = 1024;
const BATCH: usize = 50;
const MEMBERS: usize = 64; // of one message; unknown ones are ignored, but each costs a comparison

/// The JSON text of an id, which is sent back unchanged: `1`, `1.0` and `"1"` are three ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) Box<str>);

impl Id {
    pub(crate) fn null() -> Self {
        Self("null".into())
    }

    /// Returns the text that equal ids share: a string may be written with escapes.
    pub(crate) fn key(&self) -> Self {
        if !self.0.contains('\\') {
            return self.clone();
        }
        let text = serde_json::from_str::<String>(&self.0).and_then(|id| serde_json::to_string(&id));
        text.map_or_else(|_| self.clone(), |text| Self(text.into()))
    }
}

/// One decoded message. Params, results and errors stay undecoded.
#[derive(Debug)]
pub(crate) enum Message {
    Request {
        id: Id,
        method: String,
        params: Option<Box<str>>,
    },
    Notification {
        method: String,
        params: Option<Box<str>>,
    },
    Response {
        id: Id,
        outcome: Result<Box<str>, RpcError>,
    },
    /// Not a message: it gets this error as response.
    Invalid {
        id: Id,
        error: RpcError,
    },
    /// A malformed response: it gets none.
    BadResponse {
        id: Option<Id>,
        problem: &'static str,
    },
}

/// The content of one frame.
#[derive(Debug)]
pub(crate) enum Content {
    One(Message),
    Batch(Vec<Message>),
}

/// Decodes the body of a frame.
pub(crate) fn decode(body: &[u8]) -> Content {
    let not_json = |problem: String| {
        Content::One(Message::Invalid {
            id: Id::null(),
            error: RpcError::new(code::PARSE_ERROR, format!("not JSON: {problem}")),
        })
    };
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => return not_json(error.to_string()),
    };
    match serde_json::from_str(text) {
        Ok(Outline::Object(members)) => Content::One(members.classify()),
        Ok(Outline::Array(items)) if items.is_empty() => {
            Content::One(reject(RpcError::invalid_request("an empty batch")))
        }
        Ok(Outline::Array(items)) if items.len() > BATCH => {
            let problem = format!("a batch of {}, the limit is {BATCH}", items.len());
            Content::One(reject(RpcError::new(code::TOO_LARGE, problem)))
        }
        Ok(Outline::Array(items)) => Content::Batch(items.into_iter().map(decode_item).collect()),
        Ok(Outline::Scalar) => Content::One(reject(RpcError::invalid_request("neither an object nor a batch"))),
        Err(error) => not_json(error.to_string()),
    }
}

fn decode_item(item: &RawValue) -> Message {
    match serde_json::from_str(item.get()) {
        Ok(Outline::Object(members)) => members.classify(),
        _ => reject(RpcError::invalid_request("no object in a batch")),
    }
}

fn reject(error: RpcError) -> Message {
    Message::Invalid { id: Id::null(), error }
}

// -- the top level of a frame

enum Outline<'a> {
    Object(Members<'a>),
    Array(Vec<&'a RawValue>),
    Scalar,
}

#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: Option<String>,
}

impl<'a> Members<'a> {
    fn classify(self) -> Message {
        let id = self.id.map(|raw| parse_id(raw.get()));
        let readable = match &id {
            Some(Some(id)) if self.duplicate.as_deref() != Some("id") => id.clone(),
            _ => Id::null(),
        };
        let invalid =
            |problem: &str| Message::Invalid { id: readable.clone(), error: RpcError::invalid_request(problem) };
        if let Some(name) = &self.duplicate {
            return invalid(&format!("duplicate member: {name}"));
        }
        let Some(method) = self.method else { return self.classify_response(id.flatten()) };
        if matches!(id, Some(None)) {
            return invalid("the id is no string, number or null, or is too long");
        }
        if !is_version(self.jsonrpc) {
            return invalid("the member \"jsonrpc\" is not \"2.0\"");
        }
        if self.result.is_some() || self.error.is_some() {
            return invalid("both a request and a response");
        }
        let method = match serde_json::from_str::<String>(method.get()) {
            Ok(method) if !method.is_empty() && method.len() <= METHOD_BYTES => method,
            _ => return invalid("the method is no name"),
        };
        let params = not_null(self.params).map(|raw| raw.get().into());
        match id {
            Some(Some(id)) => Message::Request { id, method, params },
            _ => Message::Notification { method, params },
        }
    }

    fn classify_response(self, id: Option<Id>) -> Message {
        let error = not_null(self.error);
        let is_response = self.result.is_some() || self.error.is_some();
        if !is_response {
            let problem = if is_version(self.jsonrpc) { "neither method, result nor error" } else { "not a message" };
            return Message::Invalid { id: id.unwrap_or_else(Id::null), error: RpcError::invalid_request(problem) };
        }
        let bad = |problem| Message::BadResponse { id: id.clone(), problem };
        if !is_version(self.jsonrpc) {
            return bad("the member \"jsonrpc\" is not \"2.0\"");
        }
        let Some(id) = id.clone() else { return bad("a response without an id that can be read") };
        match (self.result, error) {
            (Some(result), None) => Message::Response { id, outcome: Ok(result.get().into()) },
            (None, Some(error)) => match serde_json::from_str(error.get()) {
                Ok(error) => Message::Response { id, outcome: Err(error) },
                Err(_) => bad("the error is no error object"),
            },
            _ => bad("both result and error, or neither"),
        }
    }

    /// Files a member; returns whether it is the second of its name.
    fn file(&mut self, name: &str, value: &'a RawValue) -> bool {
        let member = match name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return false,
        };
        member.replace(value).is_some()
    }
}

fn not_null(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

fn is_version(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| {
        raw.get() == "\"2.0\"" || serde_json::from_str::<String>(raw.get()).is_ok_and(|it| it == "2.0")
    })
}

/// Returns an id that JSON-RPC allows, `None` for any other value.
pub(crate) fn parse_id(text: &str) -> Option<Id> {
    let is_allowed = match text.as_bytes().first() {
        Some(b'"') => text.len() <= ID_BYTES + 2 && serde_json::from_str::<String>(text).is_ok(),
        Some(b'-' | b'0'..=b'9') => text.len() <= ID_BYTES && serde_json::from_str::<serde_json::Number>(text).is_ok(),
        _ => text == "null",
    };
    is_allowed.then(|| Id(text.into()))
}

impl<'de: 'a, 'a> Deserialize<'de> for Outline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OutlineVisitor(std::marker::PhantomData))
    }
}

struct OutlineVisitor<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for OutlineVisitor<'a> {
    type Value = Outline<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline<'a>, A::Error> {
        let mut members = Members::default();
        let mut unknown = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.file(&name, map.next_value()?) || unknown.contains(&name) {
                members.duplicate.get_or_insert(name);
            } else if unknown.len() == MEMBERS {
                return Err(A::Error::custom("too many members"));
            } else if !matches!(name.as_str(), "jsonrpc" | "id" | "method" | "params" | "result" | "error") {
                unknown.push(name);
            }
        }
        Ok(Outline::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Outline<'a>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Outline::Array(items))
    }

    fn visit_unit<E>(self) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Outline<'a>, E> {
        Ok(Outline::Scalar)
    }
}

// -- encoding

/// Returns the body of a request, or of a notification if there is no id.
pub(crate) fn encode_request(id: Option<u32>, method: &str, params: Option<&str>) -> String {
    let mut body = String::with_capacity(method.len() + params.map_or(0, str::len) + 64);
    body.push_str("{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        body.push_str(",\"id\":");
        body.push_str(&id.to_string());
    }
    body.push_str(",\"method\":");
    body.push_str(&encode(method));
    if let Some(params) = params {
        body.push_str(",\"params\":");
        body.push_str(params);
    }
    body.push('}');
    body
}

/// Returns the body of a response.
pub(crate) fn encode_response(id: &Id, outcome: Result<&str, &RpcError>) -> String {
    match outcome {
        Ok(result) => ["{\"jsonrpc\":\"2.0\",\"id\":", &id.0, ",\"result\":", result, "}"].concat(),
        Err(error) => ["{\"jsonrpc\":\"2.0\",\"id\":", &id.0, ",\"error\":", &encode(error), "}"].concat(),
    }
}

/// Returns the JSON text of a value of the kit's own, which always has one.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(body: &str) -> (i64, String) {
        match decode(body.as_bytes()) {
            Content::One(Message::Invalid { id, error }) => (error.code, id.0.into()),
            other => panic!("{body} is {other:?}"),
        }
    }

    #[test]
    fn invalid_messages_are_rejected_under_their_id() {
        // The table of docs/wire.md.
        for (body, code, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"#, -32700, "null"),
            ("hello", -32700, "null"),
            ("7", -32600, "null"),
            ("\"text\"", -32600, "null"),
            ("[]", -32600, "null"),
            (r#"{"id":1,"method":"echo"}"#, -32600, "1"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"echo"}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"echo"}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"echo"}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"echo","method":"none"}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"echo","x":1,"x":2}"#, -32600, "1"),
        ] {
            assert_eq!(rejection(body), (code, id.to_string()), "{body}");
        }
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"echo"}}"#, "x".repeat(257));
        assert_eq!(rejection(&long), (-32600, "null".into()));
    }

    #[test]
    fn text_that_is_not_utf8_is_a_parse_error() {
        let body = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
        assert!(matches!(decode(body), Content::One(Message::Invalid { error, .. }) if error.code == -32700));
    }

    #[test]
    fn ids_keep_their_text_and_are_equal_by_value() {
        for id in ["1", "1.0", "\"1\"", "null", "-7", "1e3", "\"\\u0061\""] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#);
            let Content::One(Message::Request { id: found, .. }) = decode(body.as_bytes()) else { panic!("{id}") };
            assert_eq!(&*found.0, id);
        }
        assert_eq!(Id("\"\\u0061\"".into()).key(), Id("\"a\"".into()).key());
        assert_ne!(Id("1".into()).key(), Id("1.0".into()).key());
    }

    #[test]
    fn a_batch_is_decoded_member_by_member() {
        let body = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"jsonrpc":"2.0","method":"b"}]"#;
        let Content::Batch(messages) = decode(body.as_bytes()) else { panic!() };
        assert!(matches!(
            messages[..],
            [Message::Request { .. }, Message::Invalid { .. }, Message::Notification { .. }]
        ));
        assert_eq!(rejection(&format!("[{}]", vec!["1"; 51].join(","))).0, 1004);
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#, "[".repeat(1_000_000));
        assert_eq!(rejection(&body).0, -32700);
    }

    #[test]
    fn malformed_responses_are_never_responded_to() {
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":[],"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
        ] {
            assert!(matches!(decode(body.as_bytes()), Content::One(Message::BadResponse { .. })), "{body}");
        }
        let body = br#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#;
        assert!(matches!(decode(body), Content::One(Message::Response { outcome: Ok(_), .. })));
    }
}
