//! Every recipe of `docs/cookbook.md`, taken from the page and run against a server that checks
//! what it was asked. Addresses, loads and pauses are those of a test.

mod connections;
mod loads;
mod requests;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::docs::tutorials::{Block, blocks, docs};
use crate::run::{Throng, throng};
use crate::scribe::Asked;

/// The most lines that a recipe may have.
const LINES_MAX: usize = 30;

/// The recipes in the order of the page; each has a test of this name.
macro_rules! recipes {
    ($($module:ident::$test:ident => $name:literal),* $(,)?) => {
        const NAMES: &[&str] = &[$($name),*];
        $(#[test]
        fn $test() {
            $module::$test($name);
        })*
    };
}

recipes! {
    requests::login_and_again_on_401 => "login.yaml",
    requests::token_refresh => "refresh.yaml",
    requests::oauth_client_credentials => "oauth.yaml",
    requests::logins_from_csv => "accounts.yaml",
    requests::csrf_token_from_a_cookie => "csrf.yaml",
    connections::client_certificates => "mtls.yaml",
    requests::graphql => "graphql.yaml",
    requests::file_upload => "upload.yaml",
    requests::hmac_signature => "signed.yaml",
    requests::unique_ids => "unique.yaml",
    requests::an_id_from_a_response => "order.yaml",
    requests::polling_until_done => "polling.yaml",
    requests::a_page_with_resources => "page.yaml",
    connections::websocket_with_a_token => "socket.yaml",
    connections::a_socket_io_room => "room.yaml",
    connections::tokens_from_an_llm => "llm.yaml",
    loads::spike => "spike.yaml",
    loads::soak => "soak.yaml",
}

fn page() -> Vec<Block> {
    blocks(&std::fs::read_to_string(docs().join("cookbook.md")).expect("the page"))
}

/// Files of the reader, which the page does not show.
const OWN_FILES: [&str; 4] = ["photo.png", "ca.pem", "client.pem", "client.key"];

/// `throng` with the recipe as `recipe.yaml` and the other files beside it.
#[track_caller]
fn with_recipe(line: &str, name: &str, changes: &[(&str, &str)]) -> Throng {
    let page = page();
    let is_recipe = |block: &&Block| block.name.as_deref() == Some(name);
    let text = page.iter().find(is_recipe).expect("the recipe").text.clone();
    let change = |text: String, (old, new): &(&str, &str)| {
        assert!(text.contains(old), "{name} has no `{old}`");
        text.replace(old, new)
    };
    let run = throng(line).file("recipe.yaml", changes.iter().fold(text, change));
    let run = OWN_FILES.iter().fold(run, |run, file| run.file(file, "what is in the file"));
    let beside = page.iter().filter(|block| !is_recipe(block));
    let files = beside.filter_map(|block| Some((block.name.as_ref()?, &block.text)));
    files.fold(run, |run, (file, text)| run.file(file, text))
}

/// Its run, with the summary as JSON and the record in `record`.
#[track_caller]
fn cooked(name: &str, changes: &[(&str, &str)]) -> Throng {
    with_recipe("run recipe.yaml --json --out record", name, changes)
}

/// The body of a request as JSON.
#[track_caller]
fn json_of(asked: &Asked) -> Value {
    match serde_json::from_str(&asked.body) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {asked:?}"),
    }
}

/// A field of a form.
fn field<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let fields = body.split('&').filter_map(|field| field.split_once('='));
    fields.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// How often each of these is there, by name.
fn tally<'a>(of: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    of.for_each(|name| *counts.entry(name.to_string()).or_default() += 1);
    counts
}

#[test]
fn the_recipes_are_short_and_each_is_tested() {
    let page = page();
    let named: Vec<&Block> = page.iter().filter(|block| block.name.is_some()).collect();
    let recipes = || named.iter().filter(|block| block.kind == "yaml");
    let names: Vec<&str> = recipes().filter_map(|block| block.name.as_deref()).collect();
    assert_eq!(names, NAMES);
    for block in recipes() {
        let lines = block.text.lines().count();
        assert!(lines <= LINES_MAX, "{:?} has {lines} lines", block.name);
    }
}

#[test]
fn every_recipe_is_valid_as_printed() {
    let papers = crate::http::tls::Papers::signed();
    let paper = |name: &str| std::fs::read(papers.path(name)).expect("a file");
    for name in NAMES {
        let run = with_recipe("check recipe.yaml", name, &[]);
        let run = OWN_FILES[1..].iter().fold(run, |run, file| run.file(file, paper(file)));
        let run = run.run().exits(0);
        run.check(!run.err.contains("warning["), name);
    }
}
