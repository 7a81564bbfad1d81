//! gRPC's part of the language tables.

macro_rules! grpc {
    (rows) => {
        &[
            &Native {
                schemes: &[Scheme::Grpc, Scheme::Grpcs],
                opens_itself: true,
                paths: true,
                methods: true,
                failures: |text| {
                    use throng_base::status::grpc::Code;
                    let named = |code: &Code| *code != Code::Ok && code.name() == text;
                    Code::ALL.into_iter().filter(named).map(Code::status).collect()
                },
                flags: &[
                    "--auth",
                    "--header",
                    "--streams",
                    "--proto",
                    "--proto-path",
                    "--expect-status",
                ],
                verbs: &["grpc"],
                needs: &say!("a `grpc` step requires a target with `grpc://` or `grpcs://`"),
                refuses: &[(
                    "http",
                    &say!("call a gRPC method of this target: `- grpc: package.Service/Method`"),
                )],
                step: "grpc: ",
                ..BYTES
            },
            // Messages of a call that stays open.
            &Native {
                one: &say!("a gRPC call"),
                schemes: &[],
                is_call: true,
                messages: true,
                opening: &["connect", "metadata", "compress", "message"],
                only: &say!("only gRPC calls support it"),
                instead: &[
                    ("headers", &ONLY_WEBSOCKET, &say!("write `metadata: {{…}}`")),
                    ("protocols", &ONLY_WEBSOCKET, &say!("write `metadata: {{…}}`")),
                    ("auth", &ONLY_WEBSOCKET, &say!("write `metadata: {{…}}`")),
                ],
                ..BYTES
            },
        ]
    };
    (schema) => {
        SchemaPart {
            examples: &[
                ("GRPC", "grpc", &["package.Service/Method"]),
                ("SCENARIO", "proto", &["service.proto"]),
            ],
            message_checks: &["GRPC"],
            ..NOTHING
        }
    };
    (verbs [$next:ident $($more:ident)*] {$($asking:tt)*} $($tokens:tt)*) => {
        $next! { verbs [$($more)*] {
            $($asking)*
            "grpc" grpc GRPC Grpc (target crate::builtin::grpc::read_call),
        } $($tokens)* }
    };
    (maps [$next:ident $($more:ident)*] {$($scenario:tt)*} {$($connect:tt)*} $check:tt $kinds:tt
        {$($maps:tt)*} $then:tt) => { $next! { maps [$($more)*] {
    $($scenario)*
    proto: TEXTS => "The `.proto` files or descriptor sets of the services that `grpc` calls.",
    proto_path: TEXTS =>
        "Folders to search for `.proto` files and their imports, like `--proto_path` of `protoc`.",
    } {
    $($connect)*
    metadata: METADATA => "Metadata of the call: `{authorization: \"Bearer ${saved.token}\"}`.",
    message: OneOf(&[Map(&Anything), Expression, Nothing]) =>
        "The first message of the gRPC call: `{room: 7}`.",
    compress: Words(&["gzip", "none"]) => "`gzip` compresses sent messages.",
    } $check $kinds {
    $($maps)*
    GRPC Grpc = "a `grpc` step" {
        grpc: Text => "The method to call: `package.Service/Method`.",
        target: Text => "The target to use, one of `targets`; required if several are possible.",
        name: Text => ROW,
        label: LABELS => LABEL,
        message: OneOf(&[Map(&Anything), Expression, Nothing]) =>
            "The message to send: `{sku: tea, count: 2}`.",
        messages: List(&OneOf(&[Map(&Anything), Expression, Nothing])) =>
            "The messages to send, for a client-streaming method.",
        metadata: METADATA => "Metadata of the call: `{authorization: \"Bearer ${saved.token}\"}`.",
        compress: Words(&["gzip", "none"]) => "`gzip` compresses sent messages.",
        check: Kind(&CHECK) => CHECKS,
        save [Saves]: SAVES => SAVED,
        timeout: Duration => "The timeout of the whole call; also sent as `grpc-timeout`.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    } $then } };
    ($part:ident [$next:ident $($more:ident)*] $($tokens:tt)*) => {
        $next! { $part [$($more)*] $($tokens)* }
    };
}
