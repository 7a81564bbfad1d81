//! A login of a recording is that of one user: its name goes into a CSV file, to which rows for
//! more users can be added. The password stays a secret of the environment.

use super::forms::Forms;
use crate::Options;
use crate::json::Json;
use crate::model::{Body, Exchange, PartContent, Recording, Table};
use crate::text::Text;

const TABLE: &str = "accounts";
/// A shorter name is replaced only where a user logs in.
const USER_CHARS_MIN: usize = 3;

pub(super) fn take_out(recording: &mut Recording, forms: &Forms, options: &Options) {
    let mut user: Option<String> = None;
    recording.each_exchange(|exchange| {
        let login = forms.login(exchange);
        let is_login = login.is_some();
        let user = match (&user, login) {
            (Some(user), _) => user,
            (None, Some(login)) => &*user.insert(login),
            (None, None) => return,
        };
        if is_login || user.len() >= USER_CHARS_MIN {
            replace(exchange, user);
        }
    });
    let Some(user) = user else { return };
    recording.tables.push(Table {
        name: TABLE.into(),
        file: format!("{}-accounts.csv", options.stem),
        columns: Vec::new(),
        separator: None,
        take: None,
        rows: Some((vec!["user".into()], vec![vec![user]])),
    });
}

/// The user's name as a whole field, or between the slashes of a path.
fn replace(exchange: &mut Exchange, user: &str) {
    let row = || Text::value(format!("data.{TABLE}.user"));
    let change = |text: &mut Text| {
        if text.as_literal() == Some(user) {
            *text = row();
        }
    };
    let mut url = Text::default();
    for (number, mut segment) in exchange.url.split('/').into_iter().enumerate() {
        url.push(if number > 0 { "/" } else { "" });
        change(&mut segment);
        url.append(&segment);
    }
    exchange.url = url;
    match &mut exchange.body {
        Body::Form(pairs) => pairs.iter_mut().for_each(|(_, value)| change(value)),
        Body::Json(json) => json.leaves("", &mut |_, leaf| {
            if let Json::Text(text) = leaf {
                change(text);
            }
        }),
        Body::Multipart(parts) => parts.iter_mut().for_each(|part| {
            if let PartContent::Text(text) = &mut part.content {
                change(text);
            }
        }),
        _ => {}
    }
}
