//! MQTT's part of the language tables.

macro_rules! mqtt {
    (rows) => {
        // Over a byte stream, or in the messages of a WebSocket.
        &[&Native {
            one: &say!("an MQTT connection"),
            schemes: &[Scheme::Mqtt, Scheme::Mqtts],
            by_name: Some(ByName { word: "mqtt", path: "/mqtt", subprotocol: "mqtt" }),
            own: Some(Own {
                name: "MQTT",
                sends: &say!("write `- publish: TOPIC` with `text`, `json`, `hex` or `file`"),
            }),
            messages: true,
            headers: Headers::Values(&[("topic", &say!("only MQTT messages have a topic"))]),
            failures: |text| {
                use throng_base::status::mqtt;
                let code = mqtt::named(text).filter(|code| *code >= 0x80);
                code.map(mqtt::status).into_iter().collect()
            },
            pings: true,
            keeps_hash: true,
            opening: &["mqtt"],
            only: &say!("only MQTT connections support this"),
            instead: &[(
                "auth",
                &say!("MQTT has separate keys for the user and the password"),
                &say!("write `mqtt: {{user: name, password: word}}`"),
            )],
            flags: &["--auth", "--hex", "--heartbeat", "--qos", "--retain", "--client-id", "--mqtt-3"],
            verbs: &["publish", "subscribe", "unsubscribe"],
            needs: &say!("write the target as `mqtt://…`; for `ws://…`, add `protocol: mqtt`"),
            step: "publish: ",
            ..BYTES
        }]
    };
    (schema) => {
        SchemaPart {
            needs: &[("WILL", Needs::All(&["topic"])), ("SUBSCRIPTION", Needs::All(&["topic"]))],
            ..NOTHING
        }
    };
    (words [$next:ident $($more:ident)*] $($words:literal)*) => {
        $next! { words [$($more)*] $($words)* "mqtt" }
    };
    (verbs [$next:ident $($more:ident)*] $asking:tt {$($talking:tt)*} $($tokens:tt)*) => {
        $next! { verbs [$($more)*] $asking {
            $($talking)*
            "publish" publish PUBLISH Publish (on crate::builtin::mqtt::read_publish),
            "subscribe" subscribe SUBSCRIBE Subscribe (on crate::builtin::mqtt::read_subscribe),
            "unsubscribe" unsubscribe UNSUBSCRIBE Unsubscribe
                (on crate::builtin::mqtt::read_unsubscribe),
        } $($tokens)* }
    };
    (maps [$next:ident $($more:ident)*] $scenario:tt {$($connect:tt)*} {$($check:tt)*}
        {$($kinds:tt)*} {$($maps:tt)*} $then:tt) => { $next! { maps [$($more)*] $scenario {
    $($connect)*
    mqtt: Kind(&MQTT) => "The session of an MQTT connection: client ID, will, keep-alive.",
    } {
    $($check)*
    topic: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The topic of the MQTT message.",
    } {
    $($kinds)*
    topic: Text => "A topic filter that the MQTT message matches: `rooms/+/news`.",
    } {
    $($maps)*
    MQTT Mqtt = "`mqtt`" {
        version: OneOf(&[Whole, Words(&["3.1.1"])]) =>
            "The version of MQTT, `5` or `3.1.1`. Default: `5`.",
        client_id: Text =>
            "The client ID, different for each user: `\"device-${user.id}\"`. Default: the broker \
             chooses one.",
        clean_start: Bool =>
            "`false` resumes the session that the broker has kept (in 3.1.1: no clean session). \
             Default: `true`.",
        session_expiry: OneOf(&[Duration, Words(&["never"])]) =>
            "How long the broker keeps the session after the connection ends. Default: `0s`.",
        keep_alive: OneOf(&[Duration, Words(&["none"])]) =>
            "The maximum time between two packets from the client; throng sends pings if \
             necessary. Default: `60s`.",
        user: Text => "The user name.",
        password: Text => "The password.",
        will: Kind(&WILL) => "The message that the broker publishes if the connection is lost.",
        receive_maximum: Count =>
            "The maximum number of unacknowledged messages of QoS 1 and 2 from the broker. \
             Default: 65535.",
        packet_maximum: Size => "The largest packet that the broker may send.",
        topic_aliases: Count =>
            "The maximum number of topic aliases in each direction. Default: 0.",
        inflight_max: Count =>
            "The maximum number of unacknowledged messages of QoS 1 and 2 from a user; others \
             wait. Default: as many as the broker allows.",
        properties: Kind(&PROPERTIES) => "Properties of the CONNECT packet.",
    }
    WILL Will = "a will" {
        topic: Text => "The topic of the message.",
        text: Text => "The message as text.",
        json: Anything => "The message as JSON, written as YAML.",
        hex: Text => "The message in hexadecimal digits.",
        file: Text => "A file with the message.",
        qos: Whole => "The quality of service: 0, 1 or 2. Default: 0.",
        retain: Bool => "With `true`, the broker keeps the message for later subscribers.",
        delay: Duration =>
            "How long the broker waits for the client to reconnect before it publishes the will.",
        properties: Kind(&PROPERTIES) => "Properties of the packet.",
    }
    PROPERTIES Properties = "`properties`" {
        content_type: Text => "The type of the message: `application/json`.",
        response_topic: Text => "The topic of the reply.",
        correlation_data: Text => "Data that the reply repeats, to identify the request.",
        message_expiry_interval: Duration => "How long the broker keeps the message.",
        payload_format_indicator: Bool => "With `true`, the message is declared as UTF-8 text.",
        subscription_identifier: Count =>
            "A number that the broker sends with each message for this subscription.",
        user: METADATA => "User properties, by name: `{tenant: t-7}`.",
    }
    PUBLISH Publish = "a `publish` step" {
        publish: Text => "The topic to publish to: `\"devices/${user.id}/state\"`.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        text: Text => "The message as text.",
        json: Anything => "The message as JSON, written as YAML.",
        hex: Text => "The message in hexadecimal digits.",
        file: Text => "A file with the message.",
        garbage: Size => "The number of random bytes to publish.",
        qos: Whole =>
            "The quality of service: 0, 1 or 2. With 1 and 2, the step ends when the broker has \
             acknowledged the message. Default: 0.",
        retain: Bool => "With `true`, the broker keeps the message for later subscribers.",
        properties: Kind(&PROPERTIES) => "Properties of the packet.",
        timeout: Duration => "The timeout from sending to the last acknowledgement.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    SUBSCRIBE Subscribe = "a `subscribe` step" {
        subscribe: OneOf(&[
            Text,
            Kind(&SUBSCRIPTION),
            List(&OneOf(&[Text, Kind(&SUBSCRIPTION)])),
        ]) =>
            "The topic filter to subscribe to, or a list: `rooms/+/news`, `$share/workers/jobs/#`. \
             The step ends when the broker has accepted all filters.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        qos: Whole => "The highest quality of service to receive: 0, 1 or 2. Default: 0.",
        no_local: Bool => "`true` excludes the messages that this user publishes.",
        retain_as_published: Bool =>
            "With `true`, messages keep the retain flag with which they were published.",
        retained: Words(&["always", "new", "never"]) =>
            "When the broker sends retained messages: at each subscription (`always`), at the \
             first one (`new`) or `never`. Default: `always`.",
        properties: Kind(&PROPERTIES) => "Properties of the packet.",
        timeout: Duration => "How long to wait for the broker's acknowledgement.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    SUBSCRIPTION Subscription = "a subscription" {
        topic: Text => "The topic filter.",
        qos: Whole => "The highest quality of service to receive, instead of the step's.",
        no_local: Bool => "`true` excludes the messages that this user publishes.",
        retain_as_published: Bool =>
            "With `true`, messages keep the retain flag with which they were published.",
        retained: Words(&["always", "new", "never"]) => "When the broker sends retained messages.",
    }
    UNSUBSCRIBE Unsubscribe = "an `unsubscribe` step" {
        unsubscribe: TEXTS => "The topic filter to unsubscribe from, as in `subscribe`, or a list.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        timeout: Duration => "How long to wait for the broker's acknowledgement.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    } $then } };
    ($part:ident [$next:ident $($more:ident)*] $($tokens:tt)*) => {
        $next! { $part [$($more)*] $($tokens)* }
    };
}
