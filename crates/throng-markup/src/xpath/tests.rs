//! Expressions on typical and on malicious responses.

mod libxml2;

use super::*;
use crate::Refusal;

const LOGIN: &[u8] = b"<!DOCTYPE html>
<html lang=\"en-GB\">
<head><title> Sign in \xe2\x80\x93 Shop </title><meta name=csrf-token content=\"m-1\"></head>
<body>
<h1 class=\"big\">Welcome <b>back</b></h1>
<form id=login method=post action=\"/session?next=%2F&amp;a=1\">
  <input type=hidden name=csrf value=\"t0k&amp;en\">
  <input name=user><input name=pass type=password>
  <button>Sign in</button>
</form>
<table id=prices><tr><td>Tea<td>3.50<tr><td>Cake<td>4<tr><td>Air<td>free</table>
<ul><li>one<li class=\"on x\">two<li>three</ul>
</body></html>";

const SOAP: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>
<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\">
  <soap:Header/>
  <soap:Body>
    <m:GetPriceResponse xmlns:m=\"urn:shop\" m:version='2'>
      <m:Price currency=\"EUR\">34.5</m:Price>
      <m:Price currency=\"CNY\">270</m:Price>
      <Note><![CDATA[a < b]]></Note>
    </m:GetPriceResponse>
  </soap:Body>
</soap:Envelope>";

fn all(path: &str, body: &[u8]) -> Vec<String> {
    let page = Page::new(body);
    let path = XPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
    let values: Vec<String> = path.all(&page).into_iter().map(text).collect();
    assert_eq!(path.first(&page).map(text), values.first().cloned());
    assert_eq!(page.refusal(), None);
    values
}

fn text(value: Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Int(number) => format!("={number}"),
        Value::Float(number) => format!("={number}"),
        Value::Bool(value) => format!("={value}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn expressions_find_nodes_of_pages() {
    for (path, want) in [
        ("//form[@id='login']//input[@name='csrf']/@value", &["t0k&en"][..]),
        ("//meta[@name=\"csrf-token\"]/@content", &["m-1"]),
        ("/html/head/title", &["Sign in – Shop"]),
        ("//h1", &["Welcome back"]),
        ("//h1/text()", &["Welcome "]),
        ("//H1/B", &["back"]),
        ("/html/body/form/@action", &["/session?next=%2F&a=1"]),
        ("//form/input/@name", &["csrf", "user", "pass"]),
        ("//input[last()]/@name", &["pass"]),
        ("//input[2]/@name", &["user"]),
        ("(//li)[2]", &["two"]),
        ("//li[position() > 1]", &["two", "three"]),
        ("//li[contains(concat(' ', @class, ' '), ' on ')]", &["two"]),
        ("//table[@id='prices']/tbody/tr[2]/td[2]", &["4"]),
        ("//td[.='Tea']/following-sibling::td", &["3.50"]),
        ("//td[text()='Cake']/../td[2]", &["4"]),
        ("//tr[td='Cake']/preceding-sibling::tr/td[1]", &["Tea"]),
        ("//tr[td > 3.6]/td[1]", &["Cake"]),
        ("count(//td)", &["=6"]),
        ("sum(//tr[position()<3]/td[2]) * 2", &["=15"]),
        ("sum(//td)", &[]),
        ("boolean(//form)", &["=true"]),
        ("//form or //nothing", &["=true"]),
        ("//nothing", &[]),
        ("string(//nothing)", &[""]),
        ("normalize-space(//title)", &["Sign in – Shop"]),
        ("//ul/li[1] | //h1 | //ul/li[1]", &["Welcome back", "one"]),
        ("//b/ancestor::*[1]/@class", &["big"]),
        ("name(//b/ancestor::*[last()])", &["html"]),
        ("//form/*[self::button]", &["Sign in"]),
        ("//button/preceding::input[1]/@name", &["pass"]),
        ("//h1/following::button", &["Sign in"]),
        ("id('login')/input[1]/@type", &["hidden"]),
        ("//*[@type='password']/@*[name()='name']", &["pass"]),
        ("//li[lang('en')][1]", &["one"]),
        ("//input/@name[.='user']/..//@name", &["user"]),
        ("//td[string-length(.) = 3]", &["Tea", "Air"]),
    ] {
        assert_eq!(all(path, LOGIN), want, "{path}");
    }
}

#[test]
fn expressions_find_nodes_of_xml() {
    for (path, want) in [
        ("//Price", &["34.5", "270"][..]),
        ("//m:Price[@currency='CNY']", &["270"]),
        ("/soap:Envelope/soap:Body//Note", &["a < b"]),
        ("/Envelope/Body/GetPriceResponse/@version", &["2"]),
        ("//n:Price", &[]),
        ("//price", &[]),
        ("//*[local-name()='Price'][2]/@currency", &["CNY"]),
        ("namespace-uri(//Price)", &["urn:shop"]),
        ("name(//Price)", &["m:Price"]),
        ("//soap:*[1]/Header", &[""]),
        ("sum(//Price)", &["=304.5"]),
        ("//Price > 200", &["=true"]),
        ("//Price[. > 200]/@currency", &["CNY"]),
        ("//Price = //Price[2]", &["=true"]),
        ("//Price != 270", &["=true"]),
        ("not(//Price = 3)", &["=true"]),
        ("count(//@*)", &["=3"]),
    ] {
        assert_eq!(all(path, SOAP), want, "{path}");
    }
}

#[test]
fn values_follow_the_standard() {
    for (path, want) in [
        ("1 + 2 * 3 - 4 div 2", "=5"),
        ("7 mod 3 - -2", "=3"),
        ("-(5 mod -2)", "=-1"),
        ("1 < 2 and 2 <= 2 or false()", "=true"),
        ("'a' = \"a\" and 'a' != 'b'", "=true"),
        ("'2' > 1", "=true"),
        ("substring('12345', 2, 3)", "234"),
        ("substring('12345', 1.5, 2.6)", "234"),
        ("substring('12345', -42, 1 div 0)", "12345"),
        ("substring('12345', 0 div 0, 3)", ""),
        ("substring-before('1999/04', '/')", "1999"),
        ("substring-after('1999/04', '/')", "04"),
        ("translate('--aaa--', 'abc-', 'ABC')", "AAA"),
        ("concat(1, '-', 0.5, '-', true(), '-', 1 div 0)", "1-0.5-true-Infinity"),
        ("string(0 div 0)", "NaN"),
        ("round(2.5) + round(-2.5) + floor(1.9) + ceiling(1.1)", "=4"),
        ("starts-with('abc', 'ab') and ends-with('abc', 'bc')", "=true"),
        ("upper-case(lower-case('ÄB'))", "ÄB"),
        ("string-length('héé')", "=3"),
        ("number('  12.50 ')", "=12.5"),
        ("boolean('') or boolean(0)", "=false"),
        ("* * 2 = 0", "=false"),
        (".5 + 1.", "=1.5"),
    ] {
        assert_eq!(all(path, b"<a/>"), [want], "{path}");
    }
    assert_eq!(all("number('1e3')", b"<a/>"), [""; 0]);
}

#[test]
fn errors_have_a_position() {
    for (path, start, end) in [
        ("", 0, 0),
        ("//", 2, 2),
        ("//a[", 4, 4),
        ("//a]", 3, 4),
        ("//a[@id='x]", 8, 11),
        ("//a[1", 5, 5),
        ("a/nope::b", 2, 6),
        ("nope(1)", 0, 4),
        ("count()", 0, 5),
        ("a/count(b)", 2, 7),
        ("$x", 0, 1),
        ("a b", 2, 3),
        ("1 +", 3, 3),
        ("a/%", 2, 3),
        ("concat('a' 'b')", 11, 14),
    ] {
        let error = XPath::parse(path).unwrap_err();
        assert_eq!((error.start, error.end), (start, end), "{path}: {error:?}");
        assert!(!error.message.is_empty() && !error.help.is_empty());
    }
    for long in ["(".repeat(2_000), "1+".repeat(2_000) + "1", "a[".repeat(1_000), "-".repeat(4_000)]
    {
        assert!(XPath::parse(&long).is_err());
    }
    assert!(XPath::parse(&("/a".repeat(2_000))).is_ok());
}

#[test]
fn malicious_documents_are_processed_quickly() {
    let deep = "<e>".repeat(100_000) + "x" + &"</e>".repeat(100_000);
    let page = Page::new(deep.as_bytes());
    let first = |path: &str| XPath::parse(path).unwrap().first(&page);
    assert_eq!(first("//e").map(text).as_deref(), Some("x"));
    assert_eq!(first("count(//e)").map(text).as_deref(), Some("=100000"));
    assert_eq!(page.refusal(), None);
    for path in [
        "//e[.//e[.//e]]/ancestor::e//e",
        "//e[count(preceding::e) > 1]",
        "//e[contains(., 'y')]",
        "//e[count(//e) = 1]",
    ] {
        assert_eq!(first(path), None, "{path}");
        assert_eq!(page.refusal(), Some(Refusal::TooMuchWork), "{path}");
    }
    let large = vec![b'x'; crate::PAGE_BYTES_MAX + 1];
    let page = Page::new(&large);
    assert_eq!(XPath::parse("//e").unwrap().first(&page), None);
    assert_eq!(page.refusal(), Some(Refusal::TooLarge));
    let many = "<a/>".repeat(1 << 19);
    let page = Page::new(many.as_bytes());
    assert_eq!(XPath::parse("//e").unwrap().first(&page), None);
    assert_eq!(page.refusal(), Some(Refusal::TooManyNodes));
}

#[test]
fn fuzz_any_path_on_any_document() {
    let good: [&[u8]; 8] = [
        b"//form[@id='login']//input[@name='csrf']/@value",
        b"/html/body//*[self::a or self::b][position() < last()]/..",
        b"count(//a) * 2 + sum(//b) div -3 mod 2",
        b"concat(substring-before(//a, '/'), translate('abc', 'b', 'x'))",
        b"//a | //b/@* | ancestor-or-self::node()[1]",
        b"//soap:*[namespace-uri()='x']/text()[normalize-space()]",
        b"//td[.='x']/following-sibling::td[last()]/preceding::*[2]",
        b"(//li)[2][contains(concat(' ', @class), 'on')] != 'x'",
    ];
    throng_fuzz::mutations(&good, |input, _| {
        let path = String::from_utf8_lossy(input);
        match XPath::parse(&path) {
            Ok(path) => drop((path.all(&Page::new(LOGIN)), path.first(&Page::new(SOAP)))),
            Err(error) => assert!(path.get(error.start..error.end).is_some(), "{path}: {error:?}"),
        }
    });
    let paths: Vec<XPath> =
        good.iter().map(|path| XPath::parse(str::from_utf8(path).unwrap()).unwrap()).collect();
    throng_fuzz::mutations(&[LOGIN, SOAP], |input, random| {
        let page = Page::new(input);
        let path = &paths[random.below(paths.len() as u64) as usize];
        assert_eq!(path.first(&page), path.all(&page).first().cloned());
    });
}
