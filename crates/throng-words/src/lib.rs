//! The macros for messages. `say!("there is no {what} `{name}`")` is a `Said` of throng-base: the
//! key `there is no {} `{}`` and its values. A key that is missing in the catalog does not compile,
//! so every message has a translation.
//!
//! Otherwise they work like `format!`: values are captured, positional or named; a format such as
//! `{share:.1}` converts its value to text, while a value that is itself a `Said` stays one.

#![forbid(unsafe_code)]

mod catalogue;
mod literal;
mod packed;
mod template;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use template::{Template, TemplatePlace};

/// A message with its values, which is rendered for its reader.
#[proc_macro]
pub fn say(input: TokenStream) -> TokenStream {
    said(input).unwrap_or_else(Mistake::into_tokens)
}

/// The same as text in the output language, for immediate output.
#[proc_macro]
pub fn tell(input: TokenStream) -> TokenStream {
    match said(input) {
        Ok(said) => said.into_iter().chain(tokens(".spoken()")).collect(),
        Err(mistake) => mistake.into_tokens(),
    }
}

/// The compressed bytes of a text file, by its path relative to the folder of the crate;
/// throng-base decompresses them.
#[proc_macro]
pub fn packed(input: TokenStream) -> TokenStream {
    let made = literal::of(arguments(input).into_iter().next().unwrap_or_default());
    let made = made.and_then(|(name, span)| {
        let (bytes, path) = packed::packed(&name).map_err(|told| Mistake::new(told, span))?;
        // The second one makes the compiler read the file again when it has changed.
        let bytes = TokenTree::Literal(Literal::byte_string(&bytes));
        let watched = tokens(&format!("const _: &[u8] = include_bytes!({path:?});"));
        let block = Group::new(Delimiter::Brace, watched.into_iter().chain([bytes]).collect());
        Ok(TokenTree::Group(block).into())
    });
    made.unwrap_or_else(Mistake::into_tokens)
}

struct Mistake {
    message: String,
    span: Span,
}

impl Mistake {
    fn new(message: impl Into<String>, span: Span) -> Mistake {
        Mistake { message: message.into(), span }
    }

    /// `compile_error!("…")` at the place of the mistake.
    fn into_tokens(self) -> TokenStream {
        let message = TokenTree::Literal(Literal::string(&self.message));
        let mut bang = Punct::new('!', Spacing::Alone);
        let mut group = Group::new(Delimiter::Brace, message.into());
        bang.set_span(self.span);
        group.set_span(self.span);
        let name = Ident::new("compile_error", self.span);
        [TokenTree::Ident(name), bang.into(), group.into()].into_iter().collect()
    }
}

fn said(input: TokenStream) -> Result<TokenStream, Mistake> {
    let mut parts = arguments(input).into_iter();
    let first = parts.next().unwrap_or_default();
    let (text, span) = literal::of(first)?;
    let template = sentence(&text).map_err(|message| Mistake::new(message, span))?;
    let key = TokenTree::Literal(Literal::string(&template.key));
    let values = values(&template.places, parts.collect(), span)?;
    if values.is_empty() {
        return Ok(call("plain", key.into()));
    }
    let list = Group::new(Delimiter::Bracket, values);
    let mut inner = TokenStream::from(key);
    inner.extend(tokens(","));
    inner.extend(tokens("::std::vec!"));
    inner.extend([TokenTree::Group(list)]);
    Ok(call("with", inner))
}

/// A text with a translation, or why it is not valid.
fn sentence(text: &str) -> Result<Template, String> {
    let template = Template::parse(text)?;
    let key = &template.key;
    match template::has_words(key) && !catalogue::has(key) {
        true => Err(format!("no rendering of `{key}`: add it to {}", catalogue::FILE)),
        false => Ok(template),
    }
}

/// `::throng_base::Said::name(inner)`.
fn call(name: &str, inner: TokenStream) -> TokenStream {
    let mut out = tokens(&format!("::throng_base::Said::{name}"));
    out.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, inner))]);
    out
}

/// The values of the placeholders, each as an `Argument`.
fn values(
    places: &[TemplatePlace],
    given: Vec<TokenStream>,
    span: Span,
) -> Result<TokenStream, Mistake> {
    let given: Vec<(Option<String>, TokenStream)> = given.into_iter().map(named).collect();
    let mut is_used = vec![false; given.len()];
    let mut turn = 0;
    let mut out = TokenStream::new();
    for place in places {
        let at = match place.name.parse() {
            _ if place.name.is_empty() => {
                turn += 1;
                Some(turn - 1)
            }
            Ok(number) => Some(number),
            Err(_) => given.iter().position(|(name, _)| name.as_deref() == Some(&place.name)),
        };
        let value = match at {
            None => tokens(&place.name),
            Some(at) => {
                let Some((_, value)) = given.get(at) else {
                    return Err(Mistake::new("a value of the sentence is missing", span));
                };
                is_used[at] = true;
                value.clone()
            }
        };
        out.extend(argument(&place.format, value));
    }
    match is_used.iter().all(|used| *used) {
        true => Ok(out),
        false => Err(Mistake::new("a value stands in no place of the sentence", span)),
    }
}

/// One value followed by a comma.
fn argument(format: &str, value: TokenStream) -> TokenStream {
    let mut inner = tokens("&");
    if format.is_empty() {
        inner.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, value))]);
    } else {
        let mut printed = TokenStream::from(TokenTree::from(Literal::string(format)));
        printed.extend(tokens(","));
        printed.extend(value);
        inner.extend(tokens("::std::format_args!"));
        inner.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, printed))]);
    }
    let mut out = tokens("::throng_base::Speak::argument");
    out.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, inner))]);
    out.extend(tokens(","));
    out
}

/// The tokens between the commas.
fn arguments(input: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in input {
        match &token {
            TokenTree::Punct(mark) if mark.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().into_iter().for_each(|part| part.extend([token.clone()])),
        }
    }
    if parts.last().is_some_and(TokenStream::is_empty) {
        parts.pop();
    }
    parts
}

/// Splits `name = value`.
fn named(argument: TokenStream) -> (Option<String>, TokenStream) {
    let mut rest = argument.clone().into_iter();
    match (rest.next(), rest.next()) {
        (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(mark)))
            if mark.as_char() == '=' && mark.spacing() == Spacing::Alone =>
        {
            (Some(name.to_string()), rest.collect())
        }
        _ => (None, argument),
    }
}

/// Tokens that are the same everywhere.
fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_translation_does_not_compile() {
        assert!(sentence("`{unit}` is not a unit of time").is_ok());
        assert!(sentence("p99 {}/s").is_ok(), "there is nothing to render");
        let mistake = sentence("`{unit}` is in no catalogue").unwrap_err();
        assert!(
            mistake.starts_with("no rendering of ``{}` is in no catalogue`: add it to crates/")
        );
    }
}
