//! A login of a recording is that of one user: its name goes into a CSV file, to which rows for
//! more users can be added. The password stays a secret of the environment.

use crate::Options;
use crate::json::Json;
use crate::model::{Body, Exchange, Recording, Table};
use crate::text::Text;

/// Fields that say who logs in.
const USER_FIELDS: [&str; 9] =
    ["user", "username", "user_name", "login", "email", "account", "name", "userid", "phone"];
const TABLE: &str = "accounts";

pub(super) fn take_out(recording: &mut Recording, options: &Options) {
    let mut found: Option<(String, String)> = None;
    recording.each_exchange(|exchange| {
        let login = login(exchange);
        match (&found, login) {
            (None, Some((field, user))) => {
                replace(exchange, &user);
                found = Some((field, user));
            }
            (Some((_, user)), Some((_, other))) if *user == other => replace(exchange, user),
            _ => {}
        }
    });
    let Some((_, user)) = found else { return };
    recording.tables.push(Table {
        name: TABLE.into(),
        file: format!("{}-accounts.csv", options.stem),
        columns: Vec::new(),
        separator: None,
        take: None,
        rows: Some((vec!["user".into()], vec![vec![user]])),
    });
}

/// The field and the name of a request that also has a password.
fn login(exchange: &Exchange) -> Option<(String, String)> {
    let pairs: Vec<(String, Text)> = match &exchange.body {
        Body::Form(pairs) => pairs.clone(),
        Body::Json(json) => json
            .entries()
            .iter()
            .filter_map(|(name, value)| match value {
                Json::Text(text) => Some((name.clone(), text.clone())),
                _ => None,
            })
            .collect(),
        _ => return None,
    };
    let is_password = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("pass") || name.contains("pwd")
    };
    pairs.iter().find(|(name, value)| is_password(name) && value.has_values())?;
    pairs.iter().find_map(|(name, value)| {
        let plain = crate::model::name_of(name);
        let is_user = USER_FIELDS.contains(&plain.as_str());
        let value = value.as_literal().filter(|value| is_user && !value.is_empty())?;
        Some((name.clone(), value.to_string()))
    })
}

fn replace(exchange: &mut Exchange, user: &str) {
    let row = || Text::value(format!("data.{TABLE}.user"));
    match &mut exchange.body {
        Body::Form(pairs) => pairs
            .iter_mut()
            .filter(|(_, value)| value.as_literal() == Some(user))
            .for_each(|(_, value)| *value = row()),
        Body::Json(json) => json.leaves("", &mut |_, leaf| {
            if matches!(leaf, Json::Text(text) if text.as_literal() == Some(user)) {
                *leaf = Json::Text(row());
            }
        }),
        _ => {}
    }
}
