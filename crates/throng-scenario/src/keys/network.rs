//! The keys for users' networks, for how fast users read and write, and for TLS that starts on an
//! open connection.

/// The keys of these maps; [`super`] has the others.
macro_rules! network_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
    NETWORK Network = "`network`" {
        delay: DurationRange =>
            "The time that the network adds to a round trip, half of it in each direction. Each \
             user has one value from the range. Default: `0ms`.",
        loss: Share => "The share of packets that the network loses, in each direction.",
        rate: Text => "The bandwidth of each user, in each direction: `1Mbit/s`.",
    }
    SLOW Slow = "a `slow` step" {
        slow: OneOf(&[Words(&["off"]), Kind(&SPEED)]) =>
            "Limits how fast the user reads and writes after this step: `{read: 1KiB/s}`.",
        on: Text => ON_LINK,
    }
    SECURE Secure = "a `secure` step" {
        secure: Nothing =>
            "Starts TLS on the open connection (STARTTLS), with the options of `tls`. Write it \
             after the reply with which the target agrees to TLS.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        timeout: Duration => "The timeout of the TLS handshake.",
        on_error: ON_ERRORS => "The action if the step fails.",
    }
    SPEED Speed = "a speed" {
        read: Text => "Bytes per second: `1KiB/s`; `0B/s` reads nothing.",
        write: Text => "Bytes per second: `100B/s`.",
    }
    } };
}
