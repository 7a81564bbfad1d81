//! Character references such as `&amp;`, `&#65;` and `&eacute;`.
//!
//! Supports the names of XML and of HTML 4, and the names of ASCII marks of HTML 5.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Maximum length of a name.
const NAME_BYTES_MAX: usize = 10;

/// The names of U+00A0 and following; older pages omit their `;`.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg \
    macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 \
    iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave \
    Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc \
    Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc \
    euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave \
    uacute ucirc uuml yacute thorn yuml";

/// The names of U+0391 and following; `-` is unassigned.
const GREEK: &str = "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi \
    Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta \
    epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi \
    chi psi omega";

const OTHERS: &str = "amp & lt < gt > quot \" apos ' AMP & LT < GT > QUOT \" excl ! num # dollar $ \
    percnt % lpar ( rpar ) ast * plus + comma , period . sol / colon : semi ; equals = quest ? \
    commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] Hat ^ lowbar _ grave ` lcub { lbrace { \
    verbar | vert | rcub } rbrace } OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ \
    thetasym ϑ upsih ϒ piv ϖ ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ \
    dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › oline ‾ frasl ⁄ \
    euro € image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → darr ↓ harr ↔ crarr ↵ \
    lArr ⇐ uArr ⇑ rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ notin ∉ ni ∋ \
    prod ∏ sum ∑ minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ \
    there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ sube ⊆ supe ⊇ oplus ⊕ \
    otimes ⊗ perp ⊥ sdot ⋅ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ lang ⟨ rang ⟩ loz ◊ spades ♠ clubs ♣ \
    hearts ♥ diams ♦ check ✓ star ☆ ensp \u{2002} emsp \u{2003} thinsp \u{2009} zwnj \u{200c} \
    zwj \u{200d} lrm \u{200e} rlm \u{200f} Tab \t NewLine \n";

/// The meaning of the numbers 128 to 159 in references: those of windows-1252.
const WINDOWS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

static NAMES: LazyLock<HashMap<&'static str, char>> = LazyLock::new(|| {
    let counted = |names: &'static str, first: u32| {
        names.split(' ').zip(first..).filter_map(|(name, code)| Some((name, char::from_u32(code)?)))
    };
    let mut names: HashMap<_, _> = counted(LATIN, 0xa0).chain(counted(GREEK, 0x391)).collect();
    names.remove("-");
    let mut others = OTHERS.split(' ').filter(|word| !word.is_empty());
    while let (Some(name), Some(value)) = (others.next(), others.next()) {
        names.extend(value.chars().next().map(|c| (name, c)));
    }
    names
});

/// Appends `text` with its references replaced. In attributes, a name without `;` before a letter,
/// a digit or `=` is not a reference: `?a=1&copy=2` is an address.
pub(super) fn decode(text: &str, in_attribute: bool, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match reference(&rest[1..], in_attribute) {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[1 + length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

/// The character of a reference, and its length after the `&`.
fn reference(text: &str, in_attribute: bool) -> Option<(char, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        return numeric(number).map(|(c, length)| (c, length + 1));
    }
    let bytes = text.as_bytes();
    let length = bytes.iter().take(NAME_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric());
    let name = &text[..length.count()];
    if bytes.get(name.len()) == Some(&b';')
        && let Some(c) = NAMES.get(name)
    {
        return Some((*c, name.len() + 1));
    }
    let bare = |length: &usize| {
        let name = &name[..*length];
        let c = *NAMES.get(name)?;
        let old =
            ('\u{a0}'..='\u{ff}').contains(&c) || matches!(name, "amp" | "lt" | "gt" | "quot");
        let follows = bytes.get(*length).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'=');
        (old && !(in_attribute && follows)).then_some((c, *length))
    };
    (2..=name.len().min(6)).rev().find_map(|length| bare(&length))
}

fn numeric(text: &str) -> Option<(char, usize)> {
    let (digits, radix, before) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 1),
        None => (text, 10, 0),
    };
    let mut code = 0u32;
    let mut length = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    if length == 0 {
        return None;
    }
    let c = match code {
        0x80..0xa0 => WINDOWS.chars().nth(code as usize - 0x80),
        0 => None,
        _ => char::from_u32(code),
    };
    let closed = usize::from(digits.as_bytes().get(length) == Some(&b';'));
    Some((c.unwrap_or('\u{fffd}'), before + length + closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced() {
        for (text, in_attribute, want) in [
            ("a &amp; b &lt;c&gt; &quot;&apos;", false, "a & b <c> \"'"),
            ("&#65;&#x42;&#X43;&#0;&#xd800;&#99999999999;", false, "ABC\u{fffd}\u{fffd}\u{fffd}"),
            ("&#150;&#x80;", false, "–€"),
            ("caf&eacute; &nbsp;&copy 2026 &yuml;", false, "café \u{a0}© 2026 ÿ"),
            ("&alpha;&Omega;&sigmaf;&hellip;&hearts;", false, "αΩς…♥"),
            ("?a=1&copy=2&lt=3&amp;b&amp", true, "?a=1&copy=2&lt=3&b&"),
            (
                "&copyright &notit; & && &; &# &#x; &bogus;",
                false,
                "©right ¬it; & && &; &# &#x; &bogus;",
            ),
            ("&Tab;&lbrace;&rbrace;&colon;", false, "\t{}:"),
        ] {
            let mut out = String::new();
            decode(text, in_attribute, &mut out);
            assert_eq!(out, want, "{text}");
        }
        assert_eq!(WINDOWS.chars().count(), 32);
        assert_eq!((LATIN.split(' ').count(), GREEK.split(' ').count()), (96, 57));
        assert!(NAMES.keys().all(|name| name.len() <= NAME_BYTES_MAX && !name.is_empty()));
    }
}
