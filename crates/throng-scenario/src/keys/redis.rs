//! The keys of the step that only Redis has.

/// The map of Redis, behind those of [`super`].
macro_rules! redis_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
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
    } };
}
