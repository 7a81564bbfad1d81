//! A recorded login belongs to one user: its name moves to a CSV file, to which rows for more users
//! can be added. The password stays a secret in the environment.

use super::forms::Forms;
use crate::Options;
use crate::model::{Exchange, Recording, Table};
use crate::text::Text;

const TABLE: &str = "accounts";
/// The end of the file's name.
pub(crate) const FILE: &str = "accounts.csv";
/// A shorter name is replaced only in logins.
const USER_CHARS_MIN: usize = 3;
/// User names that are also common path words.
const GENERAL: [&str; 6] = ["admin", "demo", "guest", "root", "test", "user"];

pub(super) fn take_out(recording: &mut Recording, forms: &Forms, options: &Options) {
    let mut user: Option<String> = None;
    // Path words before the login are not user names: `/admin/login` does not name the user
    // `admin`.
    let mut words: Vec<String> = GENERAL.map(String::from).into();
    recording.each_exchange(|exchange| {
        let login = forms.login(exchange);
        let is_login = login.is_some();
        if user.is_none() {
            words.extend(exchange.url.split('/').iter().map(Text::to_string));
        }
        let user = match (&user, login) {
            (Some(user), _) => user,
            (None, Some(login)) => &*user.insert(login),
            (None, None) => return,
        };
        if is_login || user.len() >= USER_CHARS_MIN {
            replace(exchange, user, !words.contains(user));
        }
    });
    let Some(user) = user else { return };
    recording.tables.push(Table {
        name: TABLE.into(),
        file: format!("{}-{FILE}", options.stem),
        columns: vec!["user".into()],
        row: vec![user],
    });
}

/// The user's name as a whole field, or as a path segment.
fn replace(exchange: &mut Exchange, user: &str, in_path: bool) {
    let row = || Text::value(format!("data.{TABLE}.user"));
    let change = |text: &mut Text| {
        if text.as_literal() == Some(user) {
            *text = row();
        }
    };
    let mut url = Text::default();
    for (number, mut segment) in exchange.url.split('/').into_iter().enumerate() {
        url.push(if number > 0 { "/" } else { "" });
        if in_path {
            change(&mut segment);
        }
        url.append(&segment);
    }
    exchange.url = url;
    exchange.body.each_field(&mut |_, text| change(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Item, Session};

    /// The paths of a recording with a login as this user.
    fn paths(user: &str, urls: &[&str]) -> Vec<String> {
        let login: &[(&str, &str)] = &[("login", user), ("password", "sesame")];
        let exchange = |url: &str, fields: &[(&str, &str)]| {
            let pairs = fields.iter().map(|(name, value)| (name.to_string(), (*value).into()));
            let body = Body::Form(pairs.collect());
            Item::Http(Box::new(Exchange { url: url.into(), body, ..Exchange::default() }))
        };
        let mut steps = vec![exchange("/site/login", login)];
        steps.extend(urls.iter().map(|url| exchange(url, &[])));
        let session = Session { steps, ..Session::default() };
        let mut recording = Recording { sessions: vec![session], ..Recording::default() };
        take_out(&mut recording, &Forms::default(), &Options::default());
        assert_eq!(recording.tables.len(), 1);
        let mut paths = Vec::new();
        recording.each_exchange(|exchange| paths.push(exchange.url.to_string()));
        paths.split_off(1)
    }

    #[test]
    fn a_user_in_a_path_is_a_whole_and_unambiguous_word() {
        let row = "${data.accounts.user}";
        let want = [format!("/{row}/notes"), format!("/u/{row}"), "/annex?by=ann".to_string()];
        assert_eq!(paths("ann", &["/ann/notes", "/u/ann", "/annex?by=ann"]), want);
        assert_eq!(paths("site", &["/site/x"]), ["/site/x"]);
        assert_eq!(paths("admin", &["/admin/x"]), ["/admin/x"]);
    }
}
