//! The keys of every map of the language, each with a line of documentation and the shape of its
//! value. The reader, messages, the JSON Schema and the reference use these tables.

#[macro_use]
mod network;
mod shape;
#[macro_use]
mod verbs;

pub use shape::{KeyDoc, MapKind, Shape};
pub use verbs::{BARE_VERBS, VERBS};

use shape::later;
pub(crate) use shape::now;

/// Creates the tables of maps.
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

/// How a key is written: the name of its field, or another word.
macro_rules! key_name {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident $word:literal) => {
        $word
    };
}

// Shapes of several keys.
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
/// Matches, and their expected values.
const FOUND: Shape = Map(&OneOf(&[Text, Kind(&FOUND_CHECK)]));
const ADDRESSES: Shape = OneOf(&[Text, List(&Text)]);
const RECONNECTS: Shape = OneOf(&[Count, Words(&["forever", "never"]), Kind(&RECONNECT)]);
/// How unsolicited messages are matched.
const LOOKINGS: Shape = OneOf(&[Text, Kind(&LOOKS), List(&Text)]);
/// The location of a message's ID or timestamp.
const MARKS: Shape = OneOf(&[Text, Kind(&MARK)]);
const PARTINGS: Shape = Words(&["fin", "reset", "vanish", "half_close"]);
const TARGETS: Shape = OneOf(&[Text, Kind(&TARGET), ADDRESS_LIST]);
const ADDRESS_LIST: Shape = List(&OneOf(&[Text, Kind(&ADDRESS)]));
const SPOKEN: Shape = OneOf(&[Words(crate::native::WORDS), Text, Map(&Anything)]);
const HANDLERS: Shape = List(&Kind(&HANDLER));
const EVERIES: Shape = List(&Kind(&EVERY));
/// The path of a file, or the declaration itself.
const PROTOCOLS: Shape = OneOf(&[Text, Map(&Anything)]);
const HEARTBEATS: Shape = OneOf(&[Words(&["none"]), Kind(&HEARTBEAT)]);
const ONCES: Shape = OneOf(&[Steps, Kind(&ONCE)]);
const LABELS: Shape = Map(&Text);
const LOST_ERRORS: Shape = Words(&["count", "next", "leave", "stop"]);

const LABEL: &str = "Labels of the row, for use in thresholds: `{tier: gold}`.";
const ROW: &str = "The name of the row in reports. Default: method and path (`http`), the method of \
     a call, the name of a declared message, or the verb, with the topic or filter if there is one.";
const CHECKS: &str = "Checks of the response, the message or each reply.";
const SAVED: &str = "Values to save from the response, the message or the last reply.";
const HEADERS_SENT: &str = "Headers of the request or WebSocket upgrade.";
const JSON_BODY: &str = "A JSON body, written as YAML; in `connect`, only for event streams.";
const FORM_BODY: &str = "A URL-encoded form; in `connect`, only for event streams.";
const ANY_BODY: &str =
    "The body: text, `{file: path}` or `{hex: bytes}`; in `connect`, only for event streams.";
const HANDLED: &str =
    "Handlers for messages that can arrive at any time; each has a row in reports.";
const REPEATED: &str =
    "Background tasks that run repeatedly while this connection is open, or during this stay.";
const COUNTER: &str = "`true` if the number is a counter that the source does not declare as a \
                       counter. Reports show its growth per second.";
const ON_LINK: &str = "The connection to use, if a user has several open.";
const UNIX_SOCKET: &str = "The Unix socket to connect to instead of an address: `/run/app.sock`, \
     or `@name` for an abstract socket.";

/// The keys of every map of a scenario, those of the files beside it too, with types and
/// descriptions. This module makes tables from them, and [`crate::ast`] makes structs.
macro_rules! scenario_maps {
    ($($then:tt)*) => { builtins! { maps all_maps {} {} {} {} {} {$($then)*} } };
}

macro_rules! all_maps {
    (maps [] {$($scenario:tt)*} {$($connect:tt)*} {$($check:tt)*} {$($looks:tt)*} {$($maps:tt)*}
        {$($then:tt)*}) => {
    network_maps! { $($then)*
    SCENARIO Scenario = "a scenario" {
        name: Text => "The run's name in reports.",
        label: Map(&Text) =>
            "The run's labels in the run directory and reports: `{release: 1.4, region: east}`.",
        target: TARGETS =>
            "The service: a URL without a path, a list of them, `{url: …, unix_socket: …}`, or a \
             name from `targets`.",
        targets: Map(&TARGETS) =>
            "Several services by name: `{api: http://127.0.0.1:8080, chat: ws://127.0.0.1:8089}`.",
        tls: Kind(&TLS) => "TLS settings for targets that use TLS.",
        connection: Kind(&CONNECTION) => "How to open and keep connections.",
        defaults: Kind(&DEFAULTS) => "Defaults for steps that do not set these keys.",
        limits: Kind(&LIMITS) => "Limits on the size of responses and messages, and on redirects.",
        seed: Whole =>
            "The seed of all random values: the same seed produces the same users. Default: a new \
             seed for each run.",
        vars: VARIABLES => "Values for `${vars.name}`; `--set name=value` overrides them.",
        include: TEXTS => "Other files that provide parts, vars, data and defaults.",
        parts [Named Steps]: Map(&Steps) => "Named lists of steps, for `- use: name`.",
        sessions [Named Session]: Map(&Kind(&SESSION)) =>
            "The sessions, by name. A session defines what users do.",
        setup [Aside]: ONCES =>
            "Steps that one user runs once before the load; saved values are available as \
             `${setup.name}`.",
        teardown [Aside]: ONCES => "Steps that one user runs once after the load.",
        load: List(&Kind(&PHASE)) => "The run's phases, one after another.",
        loads: Map(&Kind(&LOAD)) =>
            "Several concurrent loads, instead of `load`; each has sessions and phases.",
        graceful_stop: Duration => "How long users may take to finish after the last phase.",
        precision: Duration =>
            "The maximum delay of starts, heartbeats and ends of pauses, so that several of them \
             can share one wake-up. With `0s`, each has a separate wake-up. Default: `250us`.",
        thresholds: List(&Text) => "Pass/fail criteria, such as `http p99 < 50ms`.",
        abort_when: List(&Text) =>
            "Conditions that stop the run early: `errors > 10% over 10s for 20s`.",
        hold_when: List(&Text) =>
            "Conditions that pause growth: throng adds no users while one of them is true, such as \
             `db cpu > 90% for 10s`.",
        source: Kind(&SOURCE) =>
            "Source addresses and ports of connections: `{addresses: 127.1.0.0/16}`.",
        outputs: List(&Kind(&OUTPUT)) =>
            "Monitoring systems and files to which throng writes the metrics of each second.",
        trace: Kind(&TRACE) =>
            "Trace headers, so that you can find slow requests in a tracing system.",
        monitor: List(&Kind(&MONITOR)) =>
            "Hosts and exporters to read during the run; the report contains their metrics.",
        events: List(&Kind(&EVENT)) =>
            "Commands, requests, marks and load changes at given times in the run.",
        audits: List(&Kind(&AUDIT)) =>
            "Comparisons of the target's online users or counts with throng's data.",
        protocol: PROTOCOLS =>
            "A private protocol: the file that declares it, or `{delimiter: \"\\n\"}` to declare \
             only the end of messages.",
        $($scenario)*
        data: Map(&Kind(&DATA)) => "Test data: rows for users from files, lists and generators.",
        deliveries: Map(&Kind(&DELIVERY)) =>
            "Deliveries to track, by name: the messages and the users that must receive them.",
    } => later {
        audit: Anything => "Compares the target's counts with throng's.",
            say!("use `audits`"),
    }
    INCLUDED Included = "an included file" {
        include: TEXTS => "Further files that provide parts, vars, data and defaults.",
        parts: Map(&Steps) => "Named lists of steps, for `- use: name`.",
        vars: VARIABLES => "Values for `${vars.name}`.",
        data: Map(&Kind(&DATA)) => "Test data: rows for users.",
        defaults: Kind(&DEFAULTS) => "Defaults for steps that do not set these keys.",
    }
    TARGET Target = "a target" {
        url: Text => "The service's URL, without a path.",
        unix_socket: Text => UNIX_SOCKET,
        addresses: ADDRESS_LIST =>
            "The service's addresses, instead of `url`. throng distributes users among them.",
        resolve: OneOf(&[Words(&["once", "on failure"]), Text]) =>
            "When to resolve the host name again: `every 30s`, or `on failure` to connect \
             (`every` includes it). Default: `once`, before the run.",
        instance: Text =>
            "The response header with the name of the server: `header x-served-by`.",
        protocol: SPOKEN =>
            "This target's private protocol, instead of the session's or scenario's; `mqtt` for \
             MQTT over WebSocket.",
    }
    ADDRESS Address = "an address" {
        url: Text => "The URL of this address, without a path.",
        weight: Count => "The relative share of users at this address. Default: 1.",
        unix_socket: Text => UNIX_SOCKET,
    }
    TLS Tls = "`tls`" {
        verify: Bool => "`false` accepts any certificate.",
        ca: Text => "A PEM file with the certificates to trust, instead of the system's.",
        certificate: Text => "A PEM file with the client's certificate chain.",
        key: Text => "A PEM file with the client certificate's key.",
        server_name: Text =>
            "The server name to send and verify, instead of the target's host name.",
        resumption: Bool => "With `true`, users that reconnect resume their TLS session.",
    }
    CONNECTION Connection = "`connection`" {
        keep_alive: Bool => "`false` opens a new connection for every HTTP request.",
        resend: Words(&["idempotent", "never"]) =>
            "With `idempotent`, throng resends a request if the target closed an idle connection \
             and the method is idempotent, or if the target reports over HTTP/2 that it did not \
             process the request. With `never`, these requests fail. Default: `idempotent`.",
        timeout: Duration =>
            "The timeout for name resolution, TCP, TLS and the upgrade together.",
        sources: ADDRESSES => "The same as `addresses` of `source`.",
        family: Words(&["v4", "v6", "any"]) => "The address family: `v4`, `v6` or `any`.",
        resolve: Map(&ADDRESSES) =>
            "Addresses to use for host names instead of DNS: `{\"shop.example:443\": 127.0.0.1}`.",
        connect_to: Map(&Text) =>
            "Connect to another host and port: `{\"shop.example:443\": \"127.0.0.1:8443\"}`.",
        proxy: OneOf(&[Text, Kind(&PROXY)]) =>
            "An HTTP proxy for all connections, used with CONNECT: `http://proxy.example:3128`.",
        http_version: Words(&["1.1", "2", "auto"]) =>
            "`1.1`, `2`, or `auto`: over TLS, the version that the target prefers.",
        streams: Count =>
            "The number of iterations that a user runs concurrently over one HTTP/2 connection, \
             with a stream per request. Default: 1.",
        deflate: OneOf(&[Bool, Words(&["no_context_takeover"])]) =>
            "`true` offers compression on WebSocket connections, as browsers do. \
             `no_context_takeover` also forbids compression across messages, which saves up to 32 \
             KiB per connection.",
        cookies: Bool => "`false` ignores the cookies that the target sets.",
    }
    PROXY Proxy = "a proxy" {
        url: Text => "The proxy's URL, with a port: `http://proxy.example:3128`.",
        user: Text => "The user name for the proxy (Basic authentication).",
        password: Text => "The password for the proxy.",
    }
    DEFAULTS Defaults = "`defaults`" {
        headers: HEADERS => "Headers of every HTTP request and WebSocket upgrade.",
        timeout: Duration => "The timeout for steps that do not set one.",
        on_error: ON_ERRORS => "The action if a step fails.",
        cookies: COOKIES => "Cookies of every HTTP request, WebSocket upgrade and event stream.",
    }
    LIMITS Limits = "`limits`" {
        head: Size => "The maximum size of a response head.",
        body: Size => "The maximum size of a body that is kept for checks.",
        message: Size => "The maximum size of a message on a long-lived connection.",
        redirects: Count => "The maximum number of consecutive redirects.",
    }
    SOURCE Source = "`source`" {
        addresses: ADDRESSES =>
            "Local addresses, used as needed: `127.0.0.2`, `127.1.0.1..127.1.0.200`, \
             `127.1.0.0/16` or `interface eth0`.",
        ports: Text => "Source ports: `20_000..60_000`. Default: the system's range.",
        transparent: Bool =>
            "`true` allows addresses that are routed to this host but not assigned to it.",
    }
    TRACE Trace = "`trace`" {
        header: Text => "The name of the header. Default: `traceparent`.",
        share: Share => "The share of requests with this header. Default: all.",
    }
    MONITOR Monitor = "a source of `monitor`" {
        url: Text => "The URL of the metrics: `http://127.0.0.1:9465/metrics`.",
        node: Text =>
            "Instead of `url`: a host that runs Prometheus node_exporter, `10.0.0.5`. Default \
             port: 9100.",
        host: Text =>
            "Instead of `url`: a host on which throng starts `throng monitor` through ssh, \
             `user@shop-1` or `user@shop-1:2222`.",
        joined: Text =>
            "Instead of `url`: a host on which `throng monitor --join` runs, by the name of its \
             token. throng reads it over the fleet's bus.",
        processes: TEXTS => "With `host`: the programs or process IDs to watch: `nginx`.",
        ports: OneOf(&[Count, List(&Count)]) =>
            "With `host`: the ports of the listening sockets to watch. Default: all.",
        redis: TEXTS => "With `host`: Redis servers to read on that host, `127.0.0.1:6379`.",
        nginx: TEXTS => "With `host`: URLs of nginx's `stub_status` to read on that host.",
        haproxy: TEXTS =>
            "With `host`: HAProxy statistics to read on that host: sockets, or URLs with `;csv`.",
        prometheus: TEXTS => "With `host`: URLs of Prometheus endpoints to read on that host.",
        json: Text => "Instead of `url`: the URL of a JSON document with numbers.",
        values: Map(&OneOf(&[Text, Kind(&JSON_VALUE)])) =>
            "Numbers in the `json` document, by their names in reports: `{clients: clientsLen}`.",
        name: Text => "The name in reports. Default: the URL's host and port, or the host.",
        metrics: List(&OneOf(&[Text, Kind(&METRIC)])) =>
            "The metrics to keep, as Prometheus selectors: `node_load1`, `up{job=\"shop\"}`. \
             Default: the host metrics that show what limits a service.",
        every: Duration =>
            "The time between two readings, at least `1s`. Default: `5s`, or `1s` for `host` and \
             `joined`.",
        headers: Map(&Text) => "Headers of the requests to this source.",
    }
    JSON_VALUE JsonValue = "a value of a JSON document" {
        json: Text => "The path of the number: `stats.clients`.",
        counter: Bool => COUNTER,
    }
    METRIC Metric = "a metric" {
        metric: Text => "The metric to keep, as a Prometheus selector: `node_load1`.",
        name: Text => "The name in reports. Default: the name of the metric.",
        sum: Bool => "`true` adds up all selected series.",
        counter: Bool => COUNTER,
    }
    EVENT Event = "an event" {
        name: Text => "The name in reports and charts. Default: the action of the event.",
        at: Text =>
            "The time of the event, from the start of the run (`10m`) or of a phase (`steady + \
             60s`).",
        after: Text => "The event happens after an earlier event has ended: `restart Redis + 10s`.",
        when: Text =>
            "The event happens when this condition is true: `errors > 10% over 5s for 3s`.",
        run: OneOf(&[Text, List(&Text)]) =>
            "A command to execute on the controller's host: text for `/bin/sh -c`, or a list of \
             program and arguments. Requires `--allow-commands`.",
        http: Text =>
            "A request that the controller sends: `POST http://127.0.0.1:9000/failover`.",
        headers: Map(&Text) => "Headers of the `http` request.",
        body: Text => "The body of the `http` request.",
        status: OneOf(&[Whole, List(&Whole)]) =>
            "The expected status of the `http` response. Default: 200 to 299.",
        mark: Text => "The name of a mark to set.",
        amend: Text =>
            "A change of the load, as with `throng control`: `users 500`, `rate 200/s`, \
             `more 20%`, `less 20%`, `pause`, `go-on` or `end-phase`.",
        audit: Text => "The name of an audit to run.",
        load: Text => "The load that `amend` changes, if there are several.",
        timeout: Duration => "The timeout of `run` (default: `60s`) or `http` (default: `10s`).",
    }
    AUDIT Audit = "an audit" {
        name: Text => "The name in reports and thresholds.",
        views: Map(&Kind(&AUDIT_VIEW)) => "The target's lists of online users, by name.",
        agree_within: Duration => "How long a view may take to reflect a change. Default: `10s`.",
        count: Kind(&AUDIT_COUNT) => "Instead of `views`: a counter of the target.",
        equals: Text => "With `count`: the expected value: `ok(\"POST /orders\")`.",
        every: Duration => "The time between two audits, at least `1s`.",
        at: OneOf(&[Duration, List(&Duration)]) =>
            "Times of individual audits, counted from the start of the run.",
        at_end: Bool =>
            "`true` also audits after the load. Default: `true`, if there is no `every` or `at`.",
    }
    AUDIT_VIEW AuditView = "a view" {
        redis: Text => "The address of a Redis server: `redis://:password@10.0.0.5:6379/0`.",
        scan: Text => "The key that exists while a user is online: `online:${user.id}`.",
        mget: Text =>
            "The same as `scan`, but throng reads each key by name. The value can name the node.",
        set: Text => "The key of a set of online users.",
        sorted_set: Text => "The key of a sorted set of online users.",
        max_age: Duration =>
            "With `sorted_set`, whose scores are Unix times: the maximum age of an online user's \
             score.",
        http: TEXTS => "The URLs of lists of online users. `${ids}` inserts the names to query.",
        json: Text => "With `http`: the path to the names. Default: `$[*]`.",
        batch: Count => "With `${ids}`: the number of names in a request. Default: 500.",
        headers: Map(&Text) => "With `http`: headers of the requests.",
        run: OneOf(&[Text, List(&Text)]) =>
            "A command that prints one online user per line: its name and, after a space, its \
             node. Executed on the controller's host. Requires `--allow-commands`.",
        id: Text => "The name of a user in the view: `d${user.id}`.",
        nodes: Map(&Text) =>
            "The target address of each node. Nodes are named by the values of `mget`, or by URLs.",
    }
    AUDIT_COUNT AuditCount = "a count" {
        redis: Text => "The address of a Redis server: `redis://10.0.0.5:6379`.",
        command: Text => "With `redis`: a command that returns the number, such as `SCARD orders`.",
        http: Text => "A URL whose response contains the number.",
        json: Text => "With `http`: the path to the number. Default: the whole response.",
        headers: Map(&Text) => "With `http`: headers of the request.",
        run: OneOf(&[Text, List(&Text)]) =>
            "A command that prints the number, executed on the controller's host. Requires \
             `--allow-commands`.",
    }
    OUTPUT Output = "an output" {
        prometheus: Text =>
            "The address on which Prometheus can scrape the metrics: `127.0.0.1:9464`.",
        prometheus_rw "prometheus-rw": Text => "The URL of a Prometheus remote-write receiver.",
        prometheus_rw_native "prometheus-rw-native": Text =>
            "The same as `prometheus-rw`, with native instead of classic histograms.",
        otlp: Text => "The URL of an OpenTelemetry receiver (OTLP over HTTP).",
        statsd: Text => "The host and port of a StatsD server.",
        influx: Text => "The URL to which InfluxDB line protocol is sent.",
        csv: Text => "A CSV file to write.",
        jsonl: Text => "A JSON Lines file to write.",
        hdr: Text => "A histogram log file to write, in HdrHistogram's format.",
    }
    VARIABLE Variable = "a variable" {
        env: Text => "The name of the environment variable that contains the value.",
        default: Anything =>
            "The value if the environment variable is not set. Without a default, an unset \
             variable is an error.",
        value: Anything => "The value, if there are other keys such as `secret`.",
        secret: Bool => "`true` masks the value in run directories, errors and all output.",
    }
    DATA Data = "a data source" {
        csv: Text => "A CSV file; a relative path is resolved against the scenario file's folder.",
        json_lines: Text => "A file with one JSON value per line.",
        list: List(&Anything) => "Inline rows: `[red, green]` or `[{name: ann}]`.",
        generate: Map(&Anything) => "Generated rows: `{id: 1..1_000_000, name: \"user-######\"}`.",
        rows: Count => "The number of generated rows.",
        take: Words(&["unique", "circular", "random", "shuffle", "per user"]) =>
            "How rows are assigned to users. Default: `circular`.",
        at_end: Words(&["stop", "wrap", "error"]) =>
            "The action when no row is left. Default: the run ends and its result is invalid.",
        separator: Text => "The field separator of a CSV file. Default: `,`.",
        columns: List(&Text) => "The names of the columns, for a CSV file without a header line.",
    }
    SESSION Session = "a session" {
        weight: Count => "The relative share of users with this session. Default: 1.",
        users: Count => "The exact number of users, instead of a weight: the first of the load.",
        before [List Step]: Steps => "Steps that run once, when the user starts.",
        steps [List Step]: Steps => "The steps of an iteration.",
        after [List Step]: Steps => "Steps that run once, when the user leaves.",
        headers: HEADERS =>
            "Headers for all HTTP requests in the session. A header with a saved value is sent as \
             soon as the user has that value.",
        timeout: Duration => "The timeout for steps that do not set one.",
        on_error: ON_ERRORS => "The action if a step fails.",
        target: TARGETS => "The target of this session: a URL, or the name of one of `targets`.",
        protocol: SPOKEN => "The protocol of this session; `none` for raw bytes.",
        heartbeat: HEARTBEATS =>
            "The heartbeat to send while the user is online, instead of the protocol's; `none` \
             disables it.",
        on [List Handler]: HANDLERS => "Handlers for messages that can arrive at any time.",
        every [List Every]: EVERIES => "Tasks that run repeatedly while the user is online.",
        network: Kind(&NETWORK) =>
            "The network of the session's users: `{delay: 50ms..200ms, loss: 0.5%}`.",
    }
    ONCE Once = "`setup` or `teardown`" {
        steps [List Step]: Steps => "The steps.",
        timeout: Duration => "The timeout for all steps together. Default: `1m`.",
    }
    HTTP Http = "an `http` step" {
        http: Text => "Method and path: `GET /`.",
        target: Text => "The target to use, one of `targets`; required if several are possible.",
        name: Text => ROW,
        label: LABELS => LABEL,
        headers: HEADERS => HEADERS_SENT,
        query: FORM =>
            "Query parameters, encoded and added to the path: `{page: 2, tag: [red, blue]}`.",
        cookies: COOKIES => "Cookies to send, in addition to those that the target has set.",
        json: Anything => JSON_BODY,
        form: FORM => FORM_BODY,
        body: OneOf(&[Text, Kind(&BODY)]) => ANY_BODY,
        multipart: List(&Kind(&PART)) => "The parts of a multipart form, such as files.",
        auth: Kind(&AUTH) => "Basic or digest authentication: `{user: name, password: word}`.",
        check: Kind(&CHECK) => CHECKS,
        save [Saves]: SAVES => SAVED,
        timeout: Duration => "The timeout from sending to the last byte of the response.",
        redirects: REDIRECTS => "`follow`, or the maximum number of consecutive redirects.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    CONNECT Connect = "a `connect` step" {
        connect: OneOf(&[Text, Nothing]) =>
            "Opens a connection. Its value is the path of a WebSocket upgrade, the path of an \
             event stream (optionally with a method, `POST /chat`), or the method of a gRPC call.",
        events: Bool =>
            "`true` opens a stream of server-sent events on an `http://` or `https://` target.",
        target: Text =>
            "The target to connect to, one of `targets`; required if several are possible.",
        r#as "as": Text =>
            "The name of the connection, if a session has several connections to one target.",
        name: Text => ROW,
        label: LABELS => LABEL,
        headers: HEADERS => HEADERS_SENT,
        json: Anything => JSON_BODY,
        form: FORM => FORM_BODY,
        body: OneOf(&[Text, Kind(&BODY)]) => ANY_BODY,
        protocols: TEXTS => "WebSocket subprotocols to offer.",
        $($connect)*
        auth: Kind(&AUTH) => "Basic authentication for the upgrade or request.",
        timeout: Duration => "The timeout for opening the connection.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
        reconnect: RECONNECTS =>
            "How to reconnect when the connection is lost: `never`, or `{times: 5, wait: \
             1s..30s}`.",
        heartbeat: HEARTBEATS =>
            "The heartbeat to send while this connection is open, instead of the protocol's; \
             `none` disables it.",
        on [List Handler]: HANDLERS => HANDLED,
        every [List Every]: EVERIES => REPEATED,
    } => later {
        check: Kind(&CHECK) => "Checks of the response to the upgrade.",
            say!("remove it: without an upgrade, the connection cannot be opened"),
        save: Map(&Anything) => "Values to save from the response.",
            say!("remove it and save from the first message: `- {{expect: any, save: {{…}}}}`"),
    }
    DISCONNECT Disconnect = "a `disconnect` step" {
        disconnect: OneOf(&[Nothing, PARTINGS]) =>
            "Ends the connection with a close mode: `fin` (graceful), `reset`, `vanish` (silent) \
             or `half_close`.",
        on: Text => ON_LINK,
    }
    SEND Send = "a `send` step" {
        send: MESSAGES =>
            "The message to send: `{text: …}`, `{json: …}`, `{hex: …}`, `{file: …}`, or a protocol \
             message.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        cut: Size => "Fault injection: sends only this many bytes of the message.",
        timeout: Duration => "The timeout for sending, if the target does not read.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    EXPECT Expect = "an `expect` step" {
        expect: EXPECTATIONS =>
            "The message to wait for: `any`, a pattern, or a message of the protocol.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        check: Kind(&CHECK) => CHECKS,
        save [Saves]: SAVES => SAVED,
        timeout: Duration => "How long to wait for the message.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    REQUEST Request = "a `request` step" {
        request: MESSAGES => "The message to send; the step then waits for the reply.",
        on: Text => ON_LINK,
        name: Text => ROW,
        label: LABELS => LABEL,
        cut: Size => "Fault injection: sends only this many bytes of the message.",
        r#match "match": Kind(&EXPECTATION) =>
            "A pattern that identifies the reply, such as `{json: {id: 7}}`; other messages are \
             handled as pushes. Default: the next message.",
        expect: EXPECTATIONS => "How to detect the end of the reply, and its expected content.",
        check: Kind(&CHECK) => CHECKS,
        save [Saves]: SAVES => SAVED,
        timeout: Duration => "The timeout from sending to the end of the reply.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{times: 5, wait: 1s..30s}`.",
    }
    THINK Think = "a `think` step" {
        think: OneOf(&[DurationRange, Kind(&THINK_TIME)]) =>
            "A pause: a fixed time (`2s`), a random time from a range (`1s..5s`), or a \
             distribution.",
    }
    THINK_TIME ThinkTime = "a think time" {
        exponential: Duration => "The mean of an exponential distribution.",
        normal: Duration => "The mean of a normal distribution.",
        deviation: Duration => "The standard deviation of a normal distribution.",
        max: Duration =>
            "The maximum pause of an exponential distribution. Default: 10 times the mean.",
    }
    STAY Stay = "a `stay` step" {
        stay: OneOf(&[Duration, Words(&["forever"])]) =>
            "Stays online and receives messages: `10m` or `forever`.",
        ends: ENDS =>
            "WebSocket close codes, `[1000, 4001]`, or `any`. If the target closes the connection \
             with one of them, the step does not fail.",
        name: Text => ROW,
        label: LABELS => LABEL,
        on_error: LOST_ERRORS =>
            "The action if the connection is lost. With `count`, the user reconnects.",
        heartbeat: HEARTBEATS =>
            "A message that the user sends periodically, and the expected reply: `{ping: true, \
             every: 30s}`.",
        on [List Handler]: HANDLERS => HANDLED,
        every [List Every]: EVERIES => REPEATED,
    }
    HEARTBEAT Heartbeat = "a heartbeat" {
        send: MESSAGES => "The message to send. Default: the protocol's heartbeat message.",
        ping: Bool => "`true` sends a WebSocket ping; the reply is the pong.",
        text: Text => "A text message.",
        json: Anything => "A JSON message, written as YAML.",
        hex: Text => "A binary message, in hexadecimal digits.",
        binary: Text => "The same as `hex`.",
        file: Text =>
            "A file to send, as a text message if it is UTF-8, otherwise as a binary message.",
        every: Duration =>
            "The time between two heartbeats of a user. throng spreads the heartbeats of all \
             users evenly over this time.",
        lost_after: OneOf(&[Duration, Words(&["never"])]) =>
            "How long to wait for the reply before the heartbeat counts as lost; `never` expects \
             no reply. Default: `10s`, or `every` if that is shorter.",
        expect: LOOKINGS =>
            "A pattern that the reply must match. Default: any message without a handler in `on`.",
        name: Text => "The name of the row in reports. Default: `heartbeat`.",
        label: LABELS => LABEL,
        stop_after: Count => "Fault injection: stops after this many heartbeats on a connection.",
        late: Duration => "Fault injection: delays each heartbeat by this time.",
        times: Count => "Fault injection: sends each heartbeat this many times.",
    }
    HANDLER Handler = "an item of `on`" {
        message: LOOKINGS => "The pattern of messages to handle: `any` or `{json: {cmd: msg}}`.",
        from: Text => "The connection on which the message arrives, if a user has several open.",
        name: Text => "The name of the row in reports. Default: derived from `message`.",
        label: LABELS => LABEL,
        check: Kind(&CHECK) => "Checks to apply to the message.",
        save [Saves]: SAVES => "Values to save from the message.",
        r#do "do" [List Step]: Steps =>
            "Steps that run when a message arrives, concurrently with the session's steps.",
        on_error: LOST_ERRORS => "The action if a check of the message fails.",
    }
    EVERY Every = "an item of `every`" {
        time: Duration =>
            "The time between two executions for a user. throng spreads the executions of all \
             users evenly over this time.",
        r#do "do" [List Step]: Steps =>
            "Steps that run each time, concurrently with the session's steps.",
    }
    LOOKS Looks = "a message pattern" {
        any: Bool => "`true` matches every message.",
        text: Text => "Text that the message must contain.",
        json: Map(&Anything) => "Expected fields of the JSON message: `{cmd: msg}`.",
        pattern: Text => "A regular expression that must match somewhere in the message.",
        event: Text => "The event name, on an event stream; events without a name are `message`.",
        $($looks)*
    }
    REPEAT Repeat = "a `repeat` step" {
        repeat: OneOf(&[CountRange, Words(&["forever"])]) =>
            "The number of times to run the steps: `3`, `3..10` or `forever`.",
        steps [List Step]: Steps => "The steps to repeat.",
    }
    DURING During = "a `during` step" {
        during: Duration => "How long to repeat the steps: `5m`. The last repetition is completed.",
        steps [List Step]: Steps => "The steps to repeat.",
    }
    WHILE While = "a `while` step" {
        r#while "while": Expression => "The steps repeat while this condition is true.",
        steps [List Step]: Steps => "The steps to repeat.",
    }
    FOR_EACH ForEach = "a `for_each` step" {
        for_each: OneOf(&[Expression, List(&Anything)]) =>
            "A list, `\"${saved.ids}\"`, or the items; the steps run once for each item.",
        r#as "as": Text => "The name of the item in `${…}`. Default: `item`.",
        steps [List Step]: Steps => "The steps to repeat.",
    }
    CHOOSE Choose = "a `choose` step" {
        choose [List Way]: List(&Kind(&WAY)) => "Branches; the user selects one at random.",
    }
    WAY Way = "a branch of `choose`" {
        weight: WEIGHT => "The relative probability of this branch: `70`, `70%`.",
        steps [List Step]: Steps => "The steps of this branch; `[]` does nothing.",
        r#use "use" [PartName]: Text => "The part to run.",
        with: Map(&Anything) => "Variables for the part.",
    }
    IF If = "an `if` step" {
        r#if "if": Expression => "The condition: `\"${saved.code == 0}\"`.",
        then [List Step]: Steps => "The steps to run if the condition is true.",
        steps [List Step]: Steps => "The same as `then`.",
        r#else "else" [List Step]: Steps => "The steps to run if the condition is not true.",
    }
    TRANSACTION Transaction = "a `transaction` step" {
        transaction: Text => "The name of the row in reports, with the total time of the steps.",
        label: LABELS => LABEL,
        steps [List Step]: Steps => "The steps to time together.",
    }
    PARALLEL Parallel = "a `parallel` step" {
        parallel [List Steps]: List(&Steps) =>
            "Branches that run at the same time, each a list of steps. The user continues when \
             all branches have ended.",
        max: Count =>
            "The maximum number of connections per user and target for the branches. Default: 6, \
             as in browsers.",
        name: Text => "The name of the row in reports, which has the total time of the branches.",
        label: LABELS => LABEL,
    }
    RENDEZVOUS Rendezvous = "a `rendezvous` step" {
        rendezvous: Text => "The name of the point where users wait for each other.",
        label: LABELS => LABEL,
        users: Count =>
            "The number of users that must wait before they continue together. Default: the load's \
             maximum number of users.",
        timeout: Duration =>
            "How long a user waits before the step fails and the user continues. Default: `1m`.",
    }
    SET Set = "a `set` step" {
        set [Saves]: Map(&Anything) => "Values for `${saved.name}`.",
    }
    COUNT Count = "a `count` step" {
        count: Text =>
            "The name of a custom counter; thresholds can use `NAME count > 10`.",
        by: OneOf(&[Count, Expression]) => "The whole number to add. Default: 1.",
        label: LABELS => LABEL,
    }
    MEASURE Measure = "a `measure` step" {
        measure: Text =>
            "The name of a custom trend; thresholds can use `NAME p95 < 3`.",
        value: OneOf(&[Text, Expression]) => "The value to record, a number of at least 0.",
        unit: Words(&["ns", "us", "ms", "s", "bytes"]) =>
            "The unit of the value: a unit of time, or bytes. Default: a plain number.",
        label: LABELS => LABEL,
    }
    LOG Log = "a `log` step" {
        log: Text => "A line to write to the run directory.",
    }
    NEXT Next = "a `next` step" {
        next: Nothing => "Ends the iteration.",
    }
    LEAVE Leave = "a `leave` step" {
        leave: Nothing => "Runs the `after` steps; then the user leaves.",
    }
    STOP Stop = "a `stop` step" {
        stop: OneOf(&[Text, Nothing]) => "Stops the whole run gracefully, with this reason.",
    }
    USE Use = "a `use` step" {
        r#use "use" [PartName]: Text => "The part to run.",
        with: Map(&Anything) => "Variables for the part, which uses them as `${vars.name}`.",
    }
    RETRY Retry = "`retry`" {
        on: OneOf(&[Text, List(&Text)]) =>
            "Statuses (`429`, `5xx`, `UNAVAILABLE`, `LOADING`, `Server busy`) and causes (`timeout`, \
             `reset`) for which to retry. Default: all.",
        times: OneOf(&[Count, Words(&["forever"])]) => "The number of retries. Default: 3.",
        wait: DurationRange =>
            "The wait before a retry; it doubles from the lower to the upper limit. `Retry-After` \
             in a response extends it, up to one minute. Default: `1s..30s`.",
    }
    RECONNECT Reconnect = "`reconnect`" {
        times: OneOf(&[Count, Words(&["forever"])]) =>
            "The maximum number of consecutive attempts to reconnect. Default: 3.",
        wait: DurationRange =>
            "The wait before an attempt; it doubles from the lower to the upper limit. Default: \
             `1s..30s`.",
    }
    AUTH Auth = "`auth`" {
        user: Text => "The user name.",
        password: Text => "The password.",
        scheme: Words(&["basic", "digest"]) =>
            "`basic`, or `digest`, which responds to the target's challenge (RFC 7616). Default: \
             `basic`.",
    }
    BODY Body = "a body" {
        file: Text =>
            "A file with the body; a relative path is resolved against the scenario file's \
             folder.",
        hex: Text => "The body in hexadecimal digits.",
    }
    PART Part = "a part" {
        name: Text => "The name of the form field.",
        value: OneOf(&[Text, Nothing]) => "The text of the field.",
        file: Text => "A file with the content of the field.",
        filename: Text => "The file name to send. Default: the last component of the path.",
        r#type "type": Text => "The Content-Type of this part.",
    }
    MESSAGE Message = "a message" {
        text: Text => "A text message.",
        json: Anything => "A JSON message, written as YAML.",
        hex: Text => "A binary message, in hexadecimal digits.",
        binary: Text => "The same as `hex`.",
        file: Text =>
            "A file to send, as a text message if it is UTF-8, otherwise as a binary message.",
        garbage: Size => "The number of random bytes to send.",
    }
    EXPECTATION Expectation = "an expectation" {
        any: Bool => "`true` accepts the first message.",
        length: Count => "The number of bytes in the reply.",
        delimiter: Text => "The characters that end the reply: `\"\\r\\n\"`.",
        pattern: Text => "The reply ends where this regular expression matches.",
        text: Text => "Text that the reply must contain.",
        json: Map(&Anything) => "Expected fields of the JSON reply.",
        event: Text => "The event name, on an event stream; events without a name are `message`.",
        $($looks)*
        close: ENDS =>
            "The target must close the connection: a WebSocket close code, a list of them, or \
             `any`.",
    }
    CHECK Check = "a check" {
        status: TEXTS =>
            "The status: `200`, `2xx`, `200..299` or a list of them; for gRPC `OK`, `NOT_FOUND` \
             or `5`.",
        header: Map(&OneOf(&[Text, Kind(&TEXT_CHECK)])) =>
            "Response headers: `{content-type: text/plain}`.",
        cookie: Map(&OneOf(&[Text, Kind(&TEXT_CHECK)])) =>
            "Cookies that the user has after the response: `{sid: present}`.",
        $($check)*
        text: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "Text that the response must contain.",
        body: OneOf(&[Text, Kind(&TEXT_CHECK)]) => "The same as `text`.",
        json: Map(&Anything) =>
            "Expected fields of the JSON response: `{data.code: 0}`; `json.data.code: 0` is a \
             short form.",
        regex: OneOf(&[Text, FOUND]) =>
            "A regular expression that must match, `'id=\\d+'`, or the value of the group, \
             `{'id=(\\d+)': 7}`.",
        xpath: OneOf(&[Text, FOUND]) => "XPath matches in an XML response: `{//title: Hello}`.",
        css: OneOf(&[Text, FOUND]) => "CSS matches in an HTML response: `{li.item: {count: 3}}`.",
        size: Text => "The size of the body or message: `200`, `< 10KiB` or `1KiB..2KiB`.",
        time: Text => "The response time: `< 500ms`.",
        digest: Map(&Text) => "The digest of the body or message: `{sha256: …}`.",
        that: OneOf(&[Expression, List(&Expression)]) =>
            "A condition that must be true: `\"${response.json.total == 3}\"`.",
        packets: OneOf(&[Text, Map(&Text)]) =>
            "The number of packets of a reply: `10`, or per message, `{row: \">= 1\"}`.",
        field: Map(&Anything) =>
            "Message fields that have the same name as a check: `{time: > 5}`.",
    }
    TEXT_CHECK TextCheck = "a text check" {
        contains: Text => "Text that the value must contain.",
        equals: Text => "Text that the value must equal.",
        matches: Text => "A regular expression that must match somewhere in the value.",
    }
    FOUND_CHECK FoundCheck = "a match check" {
        contains: Text => "Text that the matched text must contain.",
        equals: Text => "Text that the matched text must equal.",
        matches: Text => "A regular expression that must match somewhere in the matched text.",
        count: Text => "The number of matches: `3` or `>= 3`.",
    }
    SAVE Save = "a saved value" {
        json: Text => "The path of a JSON field: `data.items[0].id`.",
        regex: Text =>
            "A regular expression. The first group is saved or, without groups, the whole match.",
        xpath: Text => "An XPath expression for an XML response.",
        css: Text => "A CSS selector for an HTML response: `input[name=csrf]@value`.",
        header: Text => "The name of a response header.",
        cookie: Text => "The name of a cookie that the user has after the response.",
        field: Text => "A field of a declared or protobuf message.",
        all: Bool => "`true` saves all matches, as a list.",
        default: Anything => "The value if nothing matches. Without it, the step fails.",
    }
    LOAD Load = "a load" {
        sessions: TEXTS =>
            "The sessions that the load's users run; optional if there is only one load.",
        phases: List(&Kind(&PHASE)) => "The phases, one after another.",
        at: Duration =>
            "When the load starts, counted from the start of the run. Default: immediately.",
        after: Text => "The load starts when the phases of this other load have ended.",
        with: Text => "The load starts together with this other load.",
    }
    PHASE Phase = "a phase" {
        name: Text => "The name in reports and thresholds.",
        users: OneOf(&[Count, Kind(&USERS)]) =>
            "The number of users: `100`, or `{to: 100, rate: 50/s}`.",
        arrivals: OneOf(&[Rate, Kind(&ARRIVALS)]) =>
            "The arrival rate of new users: `900/s`, `{from: 10/s, to: 900/s}`, or another shape.",
        iterations: OneOf(&[Rate, Count, Kind(&ITERATIONS)]) =>
            "Iterations per second (`500/s`) or in total (`10_000`). The same users run them one \
             after another.",
        r#for "for": Duration => "The duration of the phase.",
        measured: Bool => "`false` excludes the phase from the results, for example a warm-up.",
        churn: OneOf(&[Rate, Kind(&CHURN)]) =>
            "Users that disconnect and reconnect: `{share: 20%, every: 10s}`.",
        at_once: Bool => "`true` starts all users at the same time.",
        spacing: Words(&["even", "poisson"]) =>
            "The spacing of starts at a rate: `even`, or random (`poisson`). Default: `even`.",
        max: Count =>
            "The maximum number of concurrent users, for `arrivals` or instead of `users` for \
             `iterations`. Starts without a free user are dropped.",
    }
    USERS Users = "`users`" {
        to: Count => "The number of users at the end of the phase.",
        rate: Rate =>
            "The number of users to add or remove per second. Default: all users immediately.",
        step: Count =>
            "The number of users per step, instead of a rate: `{step: 1000, every: 30s}`.",
        every: Duration => "The time between two steps.",
        at_once: Bool => "`true` starts all users at the same time.",
    }
    CHURN Churn = "`churn`" {
        share: Share => "The share of online users to disconnect each time: `20%`.",
        every: Duration => "The time between two rounds of disconnects.",
        rate: Rate => "The number of users to disconnect per second, evenly spaced: `500/s`.",
        how: OneOf(&[PARTINGS, List(&PARTINGS)]) =>
            "Close modes, used in turn: `fin` (graceful), `reset`, `vanish` (silent), \
             `half_close`. Default: `fin`.",
    }
    ARRIVALS Arrivals = "`arrivals`" {
        from: Rate => "The rate at the start of the phase. Default: 0.",
        to: Rate => "The rate at the end of the phase.",
        sine: Kind(&SINE) =>
            "A rate that follows a sine wave: `{mean: 500/s, amplitude: 300/s, period: 10m}`.",
        points: OneOf(&[Text, Kind(&POINTS)]) =>
            "A CSV file with a time and a rate in each row: `day.csv`.",
        log: OneOf(&[Text, Kind(&ACCESS_LOG)]) =>
            "An access log in the common or combined format; throng replays the arrival times: \
             `access.log`.",
    }
    SINE Sine = "`sine`" {
        mean: Rate => "The mean rate.",
        amplitude: Rate => "The maximum difference from the mean; at most the mean itself.",
        period: Duration => "The time from one peak to the next.",
        offset: Duration =>
            "The point in the period at which the phase starts. At 0, the phase starts at the \
             mean with a rising rate.",
    }
    POINTS Points = "`points`" {
        file: Text =>
            "The CSV file; a relative path is resolved against the scenario file's folder.",
        time: Text =>
            "The column with the times: seconds, durations or clock times. Default: the first.",
        rate: Text => "The column with the rates per second. Default: the second.",
    }
    ACCESS_LOG AccessLog = "an access log" {
        file: Text =>
            "The log, plain or compressed with gzip; a relative path is resolved against the \
             scenario file's folder.",
        speed: Text => "The replay speed: `2` is twice as fast, `0.5` half as fast. Default: 1.",
    }
    DELIVERY Delivery = "a delivery" {
        sent: Text => "The sent message: a message of the protocol, or the name of a step.",
        begins: Words(&["disconnect"]) =>
            "Instead of `sent`: the target sends the message when a user disconnects.",
        session: Text => "With `begins`: the session of the users that disconnect. Default: all.",
        id: Expression =>
            "With `begins`: the ID of the message, computed for the user that disconnects.",
        received: LOOKINGS => "The received message: a message of the protocol, or a pattern.",
        r#match "match": OneOf(&[Text, Kind(&MATCH)]) =>
            "The position of the ID that identifies a message: `id`, `json.id`, `{regex: …}`, \
             or `{sent: …, received: …}`.",
        stamp: MARKS =>
            "The position of the send time: ns, µs or ms since 1970, or a date and time.",
        audience: OneOf(&[Words(&["everyone"]), Kind(&AUDIENCE)]) =>
            "The users that must receive the message. Default: `everyone`.",
        without_sender: Bool => "With `true`, the sender is not a receiver.",
        late_after: Duration => "The time after which a delivery is late. Default: `1s`.",
        lost_after: Duration => "The time after which a delivery is lost. Default: `10s`.",
    }
    MATCH Match = "`match`" {
        sent: MARKS => "The position of the ID in the sent message.",
        received: MARKS => "The position of the ID in the received message.",
        json: Text => "A JSON field of the sent and the received message: `data.id`.",
        prefix: Text => "The text before the JSON: `42` in `42[\"say\",{…}]`.",
        regex: Text =>
            "A regular expression for both messages. The ID is the first group or, without groups, \
             the whole match.",
    }
    MARK Mark = "the position of an ID or a timestamp" {
        json: Text => "A JSON field: `data.id` or `[1].id`.",
        prefix: Text => "The text before the JSON: `42` in `42[\"say\",{…}]`.",
        regex: Text =>
            "A regular expression. Its first group is used or, without groups, the whole match.",
    }
    AUDIENCE Audience = "an audience" {
        same: Expression =>
            "An expression. All users whose value equals the sender's are receivers.",
        to: Expression =>
            "An expression, evaluated for the sender. All users whose `is` has this value are \
             receivers.",
        is: Expression =>
            "An expression, evaluated for each user. All users whose value equals that of `to` are \
             receivers.",
    }
    ITERATIONS Iterations = "`iterations`" {
        total: Count => "The total number of iterations.",
        rate: Rate =>
            "The number of iterations to start per second. Default: as many as the users can run.",
        from: Rate => "The rate at the start of the phase. Default: 0.",
        to: Rate => "The rate at the end of the phase.",
        sine: Kind(&SINE) =>
            "A rate that follows a sine wave: `{mean: 500/s, amplitude: 300/s, period: 10m}`.",
        points: OneOf(&[Text, Kind(&POINTS)]) =>
            "A CSV file with a time and a rate in each row: `day.csv`.",
        log: OneOf(&[Text, Kind(&ACCESS_LOG)]) =>
            "An access log in the common or combined format; throng replays the arrival times: \
             `access.log`.",
    }
    $($maps)*
    } };
}

scenario_maps!(tables MAP_KINDS:);

#[cfg(test)]
mod tests;
