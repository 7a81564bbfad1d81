//! The keys of every map of the language, each with its one-line meaning and the shape of its
//! value: read by the reader, shown in messages, and the source of the JSON Schema.

mod shape;

pub use shape::{KeyDoc, MapKind, Shape};

use shape::later;
pub(crate) use shape::now;

/// The tables of maps, from what is said of them.
macro_rules! tables {
    ($all:ident: $($name:ident $struct:ident = $what:literal {
        $($key:ident $($word:literal)? $([$($type:ident)+])?: $shape:expr => $doc:expr,)*
    } $(=> later {
        $($late:ident: $late_shape:expr => $late_doc:expr, $instead:expr,)*
    })?)*) => {
        $(pub static $name: MapKind = MapKind {
            what: say!($what),
            keys: &[
                $(now(key_name!($key $($word)?), $shape, $doc),)*
                $($(later(stringify!($late), $late_shape, $late_doc, $instead),)*)?
            ],
        };)*

        /// All kinds of maps.
        pub static $all: &[(&str, &MapKind)] = &[$((stringify!($name), &$name),)*];
    };
}

/// How a key is written: as its field is called, or another word.
macro_rules! key_name {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident $word:literal) => {
        $word
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
/// Ends of a connection.
const ENDS: Shape = OneOf(&[Whole, Words(&["any"]), List(&Whole)]);
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
const ONCES: Shape = OneOf(&[Steps, Kind(&ONCE)]);
const LABELS: Shape = Map(&Text);
const LOST_ERRORS: Shape = Words(&["count", "next", "leave", "stop"]);

const LABEL: &str = "Labels of its row, by which thresholds may choose: `{tier: gold}`.";
const ON_LINK: &str = "The connection that is meant, if a user has several open.";
const UNIX_SOCKET: &str = "Connections go to this socket of this host instead of an address: \
     `/run/app.sock`, or `@name` for an abstract one.";

/// What is said of the maps of a scenario: made into tables here, and into structs by
/// [`crate::ast`].
macro_rules! scenario_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
    SCENARIO Scenario = "a scenario" {
        name: Text => "What the run is called in reports.",
        label: Map(&Text) =>
            "Labels of the run in its record and reports: `{release: 1.4, region: east}`.",
        target: TARGETS =>
            "The service: a URL without a path, a list of them, `{url: …, unix_socket: …}`, or a \
             name from `targets`.",
        targets: Map(&TARGETS) =>
            "Several services by name: `{api: http://127.0.0.1:8080, chat: ws://127.0.0.1:8089}`.",
        tls: Kind(&TLS) => "How TLS is spoken with https, wss, tls and grpcs targets.",
        connection: Kind(&CONNECTION) => "How connections are opened and kept.",
        defaults: Kind(&DEFAULTS) => "What holds for all steps that do not say otherwise.",
        limits: Kind(&LIMITS) => "What a target may make us hold.",
        seed: Whole => "The same seed gives the same users; drawn anew for each run if left out.",
        vars: VARIABLES => "Values for `${vars.name}`; `--set name=value` overrides them.",
        include: TEXTS => "Other files whose parts, vars, data and defaults are used here.",
        parts [Named Steps]: Map(&Steps) => "Steps shared by name, for `- use: name`.",
        sessions [Named Session]: Map(&Kind(&SESSION)) => "What users do, by name.",
        setup [Aside]: ONCES =>
            "Steps that one user does once, before the load: what they save is `${setup.name}`.",
        teardown [Aside]: ONCES => "Steps that one user does once, when the load is over.",
        load: List(&Kind(&PHASE)) => "The phases of the run, one after another.",
        loads: Map(&Kind(&LOAD)) =>
            "Several loads side by side instead of `load`, by name, each with sessions and phases.",
        graceful_stop: Duration => "How long users may finish after the last phase.",
        precision: Duration =>
            "How late starts, ends of pauses and heartbeats may be, so that several share one \
             waking: `250us` if left out; `0s` wakes for each.",
        thresholds: List(&Text) => "Thresholds, such as `http p99 < 50ms`.",
        abort_when: List(&Text) =>
            "What ends the run before its time: `errors > 10% over 10s for 20s`.",
        source: Kind(&SOURCE) => "Where connections come from: `{addresses: 127.1.0.0/16}`.",
        outputs: List(&Kind(&OUTPUT)) =>
            "Who is told the figures of each second while the run goes on.",
        trace: Kind(&TRACE) => "Trace headers, to find slow requests in tracing.",
        monitor: List(&Kind(&MONITOR)) =>
            "Prometheus exporters that are read while the run goes on, for the report.",
        protocol: PROTOCOLS =>
            "A private protocol: the file that declares it; or `{delimiter: \"\\n\"}`, if all \
             that is known is how messages end.",
        proto: TEXTS =>
            "The `.proto` files, or sets of descriptors, of the services that `grpc` calls.",
        proto_path: TEXTS =>
            "Folders where `.proto` files and their imports are looked for, as `protoc` has them.",
        data: Map(&Kind(&DATA)) => "Rows for users from files, lists and generators.",
        deliveries: Map(&Kind(&DELIVERY)) =>
            "The ledger of messages, by name: who has to receive what.",
    } => later {
        audit: Anything =>
            "Comparing what the target believes with what is true.",
            say!("leave it out: throng does not audit the target yet"),
        events: Anything =>
            "Commands that run at a time of the run.",
            say!("leave it out and run the commands by hand"),
    }
    INCLUDED Included = "an included file" {
        include: TEXTS => "Further files whose parts, vars, data and defaults are used.",
        parts: Map(&Steps) => "Steps shared by name, for `- use: name`.",
        vars: VARIABLES => "Values for `${vars.name}`.",
        data: Map(&Kind(&DATA)) => "Rows for users.",
        defaults: Kind(&DEFAULTS) => "What holds for all steps that do not say otherwise.",
    }
    TARGET Target = "a target" {
        url: Text => "The URL of its one address, without a path.",
        unix_socket: Text => UNIX_SOCKET,
        addresses: ADDRESS_LIST =>
            "Several addresses of the service, instead of `url`; users are spread over them.",
        protocol: SPOKEN =>
            "The private protocol that is spoken there, instead of that of the session or \
             scenario.",
    }
    ADDRESS Address = "an address" {
        url: Text => "The URL of this address, without a path.",
        weight: Count => "How many users it gets in proportion to the others; 1 if left out.",
        unix_socket: Text => UNIX_SOCKET,
    }
    TLS Tls = "`tls`" {
        verify: Bool => "`false` accepts any certificate.",
        ca: Text => "A PEM file of certificates that are trusted instead of the system's.",
        certificate: Text => "A PEM file with the client's certificate chain.",
        key: Text => "A PEM file with the key of the client's certificate.",
        server_name: Text => "Sent and verified instead of the host of the target.",
        resumption: Bool => "`true` lets users who come back resume their TLS session.",
    }
    CONNECTION Connection = "`connection`" {
        keep_alive: Bool => "`false` opens a connection for every HTTP request.",
        resend: Words(&["idempotent", "never"]) =>
            "Whether a request that the target has not looked at is sent again: an idempotent \
             one that found its kept connection closed, and over HTTP/2 what the target says. \
             `never` fails it.",
        timeout: Duration => "What resolve, TCP, TLS and upgrade may take together.",
        sources: ADDRESSES => "The same as `addresses` of `source`.",
        family: Words(&["v4", "v6", "any"]) => "`v4`, `v6` or `any`.",
        resolve: Map(&ADDRESSES) =>
            "Addresses of hosts that are not looked up: `{\"shop.example:443\": 127.0.0.1}`.",
        connect_to: Map(&Text) =>
            "Where connections go instead: `{\"shop.example:443\": \"127.0.0.1:8443\"}`.",
        proxy: OneOf(&[Text, Kind(&PROXY)]) =>
            "An HTTP proxy that all connections go through, by CONNECT: \
             `http://proxy.example:3128`.",
        http_version: Words(&["1.1", "2", "auto"]) =>
            "`1.1`, `2`, or `auto`: over TLS what the target prefers of both.",
        streams: Count =>
            "How many iterations a user does at once over its one connection of HTTP/2, each \
             request a stream; 1 if it is not given.",
        deflate: Bool => "`true` offers compression on WebSocket connections.",
        cookies: Bool => "`false` forgets the cookies that the target sets.",
    }
    PROXY Proxy = "a proxy" {
        url: Text => "Its URL, with a port: `http://proxy.example:3128`.",
        user: Text => "The user that the proxy knows (Basic authentication).",
        password: Text => "The password of the user.",
    }
    DEFAULTS Defaults = "`defaults`" {
        headers: HEADERS => "Headers of every HTTP request and WebSocket upgrade.",
        timeout: Duration => "How long a step may take when it does not say so itself.",
        on_error: ON_ERRORS => "What a user does when a step fails.",
        cookies: COOKIES =>
            "Cookies of every HTTP request, WebSocket upgrade and event stream.",
    }
    LIMITS Limits = "`limits`" {
        head: Size => "The largest head of an answer.",
        body: Size => "The largest body that is kept for a check.",
        message: Size => "The largest message on a long-lived connection.",
        redirects: Count => "How many redirects in a row are followed.",
    }
    SOURCE Source = "`source`" {
        addresses: ADDRESSES =>
            "Local addresses, taken as needed: `127.0.0.2`, `127.1.0.1..127.1.0.200`, \
             `127.1.0.0/16` or `interface eth0`.",
        ports: Text => "Source ports: `20_000..60_000`; those of the system if left out.",
        transparent: Bool => "`true` for addresses that this host borrows and does not have.",
    }
    TRACE Trace = "`trace`" {
        header: Text => "The name of the header; `traceparent` if left out.",
        share: Share => "How many of the requests carry it; all if left out.",
    }
    MONITOR Monitor = "a source of `monitor`" {
        url: Text => "The URL of its metrics: `http://127.0.0.1:9100/metrics`.",
        name: Text => "What it is called in reports; its host and port if left out.",
        metrics: List(&OneOf(&[Text, Kind(&METRIC)])) =>
            "What is kept, as Prometheus selects it: `node_load1`, `up{job=\"shop\"}`.",
        every: Duration => "The time between two readings; `5s` if left out, `1s` at least.",
        headers: Map(&Text) => "Headers of its requests.",
    } => later {
        agent: Anything =>
            "An agent of throng on the target's host.",
            say!("name an exporter there: `url: \"http://127.0.0.1:9100/metrics\"`"),
    }
    METRIC Metric = "a metric" {
        metric: Text => "What is kept, as Prometheus selects it: `node_load1`.",
        name: Text => "What it is called in reports; as the metric if left out.",
        sum: Bool => "`true` adds up all series that are selected, to one.",
    }
    OUTPUT Output = "an output" {
        prometheus: Text => "The address where Prometheus scrapes them: `127.0.0.1:9464`.",
        prometheus_rw "prometheus-rw": Text => "The URL of a receiver of Prometheus remote write.",
        prometheus_rw_native "prometheus-rw-native": Text =>
            "The same, with native histograms instead of classic ones.",
        otlp: Text => "The URL of a receiver of OpenTelemetry over HTTP.",
        statsd: Text => "Host and port of a StatsD server.",
        influx: Text => "The URL to which InfluxDB's line protocol is written.",
        csv: Text => "A file of comma-separated values.",
        jsonl: Text => "A file of JSON lines.",
        hdr: Text => "A file of histograms, as HdrHistogram logs them.",
    }
    VARIABLE Variable = "a variable" {
        env: Text => "The name of an environment variable that has the value.",
        default: Anything => "The value where it is not set; without it that is a mistake.",
        value: Anything => "The value, beside `secret`.",
        secret: Bool => "`true` masks the value in records, errors and all that is printed.",
    }
    DATA Data = "a source of data" {
        csv: Text => "A CSV file; its path counts from the scenario file.",
        json_lines: Text => "A file with one JSON value per line.",
        list: List(&Anything) => "Rows written here: `[red, green]` or `[{name: ann}]`.",
        generate: Map(&Anything) => "Rows made up: `{id: 1..1_000_000, name: \"user-######\"}`.",
        rows: Count => "How many rows are made up.",
        take: Words(&["unique", "circular", "random", "shuffle", "per user"]) =>
            "Which row a user gets; `circular` if left out.",
        at_end: Words(&["stop", "wrap", "error"]) =>
            "What happens when every row was used; if left out, the run ends and its result is \
             invalid.",
        separator: Text => "What stands between the fields of a CSV file; `,` if left out.",
        columns: List(&Text) =>
            "The names of the columns where the file has no first line with them.",
    }
    SESSION Session = "a session" {
        weight: Count => "How many users do it in proportion to the other sessions; 1 if left out.",
        users: Count => "Exactly so many users do it, the first ones, instead of a weight.",
        before [List Step]: Steps => "Steps done once, when the user comes.",
        steps [List Step]: Steps => "The steps of an iteration.",
        after [List Step]: Steps => "Steps done once, when the user leaves.",
        headers: HEADERS =>
            "Headers of all its requests; one with a saved value is sent as soon as the \
             user has the value.",
        timeout: Duration => "How long a step may take when it does not say so itself.",
        on_error: ON_ERRORS => "What a user does when a step fails.",
        target: TARGETS => "Another target than that of the scenario, or one of `targets`.",
        protocol: SPOKEN => "Another protocol than that of the scenario; `none` for raw bytes.",
        heartbeat: HEARTBEATS =>
            "Sent while the user is online, instead of that of the protocol; `none` for none.",
        on [List Handler]: HANDLERS => "What the target may say at any time.",
        every [List Every]: EVERIES => "What is done again and again while the user is online.",
    }
    ONCE Once = "`setup` or `teardown`" {
        steps [List Step]: Steps => "The steps, done once in the whole run.",
        timeout: Duration => "How long all of them may take together; 1m if left out.",
    }
    HTTP Http = "an `http` step" {
        http: Text => "Method and path: `GET /`.",
        target: Text => "The one of `targets` where it goes, if that is not clear.",
        name: Text => "Its row in reports; what stands behind `http:` if left out.",
        label: LABELS => LABEL,
        headers: HEADERS => "Headers of the request.",
        query: FORM =>
            "Added to the path, encoded: `{page: 2, tag: [red, blue]}`.",
        cookies: COOKIES => "Cookies of the request, besides those that the target has set.",
        json: Anything => "A JSON body, written as YAML.",
        form: FORM => "A form as browsers send it, url-encoded.",
        body: OneOf(&[Text, Kind(&BODY)]) => "The body: a text, `{file: path}` or `{hex: bytes}`.",
        multipart: List(&Kind(&PART)) => "The parts of a form with files.",
        auth: Kind(&AUTH) => "Basic or digest authentication: `{user: name, password: word}`.",
        check: Kind(&CHECK) => "What the answer has to be.",
        save [Saves]: SAVES => "Values kept from the answer.",
        timeout: Duration => "From the time it is due to the last byte.",
        redirects: REDIRECTS => "`follow`, or how many in a row are followed.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    GRPC Grpc = "a `grpc` step" {
        grpc: Text => "The method that is called: `package.Service/Method`.",
        target: Text => "The one of `targets` where it goes, if that is not clear.",
        name: Text => "Its row in reports; the method if left out.",
        label: LABELS => LABEL,
        message: FIELDS => "The message that is sent: `{sku: tea, count: 2}`.",
        messages: List(&FIELDS) =>
            "The messages that are sent, one after another, where the method takes several.",
        metadata: METADATA => "Metadata of the call: `{authorization: \"Bearer ${saved.token}\"}`.",
        compress: Words(&["gzip", "none"]) => "`gzip` compresses the messages that are sent.",
        check: Kind(&CHECK) => "The status that is expected, and what each reply has to be.",
        save [Saves]: SAVES => "Values kept from the last reply.",
        timeout: Duration => "From the time it is due to its status; the target is told it.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    CONNECT Connect = "a `connect` step" {
        connect: OneOf(&[Text, Nothing]) =>
            "Opens the connection; the path of a WebSocket upgrade or of an event stream, which \
             may have a method (`POST /chat`), or the method of a gRPC call.",
        events: Bool =>
            "`true` opens a stream of server-sent events on an `http://` or `https://` target.",
        target: Text => "The one of `targets` where it leads, if that is not clear.",
        r#as "as": Text => "What the connection is called, if a session has several to one target.",
        name: Text => "Its row in reports; `connect` if left out.",
        label: LABELS => LABEL,
        headers: HEADERS => "Headers of the WebSocket upgrade, or of the request.",
        json: Anything => "The body of the request of an event stream, written as YAML.",
        form: FORM => "The same as a form, url-encoded.",
        body: OneOf(&[Text, Kind(&BODY)]) =>
            "The same as a text, `{file: path}` or `{hex: bytes}`.",
        protocols: TEXTS => "WebSocket sub-protocols to offer.",
        metadata: METADATA => "Metadata of the gRPC call.",
        message: FIELDS => "The first message of the gRPC call: `{room: 7}`.",
        compress: Words(&["gzip", "none"]) =>
            "`gzip` compresses the messages that are sent on the gRPC call.",
        auth: Kind(&AUTH) => "Basic authentication of the upgrade or request.",
        timeout: Duration => "How long opening may take.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when it fails: `{times: 5, wait: 1s..30s}`.",
        reconnect: RECONNECTS =>
            "What follows a lost connection: `never`, or `{times: 5, wait: 1s..30s}`.",
        heartbeat: HEARTBEATS =>
            "Sent while this connection is open, instead of that of the protocol; `none` for none.",
        on [List Handler]: HANDLERS => "What the target may say on this connection at any time.",
        every [List Every]: EVERIES =>
            "What is done again and again while this connection is open.",
    } => later {
        check: Kind(&CHECK) =>
            "What the answer to the upgrade has to be.",
            say!("leave it out: only an upgrade that is accepted opens the connection"),
        save: Map(&Anything) =>
            "Values kept from the answer.",
            say!("leave it out and save from the first message: `- {{expect: any, save: {{…}}}}`"),
    }
    DISCONNECT Disconnect = "a `disconnect` step" {
        disconnect: OneOf(&[Nothing, PARTINGS]) =>
            "Ends the connection: `fin` in order, `reset`, `vanish` without a word, or \
             `half_close`.",
        on: Text => ON_LINK,
    }
    SEND Send = "a `send` step" {
        send: MESSAGES =>
            "A message: `{text: …}`, `{json: …}`, `{hex: …}`, `{file: …}`, or one of the protocol.",
        on: Text => ON_LINK,
        name: Text => "Its row in reports; `send` or its message if left out.",
        label: LABELS => LABEL,
        cut: Size => "Only so many of its bytes are sent, on purpose.",
        timeout: Duration => "How long a target that does not read may keep it waiting.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    EXPECT Expect = "an `expect` step" {
        expect: EXPECTATIONS =>
            "The message that has to come: `any`, what it has to be, or one of the protocol.",
        on: Text => ON_LINK,
        name: Text => "Its row in reports; `expect` or its message if left out.",
        label: LABELS => LABEL,
        check: Kind(&CHECK) => "What the message has to be.",
        save [Saves]: SAVES => "Values kept from the message.",
        timeout: Duration => "How long it may take.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    REQUEST Request = "a `request` step" {
        request: MESSAGES => "The message that is sent; its answer is waited for.",
        on: Text => ON_LINK,
        name: Text => "Its row in reports; `request` or its message if left out.",
        label: LABELS => LABEL,
        cut: Size => "Only so many of its bytes are sent, on purpose.",
        r#match "match": Kind(&EXPECTATION) =>
            "Which message is the answer, as `{json: {id: 7}}`; the next one if left out. Others \
             that come meanwhile are pushes.",
        expect: EXPECTATIONS => "Where the answer ends and what it has to be.",
        check: Kind(&CHECK) => "What the answer has to be.",
        save [Saves]: SAVES => "Values kept from the answer.",
        timeout: Duration => "From the time it is due to the end of the answer.",
        on_error: ON_ERRORS => "What the user does when the step fails.",
        retry: RETRIES => "Tries again when the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    THINK Think = "a `think` step" {
        think: OneOf(&[DurationRange, Kind(&THINK_TIME)]) =>
            "A pause: `2s`, one from a range, `1s..5s`, or a distribution.",
    }
    THINK_TIME ThinkTime = "a think time" {
        exponential: Duration => "The mean of an exponential distribution.",
        normal: Duration => "The mean of a normal distribution.",
        deviation: Duration => "The standard deviation of a normal distribution.",
        max: Duration => "Exponential: no pause is longer; 10 times the mean if left out.",
    }
    STAY Stay = "a `stay` step" {
        stay: OneOf(&[Duration, Words(&["forever"])]) => "Stays and listens: `10m` or `forever`.",
        ends: ENDS =>
            "How the target may end the connection: then the step is done. The codes of a \
             WebSocket, `[1000, 4001]`, or `any`.",
        name: Text => "Its row in reports; `stay` if left out.",
        label: LABELS => LABEL,
        on_error: LOST_ERRORS =>
            "What the user does when its connection is lost; `count` connects again.",
        heartbeat: HEARTBEATS =>
            "A message sent again and again, and its answer: `{ping: true, every: 30s}`.",
        on [List Handler]: HANDLERS => "What the target may say at any time, counted by name.",
        every [List Every]: EVERIES => "What is done again and again meanwhile.",
    }
    HEARTBEAT Heartbeat = "a heartbeat" {
        send: MESSAGES => "A message of the protocol; that of its heartbeat if left out.",
        ping: Bool => "`true` sends a WebSocket ping; its answer is the pong.",
        text: Text => "A text message.",
        json: Anything => "A JSON message, written as YAML.",
        hex: Text => "A binary message in hexadecimal digits.",
        binary: Text => "The same as `hex`.",
        file: Text => "The bytes of a file: a text message if they are UTF-8, else binary.",
        every: Duration => "The time between two; users are spread evenly over it.",
        lost_after: OneOf(&[Duration, Words(&["never"])]) =>
            "One that is not answered by then is lost; `10s` or `every` if left out, `never` \
             expects no answer.",
        expect: LOOKINGS =>
            "What the answer looks like; if left out, any message that `on` does not take.",
        name: Text => "Its row in reports; `heartbeat` if left out.",
        label: LABELS => LABEL,
        stop_after: Count => "On purpose: no more are sent after so many on a connection.",
        late: Duration => "On purpose: each is sent so much later than it is due.",
        times: Count => "On purpose: each is sent so many times.",
    }
    HANDLER Handler = "an item of `on`" {
        message: LOOKINGS => "What the message looks like: `any` or `{json: {cmd: msg}}`.",
        from: Text => "The connection on which it comes, if a user has several open.",
        name: Text => "Its row in reports; made of `message` if left out.",
        label: LABELS => LABEL,
        check: Kind(&CHECK) => "What the message has to be.",
        save [Saves]: SAVES => "Values kept from the message.",
        r#do "do" [List Step]: Steps => "Steps done when it comes, beside the user's own.",
        on_error: LOST_ERRORS => "What the user does when a check of it fails.",
    }
    EVERY Every = "an item of `every`" {
        time: Duration => "The time between two; users are spread evenly over it.",
        r#do "do" [List Step]: Steps => "Steps done each time, beside the user's own.",
    }
    LOOKS Looks = "a message pattern" {
        any: Bool => "`true`: every message.",
        text: Text => "It contains this text.",
        json: Map(&Anything) => "Fields of the JSON message: `{cmd: msg}`.",
        pattern: Text => "This regular expression matches somewhere in it.",
        event: Text => "The name of the event, on an event stream; `message` if it has none.",
    }
    REPEAT Repeat = "a `repeat` step" {
        repeat: OneOf(&[CountRange, Words(&["forever"])]) =>
            "How often: `3`, `3..10` or `forever`.",
        steps [List Step]: Steps => "The steps that are repeated.",
    }
    DURING During = "a `during` step" {
        during: Duration => "How long the steps are repeated: `5m`.",
        steps [List Step]: Steps =>
            "The steps that are repeated; the last pass is done to its end.",
    }
    WHILE While = "a `while` step" {
        r#while "while": Expression => "The steps are repeated as long as this is true.",
        steps [List Step]: Steps => "The steps that are repeated.",
    }
    FOR_EACH ForEach = "a `for_each` step" {
        for_each: OneOf(&[Expression, List(&Anything)]) =>
            "A list: `\"${saved.ids}\"`, or its items.",
        r#as "as": Text => "What the item is called in `${…}`; `item` if left out.",
        steps [List Step]: Steps => "The steps done for every item.",
    }
    CHOOSE Choose = "a `choose` step" {
        choose [List Way]: List(&Kind(&WAY)) => "The ways; each user takes one of them by chance.",
    }
    WAY Way = "a way of a choice" {
        weight: WEIGHT => "How often it is taken in proportion to the others: `70`, `70%`.",
        steps [List Step]: Steps => "The steps of this way; `[]` does nothing.",
        r#use "use" [PartName]: Text => "The part that is done.",
        with: Map(&Anything) => "Variables for the part.",
    }
    IF If = "an `if` step" {
        r#if "if": Expression => "The condition: `\"${saved.code == 0}\"`.",
        then [List Step]: Steps => "The steps done when it is true.",
        steps [List Step]: Steps => "The same as `then`.",
        r#else "else" [List Step]: Steps => "The steps done when it is not true.",
    }
    TRANSACTION Transaction = "a `transaction` step" {
        transaction: Text => "Its row in reports: all its steps timed together.",
        label: LABELS => LABEL,
        steps [List Step]: Steps => "The steps that are timed together.",
    }
    PARALLEL Parallel = "a `parallel` step" {
        parallel [List Steps]: List(&Steps) =>
            "Branches, each a list of steps, that are done at the same time; what follows is \
             done when all are over.",
        max: Count =>
            "How many connections to one target a user has for them at most; 6 if left out, as \
             browsers have.",
        name: Text => "Its row in reports: all branches timed together.",
        label: LABELS => LABEL,
    }
    RENDEZVOUS Rendezvous = "a `rendezvous` step" {
        rendezvous: Text => "The place where users wait for each other.",
        label: LABELS => LABEL,
        users: Count => "How many go on together; the most users of the load if left out.",
        timeout: Duration => "Who has waited this long goes on alone; 1m if left out.",
    }
    SET Set = "a `set` step" {
        set [Saves]: Map(&Anything) => "Values for `${saved.name}`.",
    }
    COUNT Count = "a `count` step" {
        count: Text => "The counter, a name of your own: thresholds may say `NAME count > 10`.",
        by: OneOf(&[Count, Expression]) => "What is added, a whole number; 1 if left out.",
        label: LABELS => LABEL,
    }
    MEASURE Measure = "a `measure` step" {
        measure: Text => "The trend, a name of your own: thresholds may say `NAME p95 < 3`.",
        value: OneOf(&[Text, Expression]) => "The value, a number that is not below 0.",
        unit: Words(&["ns", "us", "ms", "s", "bytes"]) =>
            "What the value is: a time in this unit, or bytes; a plain number if left out.",
        label: LABELS => LABEL,
    }
    LOG Log = "a `log` step" {
        log: Text => "A line for the record of the run.",
    }
    SLOW Slow = "a `slow` step" {
        slow: OneOf(&[Words(&["off"]), Kind(&SPEED)]) =>
            "From now on the user reads and writes no faster than this: `{read: 1KiB/s}`.",
        on: Text => ON_LINK,
    }
    SPEED Speed = "a speed" {
        read: Text => "Bytes per second: `1KiB/s`; `0B/s` reads nothing.",
        write: Text => "Bytes per second: `100B/s`.",
    }
    NEXT Next = "a `next` step" {
        next: Nothing => "Ends the iteration.",
    }
    LEAVE Leave = "a `leave` step" {
        leave: Nothing => "The user leaves in peace.",
    }
    STOP Stop = "a `stop` step" {
        stop: OneOf(&[Text, Nothing]) => "Ends the whole run in order, for this reason.",
    }
    USE Use = "a `use` step" {
        r#use "use" [PartName]: Text => "The part whose steps are done here.",
        with: Map(&Anything) => "Variables for the part: `${vars.name}` inside it.",
    }
    RETRY Retry = "`retry`" {
        on: OneOf(&[Text, List(&Text)]) =>
            "Statuses (`429`, `5xx`, `UNAVAILABLE`) and causes (`timeout`, `reset`) that are \
             tried again; all if left out.",
        times: OneOf(&[Count, Words(&["forever"])]) => "Tries after the first; 3 if left out.",
        wait: DurationRange =>
            "The wait before the next try, doubling from one end to the other; 1s..30s if left \
             out. `Retry-After` of an answer makes it longer, up to a minute.",
    }
    RECONNECT Reconnect = "`reconnect`" {
        times: OneOf(&[Count, Words(&["forever"])]) =>
            "Attempts in a row after a loss; 3 if left out.",
        wait: DurationRange =>
            "The wait before the next attempt, doubling from one end to the other; 1s..30s if \
             left out.",
    }
    AUTH Auth = "`auth`" {
        user: Text => "The name of the user.",
        password: Text => "The password.",
        scheme: Words(&["basic", "digest"]) =>
            "`digest` answers what the target asks (RFC 7616); `basic` if left out.",
    }
    BODY Body = "a body" {
        file: Text => "The bytes of a file; its path counts from the scenario file.",
        hex: Text => "Bytes in hexadecimal digits.",
    }
    PART Part = "a part" {
        name: Text => "The name of the form field.",
        value: OneOf(&[Text, Nothing]) => "Its text.",
        file: Text => "Its bytes, from a file.",
        filename: Text => "The name that is sent for the file; the last of its path if left out.",
        r#type "type": Text => "Its Content-Type.",
    }
    MESSAGE Message = "a message" {
        text: Text => "A text message.",
        json: Anything => "A JSON message, written as YAML.",
        hex: Text => "A binary message in hexadecimal digits.",
        binary: Text => "The same as `hex`.",
        file: Text => "The bytes of a file: a text message if they are UTF-8, else binary.",
        garbage: Size => "So many random bytes.",
    }
    EXPECTATION Expectation = "an expectation" {
        any: Bool => "`true`: whatever comes first.",
        length: Count => "The answer has so many bytes.",
        delimiter: Text => "The answer ends with these characters: `\"\\r\\n\"`.",
        pattern: Text => "The answer ends where this regular expression matches.",
        text: Text => "The answer contains this text.",
        json: Map(&Anything) => "Fields of the JSON answer.",
        event: Text => "The name of the event, on an event stream; `message` if it has none.",
        close: ENDS =>
            "The target ends the connection: with this code of a WebSocket, one of these, or \
             `any`.",
    }
    CHECK Check = "a check" {
        status: TEXTS =>
            "`200`, `2xx`, `200..299` or a list of them; of a gRPC call `OK`, `NOT_FOUND`, `5`.",
        header: Map(&OneOf(&[Text, Kind(&TEXT_CHECK)])) =>
            "Headers of the answer: `{content-type: text/plain}`.",
        text: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The answer contains this text.",
        body: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The same as `text`.",
        json: Map(&Anything) =>
            "Fields of the JSON answer: `{data.code: 0}`; also `json.data.code: 0`.",
        regex: OneOf(&[Text, FOUND]) =>
            "A regular expression matches: `'id=\\d+'`, or `{'id=(\\d+)': 7}`.",
        xpath: OneOf(&[Text, FOUND]) => "Parts of an XML answer: `{//title: Hello}`.",
        css: OneOf(&[Text, FOUND]) => "Parts of an HTML answer: `{li.item: {count: 3}}`.",
        size: Text => "Bytes of the answer: `200`, `< 10KiB` or `1KiB..2KiB`.",
        time: Text => "The whole answer came in time: `< 500ms`.",
        digest: Map(&Text) => "The digest of the answer: `{sha256: …}`.",
        that: OneOf(&[Expression, List(&Expression)]) =>
            "This is true: `\"${response.json.total == 3}\"`.",
        field: Map(&Anything) =>
            "Fields of a message whose names are words of checks: `{time: > 5}`.",
    }
    TEXT_CHECK TextCheck = "a text check" {
        contains: Text => "It contains this text.",
        equals: Text => "It is this text.",
        matches: Text => "This regular expression matches somewhere in it.",
    }
    FOUND_CHECK FoundCheck = "a check of what is found" {
        contains: Text => "It contains this text.",
        equals: Text => "It is this text.",
        matches: Text => "This regular expression matches somewhere in it.",
        count: Text => "So many are found: `3` or `>= 3`.",
    }
    SAVE Save = "a saved value" {
        json: Text => "The way to a JSON field: `data.items[0].id`.",
        regex: Text => "A regular expression; its first group, or all that matches.",
        xpath: Text => "A part of an XML answer.",
        css: Text => "A part of an HTML answer: `input[name=csrf]@value`.",
        header: Text => "A header of the answer.",
        field: Text => "A field of a declared message, or of one of protobuf.",
        all: Bool => "`true` keeps all that is found, as a list.",
        default: Anything => "Kept when nothing is found; without it that is a failure.",
    }
    LOAD Load = "a load" {
        sessions: TEXTS => "The sessions that its users do; a load alone may leave it out.",
        phases: List(&Kind(&PHASE)) => "Its phases, one after another.",
        at: Duration => "How long after the begin of the run it begins; at once if left out.",
        after: Text => "Begins when the phases of the load of this name are over.",
        with: Text => "Begins with the load of this name.",
    }
    PHASE Phase = "a phase" {
        name: Text => "What reports and thresholds call it.",
        users: OneOf(&[Count, Kind(&USERS)]) =>
            "How many users are online: `100`, or `{to: 100, rate: 50/s}`.",
        arrivals: OneOf(&[Rate, Kind(&ARRIVALS)]) =>
            "New users per second: `900/s`, `{from: 10/s, to: 900/s}`, or another shape.",
        iterations: OneOf(&[Rate, Count, Kind(&ITERATIONS)]) =>
            "Starts per second (`500/s`) or in all (`10_000`) on users who stay.",
        r#for "for": Duration => "How long the phase takes.",
        measured: Bool => "`false` keeps it out of the summary, as a warm-up.",
        churn: OneOf(&[Rate, Kind(&CHURN)]) =>
            "Users whose connection ends and who come back: `{share: 20%, every: 10s}`.",
        at_once: Bool => "`true`: all `users` come in the same moment.",
        spacing: Words(&["even", "poisson"]) =>
            "How starts at a rate follow each other: `even`, or `poisson` by chance; `even` if \
             left out.",
        max: Count =>
            "The most users at once of `arrivals`, or instead of `users` of `iterations`: starts \
             that no user is free for are dropped.",
    }
    USERS Users = "`users`" {
        to: Count => "How many users there are at the end.",
        rate: Rate => "Users per second on the way there; all at once if left out.",
        step: Count => "How many at a time, instead of a rate: `{step: 1000, every: 30s}`.",
        every: Duration => "The time between two steps.",
        at_once: Bool => "`true`: all of them in the same moment.",
    }
    CHURN Churn = "`churn`" {
        share: Share => "How many of those who stay fall out each time: `20%`.",
        every: Duration => "The time between two falls of a share.",
        rate: Rate => "How many fall out per second, evenly: `500/s`.",
        how: OneOf(&[PARTINGS, List(&PARTINGS)]) =>
            "How connections end, in turn: `fin` in order, `reset`, `vanish` without a word, \
             `half_close`; `fin` if left out.",
    }
    ARRIVALS Arrivals = "`arrivals`" {
        from: Rate => "The rate at the begin of the phase; 0 if left out.",
        to: Rate => "The rate at its end.",
        sine: Kind(&SINE) =>
            "A rate that swings: `{mean: 500/s, amplitude: 300/s, period: 10m}`.",
        points: OneOf(&[Text, Kind(&POINTS)]) =>
            "A CSV file with a time and a rate in each row: `day.csv`.",
        log: OneOf(&[Text, Kind(&ACCESS_LOG)]) =>
            "An access log in the common or combined format, whose times are replayed: \
             `access.log`.",
    }
    SINE Sine = "`sine`" {
        mean: Rate => "The rate that it swings around.",
        amplitude: Rate => "How far it goes up and down; at most the mean.",
        period: Duration => "The time from one peak to the next.",
        offset: Duration =>
            "How much of a period is over at the begin; at 0 the rate is the mean and rises.",
    }
    POINTS Points = "`points`" {
        file: Text => "The CSV file; its path counts from the scenario file.",
        time: Text =>
            "The column of the times: seconds, durations or clock times; the first if left out.",
        rate: Text => "The column of the rates per second; the second if left out.",
    }
    ACCESS_LOG AccessLog = "an access log" {
        file: Text => "The log, also compressed by gzip; its path counts from the scenario file.",
        speed: Text => "How many times as fast it is replayed: `2`, `0.5`; 1 if left out.",
    }
    DELIVERY Delivery = "a delivery" {
        sent: Text => "What is sent: a message of the protocol, or the name of a step.",
        received: LOOKINGS => "What the receivers get: a message of the protocol, or its looks.",
        r#match "match": OneOf(&[Text, Kind(&MATCH)]) =>
            "What tells messages apart: `id`, `json.id`, `{regex: …}`, or one on either side.",
        stamp: MARKS => "Where the time of sending stands: ns, µs or ms since 1970, or a date and time.",
        audience: OneOf(&[Words(&["everyone"]), Kind(&AUDIENCE)]) =>
            "Who has to receive it; `everyone` if left out.",
        without_sender: Bool => "`true`: the sender itself does not get it.",
        late_after: Duration => "Later than this is late; 1s if left out.",
        lost_after: Duration => "Later than this is lost; 10s if left out.",
    }
    MATCH Match = "`match`" {
        sent: MARKS => "Where it stands in what is sent.",
        received: MARKS => "Where it stands in what is received.",
        json: Text => "On both sides: a JSON field, `data.id`.",
        prefix: Text => "What stands before the JSON: `42` in `42[\"say\",{…}]`.",
        regex: Text => "On both sides: the first group of this regular expression, or all of it.",
    }
    MARK Mark = "the place of an id or a stamp" {
        json: Text => "A JSON field, `data.id` or `[1].id`.",
        prefix: Text => "What stands before the JSON: `42` in `42[\"say\",{…}]`.",
        regex: Text => "The first group of this regular expression, or all of it.",
    }
    AUDIENCE Audience = "an audience" {
        same: Expression => "Those for whom this is the same as for the sender.",
        to: Expression => "For the sender: whom it is for.",
        is: Expression => "For the receivers: those for whom this is the value of `to`.",
    }
    ITERATIONS Iterations = "`iterations`" {
        total: Count => "How many iterations in all.",
        rate: Rate => "How many begin per second; as many as the users can if left out.",
        from: Rate => "The rate at the begin of the phase, with `to`; 0 if left out.",
        to: Rate => "The rate at its end.",
        sine: Kind(&SINE) =>
            "A rate that swings: `{mean: 500/s, amplitude: 300/s, period: 10m}`.",
        points: OneOf(&[Text, Kind(&POINTS)]) =>
            "A CSV file with a time and a rate in each row: `day.csv`.",
        log: OneOf(&[Text, Kind(&ACCESS_LOG)]) =>
            "An access log in the common or combined format, whose times are replayed: \
             `access.log`.",
    }
    } };
}

scenario_maps!(tables MAP_KINDS:);

/// The verbs of steps and the maps they make.
macro_rules! scenario_verbs {
    ($then:ident) => {
        $then! {
            "http" http HTTP Http,
            "grpc" grpc GRPC Grpc,
            "connect" connect CONNECT Connect,
            "disconnect" disconnect DISCONNECT Disconnect,
            "send" send SEND Send,
            "expect" expect EXPECT Expect,
            "request" request REQUEST Request,
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
