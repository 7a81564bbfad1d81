//! Reads structs whose groups are flat in a record: the object has the fields of all of them.
//! `#[serde(flatten)]` would first copy all fields of groups: a line of one step takes 1.6 times as
//! long then.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::interval::{ConnectionsInterval, GeneratorInterval, Interval, TrafficInterval};
use crate::places::{PartsInterval, Place, TargetInterval};

/// Names all fields of a struct, and of its groups in turn; it does not compile if one is missing.
/// A record without a `needed` field is damaged, other fields have their default.
macro_rules! flat {
    ($(
        $name:ident [$($own:ident $($need:ident)?),+] {
            $($group:ident: $type:ident [
                $($field:ident $(= $json:literal)? $($needed:ident)?),+
            ])+
        }
    )+) => {
        $(impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                #[allow(non_camel_case_types, reason = "they are the names in records")]
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                enum Field {
                    $($own,)+
                    $($($(#[serde(rename = $json)])? $field,)+)+
                    #[serde(other)]
                    Unknown,
                }

                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str(stringify!($name))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $(let mut $own = None;)+
                        $($(let mut $field = None;)+)+
                        while let Some(field) = map.next_key()? {
                            match field {
                                $(Field::$own => once(&mut $own, stringify!($own), &mut map)?,)+
                                $($(Field::$field => {
                                    let name = or!(stringify!($field) $(, $json)?);
                                    once(&mut $field, name, &mut map)?;
                                })+)+
                                Field::Unknown => drop(map.next_value::<IgnoredAny>()?),
                            }
                        }
                        Ok($name {
                            $($own: or_default!($own, stringify!($own) $(, $need)?),)+
                            $($group: $type {
                                $($field: or_default!(
                                    $field, or!(stringify!($field) $(, $json)?) $(, $needed)?
                                ),)+
                            },)+
                        })
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        })+
    };
}

macro_rules! or_default {
    ($value:expr, $name:expr) => {
        $value.unwrap_or_default()
    };
    ($value:expr, $name:expr, needed) => {
        $value.ok_or_else(|| A::Error::missing_field($name))?
    };
}

flat! {
    Interval [
        second needed, phase needed, machine, shards needed, steps needed, slowest,
        population needed, lifecycle, heartbeats, retries, tcp, deliveries, samples,
        gauges needed, cells
    ] {
        connections: ConnectionsInterval [
            stages, counts = "connections" needed, residence
        ]
        parts: PartsInterval [targets, instances, sessions]
        traffic: TrafficInterval [messages needed, packets, bytes_in needed, bytes_out needed]
        generator: GeneratorInterval [
            lateness needed, together, lost_ns, lost_max_ns, resources
        ]
    }

    TargetInterval [
        begun needed, count needed, ok needed, interrupted, latency needed,
        bytes_in needed, bytes_out needed, connections_attempted needed,
        connections_opened needed, connections_failed needed, connections_passed_over
    ] {
        place: Place [target needed, address]
    }
}

/// Takes the value of a field, which must be there once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    value: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    match value.replace(map.next_value()?) {
        Some(_) => Err(A::Error::duplicate_field(name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_the_fields_of_its_groups_each_of_which_is_there_once() {
        let mut line = serde_json::json!(Interval::default()).to_string();
        let read = |line: &str| serde_json::from_str::<Interval>(line);
        assert_eq!(read(&line).unwrap(), Interval::default());
        line.insert_str(1, r#""later": [{}], "lost_max_ns": 7, "sessions": [], "#);
        assert!(read(&line).unwrap_err().to_string().starts_with("duplicate field `lost_max_ns`"));
        let line = line.replacen(r#""lost_max_ns":0,"#, "", 1);
        assert_eq!(read(&line).unwrap().generator.lost_max_ns, 7);
        let line = line.replacen(r#""connections":"#, r#""other":"#, 1);
        assert!(read(&line).unwrap_err().to_string().starts_with("missing field `connections`"));
    }
}
