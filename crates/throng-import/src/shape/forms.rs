//! What the forms of recorded pages say about their fields: which hide what is typed, which are for
//! a user's name, and which hidden ones are not the same on all pages.

use std::collections::{HashMap, HashSet};

use throng_base::secret::is_secret_name;
use throng_extract::Page;

use super::page;
use crate::json::Json;
use crate::model::{Body, Exchange, Recording, Response, name_of};
use crate::text::Text;

/// Fields that say who logs in, or that end with such a word.
const USER_FIELDS: [&str; 9] =
    ["user", "username", "user_name", "login", "email", "account", "name", "userid", "phone"];

#[derive(Debug, Default)]
pub(super) struct Forms {
    passwords: HashSet<String>,
    users: HashSet<String>,
    varying: HashSet<String>,
}

pub(super) fn find(recording: &mut Recording) -> Forms {
    let mut forms = Forms::default();
    let mut first: HashMap<String, String> = HashMap::new();
    recording.each_exchange(|exchange| {
        let Some(body) = exchange.response.as_ref().and_then(Response::html) else { return };
        let page = Page::new(body.as_bytes());
        let (passwords, users) = page::login_fields(&page);
        forms.passwords.extend(passwords);
        forms.users.extend(users);
        for field in page::fields(&page).into_iter().filter(|field| field.is_hidden) {
            let value = first.entry(field.name.clone()).or_insert_with(|| field.value.clone());
            if *value != field.value {
                forms.varying.insert(field.name);
            }
        }
    });
    forms
}

impl Forms {
    pub(super) fn is_password(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let is_named = lower.contains("pass") || lower.contains("pwd");
        is_named && is_secret_name(name) || self.passwords.contains(name)
    }

    /// Whether a hidden field has different values on different pages.
    pub(super) fn is_varying(&self, name: &str) -> bool {
        self.varying.contains(name)
    }

    /// The name of the user in a request that has a password, too.
    pub(super) fn login(&self, exchange: &Exchange) -> Option<String> {
        let pairs: Vec<(&str, &Text)> = match &exchange.body {
            Body::Form(pairs) => pairs.iter().map(|(name, value)| (&**name, value)).collect(),
            Body::Json(json) => json
                .entries()
                .iter()
                .filter_map(|(name, value)| match value {
                    Json::Text(text) => Some((&**name, text)),
                    _ => None,
                })
                .collect(),
            _ => return None,
        };
        pairs.iter().find(|(name, value)| self.is_password(name) && !value.is_empty())?;
        let known = |name: &str| {
            let plain = name_of(name);
            USER_FIELDS.iter().any(|field| {
                plain.strip_suffix(field).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            })
        };
        let value_of = |wanted: &dyn Fn(&str) -> bool| {
            pairs.iter().find_map(|(name, value)| {
                value.as_literal().filter(|value| wanted(name) && !value.is_empty())
            })
        };
        let user = value_of(&known).or_else(|| value_of(&|name| self.users.contains(name)));
        user.map(str::to_string)
    }
}
