//! A small service for scripted users: `/oauth/…` issues tokens like an open platform, and a shop
//! has a login, products, a cart and orders. It rejects what a real service would reject.
//!
//! `POST /oauth/authorize {ssoid}` → a grant · `POST /oauth/token grant=…` → a token · `DELETE
//! /oauth/authorize` with it · `GET /login` a form · `POST /login {user, password}` → a token and a
//! cookie · `GET /products`, `/products/N` · `POST /cart {product}` · `POST /orders` · `POST
//! /logout`. The last three require the token, as `Authorization: Bearer …` or as the cookie.
//!
//! Grants and tokens contain their own seal, so the server does not store them.

use serde_json::{Value, json};
use throng_base::{Random, form_decoded};

use super::{Head, pairs};
use crate::setup::Setup;

/// Number of products, and of products per page.
const PRODUCTS: u64 = 1_000;
const PAGE: u64 = 20;
/// A login with this password fails for any user.
const WRONG_PASSWORD: &str = "wrong";

/// A request to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    what: What,
    /// The credentials of the request.
    proof: Option<String>,
    /// The body is a form instead of JSON.
    form: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Authorize,
    Token,
    Revoke,
    LoginPage,
    Login,
    Products { page: u64 },
    Product(u64),
    Cart,
    Order,
    Logout,
}

/// The response of the service.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) cookie: Option<String>,
    pub(crate) body: String,
}

/// The purpose of a sealed text.
#[derive(Clone, Copy)]
enum Seal {
    Grant = 0x6772,
    Token = 0x746f,
    Form = 0x666f,
}

/// The request to the service, if the path belongs to it.
pub(crate) fn call(head: &Head<'_>, path: &str, query: &str) -> Option<Call> {
    let product = path.strip_prefix("/products/").and_then(|id| id.parse().ok());
    let what = match (head.method, path) {
        ("POST", "/oauth/authorize") => What::Authorize,
        ("POST", "/oauth/token") => What::Token,
        ("DELETE", "/oauth/authorize") => What::Revoke,
        ("GET", "/login") => What::LoginPage,
        ("POST", "/login") => What::Login,
        ("GET", "/products") => What::Products { page: page(query) },
        ("GET", _) => What::Product(product?),
        ("POST", "/cart") => What::Cart,
        ("POST", "/orders") => What::Order,
        ("POST", "/logout") => What::Logout,
        _ => return None,
    };
    let kind = head.fields.get("content-type").unwrap_or_default();
    let form = kind.starts_with("application/x-www-form-urlencoded");
    Some(Call { what, proof: proof(head), form })
}

fn page(query: &str) -> u64 {
    let mut pages = pairs(query).filter(|(name, _)| *name == "page");
    let page = pages.find_map(|(_, page)| page.parse().ok());
    page.unwrap_or(1).clamp(1, PRODUCTS / PAGE)
}

fn proof(head: &Head<'_>) -> Option<String> {
    let bearer = head.fields.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let mut lists = head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let cookie = || {
        lists.find_map(|(_, list)| {
            list.split(';').find_map(|pair| pair.trim().strip_prefix("session="))
        })
    };
    bearer.or_else(cookie).map(|proof| proof.trim().to_owned())
}

impl Call {
    pub(crate) fn answer(&self, body: &[u8], setup: &Setup, random: &mut Random) -> Said {
        let field = |name: &str| self.field(body, name);
        let known = self.proof.as_deref().is_some_and(|proof| holds(Seal::Token, proof, setup));
        let needs_proof =
            matches!(self.what, What::Revoke | What::Cart | What::Order | What::Logout);
        if needs_proof && !known {
            return refusal(401, 3, "the token is missing or unknown");
        }
        match self.what {
            What::Authorize => match field("ssoid").filter(|ssoid| !ssoid.is_empty()) {
                None => refusal(400, 1, "`ssoid` is missing"),
                Some(ssoid) => {
                    setup.worker_stats.account(&ssoid);
                    good(200, &json!({ "grant": sealed(Seal::Grant, setup, random) }))
                }
            },
            What::Token => match field("grant") {
                Some(grant) if holds(Seal::Grant, &grant, setup) => {
                    let token = sealed(Seal::Token, setup, random);
                    good(200, &json!({ "token": token, "expires_in": 3600 }))
                }
                _ => refusal(400, 2, "the grant is missing or unknown"),
            },
            What::Revoke => Said { status: 204, kind: TEXT, cookie: None, body: String::new() },
            What::LoginPage => {
                let csrf = sealed(Seal::Form, setup, random);
                Said { status: 200, kind: "text/html", cookie: None, body: login_page(&csrf) }
            }
            What::Login => self.login(body, setup, random),
            What::Products { page } => {
                let first = (page - 1) * PAGE + 1;
                let items: Vec<Value> = (first..first + PAGE).map(product).collect();
                good(200, &json!({ "items": items, "page": page, "total": PRODUCTS }))
            }
            What::Product(id) if (1..=PRODUCTS).contains(&id) => good(200, &product(id)),
            What::Product(_) => refusal(404, 4, "there is no such product"),
            What::Cart => match field("product").and_then(|id| id.parse().ok()) {
                Some(id) if (1..=PRODUCTS).contains(&id) => {
                    good(201, &json!({ "product": id, "items": 1 }))
                }
                _ => refusal(404, 4, "there is no such product"),
            },
            What::Order => {
                let order = format!("o-{:012x}", random.next_u64() >> 16);
                good(201, &json!({ "order": order, "state": "paid" }))
            }
            What::Logout => {
                let cookie = Some("session=; Max-Age=0; Path=/".to_owned());
                Said { status: 204, kind: TEXT, cookie, body: String::new() }
            }
        }
    }

    fn login(&self, body: &[u8], setup: &Setup, random: &mut Random) -> Said {
        let user = self.field(body, "user").filter(|user| !user.is_empty());
        let password = self.field(body, "password").filter(|password| !password.is_empty());
        let (Some(user), Some(password)) = (user, password) else {
            return refusal(400, 1, "`user` or `password` is missing");
        };
        let csrf = self.field(body, "csrf");
        if self.form && !csrf.is_some_and(|csrf| holds(Seal::Form, &csrf, setup)) {
            return refusal(403, 5, "the `csrf` field of the page is missing");
        }
        if password == WRONG_PASSWORD {
            return refusal(401, 3, "wrong name or password");
        }
        setup.worker_stats.account(&user);
        let token = sealed(Seal::Token, setup, random);
        let cookie = Some(format!("session={token}; Path=/; HttpOnly"));
        Said { cookie, ..good(200, &json!({ "token": token, "user": user })) }
    }

    /// A field of the body; numbers as text.
    fn field(&self, body: &[u8], name: &str) -> Option<String> {
        if self.form {
            let text = String::from_utf8_lossy(body);
            let found = pairs(&text).find(|(own, _)| *own == name);
            return found.map(|(_, value)| form_decoded(value));
        }
        match serde_json::from_slice::<Value>(body).ok()?.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

fn good(status: u16, data: &Value) -> Said {
    let body = json!({ "code": 0, "data": data }).to_string();
    Said { status, kind: JSON, cookie: None, body }
}

fn refusal(status: u16, code: u32, message: &str) -> Said {
    let body = json!({ "code": code, "message": message }).to_string();
    Said { status, kind: JSON, cookie: None, body }
}

fn product(id: u64) -> Value {
    let cents = 100 + (id * 7919) % 9_900;
    json!({ "id": id, "name": format!("thing {id}"), "price": cents as f64 / 100.0 })
}

fn login_page(csrf: &str) -> String {
    format!(
        "<!doctype html>\n<html><head><title>Sign in</title></head><body>\n\
         <form action=\"/login\" method=\"post\">\n\
         <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\n\
         <input name=\"user\"> <input name=\"password\" type=\"password\">\n\
         <button>Sign in</button>\n</form></body></html>\n"
    )
}

/// 32 digits: random ones and their seal.
fn sealed(seal: Seal, setup: &Setup, random: &mut Random) -> String {
    let drawn = random.next_u64();
    format!("{drawn:016x}{:016x}", seal_of(seal, drawn, setup))
}

fn holds(seal: Seal, text: &str, setup: &Setup) -> bool {
    let number = |part: Option<&str>| part.and_then(|part| u64::from_str_radix(part, 16).ok());
    match (text.len(), number(text.get(..16)), number(text.get(16..))) {
        (32, Some(drawn), Some(mark)) => mark == seal_of(seal, drawn, setup),
        _ => false,
    }
}

fn seal_of(seal: Seal, drawn: u64, setup: &Setup) -> u64 {
    let owner = drawn ^ (seal as u64).rotate_left(17);
    Random::for_owner(setup.options.seed, owner).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, TargetKind};

    fn say(what: What, proof: Option<&str>, form: bool, body: &str) -> (u16, String) {
        let setup = Setup::new(TargetKind::Http, Options::default(), 1).unwrap();
        let call = Call { what, proof: proof.map(str::to_owned), form };
        let said = call.answer(body.as_bytes(), &setup, &mut Random::new(3));
        (said.status, said.body)
    }

    fn part<'a>(text: &'a str, name: &str) -> &'a str {
        let at = text.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
        &text[at..at + 32]
    }

    #[test]
    fn only_a_grant_gives_a_token() {
        let (status, body) = say(What::Authorize, None, false, r#"{"ssoid":"a"}"#);
        assert_eq!(status, 200, "{body}");
        let grant = part(&body, "grant");
        let (status, body) = say(What::Token, None, true, &format!("x=1&grant={grant}"));
        assert_eq!(status, 200, "{body}");
        let token = part(&body, "token").to_owned();
        assert_eq!(say(What::Revoke, Some(&token), false, "").0, 204);
        assert_eq!(say(What::Revoke, Some(grant), false, "").0, 401);
        assert_eq!(say(What::Revoke, None, false, "").0, 401);
        assert_eq!(say(What::Token, None, true, &format!("grant={token}")).0, 400);
        assert_eq!(say(What::Token, None, true, "grant=%zz").0, 400);
        assert_eq!(say(What::Authorize, None, false, "{").0, 400);
    }

    #[test]
    fn a_form_requires_the_token_of_its_page() {
        let (_, page) = say(What::LoginPage, None, false, "");
        let at = page.find("value=\"").unwrap() + 7;
        let csrf = &page[at..at + 32];
        let good = format!("user=a%40b+c&password=p&csrf={csrf}");
        let (status, body) = say(What::Login, None, true, &good);
        assert!(status == 200 && body.contains("a@b c"), "{body}");
        assert_eq!(say(What::Login, None, true, "user=a&password=p&csrf=0").0, 403);
        assert_eq!(say(What::Login, None, false, r#"{"user":"a","password":"wrong"}"#).0, 401);
    }

    #[test]
    fn products_are_at_their_paths() {
        assert!(say(What::Products { page: 2 }, None, false, "").1.contains("\"id\":21"));
        assert_eq!(say(What::Product(0), None, false, "").0, 404);
        assert_eq!(say(What::Product(PRODUCTS), None, false, "").0, 200);
        assert_eq!((page("page=2"), page("x"), page("page=999")), (2, 1, 50));
    }
}
