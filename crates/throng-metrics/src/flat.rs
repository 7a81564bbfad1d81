//! Structs whose groups are flattened in a run directory: one object has the fields of all groups.
//! They are read field by field. `#[serde(flatten)]` would buffer the fields of groups, so that a
//! line with one step takes 1.6 times as long, and errors have no line and column.

use serde::de::{Deserialize, Error, MapAccess};

/// A struct and its groups. Each field is given once: with its type, its rule if `$make` is
/// [`merged!`](crate::merged), and its recorded name if it differs. A missing `needed` field is
/// damage; other fields have defaults.
#[doc(hidden)]
#[macro_export]
macro_rules! flat {
    (
        $make:ident
        $(#[doc = $about:literal])+
        #[derive $derives:tt]
        pub struct $name:ident {$(
            $($(#[$meta:meta])* pub $own:ident: $type:ty $(=> $rule:ident)? $(, $need:ident)?;)*
            flat $group:ident $(=> $group_rule:ident)?
            $(#[doc = $group_about:literal])+
            struct $group_type:ident {$(
                $(#[$field_meta:meta])*
                pub $field:ident: $field_type:ty $(=> $field_rule:ident)?
                $(= $json:literal)? $(, $needed:ident)?;
            )+}
        )+}
    ) => {
        $make! {
            $(#[doc = $about])+
            #[derive $derives]
            pub struct $name {$(
                $($(#[$meta])* pub $own: $type $(=> $rule)?,)*
                $(#[doc = $group_about])+
                #[serde(flatten)]
                pub $group: $group_type $(=> $group_rule)?,
            )+}
        }

        $($make! {
            $(#[doc = $group_about])+
            #[derive $derives]
            pub struct $group_type {$(
                $(#[$field_meta])*
                $(#[serde(rename = $json)])?
                pub $field: $field_type $(=> $field_rule)?,
            )+}
        })+

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D>(deserializer: D) -> Result<$name, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                #[allow(non_camel_case_types, reason = "they are the names in records")]
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                enum Field {
                    $($($own,)* $($(#[serde(rename = $json)])? $field,)+)+
                    #[serde(other)]
                    Unknown,
                }

                struct Fields;

                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str(stringify!($name))
                    }

                    fn visit_map<A>(self, mut map: A) -> Result<$name, A::Error>
                    where
                        A: serde::de::MapAccess<'de>,
                    {
                        use serde::de::Error as _;

                        $($(let mut $own = None;)* $(let mut $field = None;)+)+
                        while let Some(field) = map.next_key()? {
                            match field {
                                $($(Field::$own => {
                                    $crate::flat::once(&mut $own, stringify!($own), &mut map)?;
                                })*
                                $(Field::$field => {
                                    let name = $crate::flat!(@name $field $($json)?);
                                    $crate::flat::once(&mut $field, name, &mut map)?;
                                })+)+
                                Field::Unknown => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok($name {$(
                            $($own: $crate::flat!(@value $own [$own] A $($need)?),)*
                            $group: $group_type {$($field: $crate::flat!(
                                @value $field [$field $($json)?] A $($needed)?
                            ),)+},
                        )+})
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
    (@name $field:ident) => {
        stringify!($field)
    };
    (@name $field:ident $json:literal) => {
        $json
    };
    (@value $value:ident $name:tt $access:ident) => {
        $value.unwrap_or_default()
    };
    (@value $value:ident [$($name:tt)+] $access:ident needed) => {
        $value.ok_or_else(|| $access::Error::missing_field($crate::flat!(@name $($name)+)))?
    };
}

/// A struct that is not merged.
#[doc(hidden)]
#[macro_export]
macro_rules! plain {
    ($item:item) => {
        $item
    };
}

/// Reads the value of a field, which must not be repeated.
#[doc(hidden)]
pub fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
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
    use crate::Interval;

    #[test]
    fn a_line_has_the_fields_of_its_groups_once() {
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
