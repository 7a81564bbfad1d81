//! The text of a `.proto` file (proto2 and proto3) to its messages and enums, with full names.
//! Services, options and what is reserved are passed over. The source is the language
//! specifications at protobuf.dev; groups, extensions and editions are refused.

use crate::protocol::values::parse_int;

/// How deep messages may stand in each other.
const DEPTH_MAX: usize = 32;

/// The largest number of a field.
const FIELD_NUMBER_MAX: i128 = (1 << 29) - 1;

#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) package: String,
    /// Paths with their places.
    pub(super) imports: Vec<(String, (usize, usize))>,
    pub(super) messages: Vec<Message>,
    pub(super) enums: Vec<Enum>,
}

#[derive(Debug)]
pub(super) struct Message {
    /// With the package: `shop.Order.Item`.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) values: Vec<(String, i32)>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) ty: String,
    /// The type of the key of a map, whose values `ty` tells.
    pub(super) map_key: Option<String>,
    pub(super) label: Label,
    pub(super) packed: bool,
    /// Where the type stands.
    pub(super) place: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Optional,
    Required,
    Repeated,
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProtoError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) help: &'static str,
    pub(super) place: (usize, usize),
}

pub(super) fn parse(text: &str) -> Result<File, ProtoError> {
    let mut parser =
        Parser { text, at: 0, token: Token::default(), is_3: false, out: File::default() };
    parser.advance()?;
    parser.file()?;
    Ok(parser.out)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    End,
    Word,
    Number,
    Quoted,
    Sign,
}

#[derive(Clone, Copy, Debug, Default)]
struct Token {
    sort: Sort,
    start: usize,
    end: usize,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// The next one.
    token: Token,
    is_3: bool,
    out: File,
}

type Parsed<T> = Result<T, ProtoError>;

const SYNTAX_HELP: &str = "a field is `string name = 1;`; `protoc` tells more about the file";

impl<'t> Parser<'t> {
    fn shown(&self) -> &'t str {
        &self.text[self.token.start..self.token.end]
    }

    fn is(&self, sign: &str) -> bool {
        self.token.sort != Sort::Quoted && self.shown() == sign
    }

    fn fail<T>(
        &self,
        code: &'static str,
        message: String,
        label: &str,
        help: &'static str,
    ) -> Parsed<T> {
        let place = (self.token.start, self.token.end);
        Err(ProtoError { code, message, label: label.to_string(), help, place })
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let label = format!("{what} is expected");
        if self.token.sort == Sort::End {
            return self.fail("bad-proto", "the file ends too early".into(), &label, SYNTAX_HELP);
        }
        let message = format!("`{}` cannot stand here", crate::read::shorten(self.shown()));
        self.fail("bad-proto", message, &label, SYNTAX_HELP)
    }

    fn unsupported<T>(&self, what: &str, help: &'static str) -> Parsed<T> {
        self.fail(
            "proto-feature",
            format!("throng does not know {what} of protobuf"),
            "not here",
            help,
        )
    }

    /// Takes the next token; it is returned.
    fn advance(&mut self) -> Parsed<Token> {
        let before = self.token;
        self.skip_space()?;
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            self.token = Token { sort: Sort::End, start, end: start };
            return Ok(before);
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (sort, length) = match first {
            '"' | '\'' => (Sort::Quoted, self.quoted_length(rest, first)?),
            '0'..='9' => {
                let is_part = |c: char| is_word(c) || c == '.';
                (Sort::Number, rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
            }
            // A name with its dots is one word; a dot before it means that it is a full name.
            'a'..='z' | 'A'..='Z' | '_' | '.' => {
                (Sort::Word, rest.find(|c| !is_word(c) && c != '.').unwrap_or(rest.len()))
            }
            other => (Sort::Sign, other.len_utf8()),
        };
        self.at = start + length;
        self.token = Token { sort, start, end: self.at };
        Ok(before)
    }

    fn skip_space(&mut self) -> Parsed<()> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - trimmed.len();
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(inner) = trimmed.strip_prefix("/*") {
                match inner.find("*/") {
                    Some(end) => end + 4,
                    None => {
                        self.token = Token { sort: Sort::Sign, start: self.at, end: self.at + 2 };
                        let message = "a comment does not end".to_string();
                        return self.fail("bad-proto", message, "it begins here", SYNTAX_HELP);
                    }
                }
            } else {
                return Ok(());
            };
            self.at += length;
        }
    }

    // sentences
    fn quoted_length(&mut self, rest: &str, quote: char) -> Parsed<usize> {
        let mut is_escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if c == quote => return Ok(at + 1),
                _ => {}
            }
        }
        self.token = Token { sort: Sort::Quoted, start: self.at, end: self.at + 1 };
        self.fail("bad-proto", "a text does not end".into(), "it begins here", SYNTAX_HELP)
    }

    fn take(&mut self, sign: &str) -> Parsed<()> {
        match self.is(sign) {
            true => self.advance().map(|_| ()),
            false => self.expected(&format!("`{sign}`")),
        }
    }

    fn word(&mut self, what: &str) -> Parsed<(&'t str, (usize, usize))> {
        if self.token.sort != Sort::Word || self.shown() == "." {
            return self.expected(what);
        }
        let word = self.shown();
        let token = self.advance()?;
        Ok((word, (token.start, token.end)))
    }

    /// The content of a quoted text; paths have no escapes.
    // sentences
    fn quoted(&mut self) -> Parsed<(&'t str, (usize, usize))> {
        if self.token.sort != Sort::Quoted {
            return self.expected("a quoted text");
        }
        let shown = self.shown();
        let token = self.advance()?;
        Ok((&shown[1..shown.len() - 1], (token.start, token.end)))
    }

    /// Passes over the rest of a statement, with all that stands in braces.
    // sentences
    fn skip_statement(&mut self) -> Parsed<()> {
        let mut depth = 0_usize;
        loop {
            if self.token.sort == Sort::End {
                return self.expected("`;`");
            }
            let (opens, closes) = (self.is("{"), self.is("}"));
            let ends = depth == 0 && self.is(";");
            if closes && depth == 0 {
                return self.expected("`;`");
            }
            self.advance()?;
            match (opens, closes) {
                (true, _) => depth += 1,
                (_, true) => depth -= 1,
                _ if ends => return Ok(()),
                _ => {}
            }
        }
    }

    /// Passes over a service, which ends with its brace.
    fn skip_block(&mut self) -> Parsed<()> {
        while !self.is("{") {
            if self.token.sort == Sort::End || self.is(";") {
                return self.expected("`{`");
            }
            self.advance()?;
        }
        let mut depth = 0_usize;
        loop {
            match (self.is("{"), self.is("}")) {
                (true, _) => depth += 1,
                (_, true) => depth -= 1,
                _ if self.token.sort == Sort::End => return self.expected("`}`"),
                _ => {}
            }
            self.advance()?;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    // sentences
    fn file(&mut self) -> Parsed<()> {
        while self.token.sort != Sort::End {
            match self.shown() {
                ";" => {
                    self.advance()?;
                }
                "syntax" => self.syntax()?,
                "edition" => {
                    return self.unsupported("editions", "write `syntax = \"proto3\";`");
                }
                "package" => {
                    self.advance()?;
                    self.out.package = self.word("a name")?.0.to_string();
                    self.take(";")?;
                }
                "import" => {
                    self.advance()?;
                    if self.is("public") || self.is("weak") {
                        self.advance()?;
                    }
                    let (path, place) = self.quoted()?;
                    self.out.imports.push((path.to_string(), place));
                    self.take(";")?;
                }
                "option" => self.skip_statement()?,
                "service" => self.skip_block()?,
                "message" | "enum" | "extend" => {
                    let scope = self.out.package.clone();
                    self.definition(&scope, 0)?;
                }
                _ => return self.expected("`message`, `enum`, `import` or `option`"),
            }
        }
        Ok(())
    }

    fn syntax(&mut self) -> Parsed<()> {
        self.advance()?;
        self.take("=")?;
        match self.shown() {
            "\"proto3\"" | "'proto3'" => self.is_3 = true,
            "\"proto2\"" | "'proto2'" => self.is_3 = false,
            _ => return self.expected("`\"proto2\"` or `\"proto3\"`"),
        }
        self.advance()?;
        self.take(";")
    }

    /// A message, an enum or an extension.
    // sentences
    fn definition(&mut self, scope: &str, depth: usize) -> Parsed<()> {
        const EXTENSION_HELP: &str = "put the fields into the message itself";
        match self.shown() {
            "message" => self.message(scope, depth),
            "enum" => self.enumeration(scope),
            _ => {
                let extend = self.token;
                self.advance()?;
                // Options of one's own are passed over like all options.
                if self.shown().trim_start_matches('.').starts_with("google.protobuf.") {
                    return self.skip_block();
                }
                self.token = extend;
                self.unsupported("extensions", EXTENSION_HELP)
            }
        }
    }

    // sentences
    fn message(&mut self, scope: &str, depth: usize) -> Parsed<()> {
        if depth >= DEPTH_MAX {
            let message = format!("messages stand in each other more than {DEPTH_MAX} levels deep");
            return self.fail("too-deep", message, "this one is too deep", "move it outside");
        }
        self.advance()?;
        let (name, _) = self.word("the name of a message")?;
        let name = joined(scope, name);
        self.take("{")?;
        let index = self.out.messages.len();
        self.out.messages.push(Message { name: name.clone(), fields: Vec::new() });
        while !self.is("}") {
            match self.shown() {
                "message" | "enum" | "extend" => self.definition(&name, depth + 1)?,
                "oneof" => self.oneof(index)?,
                "option" | "reserved" => self.skip_statement()?,
                "extensions" => {
                    return self
                        .unsupported("extensions", "put the fields into the message itself");
                }
                ";" => {
                    self.advance()?;
                }
                _ => self.field(index)?,
            }
        }
        self.advance()?;
        Ok(())
    }

    // sentences
    fn oneof(&mut self, message: usize) -> Parsed<()> {
        self.advance()?;
        self.word("a name")?;
        self.take("{")?;
        while !self.is("}") {
            match self.shown() {
                "option" => self.skip_statement()?,
                ";" => {
                    self.advance()?;
                }
                _ => self.field(message)?,
            }
        }
        self.advance()?;
        Ok(())
    }

    // sentences
    fn enumeration(&mut self, scope: &str) -> Parsed<()> {
        self.advance()?;
        let (name, _) = self.word("the name of an enum")?;
        self.take("{")?;
        let mut values = Vec::new();
        while !self.is("}") {
            match self.shown() {
                "option" | "reserved" => self.skip_statement()?,
                ";" => {
                    self.advance()?;
                }
                _ => {
                    let (name, _) = self.word("the name of a value")?;
                    self.take("=")?;
                    let sign = if self.is("-") { -1 } else { 1 };
                    if sign < 0 {
                        self.advance()?;
                    }
                    let number = i32::try_from(sign * self.number(1 << 31)?).unwrap_or(i32::MAX);
                    values.push((name.to_string(), number));
                    self.field_options()?;
                    self.take(";")?;
                }
            }
        }
        self.advance()?;
        self.out.enums.push(Enum { name: joined(scope, name), values });
        Ok(())
    }

    // sentences
    fn number(&mut self, max: i128) -> Parsed<i128> {
        let number = match self.token.sort {
            // A zero before other digits means the base 8.
            Sort::Number => match self.shown().strip_prefix('0') {
                Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    i128::from_str_radix(rest, 8).ok()
                }
                _ => parse_int(self.shown()).filter(|_| !self.shown().contains('_')),
            },
            _ => None,
        };
        match number.filter(|number| *number <= max) {
            Some(number) => {
                self.advance()?;
                Ok(number)
            }
            None => self.expected(&format!("a number up to {max}")),
        }
    }

    // sentences
    fn field(&mut self, message: usize) -> Parsed<()> {
        let label = match self.shown() {
            "repeated" => Label::Repeated,
            "required" => Label::Required,
            _ => Label::Optional,
        };
        if label != Label::Optional || self.is("optional") {
            self.advance()?;
        }
        if self.is("group") {
            return self.unsupported("groups", "make it a message of its own");
        }
        let (ty, mut place) = self.word("the type of a field")?;
        let (mut ty, mut map_key) = (ty.to_string(), None);
        if ty == "map" && self.is("<") {
            self.advance()?;
            map_key = Some(self.word("the type of the keys")?.0.to_string());
            self.take(",")?;
            let (value, at) = self.word("the type of the values")?;
            (ty, place) = (value.to_string(), at);
            self.take(">")?;
        }
        let (name, _) = self.word("the name of a field")?;
        self.take("=")?;
        let at = self.token;
        let number = self.number(FIELD_NUMBER_MAX)?;
        let fields = &self.out.messages[message].fields;
        if number == 0 || fields.iter().any(|other| i128::from(other.number) == number) {
            let label = if number == 0 { "numbers begin with 1" } else { "another field has it" };
            self.token = at;
            let message = format!("`{name}` cannot have the number {number}");
            return self.fail("bad-proto", message, label, "give every field its own number");
        }
        let packed = self.field_options()?.unwrap_or(self.is_3);
        self.take(";")?;
        let name = name.to_string();
        let number = number as u32;
        let field = Field { name, number, ty, map_key, label, packed, place };
        self.out.messages[message].fields.push(field);
        Ok(())
    }

    /// `[packed = true, …]`: what it says of packing.
    fn field_options(&mut self) -> Parsed<Option<bool>> {
        let mut packed = None;
        if !self.is("[") {
            return Ok(packed);
        }
        let mut depth = 0_usize;
        loop {
            if self.token.sort == Sort::End {
                return self.expected("`]`");
            }
            let is_packed = depth == 1 && self.is("packed");
            if self.is("[") || self.is("{") {
                depth += 1;
            } else if self.is("]") || self.is("}") {
                depth -= 1;
            }
            self.advance()?;
            if is_packed && self.is("=") {
                self.advance()?;
                packed = Some(self.is("true"));
            }
            if depth == 0 {
                return Ok(packed);
            }
        }
    }
}

pub(super) fn joined(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_string() } else { format!("{scope}.{name}") }
}
