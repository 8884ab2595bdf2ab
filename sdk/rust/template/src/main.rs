//! The extension {{id}}.

use std::process::ExitCode;

use becket::{CommandOutput, Context, Extension, Result, Schema, Tool};
use serde::Deserialize;

fn main() -> ExitCode {
    becket::run(extension)
}

fn extension() -> Extension {
    let input = Schema::object().required("name", Schema::string().describe("Who is greeted."));
    Extension::new({{quoted_id}}, env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("greet", "Greets somebody.", input).with_read_only(true), greet)
        .command("{{command}}", greet_all)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Greeting {
    name: String,
}

fn greet(input: Greeting, _: &Context) -> Result<String> {
    Ok(format!("Hello, {}!", input.name))
}

fn greet_all(names: &[String], out: &CommandOutput) -> Result<()> {
    for name in names {
        out.text(&format!("Hello, {name}!"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use becket::Methods;
    use becket::testing::TestHost;
    use serde_json::json;

    use super::*;

    #[test]
    fn it_greets() -> Result<()> {
        let host = TestHost::start(extension(), Methods::new())?;
        assert_eq!(host.call_tool("greet", &json!({ "name": "Ada" }))?, "Hello, Ada!");
        assert!(host.call_tool("greet", &json!({ "name": 7 })).is_err());
        Ok(())
    }
}
