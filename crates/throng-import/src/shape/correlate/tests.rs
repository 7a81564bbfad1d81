//! Which values are recognized as the same.

use super::*;
use crate::model::{Item, Session};

fn exchange(method: &str, url: &str, body: &str, response: &str) -> Exchange {
    let kind = if response.starts_with('<') { "text/html" } else { "application/json" };
    Exchange {
        method: method.into(),
        url: url.into(),
        body: Json::of_body(&body.into()).map_or(Body::None, Body::Json),
        response: Some(Response {
            status: Some(200),
            content_type: kind.into(),
            body: response.into(),
            ..Response::default()
        }),
        ..Exchange::default()
    }
}

/// The sent requests and the saves, one per line.
fn correlated(exchanges: Vec<Exchange>) -> String {
    let steps = exchanges.into_iter().map(|one| Item::Http(Box::new(one))).collect();
    let session = Session { steps, ..Session::default() };
    let mut recording = Recording { sessions: vec![session], ..Recording::default() };
    let forms = super::super::forms::find(&mut recording);
    correlate(&mut recording, &forms);
    let mut out = String::new();
    recording.each_exchange(|one| {
        let body = match &one.body {
            Body::Json(json) => json.compact().to_string(),
            Body::Form(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                pairs.join(" ")
            }
            _ => String::new(),
        };
        out.push_str(format!("{} {body}", one.url).trim_end());
        one.headers.iter().for_each(|(name, value)| out.push_str(&format!(" {name}: {value}")));
        one.saves.iter().for_each(|(name, save)| out.push_str(&format!(" ->{name} {save:?}")));
        out.push('\n');
    });
    out
}

#[test]
fn a_token_and_an_id_are_saved_at_their_source() {
    let login =
        exchange("POST", "/login", r#"{"user":"ann"}"#, r#"{"data":{"token":"abc-123-xyz"}}"#);
    let mut order = exchange("POST", "/orders", r#"{"item":7}"#, r#"{"id":42,"item":7}"#);
    order.headers.push(("Authorization".into(), "Bearer abc-123-xyz".into()));
    let look = exchange("GET", "/orders/42?t=abc-123-xyz", "", "{}");
    let pay = exchange("POST", "/pay", r#"{"order_id":42,"quantity":42}"#, "{}");
    let want = "/login {\"user\":\"ann\"} ->token Json(\"data.token\")\n\
                /orders {\"item\":7} Authorization: Bearer ${saved.token} ->order_id Json(\"id\")\n\
                /orders/${saved.order_id}?t=${saved.token}\n\
                /pay {\"order_id\":${saved.order_id},\"quantity\":42}\n";
    assert_eq!(correlated(vec![login, order, look, pay]), want);
}

#[test]
fn a_value_that_was_sent_before_is_not_saved() {
    let search = exchange("GET", "/search?q=teapot-2024-blue", "", r#"{"q":"teapot-2024-blue"}"#);
    let again = exchange("GET", "/search?q=teapot-2024-blue&page=2", "", "{}");
    let want = "/search?q=teapot-2024-blue\n/search?q=teapot-2024-blue&page=2\n";
    assert_eq!(correlated(vec![search, again]), want);
}

#[test]
fn short_numbers_match_only_with_the_same_noun() {
    let list = exchange("GET", "/products", "", r#"[{"id":1},{"id":2}]"#);
    let product = exchange("GET", "/products/2", "", "{}");
    let page = exchange("GET", "/pages/1?size=2", "", "{}");
    let want =
        "/products ->product_id Json(\"[1].id\")\n/products/${saved.product_id}\n/pages/1?size=2\n";
    assert_eq!(correlated(vec![list, product, page]), want);
}

#[test]
fn hidden_fields_and_odd_names_are_found() {
    let html = "<form><input type='hidden' name=\"csrf_token\" value='Zm9v+YmFy/=='>\
                <meta name=csrf-token content=\"q1w2e3r4\"></form>";
    let page = exchange("GET", "/login", "", html);
    let mut post = exchange("POST", "/login", "", r#"{"a b":{"x-y":"0123456789abcdef"}}"#);
    post.body = Body::Form(vec![("csrf_token".into(), "Zm9v+YmFy/==".into())]);
    post.headers.push(("X-CSRF-Token".into(), "q1w2e3r4".into()));
    let last = exchange("GET", "/x?k=0123456789abcdef", "", "{}");
    // Headers are read before the body, and saves are in page order.
    let want = "/login ->csrf_token Css(\"input[name=csrf_token]@value\") ->csrf_token_2 \
                Css(\"meta[name=csrf-token]@content\")\n\
                /login csrf_token=${saved.csrf_token} X-CSRF-Token: ${saved.csrf_token_2} ->x_y \
                JsonPath(\"$['a b']['x-y']\")\n/x?k=${saved.x_y}\n";
    assert_eq!(correlated(vec![page, post, last]), want);
}

#[test]
fn a_redirect_is_saved_as_a_whole() {
    let mut create = exchange("POST", "/jobs", "", "");
    create.response.as_mut().unwrap().headers =
        vec![("Location".into(), "https://a.example/jobs/8f3a9c21".into())];
    let look = exchange("GET", "/jobs/8f3a9c21", "", "{}");
    let want = "/jobs ->job_url Header(\"location\")\n${saved.job_url}\n";
    assert_eq!(correlated(vec![create, look]), want);
}

#[test]
fn a_field_is_matched_by_name_on_the_latest_page() {
    let page = |revision: &str, time: &str| {
        let html = format!(
            "<form><input type=hidden name=started value={time}>\
             <input type=hidden name=changed value={time}>\
             <input type=hidden name=revision value='{revision}'>\
             <input type=hidden name=format value=wiki></form>"
        );
        exchange("GET", "/edit", "", &html)
    };
    let post = |revision: &str, time: &str| {
        let mut post = exchange("POST", "/edit", "", "");
        let fields =
            [("started", time), ("changed", time), ("revision", revision), ("format", "wiki")];
        let fields = fields.map(|(name, value)| (name.to_string(), value.into()));
        post.body = Body::Form(fields.into());
        post
    };
    let (one, two) = ("20260131120000", "20260131120007");
    let steps = vec![page("", one), post("", one), page("2", two), post("2", two)];
    let saves = "/edit ->started Css(\"input[name=started]@value\") \
                 ->changed Css(\"input[name=changed]@value\") \
                 ->revision Css(\"input[name=revision]@value\")\n";
    let sent = "/edit started=${saved.started} changed=${saved.changed} \
                revision=${saved.revision} format=wiki\n";
    assert_eq!(correlated(steps), format!("{saves}{sent}{saves}{sent}"));
}

#[test]
fn the_name_of_a_created_resource_is_saved() {
    let lost = exchange("GET", "/api/files/new.txt", "", "{}");
    let mut create =
        exchange("POST", "/api/files", r#"{"type":"file"}"#, r#"{"name":"new.txt","type":"file"}"#);
    create.response.as_mut().unwrap().status = Some(201);
    let put = exchange("PUT", "/api/files/new.txt", r#"{"name":"new.txt","type":"file"}"#, "{}");
    let want = "/api/files/new.txt\n\
                /api/files {\"type\":\"file\"} ->file_name Json(\"name\")\n\
                /api/files/${saved.file_name} {\"name\":${saved.file_name},\"type\":\"file\"}\n";
    assert_eq!(correlated(vec![lost, create, put]), want);
}

#[test]
fn a_redirect_has_precedence_over_a_link() {
    let redirect = |method: &str, url: &str| {
        let mut exchange = exchange(method, url, "", "");
        exchange.response.as_mut().unwrap().headers = vec![("Location".into(), "/issues/7".into())];
        exchange
    };
    let page = "<a href=/issues/7>This</a>";
    let steps = vec![
        redirect("POST", "/issues"),
        exchange("GET", "/issues/7", "", page),
        redirect("POST", "/issues/7"),
        exchange("GET", "/issues/7", "", page),
        exchange("GET", "/issues/7", "", page),
    ];
    let want = "/issues ->issue_url Header(\"location\")\n${saved.issue_url}\n\
                ${saved.issue_url} ->issue_url Header(\"location\")\n\
                ${saved.issue_url}\n${saved.issue_url}\n";
    assert_eq!(correlated(steps), want);
}

#[test]
fn a_cookie_sent_by_a_script_is_decoded_as_recorded() {
    let mut page = exchange("GET", "/", "", "<html>");
    let set = "XSRF-TOKEN=eyJpdiI6Im1Qd2c%3D; path=/\ncsrftoken=a1b2c3d4e5f6g7h8; path=/";
    let response = page.response.as_mut().expect("it has one");
    response.headers.push(("Set-Cookie".into(), set.into()));
    let mut post = exchange("POST", "/a?t=eyJpdiI6Im1Qd2c%3D", r#"{"x":1}"#, "{}");
    post.headers.push(("X-XSRF-TOKEN".into(), "eyJpdiI6Im1Qd2c=".into()));
    post.headers.push(("X-CSRFToken".into(), "a1b2c3d4e5f6g7h8".into()));
    let saves = "->xsrf_token Cookie { name: \"XSRF-TOKEN\", is_encoded: true } \
                 ->csrftoken Cookie { name: \"csrftoken\", is_encoded: false }";
    let url = "/a?t=${url.encode(url.decode(saved.xsrf_token))}";
    let headers = "X-XSRF-TOKEN: ${url.decode(saved.xsrf_token)} X-CSRFToken: ${saved.csrftoken}";
    let want = format!("/ {saves}\n{url} {{\"x\":1}} {headers}\n");
    assert_eq!(correlated(vec![page, post]), want);
}
