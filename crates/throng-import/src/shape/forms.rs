//! The fields of forms on recorded pages: password fields, user name fields, and hidden fields that
//! vary between pages.

use std::collections::{HashMap, HashSet};

use throng_base::secret::is_secret_name;
use throng_extract::Page;

use super::page;
use crate::json::Json;
use crate::model::{Body, Exchange, Recording, Response, name_of};
use crate::text::Text;

/// Fields for the user name of a login.
const USER_FIELDS: [&str; 9] =
    ["user", "username", "user_name", "login", "email", "account", "name", "userid", "phone"];

#[derive(Clone, Debug, Default)]
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

    /// True if a hidden field has different values on different pages.
    pub(super) fn is_varying(&self, name: &str) -> bool {
        self.varying.contains(name)
    }

    /// The user name in a request that also has a password.
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
        let is_known = |name: &str| USER_FIELDS.contains(&&*name_of(name));
        // `login-username`, but not `first_name`.
        let ends_known = |name: &str| {
            let plain = name_of(name);
            let end = plain.rsplit_once('_').map_or("", |(_, end)| end);
            end != "name" && USER_FIELDS.contains(&end)
        };
        let value_of = |wanted: &dyn Fn(&str) -> bool| {
            pairs.iter().find_map(|(name, value)| {
                value.as_literal().filter(|value| wanted(name) && !value.is_empty())
            })
        };
        let user = value_of(&is_known).or_else(|| value_of(&ends_known));
        user.or_else(|| value_of(&|name| self.users.contains(name))).map(str::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_recognized_by_its_fields() {
        let forms = Forms {
            passwords: ["p".into()].into(),
            users: ["u".into()].into(),
            ..Forms::default()
        };
        let login = |fields: &[(&str, &str)]| {
            let pairs = fields.iter().map(|(name, value)| (name.to_string(), (*value).into()));
            let body = Body::Form(pairs.collect());
            forms.login(&Exchange { body, ..Exchange::default() })
        };
        let ann = Some("ann".to_string());
        assert_eq!(login(&[("login-username", "ann"), ("login-password", "x")]), ann);
        assert_eq!(login(&[("first_name", "Ann"), ("email", "ann"), ("password", "x")]), ann);
        assert_eq!(login(&[("id", "start"), ("u", "ann"), ("p", "x")]), ann);
        assert_eq!(login(&[("u", "ann"), ("p", "")]), None);
        assert_eq!(login(&[("name", "ann"), ("passengers", "2")]), None);
    }
}
