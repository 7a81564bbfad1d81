//! Elements of a test plan and their properties.

use std::collections::HashSet;

use roxmltree::{Node, TextPos};
use throng_base::Said;

use crate::model::{LeftOut, file_name, name_of};

/// An element of the plan.
#[derive(Clone, Copy)]
pub(super) struct Element<'a, 'i>(pub(super) Node<'a, 'i>);

impl Element<'_, '_> {
    /// The text of a property anywhere in the element.
    pub(super) fn prop(&self, name: &str) -> Option<String> {
        let found = self.0.descendants().find(|node| {
            node.tag_name().name().ends_with("Prop") && node.attribute("name") == Some(name)
        })?;
        Some(found.text().unwrap_or_default().trim().to_string())
    }

    /// The same, if it is not empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        self.prop(name).filter(|text| !text.is_empty())
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.prop(name).as_deref() == Some("true")
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.prop(name)?.parse().ok()
    }

    pub(super) fn class(&self) -> &str {
        self.0.attribute("testclass").unwrap_or_else(|| self.0.tag_name().name())
    }

    pub(super) fn gui(&self) -> &str {
        self.0.attribute("guiclass").unwrap_or_default()
    }

    pub(super) fn name(&self) -> String {
        let name = self.0.attribute("testname").filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or(self.class());
        name.chars().filter(|c| !c.is_control()).take(80).collect()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.0.attribute("enabled") != Some("false")
    }

    pub(super) fn place(&self) -> Said {
        let line = self.0.document().text_pos_at(self.0.range().start).row;
        say!("{}, line {line}", self.name())
    }

    /// It has no equivalent.
    pub(super) fn left_out(&self) -> LeftOut {
        let class = short(self.class());
        LeftOut::new(self.place(), say!("`{class}`"))
    }

    /// Numbers with a name: `<FloatProperty><name>…</name><value>…</value>`.
    pub(super) fn float(&self, name: &str) -> Option<String> {
        let of = |node: &Node<'_, '_>, tag: &str| {
            let child = node.children().find(|child| child.has_tag_name(tag))?;
            Some(child.text()?.trim().to_string())
        };
        let found = self.0.children().find(|node| of(node, "name").as_deref() == Some(name))?;
        of(&found, "value")
    }

    /// The items of a list.
    pub(super) fn items(&self, name: &str) -> Vec<Element<'_, '_>> {
        let collection = self.0.descendants().find(|node| {
            node.has_tag_name("collectionProp") && node.attribute("name") == Some(name)
        });
        let children = collection.into_iter().flat_map(|node| node.children());
        children.filter(Node::is_element).take(2_000).map(Element).collect()
    }

    /// Names and values of a list.
    fn pairs(&self, list: &str, name: &str, value: &str) -> Vec<(String, String)> {
        let pair =
            |one: &Element<'_, '_>| Some((one.given(name)?, one.prop(value).unwrap_or_default()));
        self.items(list).iter().filter_map(pair).collect()
    }

    pub(super) fn arguments(&self) -> Vec<(String, String)> {
        self.pairs("Arguments.arguments", "Argument.name", "Argument.value")
    }

    pub(super) fn headers(&self) -> Vec<(String, String)> {
        self.pairs("HeaderManager.headers", "Header.name", "Header.value")
    }

    /// The file of a CSV data set without its folders, and the name of its table.
    pub(super) fn file(&self) -> Option<(String, String)> {
        let file = file_name(&self.given("filename")?).to_string();
        let table = name_of(file.rsplit_once('.').map_or(&file, |(stem, _)| stem));
        Some((file, table))
    }

    pub(super) fn text(&self) -> String {
        self.0.text().unwrap_or_default().to_string()
    }
}

/// The byte at a position of the parser.
pub(super) fn offset(text: &str, position: TextPos) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(position.row.saturating_sub(1) as usize)
        .map(str::len)
        .sum();
    let line = text.get(before..).unwrap_or_default();
    let column = position.col.saturating_sub(1) as usize;
    (before + line.char_indices().nth(column).map_or(0, |(at, _)| at)).min(text.len())
}

/// The parser is recursive, so nesting is limited before.
pub(super) fn is_too_deep(text: &str) -> bool {
    const DEPTH_MAX: i64 = 1_000;
    let (mut depth, mut rest) = (0_i64, text);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap_or(rest.len());
        match rest.as_bytes().first() {
            Some(b'/') => depth -= 1,
            Some(b'!' | b'?') => {}
            _ if rest[..end].ends_with('/') => {}
            _ => depth += 1,
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

/// The last word of a class: `JSR223Sampler`, `UltimateThreadGroup`.
pub(super) fn short(class: &str) -> String {
    class.rsplit('.').next().unwrap_or(class).chars().take(60).collect()
}

pub(super) fn is_group(class: &str) -> bool {
    class.ends_with("ThreadGroup")
        || class.ends_with("ThreadGroupGui")
        || class == "SetupThreadGroup"
        || class == "PostThreadGroup"
}

pub(super) fn is_controller(class: &str) -> bool {
    class.contains("Controller")
        || matches!(class, "InterleaveControl" | "RunTime")
        || class.contains("ParallelSampler")
}

/// Elements that only show or store results.
pub(super) fn is_listener(class: &str) -> bool {
    let words =
        ["ResultCollector", "Visualizer", "Listener", "Reporter", "Summariser", "DebugSampler"];
    words.iter().any(|word| class.contains(word))
        && !class.contains("BeanShell")
        && !class.contains("JSR223")
}

/// Elements that are read as part of a scope, or that throng implements itself.
pub(super) fn is_understood(class: &str, gui: &str) -> bool {
    match class {
        "HeaderManager"
        | "Arguments"
        | "CSVDataSet"
        | "AuthManager"
        | "CookieManager"
        | "CacheManager"
        | "DNSCacheManager"
        | "ResponseAssertion"
        | "JSONPathAssertion"
        | "DurationAssertion"
        | "SizeAssertion"
        | "JSONPostProcessor"
        | "RegexExtractor"
        | "XPathExtractor"
        | "XPath2Extractor"
        | "HtmlExtractor"
        | "BoundaryExtractor"
        | "ConstantTimer"
        | "UniformRandomTimer"
        | "GaussianRandomTimer"
        | "PoissonRandomTimer"
        | "ConstantThroughputTimer"
        | "PreciseThroughputTimer"
        | "hashTree" => true,
        "ConfigTestElement" => gui.contains("HttpDefaults"),
        class => class.contains("jsonpathextractor") && class.ends_with("Extractor"),
    }
}

/// The variables that extractors set.
pub(super) fn saved(root: Node<'_, '_>) -> HashSet<String> {
    let names = [
        "JSONPostProcessor.referenceNames",
        "RegexExtractor.refname",
        "XPathExtractor.refname",
        "XPathExtractor2.refname",
        "HtmlExtractor.refname",
        "BoundaryExtractor.refname",
        "VAR",
    ];
    let mut saved = HashSet::new();
    for node in root.descendants().filter(|node| node.tag_name().name() == "stringProp") {
        if node.attribute("name").is_some_and(|name| names.contains(&name)) {
            let list = node.text().unwrap_or_default();
            saved.extend(
                list.split(';').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()),
            );
        }
    }
    saved
}

/// The names of columns that a CSV data set declares.
pub(super) fn names(element: &Element<'_, '_>) -> Vec<String> {
    let names = element.prop("variableNames").unwrap_or_default();
    let names = names.split([',', ';']).map(|name| name.trim().to_string());
    names.filter(|name| !name.is_empty()).take(200).collect()
}

/// Names of columns, and the table of each.
pub(super) fn columns(root: Node<'_, '_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let elements = root.descendants().filter(Node::is_element).map(Element);
    for element in elements.filter(|element| element.class() == "CSVDataSet") {
        if let Some((_, table)) = element.file().filter(|_| element.is_enabled()) {
            out.extend(names(&element).into_iter().map(|name| (name, table.clone())));
        }
    }
    out
}
