//! The extension of the other entrants, on the Rust kit.

use std::process::ExitCode;

use becket::{Extension, Result, Schema, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

const TICKS: f64 = 100.0; // in a second, on every Linux

#[derive(Deserialize)]
struct Echo {
    text: String,
}

fn main() -> ExitCode {
    becket::run(|| {
        let input = Schema::object().required("text", Schema::string());
        Extension::new("extension", "1.0.0")
            .tool(Tool::new("echo", "Returns the text that it is given.", input), |input: Echo, _| Ok(input.text))
            .method("usage", |_: Value, _| Ok(json!({ "pid": std::process::id(), "cpu": cpu_seconds()? })))
    })
}

/// Returns the processor time of this process: the 14th and 15th field of its stat, counted behind its name.
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no stat")?;
    let ticks: Vec<f64> = fields.split(' ').skip(11).take(2).map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}
