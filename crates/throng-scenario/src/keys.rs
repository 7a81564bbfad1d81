//! The keys of every map of the language, each with its one-line meaning and the shape of its
//! value: read by the reader, shown in messages, and the source of the JSON Schema.

mod shape;

pub use shape::{KeyDoc, MapKind, Shape};

use shape::{later, now};

macro_rules! map_kinds {
    ($($name:ident = $what:literal [$($key:expr,)*];)*) => {
        $(pub static $name: MapKind = MapKind { what: say!($what), keys: &[$($key,)*] };)*

        /// All kinds of maps.
        pub static MAP_KINDS: &[(&str, &MapKind)] = &[$((stringify!($name), &$name),)*];
    };
}

// Shapes that stand behind many keys.
use Shape::{
    Anything, Bool, Count, CountRange, Duration, DurationRange, Expression, Kind, List, Map,
    Nothing, OneOf, Rate, Share, Size, Steps, Text, Whole, Words,
};

/// One text or a list of them.
const TEXTS: Shape = OneOf(&[Text, List(&Text)]);
/// A header may be sent several times, and may be empty.
const HEADERS: Shape = Map(&OneOf(&[Text, List(&OneOf(&[Text, Nothing])), Nothing]));
const FORM: Shape = HEADERS;
/// One name may have several values.
const METADATA: Shape = Map(&OneOf(&[Text, List(&Text)]));
/// What stands in a message of protobuf.
const FIELDS: Shape = OneOf(&[Map(&Anything), Expression, Nothing]);
const VARIABLES: Shape = Map(&OneOf(&[Anything, Kind(&VARIABLE)]));
const SAVES: Shape = Map(&OneOf(&[Text, Kind(&SAVE)]));
const COOKIES: Shape = Map(&Text);
const RETRIES: Shape = OneOf(&[Count, Words(&["forever"]), Kind(&RETRY)]);
const ON_ERRORS: Shape = Words(&["count", "next", "leave", "stop", "retry"]);
const WEIGHT: Shape = OneOf(&[Count, Share]);
const MESSAGES: Shape = OneOf(&[Kind(&MESSAGE), Text]);
/// A word is `any`, or a message of the declared protocol.
const EXPECTATIONS: Shape = OneOf(&[Text, Kind(&EXPECTATION), List(&Text)]);
const REDIRECTS: Shape = OneOf(&[Words(&["follow"]), Count]);
/// What is looked for, and what it has to be.
const FOUND: Shape = Map(&OneOf(&[Text, Kind(&FOUND_CHECK)]));
const ADDRESSES: Shape = OneOf(&[Text, List(&Text)]);
const RECONNECTS: Shape = OneOf(&[Count, Words(&["forever", "never"]), Kind(&RECONNECT)]);
/// What a message looks like that nobody has asked for.
const LOOKINGS: Shape = OneOf(&[Text, Kind(&LOOKS), List(&Text)]);
/// Where the id or the stamp of a message stands.
const MARKS: Shape = OneOf(&[Text, Kind(&MARK)]);
const PARTINGS: Shape = Words(&["fin", "reset", "vanish", "half_close"]);
const TARGETS: Shape = OneOf(&[Text, Kind(&TARGET), ADDRESS_LIST]);
const ADDRESS_LIST: Shape = List(&OneOf(&[Text, Kind(&ADDRESS)]));
const SPOKEN: Shape = OneOf(&[Words(&["none"]), Text, Map(&Anything)]);
const HANDLERS: Shape = List(&Kind(&HANDLER));
const EVERIES: Shape = List(&Kind(&EVERY));
/// The path of a file, or the declaration itself.
const PROTOCOLS: Shape = OneOf(&[Text, Map(&Anything)]);
const HEARTBEATS: Shape = OneOf(&[Words(&["none"]), Kind(&HEARTBEAT)]);
const ON_LINK: KeyDoc =
    now("on", Text, "The connection that is meant, if a user has several open.");
const ONCES: Shape = OneOf(&[Steps, Kind(&ONCE)]);
const LABEL: KeyDoc =
    now("label", Map(&Text), "Labels of its row, by which goals may choose: `{tier: gold}`.");
const LOST_ERRORS: Shape = Words(&["count", "next", "leave", "stop"]);

const UNIX_SOCKET: &str = "Connections go to this socket of this host instead of an address: \
     `/run/app.sock`, or `@name` for an abstract one.";

map_kinds! {
    SCENARIO = "a scenario" [
        now("name", Text, "What the run is called in reports."),
        now(
            "label",
            Map(&Text),
            "Labels of the run in its record and reports: `{release: 1.4, region: east}`."
        ),
        now(
            "target",
            TARGETS,
            "The service: a URL without a path, a list of them, `{url: …, unix_socket: …}`, or a \
             name from `targets`."
        ),
        now(
            "targets",
            Map(&TARGETS),
            "Several services by name: `{api: http://127.0.0.1:8080, chat: ws://127.0.0.1:8089}`."
        ),
        now("tls", Kind(&TLS), "How TLS is spoken with https, wss, tls and grpcs targets."),
        now("connection", Kind(&CONNECTION), "How connections are opened and kept."),
        now("defaults", Kind(&DEFAULTS), "What holds for all steps that do not say otherwise."),
        now("limits", Kind(&LIMITS), "What a target may make us hold."),
        now("seed", Whole, "The same seed gives the same users; drawn anew for each run if left out."),
        now(
            "vars",
            VARIABLES,
            "Values for `${vars.name}`; `--set name=value` overrides them."
        ),
        now("include", TEXTS, "Other files whose parts, vars, data and defaults are used here."),
        now("parts", Map(&Steps), "Steps shared by name, for `- use: name`."),
        now("sessions", Map(&Kind(&SESSION)), "What users do, by name."),
        now(
            "setup",
            ONCES,
            "Steps that one user does once, before the load: what they save is `${setup.name}`."
        ),
        now("teardown", ONCES, "Steps that one user does once, when the load is over."),
        now("load", List(&Kind(&PHASE)), "The phases of the run, one after another."),
        now(
            "loads",
            Map(&Kind(&LOAD)),
            "Several loads side by side instead of `load`, by name, each with sessions and phases."
        ),
        now("graceful_stop", Duration, "How long users may finish after the last phase."),
        now(
            "precision",
            Duration,
            "How late starts, ends of pauses and heartbeats may be, so that several share one \
             waking: `250us` if left out; `0s` wakes for each."
        ),
        now("thresholds", List(&Text), "Goals, such as `http p99 < 50ms`."),
        now(
            "source",
            Kind(&SOURCE),
            "Where connections come from: `{addresses: 127.1.0.0/16}`."
        ),
        now("outputs", List(&Anything), "Other places to write the figures to."),
        now("trace", Kind(&TRACE), "Trace headers, to find slow requests in tracing."),
        now("protocol", PROTOCOLS, "A private protocol: the file that declares it."),
        now(
            "proto",
            TEXTS,
            "The `.proto` files, or sets of descriptors, of the services that `grpc` calls."
        ),
        now(
            "proto_path",
            TEXTS,
            "Folders where `.proto` files and their imports are looked for, as `protoc` has them."
        ),
        now("data", Map(&Kind(&DATA)), "Rows for users from files, lists and generators."),
        now(
            "deliveries",
            Map(&Kind(&DELIVERY)),
            "The ledger of messages, by name: who has to receive what."
        ),
        later(
            "audit",
            Anything,
            "Comparing what the target believes with what is true.",
            say!("leave it out: nobody asks the target what it believes yet")
        ),
        later(
            "events",
            Anything,
            "Commands that run at a time of the run.",
            say!("leave it out and run the commands by hand")
        ),
        later(
            "monitor",
            Anything,
            "Agents that watch the target's hosts.",
            say!("leave it out and watch the hosts with other tools")
        ),
    ];
    INCLUDED = "an included file" [
        now("include", TEXTS, "Further files whose parts, vars, data and defaults are used."),
        now("parts", Map(&Steps), "Steps shared by name, for `- use: name`."),
        now("vars", VARIABLES, "Values for `${vars.name}`."),
        now("data", Map(&Kind(&DATA)), "Rows for users."),
        now("defaults", Kind(&DEFAULTS), "What holds for all steps that do not say otherwise."),
    ];
    TARGET = "a target" [
        now("url", Text, "The URL of its one address, without a path."),
        now("unix_socket", Text, UNIX_SOCKET),
        now(
            "addresses",
            ADDRESS_LIST,
            "Several addresses of the service, instead of `url`; users are spread over them."
        ),
        now(
            "protocol",
            SPOKEN,
            "The private protocol that is spoken there, instead of that of the session or scenario."
        ),
    ];
    ADDRESS = "an address" [
        now("url", Text, "The URL of this address, without a path."),
        now(
            "weight",
            Count,
            "How many users it gets in proportion to the others; 1 if left out."
        ),
        now("unix_socket", Text, UNIX_SOCKET),
    ];
    TLS = "`tls`" [
        now("verify", Bool, "`false` accepts any certificate."),
        now("ca", Text, "A PEM file of certificates that are trusted instead of the system's."),
        now("certificate", Text, "A PEM file with the client's certificate chain."),
        now("key", Text, "A PEM file with the key of the client's certificate."),
        now("server_name", Text, "Sent and verified instead of the host of the target."),
        now("resumption", Bool, "`true` lets users who come back resume their TLS session."),
    ];
    CONNECTION = "`connection`" [
        now("keep_alive", Bool, "`false` opens a connection for every HTTP request."),
        now(
            "resend",
            Words(&["idempotent", "never"]),
            "Whether an idempotent request that found its kept connection closed is sent once more; \
             `never` fails it."
        ),
        now("timeout", Duration, "What resolve, TCP, TLS and upgrade may take together."),
        now("sources", ADDRESSES, "The same as `addresses` of `source`."),
        now("family", Words(&["v4", "v6", "any"]), "`v4`, `v6` or `any`."),
        now(
            "resolve",
            Map(&ADDRESSES),
            "Addresses of hosts that are not looked up: `{\"shop.example:443\": 127.0.0.1}`."
        ),
        now(
            "connect_to",
            Map(&Text),
            "Where connections go instead: `{\"shop.example:443\": \"127.0.0.1:8443\"}`."
        ),
        now(
            "proxy",
            OneOf(&[Text, Kind(&PROXY)]),
            "An HTTP proxy that all connections go through, by CONNECT: `http://proxy.example:3128`."
        ),
        now(
            "http_version",
            Words(&["1.1", "2", "auto"]),
            "`1.1`, `2`, or `auto`: over TLS what the target prefers of both."
        ),
        now(
            "streams",
            Count,
            "How many iterations a user does at once over its one connection of HTTP/2, each \
             request a stream; 1 if it is not given."
        ),
        now("deflate", Bool, "`true` offers compression on WebSocket connections."),
        now("cookies", Bool, "`false` forgets the cookies that the target sets."),
    ];
    PROXY = "a proxy" [
        now("url", Text, "Its URL, with a port: `http://proxy.example:3128`."),
        now("user", Text, "The user that the proxy knows (Basic authentication)."),
        now("password", Text, "The password of the user."),
    ];
    DEFAULTS = "`defaults`" [
        now("headers", HEADERS, "Headers of every HTTP request and WebSocket upgrade."),
        now("timeout", Duration, "How long a step may take when it does not say so itself."),
        now("on_error", ON_ERRORS, "What a user does when a step fails."),
        now("cookies", COOKIES, "Cookies that every user sends."),
    ];
    LIMITS = "`limits`" [
        now("head", Size, "The largest head of an answer."),
        now("body", Size, "The largest body that is kept for a check."),
        now("message", Size, "The largest message on a long-lived connection."),
        now("redirects", Count, "How many redirects in a row are followed."),
    ];
    SOURCE = "`source`" [
        now(
            "addresses",
            ADDRESSES,
            "Local addresses, taken as needed: `127.0.0.2`, `127.1.0.1..127.1.0.200`, \
             `127.1.0.0/16` or `interface eth0`."
        ),
        now("ports", Text, "Source ports: `20_000..60_000`; those of the system if left out."),
        now("transparent", Bool, "`true` for addresses that this host borrows and does not have."),
    ];
    TRACE = "`trace`" [
        now("header", Text, "The name of the header; `traceparent` if left out."),
        now("share", Share, "How many of the requests carry it; all if left out."),
    ];
    VARIABLE = "a variable" [
        now("env", Text, "The name of an environment variable that has the value."),
        now("default", Anything, "The value where it is not set; without it that is a mistake."),
        now("value", Anything, "The value, beside `secret`."),
        now("secret", Bool, "`true` masks the value in records, errors and all that is printed."),
    ];
    DATA = "a source of data" [
        now("csv", Text, "A CSV file; its path counts from the scenario file."),
        now("json_lines", Text, "A file with one JSON value per line."),
        now("list", List(&Anything), "Rows written here: `[red, green]` or `[{name: ann}]`."),
        now(
            "generate",
            Map(&Anything),
            "Rows made up: `{id: 1..1_000_000, name: \"user-######\"}`."
        ),
        now("rows", Count, "How many rows are made up."),
        now(
            "take",
            Words(&["unique", "circular", "random", "shuffle", "per user"]),
            "Which row a user gets; `circular` if left out."
        ),
        now(
            "at_end",
            Words(&["stop", "wrap", "error"]),
            "What happens when every row was used; `stop` if left out."
        ),
        now("separator", Text, "What stands between the fields of a CSV file; `,` if left out."),
        now("columns", List(&Text), "The names of the columns where the file has no first line \
             with them."),
    ];
    SESSION = "a session" [
        now(
            "weight",
            Count,
            "How many users do it in proportion to the other sessions; 1 if left out."
        ),
        now(
            "users",
            Count,
            "Exactly so many users do it, the first ones, instead of a weight."
        ),
        now("before", Steps, "Steps done once, when the user comes."),
        now("steps", Steps, "The steps of an iteration."),
        now("after", Steps, "Steps done once, when the user leaves."),
        now(
            "headers",
            HEADERS,
            "Headers of all its requests; one with a saved value begins behind the step that saves it."
        ),
        now("timeout", Duration, "How long a step may take when it does not say so itself."),
        now("on_error", ON_ERRORS, "What a user does when a step fails."),
        now("target", TARGETS, "Another target than that of the scenario, or one of `targets`."),
        now(
            "protocol",
            SPOKEN,
            "Another protocol than that of the scenario; `none` for raw bytes."
        ),
        now(
            "heartbeat",
            HEARTBEATS,
            "Sent while the user is online, instead of that of the protocol; `none` for none."
        ),
        now("on", HANDLERS, "What the target may say at any time."),
        now("every", EVERIES, "What is done again and again while the user is online."),
    ];
    ONCE = "`setup` or `teardown`" [
        now("steps", Steps, "The steps, done once in the whole run."),
        now("timeout", Duration, "How long all of them may take together; 1m if left out."),
    ];
    HTTP = "an `http` step" [
        now("http", Text, "Method and path: `GET /`."),
        now("target", Text, "The one of `targets` where it goes, if that is not clear."),
        now("name", Text, "Its row in reports; what stands behind `http:` if left out."),
        LABEL,
        now("headers", HEADERS, "Headers of the request."),
        now("cookies", COOKIES, "Cookies of the request, besides those that the target has set."),
        now("json", Anything, "A JSON body, written as YAML."),
        now("form", FORM, "A form as browsers send it, url-encoded."),
        now(
            "body",
            OneOf(&[Text, Kind(&BODY)]),
            "The body: a text, `{file: path}` or `{hex: bytes}`."
        ),
        now("multipart", List(&Kind(&PART)), "The parts of a form with files."),
        now("auth", Kind(&AUTH), "Basic or digest authentication: `{user: name, password: word}`."),
        now("check", Kind(&CHECK), "What the answer has to be."),
        now("save", SAVES, "Values kept from the answer."),
        now("timeout", Duration, "From the time it is due to the last byte."),
        now("redirects", REDIRECTS, "`follow`, or how many in a row are followed."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when the step fails: `{times: 5, wait: 1s..30s}`."),
    ];
    GRPC = "a `grpc` step" [
        now("grpc", Text, "The method that is called: `package.Service/Method`."),
        now("target", Text, "The one of `targets` where it goes, if that is not clear."),
        now("name", Text, "Its row in reports; the method if left out."),
        LABEL,
        now("message", FIELDS, "The message that is sent: `{sku: tea, count: 2}`."),
        now(
            "messages",
            List(&FIELDS),
            "The messages that are sent, one after another, where the method takes several."
        ),
        now("metadata", METADATA, "Metadata of the call: `{authorization: \"Bearer ${saved.token}\"}`."),
        now("compress", Words(&["gzip", "none"]), "`gzip` compresses the messages that are sent."),
        now("check", Kind(&CHECK), "The status that is expected, and what each reply has to be."),
        now("save", SAVES, "Values kept from the last reply."),
        now("timeout", Duration, "From the time it is due to its status; the target is told it."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when the step fails: `{times: 5, wait: 1s..30s}`."),
    ];
    CONNECT = "a `connect` step" [
        now(
            "connect",
            OneOf(&[Text, Nothing]),
            "Opens the connection; the path of a WebSocket upgrade or of an event stream, or the \
             method of a gRPC call."
        ),
        now(
            "events",
            Bool,
            "`true` opens a stream of server-sent events on an `http://` or `https://` target."
        ),
        now("target", Text, "The one of `targets` where it leads, if that is not clear."),
        now("as", Text, "What the connection is called, if a session has several to one target."),
        now("name", Text, "Its row in reports; `connect` if left out."),
        LABEL,
        now("headers", HEADERS, "Headers of the WebSocket upgrade, or of the request."),
        now("protocols", TEXTS, "WebSocket sub-protocols to offer."),
        now("metadata", METADATA, "Metadata of the gRPC call."),
        now("message", FIELDS, "The first message of the gRPC call: `{room: 7}`."),
        now(
            "compress",
            Words(&["gzip", "none"]),
            "`gzip` compresses the messages that are sent on the gRPC call."
        ),
        now("auth", Kind(&AUTH), "Basic authentication of the upgrade or request."),
        now("timeout", Duration, "How long opening may take."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when it fails: `{times: 5, wait: 1s..30s}`."),
        now(
            "reconnect",
            RECONNECTS,
            "What follows a lost connection: `never`, or `{times: 5, wait: 1s..30s}`."
        ),
        now(
            "heartbeat",
            HEARTBEATS,
            "Sent while this connection is open, instead of that of the protocol; `none` for none."
        ),
        now("on", HANDLERS, "What the target may say on this connection at any time."),
        now(
            "every",
            EVERIES,
            "What is done again and again while this connection is open."
        ),
        later(
            "check",
            Kind(&CHECK),
            "What the answer to the upgrade has to be.",
            say!("leave it out: only an upgrade that is accepted opens the connection")
        ),
        later(
            "save",
            Map(&Anything),
            "Values kept from the answer.",
            say!("leave it out and save from the first message: `- {{expect: any, save: {{…}}}}`")
        ),
    ];
    DISCONNECT = "a `disconnect` step" [
        now(
            "disconnect",
            OneOf(&[Nothing, PARTINGS]),
            "Ends the connection: `fin` in order, `reset`, `vanish` without a word, or `half_close`."
        ),
        ON_LINK,
    ];
    SEND = "a `send` step" [
        now(
            "send",
            MESSAGES,
            "A message: `{text: …}`, `{json: …}`, `{hex: …}`, `{file: …}`, or one of the protocol."
        ),
        ON_LINK,
        now("name", Text, "Its row in reports; `send` or its message if left out."),
        LABEL,
        now("cut", Size, "Only so many of its bytes are sent, on purpose."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when the step fails: `{times: 5, wait: 1s..30s}`."),
    ];
    EXPECT = "an `expect` step" [
        now(
            "expect",
            EXPECTATIONS,
            "The message that has to come: `any`, what it has to be, or one of the protocol."
        ),
        ON_LINK,
        now("name", Text, "Its row in reports; `expect` or its message if left out."),
        LABEL,
        now("check", Kind(&CHECK), "What the message has to be."),
        now("save", SAVES, "Values kept from the message."),
        now("timeout", Duration, "How long it may take."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when the step fails: `{times: 5, wait: 1s..30s}`."),
    ];
    REQUEST = "a `request` step" [
        now("request", MESSAGES, "The message that is sent; its answer is waited for."),
        ON_LINK,
        now("name", Text, "Its row in reports; `request` or its message if left out."),
        LABEL,
        now("cut", Size, "Only so many of its bytes are sent, on purpose."),
        now(
            "match",
            Kind(&EXPECTATION),
            "Which message is the answer, as `{json: {id: 7}}`; the next one if left out. Others \
             that come meanwhile are pushes.",
        ),
        now("expect", EXPECTATIONS, "Where the answer ends and what it has to be."),
        now("check", Kind(&CHECK), "What the answer has to be."),
        now("save", SAVES, "Values kept from the answer."),
        now("timeout", Duration, "From the time it is due to the end of the answer."),
        now("on_error", ON_ERRORS, "What the user does when the step fails."),
        now("retry", RETRIES, "Tries again when the step fails: `{times: 5, wait: 1s..30s}`."),
    ];
    THINK = "a `think` step" [
        now(
            "think",
            OneOf(&[DurationRange, Kind(&THINK_TIME)]),
            "A pause: `2s`, one from a range, `1s..5s`, or a distribution."
        ),
    ];
    THINK_TIME = "a think time" [
        now("exponential", Duration, "The mean of an exponential distribution."),
        now("normal", Duration, "The mean of a normal distribution."),
        now("deviation", Duration, "The standard deviation of a normal distribution."),
        now("max", Duration, "Exponential: no pause is longer; 10 times the mean if left out."),
    ];
    STAY = "a `stay` step" [
        now(
            "stay",
            OneOf(&[Duration, Words(&["forever"])]),
            "Stays and listens: `10m` or `forever`."
        ),
        now("name", Text, "Its row in reports; `stay` if left out."),
        LABEL,
        now(
            "on_error",
            LOST_ERRORS,
            "What the user does when its connection is lost; `count` connects again."
        ),
        now(
            "heartbeat",
            HEARTBEATS,
            "A message sent again and again, and its answer: `{ping: true, every: 30s}`."
        ),
        now("on", HANDLERS, "What the target may say at any time, counted by name."),
        now("every", EVERIES, "What is done again and again meanwhile."),
    ];
    HEARTBEAT = "a heartbeat" [
        now("send", MESSAGES, "A message of the protocol; that of its heartbeat if left out."),
        now("ping", Bool, "`true` sends a WebSocket ping; its answer is the pong."),
        now("text", Text, "A text message."),
        now("json", Anything, "A JSON message, written as YAML."),
        now("hex", Text, "A binary message in hexadecimal digits."),
        now("binary", Text, "The same as `hex`."),
        now("file", Text, "The bytes of a file: a text message if they are UTF-8, else binary."),
        now("every", Duration, "The time between two; users are spread evenly over it."),
        now(
            "lost_after",
            OneOf(&[Duration, Words(&["never"])]),
            "One that is not answered by then is lost; `10s` or `every` if left out, `never` \
             expects no answer."
        ),
        now(
            "expect",
            LOOKINGS,
            "What the answer looks like; if left out, any message that `on` does not take."
        ),
        now("name", Text, "Its row in reports; `heartbeat` if left out."),
        LABEL,
        now("stop_after", Count, "On purpose: no more are sent after so many on a connection."),
        now("late", Duration, "On purpose: each is sent so much later than it is due."),
        now("times", Count, "On purpose: each is sent so many times."),
    ];
    HANDLER = "an item of `on`" [
        now("message", LOOKINGS, "What the message looks like: `any` or `{json: {cmd: msg}}`."),
        now("from", Text, "The connection on which it comes, if a user has several open."),
        now("name", Text, "Its row in reports; made of `message` if left out."),
        LABEL,
        now("check", Kind(&CHECK), "What the message has to be."),
        now("save", SAVES, "Values kept from the message."),
        now("do", Steps, "Steps done when it comes, beside the user's own."),
        now("on_error", LOST_ERRORS, "What the user does when a check of it fails."),
    ];
    EVERY = "an item of `every`" [
        now("time", Duration, "The time between two; users are spread evenly over it."),
        now("do", Steps, "Steps done each time, beside the user's own."),
    ];
    LOOKS = "a message pattern" [
        now("any", Bool, "`true`: every message."),
        now("text", Text, "It contains this text."),
        now("json", Map(&Anything), "Fields of the JSON message: `{cmd: msg}`."),
        now("pattern", Text, "This regular expression matches somewhere in it."),
        now("event", Text, "The name of the event, on an event stream; `message` if it has none."),
    ];
    REPEAT = "a `repeat` step" [
        now(
            "repeat",
            OneOf(&[CountRange, Words(&["forever"])]),
            "How often: `3`, `3..10` or `forever`."
        ),
        now("steps", Steps, "The steps that are repeated."),
    ];
    DURING = "a `during` step" [
        now("during", Duration, "How long the steps are repeated: `5m`."),
        now("steps", Steps, "The steps that are repeated; the last pass is done to its end."),
    ];
    WHILE = "a `while` step" [
        now("while", Expression, "The steps are repeated as long as this is true."),
        now("steps", Steps, "The steps that are repeated."),
    ];
    FOR_EACH = "a `for_each` step" [
        now(
            "for_each",
            OneOf(&[Expression, List(&Anything)]),
            "A list: `\"${saved.ids}\"`, or its items."
        ),
        now("as", Text, "What the item is called in `${…}`; `item` if left out."),
        now("steps", Steps, "The steps done for every item."),
    ];
    CHOOSE = "a `choose` step" [
        now("choose", List(&Kind(&WAY)), "The ways; each user takes one of them by chance."),
    ];
    WAY = "a way of a choice" [
        now("weight", WEIGHT, "How often it is taken in proportion to the others: `70`, `70%`."),
        now("steps", Steps, "The steps of this way; `[]` does nothing."),
        now("use", Text, "The part that is done."),
        now("with", Map(&Anything), "Variables for the part."),
    ];
    IF = "an `if` step" [
        now("if", Expression, "The condition: `\"${saved.code == 0}\"`."),
        now("then", Steps, "The steps done when it is true."),
        now("steps", Steps, "The same as `then`."),
        now("else", Steps, "The steps done when it is not true."),
    ];
    TRANSACTION = "a `transaction` step" [
        now("transaction", Text, "Its row in reports: all its steps timed together."),
        LABEL,
        now("steps", Steps, "The steps that are timed together."),
    ];
    PARALLEL = "a `parallel` step" [
        now(
            "parallel",
            List(&Steps),
            "Branches, each a list of steps, that are done at the same time; what follows is done \
             when all are over."
        ),
        now(
            "max",
            Count,
            "How many connections to one target a user has for them at most; 6 if left out, as \
             browsers have."
        ),
        now("name", Text, "Its row in reports: all branches timed together."),
        LABEL,
    ];
    RENDEZVOUS = "a `rendezvous` step" [
        now("rendezvous", Text, "The place where users wait for each other."),
        LABEL,
        now(
            "users",
            Count,
            "How many go on together; the most users of the load if left out."
        ),
        now("timeout", Duration, "Who has waited this long goes on alone; 1m if left out."),
    ];
    SET = "a `set` step" [
        now("set", Map(&Anything), "Values for `${saved.name}`."),
    ];
    COUNT = "a `count` step" [
        now("count", Text, "The counter, a name of your own: goals may say `NAME count > 10`."),
        now("by", OneOf(&[Count, Expression]), "What is added, a whole number; 1 if left out."),
        LABEL,
    ];
    MEASURE = "a `measure` step" [
        now("measure", Text, "The trend, a name of your own: goals may say `NAME p95 < 3`."),
        now("value", OneOf(&[Text, Expression]), "The value, a number that is not below 0."),
        now(
            "unit",
            Words(&["ns", "us", "ms", "s", "bytes"]),
            "What the value is: a time in this unit, or bytes; a plain number if left out."
        ),
        LABEL,
    ];
    LOG = "a `log` step" [
        now("log", Text, "A line for the record of the run."),
    ];
    SLOW = "a `slow` step" [
        now(
            "slow",
            OneOf(&[Words(&["off"]), Kind(&SPEED)]),
            "From now on the user reads and writes no faster than this: `{read: 1KiB/s}`."
        ),
        ON_LINK,
    ];
    SPEED = "a speed" [
        now("read", Text, "Bytes per second: `1KiB/s`; `0B/s` reads nothing."),
        now("write", Text, "Bytes per second: `100B/s`."),
    ];
    NEXT = "a `next` step" [
        now("next", Nothing, "Ends the iteration."),
    ];
    LEAVE = "a `leave` step" [
        now("leave", Nothing, "The user leaves in peace."),
    ];
    STOP = "a `stop` step" [
        now("stop", OneOf(&[Text, Nothing]), "Ends the whole run in order, for this reason."),
    ];
    USE = "a `use` step" [
        now("use", Text, "The part whose steps are done here."),
        now("with", Map(&Anything), "Variables for the part: `${vars.name}` inside it."),
    ];
    RETRY = "`retry`" [
        now(
            "on",
            OneOf(&[Text, List(&Text)]),
            "Statuses (`429`, `5xx`, `UNAVAILABLE`) and causes (`timeout`, `reset`) that are tried \
             again; all if left out."
        ),
        now(
            "times",
            OneOf(&[Count, Words(&["forever"])]),
            "Tries after the first; 3 if left out."
        ),
        now(
            "wait",
            DurationRange,
            "The wait before the next try, doubling from one end to the other; 1s..30s if left \
             out. `Retry-After` of an answer makes it longer, up to a minute."
        ),
    ];
    RECONNECT = "`reconnect`" [
        now(
            "times",
            OneOf(&[Count, Words(&["forever"])]),
            "Attempts in a row after a loss; 3 if left out."
        ),
        now(
            "wait",
            DurationRange,
            "The wait before the next attempt, doubling from one end to the other; 1s..30s \
             if left out."
        ),
    ];
    AUTH = "`auth`" [
        now("user", Text, "The name of the user."),
        now("password", Text, "The password."),
        now(
            "scheme",
            Words(&["basic", "digest"]),
            "`digest` answers what the target asks (RFC 7616); `basic` if left out."
        ),
    ];
    BODY = "a body" [
        now("file", Text, "The bytes of a file; its path counts from the scenario file."),
        now("hex", Text, "Bytes in hexadecimal digits."),
    ];
    PART = "a part" [
        now("name", Text, "The name of the form field."),
        now("value", OneOf(&[Text, Nothing]), "Its text."),
        now("file", Text, "Its bytes, from a file."),
        now(
            "filename",
            Text,
            "The name that is sent for the file; the last of its path if left out."
        ),
        now("type", Text, "Its Content-Type."),
    ];
    MESSAGE = "a message" [
        now("text", Text, "A text message."),
        now("json", Anything, "A JSON message, written as YAML."),
        now("hex", Text, "A binary message in hexadecimal digits."),
        now("binary", Text, "The same as `hex`."),
        now("file", Text, "The bytes of a file: a text message if they are UTF-8, else binary."),
        now("garbage", Size, "So many random bytes."),
    ];
    EXPECTATION = "an expectation" [
        now("any", Bool, "`true`: whatever comes first."),
        now("length", Count, "The answer has so many bytes."),
        now("delimiter", Text, "The answer ends with these characters: `\"\\r\\n\"`."),
        now("pattern", Text, "The answer ends where this regular expression matches."),
        now("text", Text, "The answer contains this text."),
        now("json", Map(&Anything), "Fields of the JSON answer."),
        now("event", Text, "The name of the event, on an event stream; `message` if it has none."),
    ];
    CHECK = "a check" [
        now(
            "status",
            TEXTS,
            "`200`, `2xx`, `200..299` or a list of them; of a gRPC call `OK`, `NOT_FOUND`, `5`."
        ),
        now(
            "header",
            Map(&OneOf(&[Text, Kind(&TEXT_CHECK)])),
            "Headers of the answer: `{content-type: text/plain}`."
        ),
        now("text", OneOf(&[Text, Kind(&TEXT_CHECK)]), "The answer contains this text."),
        now("body", OneOf(&[Text, Kind(&TEXT_CHECK)]), "The same as `text`."),
        now(
            "json",
            Map(&Anything),
            "Fields of the JSON answer: `{data.code: 0}`; also `json.data.code: 0`."
        ),
        now(
            "regex",
            OneOf(&[Text, FOUND]),
            "A regular expression matches: `'id=\\d+'`, or `{'id=(\\d+)': 7}`."
        ),
        now("xpath", OneOf(&[Text, FOUND]), "Parts of an XML answer: `{//title: Hello}`."),
        now("css", OneOf(&[Text, FOUND]), "Parts of an HTML answer: `{li.item: {count: 3}}`."),
        now("size", Text, "Bytes of the answer: `200`, `< 10KiB` or `1KiB..2KiB`."),
        now("time", Text, "The whole answer came in time: `< 500ms`."),
        now("digest", Map(&Text), "The digest of the answer: `{sha256: …}`."),
        now(
            "that",
            OneOf(&[Expression, List(&Expression)]),
            "This is true: `\"${response.json.total == 3}\"`."
        ),
        now(
            "field",
            Map(&Anything),
            "Fields of a message whose names are words of checks: `{time: > 5}`."
        ),
    ];
    TEXT_CHECK = "a text check" [
        now("contains", Text, "It contains this text."),
        now("equals", Text, "It is this text."),
        now("matches", Text, "This regular expression matches somewhere in it."),
    ];
    FOUND_CHECK = "a check of what is found" [
        now("contains", Text, "It contains this text."),
        now("equals", Text, "It is this text."),
        now("matches", Text, "This regular expression matches somewhere in it."),
        now("count", Text, "So many are found: `3` or `>= 3`."),
    ];
    SAVE = "a saved value" [
        now("json", Text, "The way to a JSON field: `data.items[0].id`."),
        now("regex", Text, "A regular expression; its first group, or all that matches."),
        now("xpath", Text, "A part of an XML answer."),
        now("css", Text, "A part of an HTML answer: `input[name=csrf]@value`."),
        now("header", Text, "A header of the answer."),
        now("field", Text, "A field of a declared message, or of one of protobuf."),
        now("all", Bool, "`true` keeps all that is found, as a list."),
        now("default", Anything, "Kept when nothing is found; without it that is a failure."),
    ];
    LOAD = "a load" [
        now("sessions", TEXTS, "The sessions that its users do; a load alone may leave it out."),
        now("phases", List(&Kind(&PHASE)), "Its phases, one after another."),
        now("at", Duration, "How long after the begin of the run it begins; at once if left out."),
        now("after", Text, "Begins when the phases of the load of this name are over."),
        now("with", Text, "Begins with the load of this name."),
    ];
    PHASE = "a phase" [
        now("name", Text, "What reports and thresholds call it."),
        now(
            "users",
            OneOf(&[Count, Kind(&USERS)]),
            "How many users are online: `100`, or `{to: 100, rate: 50/s}`."
        ),
        now(
            "arrivals",
            OneOf(&[Rate, Kind(&ARRIVALS)]),
            "New users per second: `900/s`, or `{from: 10/s, to: 900/s}`."
        ),
        now(
            "iterations",
            OneOf(&[Rate, Count, Kind(&ITERATIONS)]),
            "Starts per second (`500/s`) or in all (`10_000`) on users who stay."
        ),
        now("for", Duration, "How long the phase takes."),
        now("measured", Bool, "`false` keeps it out of the summary, as a warm-up."),
        now(
            "churn",
            OneOf(&[Rate, Kind(&CHURN)]),
            "Users whose connection ends and who come back: `{share: 20%, every: 10s}`."
        ),
        now("at_once", Bool, "`true`: all `users` come in the same moment."),
        now(
            "spacing",
            Words(&["even", "poisson"]),
            "How starts at a rate follow each other: `even`, or `poisson` by chance; `even` if left \
             out."
        ),
        now(
            "max",
            Count,
            "The most users at once of `arrivals`, or instead of `users` of `iterations`: starts \
             that no user is free for are dropped."
        ),
    ];
    USERS = "`users`" [
        now("to", Count, "How many users there are at the end."),
        now("rate", Rate, "Users per second on the way there; all at once if left out."),
        now("step", Count, "How many at a time, instead of a rate: `{step: 1000, every: 30s}`."),
        now("every", Duration, "The time between two steps."),
        now("at_once", Bool, "`true`: all of them in the same moment."),
    ];
    CHURN = "`churn`" [
        now("share", Share, "How many of those who stay fall out each time: `20%`."),
        now("every", Duration, "The time between two falls of a share."),
        now("rate", Rate, "How many fall out per second, evenly: `500/s`."),
        now(
            "how",
            OneOf(&[PARTINGS, List(&PARTINGS)]),
            "How connections end, in turn: `fin` in order, `reset`, `vanish` without a word, \
             `half_close`; `fin` if left out."
        ),
    ];
    ARRIVALS = "`arrivals`" [
        now("from", Rate, "The rate at the begin of the phase; 0 if left out."),
        now("to", Rate, "The rate at its end."),
    ];
    DELIVERY = "a delivery" [
        now("sent", Text, "What is sent: a message of the protocol, or the name of a step."),
        now("received", LOOKINGS, "What the receivers get: a message of the protocol, or its looks."),
        now(
            "match",
            OneOf(&[Text, Kind(&MATCH)]),
            "What tells messages apart: `id`, `json.id`, `{regex: …}`, or one on either side."
        ),
        now("stamp", MARKS, "Where the time of sending stands, in nanoseconds since 1970."),
        now(
            "audience",
            OneOf(&[Words(&["everyone"]), Kind(&AUDIENCE)]),
            "Who has to receive it; `everyone` if left out."
        ),
        now("without_sender", Bool, "`true`: the sender itself does not get it."),
        now("late_after", Duration, "Later than this is late; 1s if left out."),
        now("lost_after", Duration, "Later than this is lost; 10s if left out."),
    ];
    MATCH = "`match`" [
        now("sent", MARKS, "Where it stands in what is sent."),
        now("received", MARKS, "Where it stands in what is received."),
        now("json", Text, "On both sides: a JSON field, `data.id`."),
        now("prefix", Text, "What stands before the JSON: `42` in `42[\"say\",{…}]`."),
        now("regex", Text, "On both sides: the first group of this regular expression, or all of it."),
    ];
    MARK = "the place of an id or a stamp" [
        now("json", Text, "A JSON field, `data.id` or `[1].id`."),
        now("prefix", Text, "What stands before the JSON: `42` in `42[\"say\",{…}]`."),
        now("regex", Text, "The first group of this regular expression, or all of it."),
    ];
    AUDIENCE = "an audience" [
        now("same", Expression, "Those for whom this is the same as for the sender."),
        now("to", Expression, "For the sender: whom it is for."),
        now("is", Expression, "For the receivers: those for whom this is the value of `to`."),
    ];
    ITERATIONS = "`iterations`" [
        now("total", Count, "How many iterations in all."),
        now("rate", Rate, "How many begin per second; as many as the users can if left out."),
    ];
}

/// The verbs of steps and the maps they make.
pub static VERBS: &[(&str, &MapKind)] = &[
    ("http", &HTTP),
    ("grpc", &GRPC),
    ("connect", &CONNECT),
    ("disconnect", &DISCONNECT),
    ("send", &SEND),
    ("expect", &EXPECT),
    ("request", &REQUEST),
    ("think", &THINK),
    ("stay", &STAY),
    ("repeat", &REPEAT),
    ("during", &DURING),
    ("while", &WHILE),
    ("for_each", &FOR_EACH),
    ("choose", &CHOOSE),
    ("if", &IF),
    ("transaction", &TRANSACTION),
    ("parallel", &PARALLEL),
    ("rendezvous", &RENDEZVOUS),
    ("set", &SET),
    ("count", &COUNT),
    ("measure", &MEASURE),
    ("log", &LOG),
    ("slow", &SLOW),
    ("next", &NEXT),
    ("leave", &LEAVE),
    ("stop", &STOP),
    ("use", &USE),
];

/// Verbs that may stand alone, as a word instead of a map.
pub static BARE_VERBS: &[&str] = &["connect", "disconnect", "next", "leave", "stop"];

/// Verbs of the language that are not in this version.
pub static VERBS_LATER: &[&str] = &["publish", "subscribe"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_documented() {
        for (_, kind) in MAP_KINDS {
            for (i, key) in kind.keys.iter().enumerate() {
                assert!(key.doc.ends_with('.'), "{}", key.name);
                assert!(kind.keys[..i].iter().all(|other| other.name != key.name), "{}", key.name);
            }
        }
        assert!(VERBS.iter().all(|(verb, kind)| kind.find(verb).is_some()));
        assert!(BARE_VERBS.iter().all(|bare| VERBS.iter().any(|(verb, _)| verb == bare)));
    }
}
