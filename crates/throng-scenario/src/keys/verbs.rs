//! The verbs of steps, each with its map.

use super::{
    CHOOSE, CONNECT, COUNT, DISCONNECT, DURING, EXPECT, FOR_EACH, GRPC, HTTP, IF, LEAVE, LOG,
    MEASURE, MapKind, NEXT, PARALLEL, PUBLISH, REDIS, RENDEZVOUS, REPEAT, REQUEST, SECURE, SEND,
    SET, SLOW, SQL, STAY, STOP, SUBSCRIBE, THINK, TRANSACTION, UNSUBSCRIBE, USE, WHILE,
};

/// The verbs of steps and the maps they make.
macro_rules! scenario_verbs {
    ($then:ident) => {
        $then! {
            "http" http HTTP Http,
            "grpc" grpc GRPC Grpc,
            "sql" sql SQL Sql,
            "connect" connect CONNECT Connect,
            "disconnect" disconnect DISCONNECT Disconnect,
            "secure" secure SECURE Secure,
            "send" send SEND Send,
            "expect" expect EXPECT Expect,
            "request" request REQUEST Request,
            "publish" publish PUBLISH Publish,
            "subscribe" subscribe SUBSCRIBE Subscribe,
            "unsubscribe" unsubscribe UNSUBSCRIBE Unsubscribe,
            "redis" redis REDIS Redis,
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
            "slow" slow SLOW Slow,
            "next" next NEXT Next,
            "leave" leave LEAVE Leave,
            "stop" stop STOP Stop,
            "use" r#use USE Use,
        }
    };
}

macro_rules! verb_table {
    ($($word:literal $key:ident $name:ident $struct:ident,)*) => {
        /// The verbs of steps and the maps they make.
        pub static VERBS: &[(&str, &MapKind)] = &[$(($word, &$name),)*];
    };
}

scenario_verbs!(verb_table);

/// Verbs that may stand alone, as a word instead of a map.
pub static BARE_VERBS: &[&str] = &["connect", "disconnect", "secure", "next", "leave", "stop"];
