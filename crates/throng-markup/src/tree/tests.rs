//! Trees of typical and of malicious documents.

mod html5lib;

use super::*;
use crate::fault::Refusal;

/// A tree in one line: `html(head body(p("x")))`.
fn shown(text: &str) -> String {
    let tree = build(text).unwrap();
    check(&tree);
    let mut out = String::new();
    for node in tree.children(ROOT) {
        show(&tree, node, &mut out);
    }
    out.trim_end().replace(" )", ")")
}

fn show(tree: &Tree, node: NodeId, out: &mut String) {
    match tree.kind(node) {
        NodeKind::Text => out.push_str(&format!("{:?} ", tree.text(node))),
        NodeKind::Comment => out.push_str(&format!("!{} ", tree.text(node))),
        NodeKind::Instruction => out.push_str(&format!("?{} ", tree.text(node))),
        NodeKind::Root | NodeKind::Element => {
            out.push_str(tree.text(node));
            for attribute in tree.attributes(node) {
                let (name, value) =
                    (tree.attribute_name(attribute), tree.attribute_value(attribute));
                out.push_str(&format!("[{name}={value}]"));
            }
            if tree.children(node).next().is_some() {
                out.push('(');
                tree.children(node).for_each(|child| show(tree, child, out));
                out.push(')');
            }
            out.push(' ');
        }
    }
}

/// Invariants of every tree.
fn check(tree: &Tree) {
    for node in 1..tree.end() {
        let parent = tree.parent(node).unwrap();
        assert!(parent < node && tree.inside(parent).contains(&node));
        assert!(tree.inside(node).end <= tree.inside(parent).end);
        let expected = tree.previous(node).map_or(parent + 1, |previous| tree.inside(previous).end);
        assert_eq!(node, expected);
        assert_eq!(
            tree.next(node),
            Some(tree.inside(node).end).filter(|next| { *next < tree.inside(parent).end })
        );
    }
    for node in 0..tree.end() {
        let depth = std::iter::successors(tree.parent(node), |node| tree.parent(*node)).count();
        assert!(depth <= usize::from(DEPTH_MAX) + 2);
        let values = tree.attributes(node).map(|at| tree.attribute_value(at).len());
        assert!(tree.text(node).len() + values.sum::<usize>() <= tree.text.len());
    }
}

/// The content of the body.
fn body(text: &str) -> String {
    let all = shown(text);
    let inside = all.strip_prefix("html(head body").unwrap_or_else(|| panic!("{all}"));
    inside.trim_start_matches('(').strip_suffix("))").unwrap_or("").trim_end().to_string()
}

#[test]
fn html_is_repaired_as_in_browsers() {
    for (text, want) in [
        ("hello <b>you</b>", r#""hello " b("you")"#),
        ("<p>a<p>b<div>c", r#"p("a") p("b") div("c")"#),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", r#"ul(li("a") li("b" ul(li("c"))) li("d"))"#),
        ("<dl><dt>a<dd>b<dt>c</dl>", r#"dl(dt("a") dd("b") dt("c"))"#),
        (
            "<table><tr><td>a<td>b<tr><th>c</table>d",
            r#"table(tbody(tr(td("a") td("b")) tr(th("c")))) "d""#,
        ),
        ("<table><thead><td>a<tbody><tr><td>b", r#"table(thead(tr(td("a"))) tbody(tr(td("b"))))"#),
        (
            "<table><td><table><td>a</table>b",
            r#"table(tbody(tr(td(table(tbody(tr(td("a")))) "b"))))"#,
        ),
        ("<tr><td>a<td>b</tr><tr><td>c", r#"tr(td("a") td("b")) tr(td("c"))"#),
        (
            "<select><option>a<option selected>b</select>",
            r#"select(option("a") option[selected=]("b"))"#,
        ),
        ("<b><p>a</b>b</p>c", r#"b(p("ab")) "c""#),
        ("<div><span>a</div>b", r#"div(span("a")) "b""#),
        ("<a href=1>x<a href=2>y</a>", r#"a[href=1]("x") a[href=2]("y")"#),
        (
            "<br/><img src=x><input disabled value='a &amp; b'>",
            "br img[src=x] input[disabled=][value=a & b]",
        ),
        (
            "<script>if (a < b && \"</p>\") {}</script>x",
            r#"script("if (a < b && \"</p>\") {}") "x""#,
        ),
        ("<textarea>\n<b>&lt;</textarea>", r#"textarea("<b><")"#),
        ("<DIV ID=A Class='x y' id=B>T</DIV>", r#"div[id=A][class=x y]("T")"#),
        (
            "<svg viewBox='0 0'><path d=M /><circle/></svg><p>a",
            r#"svg[viewbox=0 0](path[d=M] circle) p("a")"#,
        ),
        ("<svg><path><div>a</div>", r#"svg(path) div("a")"#),
        ("a < b <3 &lt; c<!-- x --><!bogus><?php ?>d", r#""a < b <3 < c" ! x  !bogus "d""#),
        ("<form><form><input></form><p>x", r#"form(input) p("x")"#),
        ("<button>a<button>b", r#"button("a") button("b")"#),
        ("<h1>a<h2>b</h1>c", r#"h1("a") h2("b") "c""#),
        ("<pre>\nx\n</pre>", r#"pre("x\n")"#),
        ("<p>x</body></html><p>y", r#"p("x") p("y")"#),
    ] {
        let got = body(&format!("<body>{text}"));
        assert_eq!(got, want, "{text}");
    }
    let page = "<!DOCTYPE html>\n<html lang=en>\n<head><title>A &amp; B</title>\n<meta charset=utf-8>\
                <script>var a = '<p>';</script></head>\n<body class=home>\n<p>x</body>\n</html>\n";
    assert_eq!(
        shown(page),
        r#"html[lang=en](head(title("A & B") "\n" meta[charset=utf-8] script("var a = '<p>';") "\n") body[class=home]("\n" p("x" "\n\n")))"#
            .replace(r#"("x" "\n\n")"#, "(\"x\\n\\n\")")
    );
    assert_eq!(shown("<title>a</title><p>b"), r#"html(head(title("a")) body(p("b")))"#);
    assert_eq!(shown(""), "");
}

#[test]
fn xml_is_unchanged() {
    for (text, want) in [
        (
            "<?xml version='1.0'?>\n<a:R xmlns:a='u'><Link>x</Link><br/><p>1<p>2</p></p></a:R>",
            r#"a:R[xmlns:a=u](Link("x") br p("1" p("2")))"#,
        ),
        ("<xml><code><![CDATA[a < b &amp;]]></code></xml>", r#"xml(code("a < b &amp;"))"#),
        ("<r>a<![CDATA[b]]>&lt;c&#x21;</r>", r#"r("ab<c!")"#),
        ("<?xml version='1.0'?><!DOCTYPE r [<!ENTITY x 'y'>]><r>&x;</r>", r#"r("&x;")"#),
        ("<r><?go on?><!-- c --><A a='1' b=\"2\"/></r>", "r(?go on ! c  A[a=1][b=2])"),
        ("<r><a>1</b></a></r>", r#"r(a("1"))"#),
        ("<r><a><b>1</a>2</r>", r#"r(a(b("1")) "2")"#),
    ] {
        assert_eq!(shown(text), want, "{text}");
    }
    for html in ["<?xml version='1.0'?><!DOCTYPE html><P>", "<div>", "x", "<!-- --><!doctype HTML>"]
    {
        assert!(build(html).unwrap().is_html(), "{html}");
    }
    for xml in
        ["<?xml version='1.0'?><title/>", "<svg/>", "<rss/>", "<soap:Envelope>", "<!DOCTYPE x>"]
    {
        assert!(!build(xml).unwrap().is_html(), "{xml}");
    }
}

#[test]
fn malicious_documents_are_processed_quickly() {
    let many = |part: &str| part.repeat((24 << 10) / part.len());
    for part in [
        "<div>",
        "<b>",
        "<x>",
        "</x>",
        "</div>",
        "<p>",
        "<ul><li>",
        "<table><td>",
        "<a><b></a>",
        "<i><b></i>",
        "<a href=",
        "<a \"",
        "<!--",
        "<![CDATA[",
        "<!doctype [",
        "<script>",
        "</a '",
        "&",
        "&#",
        "&amp",
        "<",
        "</",
        "<?",
        "<svg>",
        "<svg><foreignobject>",
        "<select>",
        "<title>",
        "<table><b>",
        "<template>",
        "<h1><a>",
        "<button><p>",
        "<plaintext>",
        "\u{e9}<\u{e9}",
    ] {
        for begin in ["", "<?xml version='1.0'?><r>", "<!doctype html>", "<body><table>"] {
            match build(&format!("{begin}{}", many(part))) {
                Ok(tree) => check(&tree),
                Err(refusal) => assert_eq!(refusal, Refusal::TooManyNodes),
            }
        }
    }
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=1")).collect();
    let tree = build(&format!("<p{attributes}>x")).unwrap();
    assert_eq!(tree.inner_text(ROOT), "x");
    let deep = "<e>".repeat(100_000) + "x" + &"</e>".repeat(100_000) + "<f/>";
    let tree = build(&format!("<r>{deep}</r>")).unwrap();
    assert_eq!((tree.end(), tree.inner_text(ROOT)), (100_004, "x".to_string()));
    assert_eq!(tree.parent(tree.end() - 1), Some(1));
    check(&tree);
}

#[test]
fn fuzz_every_document_is_a_tree() {
    let good: [&[u8]; 6] = [
        b"<!DOCTYPE html><html><head><title>x</title></head><body class='a b'><p>x &amp; y<p>z",
        b"<table><caption>x<tr><td><ul><li>a<li>b</ul><select><option>1<option>2</select></table>",
        b"<?xml version=\"1.0\"?><s:E xmlns:s='u'><s:B><![CDATA[x]]><!-- c --><a b='c'/></s:B></s:E>",
        b"<b><i><a href=x>t</b></i></a><svg><foreignObject><p>x</svg><script>a</script><textarea>",
        b"<form><button><h1><h2></form></h1><dl><dt><dd></dl><template><tr></template><br></p></li>",
        b"<html><head><noscript><link></noscript><style>a{}</style><frameset><frame></frameset>",
    ];
    throng_fuzz::mutations(&good, |input, _| {
        let text = String::from_utf8_lossy(input);
        check(&build(&text).unwrap());
    });
}
