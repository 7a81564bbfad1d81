//! Searches for the capacity of virtual targets, as rows of a Markdown table: `cargo run --release
//! -p throng-load --example capacity -- SEEDS FIRST RATES [TARGETS]`, for example `100 1 200,1000
//! M/M/1,USL`. `cargo xtask bench capacity` calls it.

#![allow(clippy::print_stdout, reason = "it prints the table")]

use std::error::Error;
use std::thread;

use throng_load::capacity::simulation::{HEADING, Model, figures};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seeds, first, rates, rest @ ..] = arguments.as_slice() else {
        return Err("expected SEEDS FIRST RATES [TARGETS]".into());
    };
    let (seeds, first): (u64, u64) = (seeds.parse()?, first.parse()?);
    let rates: Vec<f64> = rates.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let models = match rest.first() {
        Some(names) => names.split(',').map(model).collect::<Result<Vec<_>, _>>()?,
        None => Model::ALL.to_vec(),
    };
    let threads = thread::available_parallelism()?.get();
    println!("{HEADING}");
    for rate in rates {
        for model in &models {
            println!("{}", figures(*model, rate, first..first + seeds, threads).row());
        }
    }
    Ok(())
}

fn model(name: &str) -> Result<Model, String> {
    Model::ALL.into_iter().find(|model| model.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Model::ALL.iter().map(|model| model.name()).collect();
        format!("{name}: expected some of {}", known.join(","))
    })
}
