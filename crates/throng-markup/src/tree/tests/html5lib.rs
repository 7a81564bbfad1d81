//! The tree construction cases of html5lib (github.com/html5lib/html5lib-tests), from the source of
//! Python's package `html5rdf`.

use std::collections::BTreeMap;

use super::*;

/// Cases in which our tree differs, by file and number: exactly these. They concern intentional
/// omissions, which can take quadratic time or do not help to find values:
///
/// - overlapping formatting elements are not reopened (adoption, 13.2.6.4.7),
/// - elements that are not allowed in a table stay in place (foster parenting, 13.2.6.1),
/// - attributes of a second `html` or `body` are not added to those of the first,
/// - comments, blanks and elements after `</head>`, `</body>` and `</html>` stay in the open
///   element,
/// - framesets, which contain no text; content that a `select` ignores; NUL in text,
/// - integration points of SVG and MathML, except `foreignObject`,
/// - a processing instruction is skipped, where a browser creates a comment.
const DIFFERENT: &str = include_str!("html5lib.txt");

struct Case {
    data: String,
    /// The tree in lines, as far as we claim to build it.
    tree: Vec<String>,
}

/// The cases of complete documents that no script changes.
fn cases(text: &str) -> Vec<Option<Case>> {
    let text = format!("\n{text}");
    text.split("\n#data\n").skip(1).map(case).collect()
}

fn case(text: &str) -> Option<Case> {
    let (data, rest) = text.split_once("\n#errors").or_else(|| text.split_once("#errors"))?;
    let (between, tree) = rest.split_once("\n#document\n")?;
    let left_out = between.contains("#document-fragment") || between.contains("#script-on");
    let lines = joined(tree.trim_end_matches('\n'));
    (!left_out).then(|| Case { data: data.to_string(), tree: ours(lines) })
}

/// The lines of a tree; a text may contain line feeds.
fn joined(tree: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in tree.split('\n') {
        match line.strip_prefix("| ") {
            Some(line) => lines.push(line.to_string()),
            None => lines.last_mut().expect("a line").extend(["\n", line]),
        }
    }
    lines
}

/// Intentional omissions: document types, namespaces with the case of their names, and the separate
/// document inside of a template.
fn ours(lines: Vec<String>) -> Vec<String> {
    let mut content: Vec<usize> = Vec::new();
    let mut tree = Vec::new();
    for line in lines {
        let depth = line.len() - line.trim_start_matches(' ').len();
        content.retain(|above| depth > *above);
        let text = &line[depth..];
        let depth = depth - 2 * content.len();
        if text == "content" {
            content.push(depth + 2 * content.len());
        } else if !text.starts_with("<!DOCTYPE") {
            let element = text.strip_prefix('<').filter(|name| !name.starts_with('!'));
            let text = match element {
                Some(name) => {
                    let name = name.strip_prefix("svg ").unwrap_or(name);
                    format!("<{}", name.strip_prefix("math ").unwrap_or(name)).to_lowercase()
                }
                None => without_prefix(text),
            };
            tree.push(format!("{}{text}", " ".repeat(depth)));
        }
    }
    tree
}

fn without_prefix(text: &str) -> String {
    for prefix in ["xlink", "xml", "xmlns"] {
        if let Some(name) = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(' ')) {
            return format!("{prefix}:{name}");
        }
    }
    match text.split_once('=') {
        Some((name, value)) if !text.starts_with(['"', '<']) => {
            format!("{}={value}", name.to_lowercase())
        }
        _ => text.to_string(),
    }
}

/// Our tree in the same format.
fn lines(tree: &Tree, node: NodeId, depth: usize, out: &mut Vec<String>) {
    let space = " ".repeat(2 * depth);
    let text = tree.text(node);
    match tree.kind(node) {
        NodeKind::Text => out.push(format!("{space}\"{text}\"")),
        NodeKind::Comment => out.push(format!("{space}<!-- {text} -->")),
        NodeKind::Instruction => out.push(format!("{space}<?{text}>")),
        NodeKind::Root | NodeKind::Element => {
            out.push(format!("{space}<{text}>"));
            let named = |at| (tree.attribute_name(at), tree.attribute_value(at));
            let attributes: BTreeMap<&str, &str> = tree.attributes(node).map(named).collect();
            let attributes = attributes.iter();
            out.extend(attributes.map(|(name, value)| format!("{space}  {name}=\"{value}\"")));
        }
    }
    tree.children(node).for_each(|child| lines(tree, child, depth + 1, out));
}

fn built(text: &str) -> Vec<String> {
    let tree = build::read(text, true).expect("a tree");
    let mut out = Vec::new();
    tree.children(ROOT).for_each(|node| lines(&tree, node, 0, &mut out));
    out
}

/// The numbers of the cases in which our tree differs, by file.
fn different() -> BTreeMap<String, Vec<usize>> {
    let package = throng_fuzz::python_packages("html5rdf").join("html5rdf");
    let folder = package.join("tests/testdata/tree-construction");
    let files = std::fs::read_dir(folder).expect("the suite");
    let mut different = BTreeMap::new();
    for file in files.map(|file| file.expect("a file").path()) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".dat"))
        else {
            continue;
        };
        let cases = cases(&std::fs::read_to_string(&file).expect("a text"));
        let is_other =
            |case: &Option<Case>| case.as_ref().is_some_and(|case| built(&case.data) != case.tree);
        let failed = cases.iter().enumerate().filter(|(_, case)| is_other(case));
        different.insert(name.to_string(), failed.map(|(at, _)| at).collect());
    }
    different.retain(|_, failed: &mut Vec<usize>| !failed.is_empty());
    different
}

#[test]
fn trees_match_html5lib() {
    let want = DIFFERENT.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(": ")?;
        Some((name, numbers.split(' ').filter_map(|number| number.parse().ok()).collect()))
    });
    let want: BTreeMap<&str, Vec<usize>> = want.collect();
    let found = different();
    let found: BTreeMap<&str, Vec<usize>> =
        found.iter().map(|(name, failed)| (name.as_str(), failed.clone())).collect();
    let line = |(name, failed): (&&str, &Vec<usize>)| {
        let numbers: Vec<String> = failed.iter().map(ToString::to_string).collect();
        format!("{name}: {}\n", numbers.join(" "))
    };
    assert!(found == want, "the list is now\n{}", found.iter().map(line).collect::<String>());
}
