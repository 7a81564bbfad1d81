//! Secrets are never written to the scenario: each becomes a variable that the environment sets.
//! They are recognized by the names of their headers and fields, as everywhere in throng.

use std::collections::HashMap;

use throng_base::secret::{is_plain_word, is_secret_name};
use throng_scenario::bytes_of_base64;

use super::forms::Forms;
use crate::form::decoded;
use crate::model::{Auth, Exchange, LeftOut, Recording, Variable, name_of, unique};
use crate::text::Text;

/// A shorter secret is replaced only in fields with its name.
const LENGTH_MIN: usize = 8;

struct Hidden<'f> {
    forms: &'f Forms,
    /// The variable of each secret.
    names: HashMap<String, String>,
    variables: Vec<Variable>,
    taken: Vec<String>,
}

pub(super) fn hide(recording: &mut Recording, forms: &Forms) {
    let taken = recording.variables.iter().map(|one| one.name.clone()).collect();
    let mut hidden = Hidden { forms, names: HashMap::new(), variables: Vec::new(), taken };
    recording.each_exchange(|exchange| hidden.exchange(exchange));
    recording.each_socket(|socket| {
        hidden.headers(&mut socket.headers);
        socket.each_json(&mut |json| json.each_text(&mut |name, text| hidden.field(name, text)));
    });
    for variable in &mut recording.variables {
        let is_plain =
            variable.value.as_ref().and_then(Text::as_literal).is_some_and(is_plain_word);
        if variable.is_secret || is_secret_name(&variable.name) && !is_plain {
            *variable = Variable {
                env: variable.env.take().or_else(|| Some(variable.name.to_ascii_uppercase())),
                value: None,
                is_secret: true,
                name: std::mem::take(&mut variable.name),
            };
        }
    }
    // A secret may also occur without its name, such as a key in a path.
    let mut values: Vec<(String, String)> = hidden.names.drain().collect();
    values.retain(|(value, _)| value.len() >= LENGTH_MIN);
    values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    if !values.is_empty() {
        let mut change = |text: &mut Text| *text = replaced(text, &values);
        recording.each_exchange(|exchange| exchange.each_text(&mut change));
        recording.each_socket(|socket| socket.each_text(&mut change));
    }
    let variables = std::mem::take(&mut hidden.variables);
    recording.variables.extend(variables);
}

impl Hidden<'_> {
    fn exchange(&mut self, exchange: &mut Exchange) {
        basic(exchange);
        if exchange.header("authorization").is_some() && exchange.auth.take().is_some() {
            let place = say!("{} {}", &exchange.method, &exchange.url);
            let what = say!("the authentication `{}`", "basic");
            exchange.left_out.push(LeftOut::new(place, what));
        }
        self.headers(&mut exchange.headers);
        self.headers(&mut exchange.cookies);
        self.headers(&mut exchange.query);
        if let Some(auth) = &mut exchange.auth {
            auth.password = self.text("password", &auth.password);
        }
        exchange.url = self.query(&exchange.url);
        exchange.body.each_field(&mut |name, text| self.field(name, text));
    }

    fn headers(&mut self, headers: &mut [(String, Text)]) {
        headers.iter_mut().for_each(|(name, value)| self.field(name, value));
    }

    /// The value of a header, a field or a parameter.
    fn field(&mut self, name: &str, value: &mut Text) {
        let is_secret = is_secret_name(name) && !name.eq_ignore_ascii_case("cookie")
            || self.forms.is_password(name);
        if is_secret {
            *value = self.text(name, value);
        }
    }

    /// A secret as a variable; prefixes such as `Bearer` are kept.
    fn text(&mut self, name: &str, value: &Text) -> Text {
        let Some(literal) = value.as_literal() else { return value.clone() };
        if is_plain_word(literal.trim()) {
            return value.clone();
        }
        let scheme = name.to_ascii_lowercase().ends_with("authorization");
        let (before, secret) = match literal.split_once(' ').filter(|_| scheme) {
            Some((before, secret)) => (format!("{before} "), secret),
            None => (String::new(), literal),
        };
        let name = match scheme {
            true => "token".to_string(),
            // Known as a password only because of its form.
            false if !is_secret_name(name) => "password".to_string(),
            false => name_of(name),
        };
        let mut out = Text::literal(before);
        out.push_value(format!("vars.{}", self.variable(&name, secret)));
        out
    }

    fn variable(&mut self, base: &str, secret: &str) -> String {
        if let Some(name) = self.names.get(secret) {
            return name.clone();
        }
        let name = unique(base, "_", |name| self.taken.iter().any(|known| known == name));
        self.taken.push(name.clone());
        self.names.insert(secret.to_string(), name.clone());
        self.variables.push(Variable::secret(&name));
        name
    }

    fn query(&mut self, url: &Text) -> Text {
        let Some((path, query)) = url.split_once('?') else { return url.clone() };
        let mut out = path;
        for (number, pair) in query.split('&').iter().enumerate() {
            out.push(if number == 0 { "?" } else { "&" });
            match pair.split_once('=') {
                Some((name, value)) if is_secret_name(&name.to_string()) => {
                    let plain = value.map_literals(|text| Text::literal(decoded(text, true)));
                    let mut hidden = plain.clone();
                    self.field(&name.to_string(), &mut hidden);
                    out.append(&name);
                    out.push("=");
                    out.append(if hidden == plain { &value } else { &hidden });
                }
                _ => out.append(pair),
            }
        }
        out
    }
}

/// The credentials of basic authentication are a user and a password.
fn basic(exchange: &mut Exchange) {
    let header = exchange.header("authorization").and_then(Text::as_literal);
    let Some(encoded) = header.and_then(|value| value.strip_prefix("Basic ")) else { return };
    let bytes = bytes_of_base64(encoded.trim()).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((user, password)) = bytes.as_deref().and_then(|text| text.split_once(':')) else {
        return;
    };
    let (user, password) = (Text::literal(user), Text::literal(password));
    exchange.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    exchange.auth = Some(Auth { user, password, is_digest: false });
}

fn replaced(text: &Text, values: &[(String, String)]) -> Text {
    values.iter().fold(text.clone(), |text, (value, name)| {
        text.map_literals(|literal| {
            let mut out = Text::default();
            for (number, part) in literal.split(value.as_str()).enumerate() {
                if number > 0 {
                    out.push_value(format!("vars.{name}"));
                }
                out.push(part);
            }
            out
        })
    })
}
