//! Parses selectors (Selectors Level 4).

use throng_base::Said;

use crate::fault::PathError;
use crate::scan::PathText;

/// Maximum length of a selector.
const SELECTOR_BYTES_MAX: usize = 4096;

/// Most elements of one selector: each increases the depth of the search.
const COMPOUNDS_MAX: usize = 32;

/// Maximum nesting of `:not(…)` and similar.
const NEST_MAX: usize = 8;

const HELP: Said = say!("write a CSS selector such as `form#login input[name=csrf]@value`");

/// Compounds from left to right, each with its combinator to the one before.
#[derive(Clone, Debug)]
pub(super) struct Complex {
    pub(super) parts: Vec<(Combinator, Compound)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combinator {
    Descendant,
    Child,
    Next,
    Later,
}

/// The tests of one element.
#[derive(Clone, Debug, Default)]
pub(super) struct Compound {
    pub(super) name: Option<String>,
    pub(super) tests: Vec<Test>,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    Id(String),
    Class(String),
    Attribute {
        name: String,
        want: AttributeTest,
        /// Set by `i` and `s`; in HTML, without either, some values ignore case.
        ignore_case: Option<bool>,
    },
    Nth {
        step: i32,
        offset: i32,
        from_end: bool,
        of_type: bool,
    },
    Only {
        of_type: bool,
    },
    Empty,
    Root,
    Checked,
    Disabled,
    Enabled,
    Contains(String),
    Not(Vec<Complex>),
    Is(Vec<Complex>),
    /// The first combinator of each starts at the element.
    Has(Vec<Complex>),
}

#[derive(Clone, Debug)]
pub(super) enum AttributeTest {
    Present,
    Equals(String),
    Word(String),
    Begins(String),
    Ends(String),
    Contains(String),
    /// The value, or the value and `-`: languages.
    Dash(String),
}

type Wants = fn(String) -> AttributeTest;

pub(super) fn parse(text: &str) -> Result<Vec<Complex>, PathError> {
    if text.len() > SELECTOR_BYTES_MAX {
        let message = say!("a selector can have at most {SELECTOR_BYTES_MAX} bytes");
        return Err(PathError::new((0, text.len()), message, HELP));
    }
    let scan = PathText { text, at: 0, spaces: &[' ', '\t', '\n', '\r', '\x0c'], help: HELP };
    let mut reader = SelectorReader { scan, depth: 0 };
    reader.scan.skip_space();
    if reader.scan.rest().is_empty() {
        return Err(PathError::new((0, text.len()), say!("the selector is empty"), HELP));
    }
    let list = reader.list(false)?;
    match reader.scan.rest().is_empty() {
        true => Ok(list),
        false => Err(reader.scan.wrong(say!("this is not allowed in a selector"))),
    }
}

struct SelectorReader<'t> {
    scan: PathText<'t>,
    depth: usize,
}

impl SelectorReader<'_> {
    /// Selectors separated by commas; those of `:has` may start with a combinator.
    fn list(&mut self, relative: bool) -> Result<Vec<Complex>, PathError> {
        let mut list = Vec::new();
        loop {
            self.scan.skip_space();
            list.push(self.complex(relative)?);
            self.scan.skip_space();
            if !self.scan.eat(",") {
                return Ok(list);
            }
        }
    }

    fn complex(&mut self, relative: bool) -> Result<Complex, PathError> {
        let mut combinator = match self.combinator() {
            Some(combinator) if relative => combinator,
            Some(_) => {
                return Err(self.scan.wrong(say!("a selector cannot start with a combinator")));
            }
            None => Combinator::Descendant,
        };
        let mut parts = Vec::new();
        loop {
            self.scan.skip_space();
            if parts.len() == COMPOUNDS_MAX {
                return Err(self.scan.wrong(say!("the selector has too many parts")));
            }
            parts.push((combinator, self.compound()?));
            let space = self.scan.skip_space();
            combinator = match self.combinator() {
                Some(combinator) => combinator,
                None if space && !matches!(self.scan.peek(), None | Some(',' | ')')) => {
                    Combinator::Descendant
                }
                None => return Ok(Complex { parts }),
            };
        }
    }

    fn combinator(&mut self) -> Option<Combinator> {
        self.scan.eat_any([
            (">", Combinator::Child),
            ("+", Combinator::Next),
            ("~", Combinator::Later),
        ])
    }

    fn compound(&mut self) -> Result<Compound, PathError> {
        let mut compound = Compound::default();
        let start = self.scan.at;
        if !self.scan.eat("*") && self.scan.peek().is_some_and(begins_name) {
            compound.name = Some(self.qualified()?);
        }
        loop {
            compound.tests.push(if self.scan.eat("#") {
                Test::Id(self.name()?)
            } else if self.scan.eat(".") {
                Test::Class(self.name()?)
            } else if self.scan.eat("[") {
                self.attribute()?
            } else if self.scan.eat(":") {
                self.pseudo()?
            } else if self.scan.at == start {
                return Err(self.scan.wrong(say!("a name, `#`, `.`, `[` or `:` is missing here")));
            } else {
                return Ok(compound);
            });
        }
    }

    /// A name; a namespace is a prefix here: `soap|Body`.
    fn qualified(&mut self) -> Result<String, PathError> {
        let name = self.name()?;
        match !self.scan.rest().starts_with("|=") && self.scan.eat("|") {
            true => Ok(format!("{name}:{}", self.name()?)),
            false => Ok(name),
        }
    }

    /// An identifier with its escapes (CSS Syntax, 4.3.11).
    fn name(&mut self) -> Result<String, PathError> {
        let mut name = String::new();
        while let Some(c) = self.scan.peek() {
            if c == '\\' {
                name.push(self.escape()?);
            } else if begins_name(c) || c.is_ascii_digit() || c == '-' {
                self.scan.at += c.len_utf8();
                name.push(c);
            } else {
                break;
            }
        }
        if name.is_empty() {
            return Err(self.scan.wrong(say!("a name is missing here")));
        }
        Ok(name)
    }

    fn escape(&mut self) -> Result<char, PathError> {
        let wrong = self.scan.wrong(say!("the character to escape is missing here"));
        self.scan.at += 1;
        let digits = self.scan.rest().bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            let code = u32::from_str_radix(&self.scan.rest()[..digits], 16).unwrap_or(0);
            self.scan.at += digits;
            self.scan.eat(" ");
            return Ok(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'));
        }
        let c = self.scan.peek().filter(|c| *c != '\n').ok_or(wrong)?;
        self.scan.at += c.len_utf8();
        Ok(c)
    }

    /// A quoted text, or a plain word.
    fn value(&mut self) -> Result<String, PathError> {
        let Some(quote @ ('"' | '\'')) = self.scan.peek() else {
            return self.name().map_err(|error| PathError {
                message: say!("a value is missing here; put a value of several words in quotes"),
                ..error
            });
        };
        let start = self.scan.at;
        self.scan.at += 1;
        let mut text = String::new();
        loop {
            match self.scan.peek() {
                Some('\\') => text.push(self.escape()?),
                Some(c) => {
                    self.scan.at += c.len_utf8();
                    if c == quote {
                        return Ok(text);
                    }
                    text.push(c);
                }
                None => {
                    let place = (start, self.scan.at);
                    return Err(PathError::new(place, say!("the closing quote is missing"), HELP));
                }
            }
        }
    }

    fn attribute(&mut self) -> Result<Test, PathError> {
        self.scan.skip_space();
        let name = self.qualified()?;
        self.scan.skip_space();
        if self.scan.eat("]") {
            return Ok(Test::Attribute { name, want: AttributeTest::Present, ignore_case: None });
        }
        let wants: [(&str, Wants); 6] = [
            ("=", AttributeTest::Equals),
            ("~=", AttributeTest::Word),
            ("|=", AttributeTest::Dash),
            ("^=", AttributeTest::Begins),
            ("$=", AttributeTest::Ends),
            ("*=", AttributeTest::Contains),
        ];
        let Some(want) = self.scan.eat_any(wants) else {
            return Err(self.scan.wrong(say!("`]` or a comparison such as `=` is missing here")));
        };
        self.scan.skip_space();
        let value = self.value()?;
        self.scan.skip_space();
        let flags = [("i", true), ("I", true), ("s", false), ("S", false)];
        let ignore_case = self.scan.eat_any(flags);
        self.scan.expect("]")?;
        Ok(Test::Attribute { name, want: want(value), ignore_case })
    }

    fn pseudo(&mut self) -> Result<Test, PathError> {
        let start = self.scan.at - 1;
        let name = self.name()?.to_ascii_lowercase();
        let of_type = name.ends_with("-of-type");
        let nth = |offset, from_end| Test::Nth { step: 0, offset, from_end, of_type };
        Ok(match name.as_str() {
            "first-child" | "first-of-type" => nth(1, false),
            "last-child" | "last-of-type" => nth(1, true),
            "only-child" | "only-of-type" => Test::Only { of_type },
            "empty" => Test::Empty,
            "root" => Test::Root,
            "checked" => Test::Checked,
            "disabled" => Test::Disabled,
            "enabled" => Test::Enabled,
            "nth-child" | "nth-of-type" | "nth-last-child" | "nth-last-of-type" => {
                self.scan.expect("(")?;
                let (step, offset) = self.formula()?;
                self.scan.expect(")")?;
                Test::Nth { step, offset, from_end: name.starts_with("nth-last"), of_type }
            }
            "contains" | "-soup-contains" => {
                self.scan.expect("(")?;
                self.scan.skip_space();
                let text = self.value()?;
                self.scan.expect(")")?;
                Test::Contains(text)
            }
            "not" | "is" | "where" | "matches" | "has" => {
                self.scan.expect("(")?;
                self.depth += 1;
                if self.depth > NEST_MAX {
                    return Err(self.scan.wrong(say!("the selector is nested too deeply")));
                }
                let list = self.list(name == "has")?;
                self.depth -= 1;
                self.scan.expect(")")?;
                match name.as_str() {
                    "not" => Test::Not(list),
                    "has" => Test::Has(list),
                    _ => Test::Is(list),
                }
            }
            _ => {
                let message = say!("the pseudo-class `:{name}` is not supported");
                return Err(PathError::new((start, self.scan.at), message, HELP));
            }
        })
    }

    /// `2n+1`, `odd`, `even`, `3`, `-n+3` (CSS Syntax, 6).
    fn formula(&mut self) -> Result<(i32, i32), PathError> {
        let start = self.scan.at;
        let end = self.scan.rest().find(')').map_or(self.scan.text.len(), |end| start + end);
        let text: String =
            self.scan.text[start..end].chars().filter(|c| !c.is_whitespace()).collect();
        let text = text.to_ascii_lowercase();
        let formula = match text.as_str() {
            "odd" => Some((2, 1)),
            "even" => Some((2, 0)),
            _ => match text.split_once('n') {
                None => number(&text).map(|offset| (0, offset)),
                Some((step, offset)) => {
                    let step = match step {
                        "" | "+" => Some(1),
                        "-" => Some(-1),
                        step => number(step),
                    };
                    let offset = if offset.is_empty() { Some(0) } else { number(offset) };
                    step.zip(offset)
                }
            },
        };
        self.scan.at = end;
        formula.ok_or_else(|| {
            let message = say!("`{text}` is not a valid position");
            PathError::new((start, end), message, say!("write `2n+1`, `odd`, `even` or a number"))
        })
    }
}

fn number(text: &str) -> Option<i32> {
    text.parse().ok().filter(|number: &i32| number.abs() <= 1_000_000)
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '\\') || !c.is_ascii()
}
