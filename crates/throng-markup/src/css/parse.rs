//! Parses selectors (Selectors Level 4).

use throng_base::Said;

use crate::fault::PathError;

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
        want: Want,
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
pub(super) enum Want {
    Present,
    Equals(String),
    Word(String),
    Begins(String),
    Ends(String),
    Contains(String),
    /// The value, or the value and `-`: languages.
    Dash(String),
}

type Wants = fn(String) -> Want;

pub(super) fn parse(text: &str) -> Result<Vec<Complex>, PathError> {
    if text.len() > SELECTOR_BYTES_MAX {
        let message = say!("a selector can have at most {SELECTOR_BYTES_MAX} bytes");
        return Err(PathError::new((0, text.len()), message, HELP));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.skip_space();
    if reader.rest().is_empty() {
        return Err(PathError::new((0, text.len()), say!("the selector is empty"), HELP));
    }
    let list = reader.list(false)?;
    match reader.rest().is_empty() {
        true => Ok(list),
        false => Err(reader.wrong(say!("this is not allowed in a selector"))),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_space(&mut self) -> bool {
        let rest = self.rest();
        let body = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        self.at += rest.len() - body.len();
        body.len() < rest.len()
    }

    fn wrong(&self, message: Said) -> PathError {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        PathError::new((self.at, end), message, HELP)
    }

    fn expect(&mut self, token: &str) -> Result<(), PathError> {
        self.skip_space();
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.wrong(say!("`{token}` is missing here"))),
        }
    }

    /// Selectors separated by commas; those of `:has` may start with a combinator.
    fn list(&mut self, relative: bool) -> Result<Vec<Complex>, PathError> {
        let mut list = Vec::new();
        loop {
            self.skip_space();
            list.push(self.complex(relative)?);
            self.skip_space();
            if !self.eat(",") {
                return Ok(list);
            }
        }
    }

    fn complex(&mut self, relative: bool) -> Result<Complex, PathError> {
        let mut combinator = match self.combinator() {
            Some(combinator) if relative => combinator,
            Some(_) => return Err(self.wrong(say!("a selector cannot start with a combinator"))),
            None => Combinator::Descendant,
        };
        let mut parts = Vec::new();
        loop {
            self.skip_space();
            if parts.len() == COMPOUNDS_MAX {
                return Err(self.wrong(say!("the selector has too many parts")));
            }
            parts.push((combinator, self.compound()?));
            let space = self.skip_space();
            combinator = match self.combinator() {
                Some(combinator) => combinator,
                None if space && !matches!(self.peek(), None | Some(',' | ')')) => {
                    Combinator::Descendant
                }
                None => return Ok(Complex { parts }),
            };
        }
    }

    fn combinator(&mut self) -> Option<Combinator> {
        [(">", Combinator::Child), ("+", Combinator::Next), ("~", Combinator::Later)]
            .into_iter()
            .find_map(|(mark, combinator)| self.eat(mark).then_some(combinator))
    }

    fn compound(&mut self) -> Result<Compound, PathError> {
        let mut compound = Compound::default();
        let start = self.at;
        if !self.eat("*") && self.peek().is_some_and(begins_name) {
            let name = self.name()?;
            // A namespace is a prefix here: `soap|Body`.
            compound.name = Some(match self.rest().starts_with('|') {
                true => {
                    self.at += 1;
                    format!("{name}:{}", self.name()?)
                }
                false => name,
            });
        }
        loop {
            match self.peek() {
                Some('#') => {
                    self.at += 1;
                    compound.tests.push(Test::Id(self.name()?));
                }
                Some('.') => {
                    self.at += 1;
                    compound.tests.push(Test::Class(self.name()?));
                }
                Some('[') => {
                    self.at += 1;
                    let test = self.attribute()?;
                    compound.tests.push(test);
                }
                Some(':') => {
                    let test = self.pseudo()?;
                    compound.tests.push(test);
                }
                _ if self.at == start => {
                    return Err(self.wrong(say!("a name, `#`, `.`, `[` or `:` is missing here")));
                }
                _ => return Ok(compound),
            }
        }
    }

    /// An identifier with its escapes (CSS Syntax, 4.3.11).
    fn name(&mut self) -> Result<String, PathError> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            if c == '\\' {
                name.push(self.escape()?);
            } else if begins_name(c) || c.is_ascii_digit() || c == '-' {
                self.at += c.len_utf8();
                name.push(c);
            } else {
                break;
            }
        }
        if name.is_empty() {
            return Err(self.wrong(say!("a name is missing here")));
        }
        Ok(name)
    }

    fn escape(&mut self) -> Result<char, PathError> {
        let wrong = self.wrong(say!("the character to escape is missing here"));
        self.at += 1;
        let digits = self.rest().bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            let code = u32::from_str_radix(&self.rest()[..digits], 16).unwrap_or(0);
            self.at += digits;
            self.eat(" ");
            return Ok(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'));
        }
        let c = self.peek().filter(|c| *c != '\n').ok_or(wrong)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// A quoted text, or a plain word.
    fn value(&mut self) -> Result<String, PathError> {
        let Some(quote @ ('"' | '\'')) = self.peek() else {
            return self.name().map_err(|error| PathError {
                message: say!("a value is missing here; put a value of several words in quotes"),
                ..error
            });
        };
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('\\') => text.push(self.escape()?),
                Some(c) => {
                    self.at += c.len_utf8();
                    if c == quote {
                        return Ok(text);
                    }
                    text.push(c);
                }
                None => {
                    let place = (start, self.at);
                    return Err(PathError::new(place, say!("the closing quote is missing"), HELP));
                }
            }
        }
    }

    fn attribute(&mut self) -> Result<Test, PathError> {
        self.skip_space();
        let mut name = self.name()?;
        if self.rest().starts_with('|') && !self.rest().starts_with("|=") {
            self.at += 1;
            name = format!("{name}:{}", self.name()?);
        }
        self.skip_space();
        if self.eat("]") {
            return Ok(Test::Attribute { name, want: Want::Present, ignore_case: None });
        }
        let wants: [(&str, Wants); 6] = [
            ("=", Want::Equals),
            ("~=", Want::Word),
            ("|=", Want::Dash),
            ("^=", Want::Begins),
            ("$=", Want::Ends),
            ("*=", Want::Contains),
        ];
        let Some((_, want)) = wants.into_iter().find(|(mark, _)| self.eat(mark)) else {
            return Err(self.wrong(say!("`]` or a comparison such as `=` is missing here")));
        };
        self.skip_space();
        let value = self.value()?;
        self.skip_space();
        let flags = [("i", true), ("I", true), ("s", false), ("S", false)];
        let ignore_case =
            flags.into_iter().find(|(flag, _)| self.eat(flag)).map(|(_, ignore)| ignore);
        self.expect("]")?;
        Ok(Test::Attribute { name, want: want(value), ignore_case })
    }

    fn pseudo(&mut self) -> Result<Test, PathError> {
        let start = self.at;
        self.at += 1;
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
                self.expect("(")?;
                let (step, offset) = self.formula()?;
                self.expect(")")?;
                Test::Nth { step, offset, from_end: name.starts_with("nth-last"), of_type }
            }
            "contains" | "-soup-contains" => {
                self.expect("(")?;
                self.skip_space();
                let text = self.value()?;
                self.expect(")")?;
                Test::Contains(text)
            }
            "not" | "is" | "where" | "matches" | "has" => {
                self.expect("(")?;
                self.depth += 1;
                if self.depth > NEST_MAX {
                    return Err(self.wrong(say!("the selector is nested too deeply")));
                }
                let list = self.list(name == "has")?;
                self.depth -= 1;
                self.expect(")")?;
                match name.as_str() {
                    "not" => Test::Not(list),
                    "has" => Test::Has(list),
                    _ => Test::Is(list),
                }
            }
            _ => {
                let message = say!("the pseudo-class `:{name}` is not supported");
                return Err(PathError::new((start, self.at), message, HELP));
            }
        })
    }

    /// `2n+1`, `odd`, `even`, `3`, `-n+3` (CSS Syntax, 6).
    fn formula(&mut self) -> Result<(i32, i32), PathError> {
        let start = self.at;
        let end = self.rest().find(')').map_or(self.text.len(), |end| start + end);
        let text: String = self.text[start..end].chars().filter(|c| !c.is_whitespace()).collect();
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
        self.at = end;
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
