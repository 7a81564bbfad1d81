//! The verbs of steps, each with its map.

use super::MapKind;

/// The verbs of steps with their maps, and which can stand alone. For verbs that use a connection:
/// the key that names it, and the function that compiles it, in `steps` or [`crate::builtin`].
macro_rules! scenario_verbs {
    ($then:ident) => {
        builtins! { verbs all_verbs {} {} $then }
    };
}

macro_rules! all_verbs {
    (verbs [] {$($asking:tt)*} {$($talking:tt)*} $then:ident) => {
        $then! {
            "http" http HTTP Http (target http::read_http),
            $($asking)*
            "connect" connect CONNECT Connect alone,
            "disconnect" disconnect DISCONNECT Disconnect alone (on act::read_disconnect),
            "secure" secure SECURE Secure alone (on act::read_secure),
            "send" send SEND Send (on message::read_send),
            "expect" expect EXPECT Expect (on message::read_expect),
            "request" request REQUEST Request (on message::read_request),
            $($talking)*
            "think" think THINK Think,
            "stay" stay STAY Stay,
            "repeat" repeat REPEAT Repeat,
            "during" during DURING During,
            "while" r#while WHILE While,
            "for_each" for_each FOR_EACH ForEach,
            "choose" choose CHOOSE Choose,
            "if" r#if IF If,
            "transaction" transaction TRANSACTION Transaction,
            "parallel" parallel PARALLEL Parallel,
            "rendezvous" rendezvous RENDEZVOUS Rendezvous,
            "set" set SET Set,
            "count" count COUNT Count,
            "measure" measure MEASURE Measure,
            "log" log LOG Log,
            "slow" slow SLOW Slow (on act::read_slow),
            "next" next NEXT Next alone,
            "leave" leave LEAVE Leave alone,
            "stop" stop STOP Stop alone,
            "use" r#use USE Use,
        }
    };
}

macro_rules! verb_table {
    ($(
        $word:literal $key:ident $name:ident $struct:ident $($alone:ident)? $(($($use:tt)*))?,
    )*) => {
        /// The verbs of steps with their maps.
        pub static VERBS: &[(&str, &MapKind)] = &[$(($word, &super::$name),)*];

        /// Verbs that can be written as a word instead of a map.
        pub static BARE_VERBS: &[&str] = &[$($(word!($alone $word),)?)*];
    };
}

macro_rules! word {
    (alone $word:literal) => {
        $word
    };
}

scenario_verbs!(verb_table);
