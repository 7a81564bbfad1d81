//! The keys of MQTT: what `connect` says of a session, and the steps that only MQTT has.

/// The keys of the maps of MQTT, behind those of [`super`].
macro_rules! mqtt_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
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
        qos: QOS => "The quality of service: 0, 1 or 2. Default: 0.",
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
        qos: QOS =>
            "The quality of service: 0, 1 or 2. With 1 and 2, the step ends when the broker has \
             acknowledged the message. Default: 0.",
        retain: Bool => "With `true`, the broker keeps the message for later subscribers.",
        properties: Kind(&PROPERTIES) => "Properties of the packet.",
        timeout: Duration => "The timeout from sending to the last acknowledgement.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    SUBSCRIBE Subscribe = "a `subscribe` step" {
        subscribe: OneOf(&[Text, Kind(&SUBSCRIPTION), SUBSCRIPTIONS]) =>
            "The topic filter to subscribe to, or a list: `rooms/+/news`, `$share/workers/jobs/#`. \
             The step ends when the broker has accepted all filters.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        qos: QOS => "The highest quality of service to receive: 0, 1 or 2. Default: 0.",
        no_local: Bool => "`true` excludes the messages that this user publishes.",
        retain_as_published: Bool =>
            "With `true`, messages keep the retain flag with which they were published.",
        retained: RETAINED =>
            "When the broker sends retained messages: at each subscription (`always`), at the \
             first one (`new`) or `never`. Default: `always`.",
        properties: Kind(&PROPERTIES) => "Properties of the packet.",
        timeout: Duration => "How long to wait for the broker's acknowledgement.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    SUBSCRIPTION Subscription = "a subscription" {
        topic: Text => "The topic filter.",
        qos: QOS => "The highest quality of service to receive, instead of the step's.",
        no_local: Bool => "`true` excludes the messages that this user publishes.",
        retain_as_published: Bool =>
            "With `true`, messages keep the retain flag with which they were published.",
        retained: RETAINED => "When the broker sends retained messages.",
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
    } };
}
