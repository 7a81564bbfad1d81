//! Services, methods and paths by their names.

use super::*;

#[test]
fn methods_are_found_by_all_their_names() {
    let schema = schema();
    let found = |name: &str| {
        let method = schema.method(schema.find_method(name).unwrap());
        assert_eq!(&*method.service, "shapes.v1.Painter");
        (method.path.to_string(), method.kind)
    };
    let paint = ("/shapes.v1.Painter/Paint".to_owned(), CallKind::Unary);
    for name in ["shapes.v1.Painter/Paint", "/shapes.v1.Painter/Paint", "Painter.Paint"] {
        assert_eq!(found(name), paint);
    }
    assert_eq!(found("Painter/Watch").1, CallKind::ServerStreaming);
    assert_eq!(found("Painter/Collect").1, CallKind::ClientStreaming);
    assert_eq!(found("Painter/Talk").1, CallKind::BidirectionalStreaming);
    let method = schema.method(schema.find_method("Painter/Paint").unwrap());
    assert_eq!(schema.message_name(method.input), "shapes.v1.All");
    assert_eq!(schema.message_name(method.output), "shapes.v1.Tree");
    assert_eq!(schema.services().collect::<Vec<_>>(), ["shapes.v1.Painter", "shapes.v1.Printer"]);
    assert_eq!(schema.methods().count(), 5);
    assert!(CallKind::ServerStreaming.streams_replies());
    assert!(!CallKind::ServerStreaming.streams_requests());
}

#[test]
fn unknown_methods_suggest_similar_names() {
    let schema = schema();
    let told = |name: &str| {
        let wrong = schema.find_method(name).unwrap_err();
        (wrong.message, wrong.near.unwrap_or_default(), wrong.help)
    };
    let (message, near, help) = told("shapes.v1.Painter/Pant");
    assert_eq!(message, "the service `shapes.v1.Painter` has no method `Pant`");
    assert_eq!(near, "shapes.v1.Painter/Paint");
    assert_eq!(help, "available: `Paint`, `Watch`, `Collect`, `Talk`");
    let (message, near, help) = told("shapes.v1.Panter/Paint");
    assert_eq!(message, "there is no service `shapes.v1.Panter`");
    assert_eq!(near, "shapes.v1.Painter");
    assert_eq!(help, "available: `shapes.v1.Painter`, `shapes.v1.Printer`");
    assert_eq!(told("other.v2.painter/Paint").1, "shapes.v1.Painter");
    assert_eq!(told("Wotch").1, "shapes.v1.Painter/Watch");
    assert!(told("").2.english().contains("package.Service/Method"));
    let none = Schema::default().find_method("a.B/C").unwrap_err();
    assert_eq!(none.help, "the descriptors contain no services");
}

#[test]
fn descriptor_sets_of_protoc_are_read() {
    let schema = Schema::from_descriptor_set(&pool().encode_to_vec()).unwrap();
    assert!(schema.find_method("Painter/Paint").is_ok());
    assert!(Schema::from_descriptor_set(b"\x0a\xff").is_err());
}

#[test]
fn paths_lead_to_fields_of_every_kind() {
    let schema = schema();
    let all = schema.message("shapes.v1.All").unwrap();
    for path in [
        "",
        "scalars.an_int32",
        "scalars.anInt32",
        "lists.trees[3].left.name",
        "maps.labels.colour",
        "maps.labels[\"a.b\"]",
        "maps.byNumber[7].aString",
        "maps.by_number.7.a_string",
        "known.extra.whatever[2].else",
        "known.at",
        "all[0].all[1].tree",
    ] {
        let found = schema.field(all, path).unwrap_or_else(|wrong| panic!("{path}: {wrong:?}"));
        assert_eq!(&*found.written, path);
    }
    let told = |path: &str| {
        let wrong = schema.field(all, path).unwrap_err();
        format!("{}; {}; {}", wrong.message.english(), wrong.part, wrong.help.english())
    };
    assert_eq!(
        told("scalars.an_int3"),
        "`shapes.v1.Scalars` has no field `an_int3`; an_int3; did you mean `an_int32`?"
    );
    assert!(told("lists.trees.left").starts_with("`trees` is a list; left; write `trees[0].left`"));
    assert!(told("scalars[0]").starts_with("an index can only follow a list; 0;"));
    assert!(
        told("known.at.seconds").starts_with("a single value has no fields or items; seconds;")
    );
    for path in ["a..b", ".", "lists.texts[", "lists.texts[x]", "maps.labels[\"a", "tree."] {
        assert!(schema.field(all, path).is_err(), "{path}");
    }
    assert!(schema.field(all, &"ä.".repeat(2_000)).is_err());
}

#[test]
fn fields_have_the_range_of_their_type() {
    let schema = schema();
    let all = schema.message("shapes.v1.All").unwrap();
    let told = |path: &str| match schema.range(&schema.field(all, path).unwrap()) {
        Range::Whole { low, high, names } if names.is_empty() => format!("{low}..{high}"),
        other => format!("{other:?}"),
    };
    for (path, want) in [
        ("", "Any"),
        ("tree", "Any"),
        ("lists.texts", "Any"),
        ("lists.texts[1]", "Text"),
        ("maps.labels", "Any"),
        ("maps.labels.colour", "Text"),
        ("maps.by_number[7].a_string", "Text"),
        ("lists.trees[3].left.name", "Text"),
        ("known.extra.whatever[2].else", "Any"),
        ("known.at", "Any"),
        ("scalars.an_int32", "-2147483648..2147483647"),
        ("scalars.a_bool", "Bool"),
        ("scalars.a_double", "Float"),
        ("scalars.some_bytes", "Bytes"),
    ] {
        assert_eq!(told(path), want, "{path}");
    }
    for path in ["scalars.colour", "lists.colours[0]", "maps.colours.true", "tree.paint"] {
        let Range::Named(names) = schema.range(&schema.field(all, path).unwrap()) else {
            panic!("{path}");
        };
        let first = names.first().map(|(name, number)| (name.as_str(), *number));
        assert_eq!((first, names.len()), (Some(("COLOUR_UNKNOWN", 0)), 4), "{path}");
    }
}
