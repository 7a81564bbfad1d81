//! Targets of sessions: named targets, and the default target of a session, each with its
//! addresses, their common scheme, and the protocol. The scenario sets them for all sessions; each
//! session can override them.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use throng_base::Said;
use throng_program::{Scheme, Target};
use throng_protocol::framed::{MessageId, Protocol};
use throng_protocol::protobuf::MethodId;

use crate::ast::{self, Map as _, SessionFact};
use crate::message::matchers::read_delimiter;
use crate::message::proto;
use crate::native::{self, Native};
use crate::network::target::read_targets;
use crate::protocol::load_protocol;
use crate::read::Context;
use crate::scope::{Called, Kinds, Spoken, scheme_of};
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Kind, Node, Place};
use crate::words::{self, shorten};

/// A target and its protocol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Its name in `targets`; empty if it has none.
    pub(crate) name: String,
    /// The numbers of its addresses.
    pub(crate) targets: Box<[u16]>,
    /// None if a mistake makes it unknown.
    pub(crate) scheme: Option<Scheme>,
    /// The number of its protocol.
    pub(crate) protocol: Option<u16>,
    pub(crate) spoken: Spoken,
}

impl Reach {
    /// The protocol if each request opens its own connection; event streams and streaming calls are
    /// separate connections.
    pub(crate) fn asked(&self) -> Option<&'static Native> {
        let native = native::of_scheme(self.scheme);
        let is_open = matches!(self.spoken, Spoken::Events | Spoken::Call(_));
        (native.opens_itself && !is_open).then_some(native)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked().is_some()
    }

    pub(crate) fn is_http(&self) -> bool {
        self.asked().is_some_and(|native| std::ptr::eq(native, &native::HTTP))
    }

    /// True if it has methods to call.
    pub(crate) fn has_methods(&self) -> bool {
        self.asked().is_some_and(|native| native.methods)
    }

    /// The method of a streaming call.
    pub(crate) fn called(&self) -> Option<&Called> {
        match &self.spoken {
            Spoken::Call(called) => Some(called),
            _ => None,
        }
    }

    /// The possible received messages, if their fields are known: all messages of the protocol, or
    /// these.
    pub(crate) fn kinds(&self, ids: &[MessageId]) -> Option<Kinds> {
        match &self.spoken {
            Spoken::Declared(protocol) => Some(Kinds::declared(protocol, ids)),
            Spoken::Call(called) => Some(called.replies()),
            _ => None,
        }
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        matches!(self.spoken, Spoken::Events)
    }

    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.scheme, Some(Scheme::Ws | Scheme::Wss))
    }

    /// The built-in knowledge about its connections.
    pub(crate) fn native(&self) -> &'static Native {
        self.spoken.native().unwrap_or_else(|| native::of_scheme(self.scheme))
    }

    /// True if received data consists of messages rather than a stream of bytes.
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self.spoken, Spoken::Declared(_) | Spoken::Records(_)) || self.native().messages
    }

    /// True if connections to it are opened with this key.
    pub(crate) fn opens_with(&self, key: &str) -> bool {
        let carrier = native::of_scheme(self.scheme);
        self.scheme.is_none() || [self.native(), carrier].iter().any(|it| it.opening.contains(&key))
    }

    /// The `connect` step that opens a connection to it, as text.
    pub(crate) fn opening(&self) -> Option<String> {
        match self.called() {
            Some(called) => Some(called.name().to_string()),
            None if self.has_methods() => Some("package.Service/Method".into()),
            None => self.opens_with("connect").then(|| "/path".into()),
        }
    }

    pub(crate) fn has_no_path(&self) -> Said {
        match self.scheme {
            Some(Scheme::Udp) => say!("datagrams have no path"),
            _ => say!("{} has no path", self.native().one),
        }
    }

    /// The message that connections to it do not support a key.
    pub(crate) fn has_no(&self, key: &str) -> Said {
        let native = if self.is_websocket() { &native::WEBSOCKET } else { self.native() };
        native.has_no(key)
    }

    /// The protocol may belong to another target: it is dropped if it does not fit the scheme.
    fn speak_what_goes(&mut self) {
        if !goes_with(&self.spoken, self.scheme) {
            (self.protocol, self.spoken) = (None, Spoken::Plain);
        }
        self.speak_as_scheme();
    }

    fn speak_as_scheme(&mut self) {
        let native = native::of_scheme(self.scheme);
        if native.own.is_some() {
            (self.protocol, self.spoken) = (None, Spoken::Native(native));
        }
    }

    pub(crate) fn declared(&self) -> Option<&Arc<Protocol>> {
        match &self.spoken {
            Spoken::Declared(protocol) => Some(protocol),
            _ => None,
        }
    }
}

/// The targets of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home {
    /// All targets that its steps can name, and its default target if that has no name.
    pub(crate) places: Vec<Reach>,
    /// The event streams of HTTP targets.
    pub(crate) streams: Vec<Reach>,
    /// The streaming calls of targets with methods, one for each method that a `connect` opens.
    calls: Vec<Reach>,
    /// The index in `places` of the default target of steps.
    pub(crate) own: Option<usize>,
}

impl Home {
    /// After a mistake, everything is accepted.
    fn unknown((protocol, spoken): &Speaks) -> Home {
        let (protocol, spoken) = (*protocol, spoken.clone());
        let reach = Reach { protocol, spoken, ..Reach::default() };
        Home { places: vec![reach], own: Some(0), ..Home::default() }
    }

    /// Adds event streams to HTTP targets, and calls to targets with methods.
    fn with_streams(mut self, calls: &[Called]) -> Home {
        let is_http = |place: &&Reach| place.scheme.is_none() || place.is_http();
        let stream = |place: &Reach| Reach { spoken: Spoken::Events, ..place.clone() };
        self.streams = self.places.iter().filter(is_http).map(stream).collect();
        let has_methods = |place: &&Reach| place.scheme.is_none() || place.has_methods();
        for place in self.places.iter().filter(has_methods) {
            self.calls.extend(calls.iter().map(|called| Reach {
                protocol: None,
                spoken: Spoken::Call(called.clone()),
                ..place.clone()
            }));
        }
        self
    }

    /// The event stream of a target.
    pub(crate) fn stream_of(&self, place: &Reach) -> Option<&Reach> {
        self.streams.iter().find(|stream| stream.targets == place.targets)
    }

    /// The streaming call of a target.
    pub(crate) fn call_of(&self, place: &Reach, id: MethodId) -> Option<&Reach> {
        let is_this = |call: &&Reach| call.called().is_some_and(|called| called.id == id);
        self.calls.iter().filter(is_this).find(|call| call.targets == place.targets)
    }

    /// The target of a session that has only one.
    pub(crate) fn only(&self) -> Option<&Reach> {
        match self.own {
            Some(own) => self.places.get(own),
            None => self.places.first(),
        }
    }
}

/// A protocol, with its number if declared.
type Speaks = (Option<u16>, Spoken);

/// A target with a name.
struct Named {
    reach: Reach,
    place: Place,
    /// It declares its own protocol.
    speaks_itself: bool,
    /// A step uses it.
    used: Cell<bool>,
}

/// The targets of all sessions.
#[derive(Default)]
pub(crate) struct Reaches {
    pub(crate) targets: Vec<Target>,
    pub(crate) protocols: Vec<Arc<Protocol>>,
    named: Vec<Named>,
    /// For sessions without their own settings.
    common: Home,
    own: HashMap<String, Home>,
    /// A `connect` opens an event stream or a call.
    has_streams: bool,
    /// Files that were already read: several sessions may name the same one.
    files: HashMap<String, Speaks>,
}

const TARGET_HELP: Said = say!("write `target: http://127.0.0.1:8080`");

const TARGETS_HELP: Said =
    say!("write `targets: {{api: http://127.0.0.1:8080, chat: ws://127.0.0.1:8089}}`");

impl Reaches {
    /// A protocol whose messages have metadata, if any.
    pub(crate) fn with_headers(&self) -> Option<&Spoken> {
        let homes = std::iter::once(&self.common).chain(self.own.values());
        let mut spoken = homes.flat_map(|home| &home.places).map(|place| &place.spoken);
        match self.has_streams {
            true => Some(&Spoken::Events),
            false => spoken.find(|spoken| spoken.has_headers()),
        }
    }

    pub(crate) fn read(cx: &mut Context<'_>, fields: &ast::Scenario<'_>) -> Reaches {
        cx.descriptors = proto::read_schema(cx, fields);
        let mut reaches = Reaches::default();
        let protocol = fields.protocol.node();
        let speaks = match protocol {
            Some(node) => reaches.load(cx, node),
            None => (None, Spoken::Plain),
        };
        if let Some(node) = fields.targets.node() {
            reaches.read_named(cx, node, &speaks);
        }
        let sessions = &fields.sessions.content;
        let has_own = |session: &Option<ast::Session<'_>>| {
            session.as_ref().is_some_and(|session| session.target.is_there())
        };
        let all_have_one = !sessions.is_empty() && sessions.iter().all(|(_, one)| has_own(one));
        let needs_none = all_have_one || fields.targets.key().is_some();
        let node = match needs_none {
            true => fields.target.node(),
            false => fields.need(cx, fields.target, TARGET_HELP),
        };
        if let Some(node) = node.filter(|_| all_have_one) {
            let message = say!("every session has its own target");
            let help = say!("remove this target, or the targets of the sessions");
            cx.warn("never-runs", node.place, message, say!("no session uses this target"), help);
        }
        reaches.common = match node {
            Some(node) => reaches.home(cx, node, &speaks, Some(node)),
            None => Home { places: reaches.places(&speaks), ..Home::default() },
        };
        if reaches.common.places.is_empty() {
            reaches.common = Home::unknown(&speaks);
        }
        if let Some(protocol) = protocol {
            reaches.check_spoken(cx, protocol, &speaks.1, &reaches.common);
        }
        let mut calls: Vec<Called> = Vec::new();
        fields.show(&mut |seen| {
            let SessionFact::Connect(connect) = seen else { return };
            reaches.has_streams |= asks_for_events(connect);
            if let Some(schema) = cx.descriptors.schema()
                && let Some(Node { kind: Kind::Scalar { text, .. }, .. }) = connect.connect.node()
                && let Ok(id) = schema.find_method(text)
                && calls.iter().all(|called| called.id != id)
            {
                calls.push(Called { schema: schema.clone(), id });
            }
        });
        reaches.has_streams |= !calls.is_empty();
        for (key, session) in sessions {
            let Some(session) = session else { continue };
            let (target, protocol) = (session.target.node(), session.protocol.node());
            if target.is_some() || protocol.is_some() {
                let home = reaches.of_session(cx, target, protocol, &speaks);
                reaches.own.entry(key.text.clone()).or_insert(home.with_streams(&calls));
            }
        }
        reaches.common = std::mem::take(&mut reaches.common).with_streams(&calls);
        reaches
    }

    pub(crate) fn of(&self, session: &str) -> &Home {
        self.own.get(session).unwrap_or(&self.common)
    }

    /// Notes that a step uses the target with this name.
    pub(crate) fn uses(&self, name: &str) {
        if let Some(named) = self.named.iter().find(|named| named.reach.name == name) {
            named.used.set(true);
        }
    }

    /// Warns of targets that no step uses.
    pub(crate) fn warn_unused(&self, cx: &mut Context<'_>) {
        for named in self.named.iter().filter(|named| !named.used.get()) {
            let name = shorten(&named.reach.name);
            let message = say!("no step uses the target `{name}`");
            let help = say!("write `target: {name}` in a session or a step, or remove it");
            cx.warn("unused-target", named.place, message, say!("never used"), help);
        }
    }

    /// If no user has a long-lived connection, as far as known: one of the schemes.
    pub(crate) fn asked_only(&self) -> Option<Scheme> {
        let has_any = self.common.places.iter().any(|place| !place.targets.is_empty());
        let is_reached = has_any || self.own.is_empty();
        let common = is_reached.then_some(&self.common);
        let homes = || common.into_iter().chain(self.own.values());
        let mut places = homes().flat_map(|home| &home.places);
        let scheme = places.clone().find_map(|place| place.scheme);
        scheme.filter(|_| !self.has_streams && places.all(Reach::is_asked))
    }

    /// Reads `targets`.
    fn read_named(&mut self, cx: &mut Context<'_>, node: &Node, speaks: &Speaks) {
        let entries = cx.filled_map(
            node,
            say!("a map of targets"),
            say!("there are no targets"),
            TARGETS_HELP,
        );
        for (key, node) in entries {
            if !is_target_name(&key.text) {
                let message = say!("`{}` is not a valid target name", shorten(&key.text));
                let help = say!(
                    "a name consists of letters, digits, `_` and `-`: \
                                         `user-api`"
                );
                cx.report("bad-value", key.place, message, say!("not a valid name"), help);
                continue;
            }
            let speaks_itself = node.get("protocol").is_some();
            let reach = Reach { name: key.text.clone(), ..self.inline(cx, node, speaks, None) };
            let used = Cell::new(false);
            self.named.push(Named { reach, place: key.place, speaks_itself, used });
        }
    }

    fn of_session(
        &mut self,
        cx: &mut Context<'_>,
        target: Option<&Node>,
        protocol: Option<&Node>,
        around: &Speaks,
    ) -> Home {
        let speaks = match protocol {
            Some(node) => self.load_or_none(cx, node),
            None => around.clone(),
        };
        let home = match target {
            Some(node) => self.home(cx, node, &speaks, protocol),
            None => {
                let (places, own) = (self.places(&speaks), self.common.own);
                let mut home = Home { places, own, ..Home::default() };
                // The target of the scenario, if it has no name.
                for unnamed in self.common.places.get(self.named.len()..).unwrap_or_default() {
                    let (protocol_number, spoken) = speaks.clone();
                    let mut reach = Reach { protocol: protocol_number, spoken, ..unnamed.clone() };
                    protocol.iter().for_each(|node| check_transport(cx, node, &reach));
                    reach.speak_as_scheme();
                    home.places.push(reach);
                }
                home
            }
        };
        if let Some(protocol) = protocol {
            self.check_spoken(cx, protocol, &speaks.1, &home);
        }
        home
    }

    /// The default target at this node: the name of a target, or an inline target. Mistakes about
    /// its protocol are reported at the node `at`; without it, the target has no special protocol.
    fn home(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        speaks: &Speaks,
        at: Option<&Node>,
    ) -> Home {
        let mut home = Home { places: self.places(speaks), ..Home::default() };
        match self.number_of(cx, node) {
            Ok(Some(number)) => home.own = Some(number),
            Ok(None) => {
                home.own = Some(home.places.len());
                home.places.push(self.inline(cx, node, speaks, at));
            }
            Err(()) => home = Home::unknown(speaks),
        }
        home
    }

    /// The named targets, using this protocol if they can.
    fn places(&self, speaks: &Speaks) -> Vec<Reach> {
        let reach = |named: &Named| match named.speaks_itself {
            true => named.reach.clone(),
            false => {
                let mut reach = named.reach.clone();
                (reach.protocol, reach.spoken) = speaks.clone();
                reach.speak_what_goes();
                reach
            }
        };
        self.named.iter().map(reach).collect()
    }

    /// Checks that at least one named target supports the protocol, if there are any.
    fn check_spoken(&self, cx: &mut Context<'_>, node: &Node, spoken: &Spoken, home: &Home) {
        let named = home.places.iter().take(self.named.len());
        let is_own = home.own.is_some_and(|own| own >= self.named.len());
        if is_own || named.clone().any(|place| goes_with(spoken, place.scheme)) {
            return;
        }
        for place in named.take(1) {
            check_transport(cx, node, &Reach { spoken: spoken.clone(), ..place.clone() });
        }
    }

    /// The number of the named target; None for a URL.
    fn number_of(&self, cx: &mut Context<'_>, node: &Node) -> Result<Option<usize>, ()> {
        let Kind::Scalar { text, .. } = &node.kind else { return Ok(None) };
        let names = self.named.iter().map(|named| named.reach.name.as_str());
        if let Some(number) = names.clone().position(|name| name == text) {
            return Ok(Some(number));
        }
        match self.named.is_empty() || !is_target_name(text) {
            true => Ok(None),
            false => {
                unknown_target(cx, node, text, names);
                Err(())
            }
        }
    }

    /// The inline target at a node. Addresses without a scheme use that of the protocol.
    fn inline(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        around: &Speaks,
        at: Option<&Node>,
    ) -> Reach {
        let own = node.get("protocol");
        let (protocol, spoken) = match own {
            Some(node) => self.load_or_none(cx, node),
            None => around.clone(),
        };
        let mut reach = self.at(cx, node, Reach { protocol, spoken, ..Reach::default() });
        match own.or(at) {
            Some(at) => {
                check_transport(cx, at, &reach);
                reach.speak_as_scheme();
            }
            None => reach.speak_what_goes(),
        }
        reach
    }

    /// Adds the targets of a node.
    fn at(&mut self, cx: &mut Context<'_>, node: &Node, reach: Reach) -> Reach {
        let targets = cx.speaking(&reach.spoken, |cx| read_targets(cx, node));
        let first = self.targets.len();
        let scheme = targets.first().map(|target| target.scheme);
        self.targets.extend(targets);
        let numbers = first..self.targets.len();
        if self.targets.len() > usize::from(u16::MAX) {
            let message = say!("there are more than 65,535 addresses");
            let help = say!("use the address of a load balancer instead");
            cx.report("too-many", node.place, message, say!("too many"), help);
            return reach;
        }
        Reach { targets: numbers.map(|number| number as u16).collect(), scheme, ..reach }
    }

    fn load_or_none(&mut self, cx: &mut Context<'_>, node: &Node) -> Speaks {
        match &node.kind {
            Kind::Scalar { text, .. } if text == "none" => (None, Spoken::Plain),
            _ => self.load(cx, node),
        }
    }

    fn load(&mut self, cx: &mut Context<'_>, node: &Node) -> Speaks {
        if let Kind::Scalar { text, .. } = &node.kind
            && let Some(native) = native::of_word(text)
        {
            return (None, Spoken::Native(native));
        }
        // A framing that only defines the end of messages.
        if let Kind::Map(entries) = &node.kind
            && let [(key, delimiter)] = &entries[..]
            && key.text == "delimiter"
        {
            let records = |delimiter: Box<[u8]>| Spoken::Records(delimiter.into());
            return (None, read_delimiter(cx, delimiter).map_or(Spoken::Unknown, records));
        }
        let file = node.text().map(str::to_string);
        if let Some(known) = file.as_ref().and_then(|file| self.files.get(file)) {
            return known.clone();
        }
        let loaded = match load_protocol(cx, node) {
            Some(protocol) => {
                self.protocols.push(protocol.clone());
                (Some((self.protocols.len() - 1) as u16), Spoken::Declared(protocol))
            }
            None => (None, Spoken::Unknown),
        };
        if let Some(file) = file {
            self.files.insert(file, loaded.clone());
        }
        loaded
    }
}

/// True if a `connect` step opens an event stream.
pub(crate) fn asks_for_events(connect: &ast::Connect<'_>) -> bool {
    let events = connect.events.node().map(|node| &node.kind);
    matches!(events, Some(Kind::Scalar { text, .. }) if text == "true")
}

fn is_target_name(word: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let all = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    word.starts_with(first) && word.chars().all(all)
}

/// Reports an unknown target, with the names of the known ones.
pub(crate) fn unknown_target<'a>(
    cx: &mut Context<'_>,
    node: &Node,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) {
    let message = say!("there is no target `{}`", shorten(name));
    let label = near_label(did_you_mean(name, names.clone()), say!("not in `targets`"));
    let list = words::names(names);
    let help = if list.is_empty() { TARGETS_HELP } else { say!("`targets` contains {list}") };
    cx.report("unknown-name", node.place, message, label, help);
}

/// True if the scheme supports the protocol; TLS makes no difference.
fn goes_with(spoken: &Spoken, scheme: Option<Scheme>) -> bool {
    let Some(scheme) = scheme else { return true };
    let protocol = match spoken {
        Spoken::Declared(protocol) => protocol,
        Spoken::Records(_) => {
            return matches!(scheme, Scheme::Ws | Scheme::Wss | Scheme::Tcp | Scheme::Tls);
        }
        Spoken::Native(native) => return native.goes_over(scheme),
        _ => return true,
    };
    let declaration = protocol.declaration();
    let is_web_socket = matches!(scheme, Scheme::Ws | Scheme::Wss);
    native::of_scheme(Some(scheme)).schemes.contains(&scheme_of(declaration.transport))
        || is_web_socket && declaration.is_text && declaration.transport.is_stream()
}

fn check_transport(cx: &mut Context<'_>, node: &Node, reach: &Reach) {
    if goes_with(&reach.spoken, reach.scheme) {
        return;
    }
    let Some(scheme) = reach.scheme else { return };
    let word = scheme.word();
    let (message, help) = match &reach.spoken {
        Spoken::Records(_) => (
            say!("`{word}` does not support messages that end with a delimiter"),
            say!("write the target as `ws://…` or `tcp://…`, or remove `delimiter`"),
        ),
        Spoken::Native(Native { by_name: Some(named), own: Some(own), .. }) => (
            say!("{} is not supported with `{word}` targets", own.name),
            say!(
                "write the target as `{0}://…`, or as `ws://…` for {1} over WebSocket",
                named.word,
                own.name
            ),
        ),
        Spoken::Declared(protocol) => {
            let transport = scheme_of(protocol.declaration().transport).word();
            let help = match reach.is_asked() {
                true => say!("write the target as `{transport}://…`"),
                false => say!(
                    "write the target as `{transport}://…`, or `transport: {word}` in the protocol"
                ),
            };
            (say!("the protocol uses `{transport}`, but the target uses `{word}`"), help)
        }
        _ => return,
    };
    let label = say!("the protocol and the target do not match");
    cx.report("scheme-mismatch", node.place, message, label, help);
}
