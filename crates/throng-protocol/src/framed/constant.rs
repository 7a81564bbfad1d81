//! Constants of a declaration, as encoded.

use throng_base::Said;

use super::declaration::{Format, Literal, value_of};
use super::encode::raw_of;
use super::table::{Constant, Extents, Node, Shape};
use super::value::number;
use crate::fields::coerce;

/// An encoded constant, if the field can have it.
pub(super) fn constant_of(
    node: &Node,
    format: Format,
    literal: &Literal,
) -> Result<Constant, Said> {
    if node.member.is_some() {
        return part_of(node, format, literal);
    }
    let mut constant = Constant::default();
    let mut written = Vec::new();
    match &node.shape {
        Shape::Text(extent) | Shape::Bytes(extent) | Shape::Json(extent) => {
            let mut content = Vec::new();
            match node.shape {
                Shape::Text(_) => coerce::text(&value_of(literal), &mut content)?,
                _ => coerce::bytes(&value_of(literal), &mut content)?,
            }
            content_fits(node, &content)?;
            match extent {
                Extents::Prefixed { prefix, .. } => {
                    prefix.write(content.len() as u64, node.is_little, &mut written);
                }
                Extents::Field(_) => {
                    return Err(say!(
                        "a field with `const` cannot take its length from another \
                         field"
                    ));
                }
                _ => {}
            }
            written.extend_from_slice(&content);
            match extent {
                Extents::Delimited(end) | Extents::RestBefore(end) => {
                    written.extend_from_slice(end);
                }
                Extents::Fixed(bytes) => written.resize(*bytes as usize, 0),
                _ => {}
            }
            constant.content = content.into();
        }
        Shape::Proto(..) | Shape::List(_) | Shape::Body => {
            return Err(say!("only numbers, text and bytes can be constant"));
        }
        _ => {
            constant.raw = raw_of(node, &value_of(literal))?;
            node.write_number(constant.raw, &mut written);
        }
    }
    constant.written = written.into();
    Ok(constant)
}

/// The same in a document.
fn part_of(node: &Node, format: Format, literal: &Literal) -> Result<Constant, Said> {
    let (value, mut written) = (value_of(literal), Vec::new());
    match &node.shape {
        Shape::Json(_) => format.write_any(&value, &mut written),
        Shape::Text(_) | Shape::Bytes(_) => {
            match node.shape {
                Shape::Text(_) => coerce::text(&value, &mut written)?,
                _ => coerce::bytes(&value, &mut written)?,
            }
            format.enclose(node.form(format), 0, &mut written)?;
        }
        _ => format.write(&number(node, raw_of(node, &value)?), &mut written),
    }
    Ok(Constant { written: written.into(), ..Constant::default() })
}

/// Whether text or bytes fit what the field allows.
pub(super) fn content_fits(node: &Node, content: &[u8]) -> Result<(), Said> {
    let length = content.len() as u64;
    match node.shape.extent() {
        Some(Extents::Fixed(bytes)) => {
            let bytes = u64::from(*bytes);
            let is_padded = node.is_padded();
            match length > bytes || length < bytes && !is_padded {
                true => {
                    Err(say!("it has {length} bytes, but the size of the field is {bytes} bytes"))
                }
                false => Ok(()),
            }
        }
        Some(Extents::Prefixed { bytes_max, .. }) if length > *bytes_max => {
            Err(say!("it has {length} bytes; the maximum is {bytes_max}"))
        }
        Some(Extents::Delimited(delimiter)) => {
            let all = [content, delimiter].concat();
            match memchr::memmem::find(&all, delimiter) == Some(content.len()) {
                true => Ok(()),
                false => Err(say!("it contains the delimiter of the field")),
            }
        }
        _ => Ok(()),
    }
}
