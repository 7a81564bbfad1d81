//! Selectors on typical and on malicious responses.

mod others;

use super::*;

const LOGIN: &[u8] = b"<!DOCTYPE html><html><head><title>Sign in</title>
<meta name=csrf-token content=m-1></head><body>
<nav><a href='/' class='logo'>Shop</a> <a href='https://x.example/a@b'>Mail</a></nav>
<form id=login data-kind='Sign-In now' lang=en-GB>
  <input type=hidden name=csrf value='t0k&amp;en'>
  <label>User <input name=user required></label>
  <input name=pass type=password disabled>
  <select name=role><option>guest<option selected>admin</select>
  <button class='btn btn-primary'> Sign <i>in</i> </button>
</form>
<ul><li>one<li class=on>two<li>three<li>four</ul><p></p><p>end</p>
</body></html>";

fn all(selector: &str, body: &[u8]) -> Vec<String> {
    let page = Page::new(body);
    let css = Css::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error:?}"));
    let text = |value| match value {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let values: Vec<String> = css.all(&page).into_iter().map(text).collect();
    assert_eq!(css.first(&page).map(text), values.first().cloned());
    assert_eq!(page.refusal(), None);
    values
}

#[test]
fn selectors_find_elements_of_pages() {
    for (selector, want) in [
        ("form#login input[name=csrf]@value", &["t0k&en"][..]),
        ("meta[name='csrf-token']@content", &["m-1"]),
        ("title", &["Sign in"]),
        ("button.btn.btn-primary", &["Sign in"]),
        ("FORM > input@NAME", &["csrf", "pass"]),
        ("form input@name", &["csrf", "user", "pass"]),
        ("a@href", &["/", "https://x.example/a@b"]),
        ("a[href=\"https://x.example/a@b\"]", &["Mail"]),
        ("a[href$='@b']@href", &["https://x.example/a@b"]),
        ("a[href^=https]", &["Mail"]),
        ("a[href*='x.ex']", &["Mail"]),
        ("[data-kind~=now]@id", &["login"]),
        ("[data-kind^='sign' i]@id", &["login"]),
        ("[data-kind^='sign']@id", &[]),
        ("[lang|=en]@id", &["login"]),
        ("li:nth-child(2)", &["two"]),
        ("li:nth-child(odd)", &["one", "three"]),
        ("li:nth-child(-n+2)", &["one", "two"]),
        ("li:nth-last-child(2n + 1)", &["two", "four"]),
        ("li:first-child, li:last-child", &["one", "four"]),
        ("input:nth-of-type(2)@name", &["pass"]),
        ("label input:only-child@name", &["user"]),
        ("li.on + li", &["three"]),
        ("li.on ~ li", &["three", "four"]),
        ("li:not(.on):not(:last-child)", &["one", "three"]),
        ("form:has(> input[type=password]) button", &["Sign in"]),
        ("li:has(+ li.on)", &["one"]),
        ("body > :is(ul, ol) > li.on", &["two"]),
        ("option:checked", &["admin"]),
        ("input:disabled@name", &["pass"]),
        ("form > input:enabled@name", &["csrf"]),
        ("p:empty", &[""]),
        ("p:not(:empty)", &["end"]),
        (":root > body > p + p", &["end"]),
        ("li:contains('thr')", &["three"]),
        ("input[required]@required", &[""]),
        ("form *@missing", &[]),
        ("ul *", &["one", "two", "three", "four"]),
    ] {
        assert_eq!(all(selector, LOGIN), want, "{selector}");
    }
    let soap = b"<s:E xmlns:s='u'><s:Body><Price c='EUR'>1</Price><price>2</price></s:Body></s:E>";
    for (selector, want) in [
        ("Body > Price", &["1"][..]),
        ("s|Body price", &["2"]),
        ("x|Body price", &[]),
        ("Price@c", &["EUR"]),
        ("[c]", &["1"]),
    ] {
        assert_eq!(all(selector, soap), want, "{selector}");
    }
    let odd = b"<p id='a.b' class='1x \xc3\xa9'>1<p id='-x'>2";
    for selector in ["#a\\.b", ".\\31 x", ".\u{e9}", "[id='a\\2e b']"] {
        assert_eq!(all(selector, odd), ["1"], "{selector}");
    }
    assert_eq!(all("#-x", odd), ["2"]);
}

#[test]
fn errors_have_a_position() {
    for (selector, start, end) in [
        ("", 0, 0),
        ("@href", 0, 0),
        ("> a", 1, 2),
        ("a >", 3, 3),
        ("a,", 2, 2),
        ("a[", 2, 2),
        ("a[b=c d]", 6, 7),
        ("a[b='c]", 4, 7),
        ("a[b!=c]", 3, 4),
        ("a:hover", 1, 7),
        ("a::before", 2, 3),
        ("a:nth-child(x)", 12, 13),
        ("a:not(b", 7, 7),
        ("a)", 1, 2),
        ("a..b", 2, 3),
        ("a[b=@]", 4, 5),
        ("1a", 0, 1),
    ] {
        let error = Css::parse(selector).unwrap_err();
        assert_eq!((error.start, error.end), (start, end), "{selector}: {error:?}");
        assert!(!error.message.is_empty() && !error.help.is_empty());
    }
    for long in [":not(".repeat(500), "a>".repeat(1_000) + "a", "a".repeat(5_000)] {
        assert!(Css::parse(&long).is_err());
    }
}

#[test]
fn malicious_documents_are_processed_quickly() {
    let deep = "<e>".repeat(100_000) + "x" + &"</e>".repeat(100_000);
    let page = Page::new(deep.as_bytes());
    let first = |selector: &str| Css::parse(selector).unwrap().first(&page);
    assert_eq!(first("e e"), Some(Value::Text("x".into())));
    assert_eq!(first("e:nth-child(3)"), Some(Value::Text("".into())));
    assert_eq!(page.refusal(), None);
    for selector in ["e e e e e f", "e ~ e ~ e ~ e ~ f e", "e:has(e e f)", "e:contains(y)"] {
        assert_eq!(first(selector), None, "{selector}");
    }
    assert_eq!(page.refusal(), Some(Refusal::TooMuchWork));
}

#[test]
fn fuzz_any_selector_on_any_document() {
    let good: [&[u8]; 6] = [
        b"form#login input[name=csrf]@value",
        b"li:nth-child(2n+1):not(.on, [x~='y' i]) > a ~ b + c",
        b"a:has(> b, + c):is(d, e):empty@href",
        b"s|Body *:first-of-type, :root:contains('x')",
        b"#a\\.b .\\31 x[lang|=en][b^='c'][d$=e][f*=g]",
        b"option:checked:nth-last-of-type(-n+3)",
    ];
    throng_fuzz::mutations(&good, |input, _| {
        let text = String::from_utf8_lossy(input);
        match Css::parse(&text) {
            Ok(css) => drop(css.all(&Page::new(LOGIN))),
            Err(error) => assert!(text.get(error.start..error.end).is_some(), "{text}: {error:?}"),
        }
    });
    let selectors: Vec<Css> =
        good.iter().map(|text| Css::parse(str::from_utf8(text).unwrap()).unwrap()).collect();
    throng_fuzz::mutations(&[LOGIN], |input, random| {
        let page = Page::new(input);
        let css = &selectors[random.below(selectors.len() as u64) as usize];
        assert_eq!(css.first(&page), css.all(&page).first().cloned());
    });
}
