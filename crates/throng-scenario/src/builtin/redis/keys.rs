//! What the tables of the language have of Redis.

macro_rules! redis {
    (rows) => {
        &[&Native {
            one: &say!("a Redis connection"),
            schemes: &[Scheme::Redis, Scheme::Rediss],
            own: Some(Own { name: "Redis", sends: &say!("write `- redis: GET key`") }),
            url: UrlSays::Login,
            messages: true,
            headers: Headers::Values(&[
                ("value", &say!("only Redis replies have a value")),
                ("error", &say!("only Redis replies have an error")),
                ("channel", &say!("only Redis messages have a channel")),
            ]),
            failures: |text| {
                use throng_base::status::redis;
                let status = redis::status(text.as_bytes());
                let is_it = redis::meaning(status).is_some_and(|meaning| meaning.word == text);
                is_it.then_some(status).into_iter().collect()
            },
            instead: &[(
                "auth",
                &say!("Redis reads the login from the target URL"),
                &say!("write `target: redis://user:password@host`, or `- redis: AUTH user password`"),
            )],
            flags: &["--auth", "--command", "--pipeline", "--expect-text", "--expect-json"],
            in_place_of_body: Some(&say!("write `--command 'SET key value'`")),
            verbs: &["redis"],
            needs: &say!("write the target as `redis://…` or `rediss://…`"),
            step: "redis: ",
            ..BYTES
        }]
    };
    (schema) => {
        NOTHING
    };
    (verbs [$next:ident $($more:ident)*] $asking:tt {$($talking:tt)*} $($tokens:tt)*) => {
        $next! { verbs [$($more)*] $asking {
            $($talking)*
            "redis" redis REDIS Redis (on crate::builtin::redis::read_redis),
        } $($tokens)* }
    };
    (maps [$next:ident $($more:ident)*] $scenario:tt $connect:tt {$($check:tt)*} {$($looks:tt)*}
        {$($maps:tt)*} $then:tt) => { $next! { maps [$($more)*] $scenario $connect {
    $($check)*
    channel: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The channel of the Redis message.",
    value: OneOf(&[Text, Kind(&FOUND_CHECK)]) => "The value of the Redis reply; nil is `null`.",
    error: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The first word of the expected Redis error.",
    } {
    $($looks)*
    channel: Text => "The channel of the Redis message: `news`.",
    } {
    $($maps)*
    REDIS Redis = "a `redis` step" {
        redis: OneOf(&[Text, List(&OneOf(&[Text, List(&Text)]))]) =>
            "A command with quotes as in redis-cli, `GET user:${user.id}`, or a list of its words: \
             `[SET, key, \"${body}\"]`. Several lines, or several lists of words, are a pipeline: \
             one write, and one step that ends with the last reply.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        check: Kind(&CHECK) => CHECKS,
        save [Saves]: SAVES => SAVED,
        timeout: Duration => "The timeout from sending to the last reply.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    } $then } };
    ($part:ident [$next:ident $($more:ident)*] $($tokens:tt)*) => {
        $next! { $part [$($more)*] $($tokens)* }
    };
}
