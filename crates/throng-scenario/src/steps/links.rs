//! The connection that a step uses: with HTTP one for each target, opened by the first request;
//! otherwise a long-lived one, opened by a `connect`. All `connect` steps of a session are
//! collected before it is compiled, so that `on` and `from` are optional if there is only one.

use throng_base::Said;
use throng_program::{LINKS_MAX, Link, Scheme, Target};

use crate::ast::{self, Field, List, Uses, Verb};
use crate::builtin::find_method;
use crate::native::{self, Native};
use crate::reach::{Home, Reach, Reaches, asks_for_events, unknown_target};
use crate::read::Context;
use crate::scope::Spoken;
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::steps::heartbeat::{self, Setting};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::{self, shorten};

/// The key that makes a `connect` an event stream.
const EVENTS: &str = "events";

/// A link of the session that is being compiled.
pub(super) struct Draft<'c> {
    pub(super) name: String,
    pub(super) reach: &'c Reach,
    pub(super) link: Link,
    /// An earlier step has opened it, or the mistake is already reported.
    opened: bool,
    /// Where its heartbeat is set.
    heartbeat: Option<Place>,
    /// The `connect` steps whose `on` and `every` it has.
    settled: Vec<Place>,
}

/// The connections of the session that is being compiled.
pub(super) struct Links<'c> {
    reaches: &'c Reaches,
    home: &'c Home,
    all: Vec<Draft<'c>>,
    /// Maximum number of connections to a target, from `parallel`.
    pub(super) width: Option<u8>,
}

impl<'c> Links<'c> {
    /// The connections that the session opens with `connect`.
    pub(super) fn of_session(
        cx: &Context<'_>,
        (reaches, home): (&'c Reaches, &'c Home),
        connects: &[&ast::Connect<'_>],
    ) -> Links<'c> {
        let mut links = Links { reaches, home, all: Vec::new(), width: None };
        links.find(cx, connects);
        links
    }

    fn find(&mut self, cx: &Context<'_>, connects: &[&ast::Connect<'_>]) {
        let home: &'c Home = self.home;
        for connect in connects {
            let target = connect.target.node().and_then(Node::text);
            let path = connect.connect.node().and_then(Node::text);
            let needs = match asks_for_events(connect) {
                true => Needs::Asked(&native::HTTP),
                false => home.needs_of_connect(target, path),
            };
            let reach = match target {
                Some(name) => home.places.iter().find(|place| place.name == name),
                None => self.usual(needs).ok(),
            };
            let reach = reach.and_then(|reach| match needs {
                Needs::Asked(native) if native.methods => {
                    let schema = cx.descriptors.schema()?;
                    home.call_of(reach, schema.find_method(path?).ok()?)
                }
                Needs::Asked(_) => home.stream_of(reach),
                Needs::Lasting => Some(reach).filter(|reach| !reach.is_asked()),
            });
            let Some(reach) = reach else { continue };
            let name = name_of(connect).unwrap_or(&reach.name);
            if self.lasting_called(name).is_none() && self.all.len() < LINKS_MAX {
                self.add_link(name, reach, true);
            }
        }
        if let ([], [only]) = (&self.all[..], &self.home.places[..])
            && !only.is_asked()
        {
            self.add_link(&only.name, only, true);
        }
    }

    /// The heartbeat of the session for its only connection; otherwise that of the protocol, unless
    /// a `connect` overrides it.
    pub(super) fn read_heartbeats(
        &mut self,
        cx: &mut Context<'_>,
        (fields, key): (&ast::Session<'_>, &Key),
        connects: &[&ast::Connect<'_>],
        rows: &mut Rows,
    ) {
        if let Some(said) = fields.heartbeat.key() {
            if let Some(via) = self.link_of_session(cx, said) {
                self.read_heartbeat(cx, fields.heartbeat, via, rows);
            }
            return;
        }
        for number in 0..self.all.len() {
            let Draft { name, reach, .. } = &self.all[number];
            let is_this = |one: &&&ast::Connect<'_>| name_of(one).unwrap_or(&reach.name) == name;
            let (reach, has_own) =
                (*reach, connects.iter().filter(is_this).any(|one| one.heartbeat.is_there()));
            if let Some(protocol) = reach.declared().filter(|_| !has_own) {
                let usual = heartbeat::of_protocol(cx, protocol, key.place, rows);
                self.all[number].link.heartbeat = usual;
            }
        }
    }

    /// Reads `heartbeat` of a session or a `connect` for a link.
    pub(super) fn read_heartbeat(
        &mut self,
        cx: &mut Context<'_>,
        heartbeat: Field<'_>,
        via: Via<'_>,
        rows: &mut Rows,
    ) {
        let Some((key, node)) = heartbeat.entry() else { return };
        if via.reach.is_event_stream() {
            return one_way(cx, "heartbeat", key.place);
        }
        let draft = &mut self.all[usize::from(via.link)];
        if let Some(before) = draft.heartbeat.replace(key.place) {
            // A part that is used several times repeats it.
            if before != key.place {
                let message = say!("this connection already has a heartbeat");
                let help = say!("keep the one you need");
                cx.report("conflicting-keys", key.place, message, say!("the second one"), help);
            }
            return;
        }
        let said = cx
            .speaking(&via.reach.spoken, |cx| heartbeat::read_heartbeat(cx, node, via.reach, rows));
        draft.link.heartbeat = match said {
            Some(Setting::Own(heartbeat)) => Some(*heartbeat),
            _ => None,
        };
    }

    /// Marks a connection as open.
    pub(super) fn opened(&mut self, link: u8) -> &mut Link {
        &mut self.all[usize::from(link)].link
    }

    /// True if this `connect` sets the background tasks of its connection for the first time: a
    /// part that is used several times repeats them.
    pub(super) fn settle(&mut self, via: Via<'_>, connect: Place) -> bool {
        let settled = &mut self.all[usize::from(via.link)].settled;
        if settled.contains(&connect) {
            return false;
        }
        settled.push(connect);
        true
    }

    /// The link of a step that uses one; in a body, a connection is open.
    pub(super) fn link(
        &mut self,
        cx: &mut Context<'_>,
        verb: &Verb<'_>,
        in_body: bool,
    ) -> Option<Via<'c>> {
        match (verb.uses()?, native::of_verb(verb.word())) {
            (Uses::Target(target), Some(native)) => self.asked_link(cx, verb, target, native),
            (Uses::Target(_), None) => None,
            (Uses::On(on), _) => match self.kept_link(verb, on) {
                Some(native) => self.asked_link(cx, verb, on, native),
                None => self.talk_link(cx, verb, on, in_body),
            },
        }
    }

    /// For protocols without a long-lived connection, `disconnect` ends one that a step opened.
    fn kept_link(&self, verb: &Verb<'_>, on: Field<'_>) -> Option<&'static Native> {
        let ends = matches!(verb, Verb::Disconnect(_)) && !on.is_there();
        let is_there =
            |native: &&'static Native| self.usual(Needs::Asked(native)).is_ok_and(Reach::is_asked);
        native::kept().find(|native| ends && self.lasting().next().is_none() && is_there(native))
    }

    /// The link of a request that opens its own connection.
    fn asked_link(
        &mut self,
        cx: &mut Context<'_>,
        verb: &Verb<'_>,
        target: Field<'_>,
        native: &'static Native,
    ) -> Option<Via<'c>> {
        let needs = Needs::Asked(native);
        let reach = self.reach(cx, (verb.word(), verb.place()), target.node(), needs)?;
        let is_this = |draft: &Draft<'_>| !draft.link.lasts && std::ptr::eq(draft.reach, reach);
        match self.all.iter().position(is_this) {
            Some(number) => Some(self.via(number)),
            None => self.one_more_link(cx, &reach.name, reach, false, verb.place()),
        }
    }

    /// The link that a `connect` opens.
    pub(super) fn connect_link(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Connect<'_>,
    ) -> Option<Via<'c>> {
        let reach = match fields.events.node().map(|node| cx.bool(node)) {
            Some(events) if events? => self.stream(cx, fields)?,
            _ => {
                let target = fields.target.node().and_then(Node::text);
                let path = fields.connect.node().and_then(Node::text);
                match self.home.needs_of_connect(target, path) {
                    Needs::Asked(_) => self.call(cx, fields)?,
                    needs => {
                        let verb = ("connect", fields.connect.place_or(fields.place));
                        self.reach(cx, verb, fields.target.node(), needs)?
                    }
                }
            }
        };
        let mut name = reach.name.clone();
        if let Some(node) = fields.r#as.node() {
            name = read_plain(cx, node)?;
            let is_other = |place: &Reach| place.name == name && place.name != reach.name;
            if self.home.places.iter().any(is_other) {
                let message = say!("`{}` is the name of another target", shorten(&name));
                let label = say!("this connection uses a different target");
                let help = say!("give the connection a unique name");
                return cx.refuse("duplicate-name", node.place, message, label, help);
            }
        }
        let via = match self.lasting_called(&name) {
            Some(number) if std::ptr::eq(self.all[number].reach, reach) => self.via(number),
            Some(_) => {
                let message = match name.is_empty() {
                    true => say!("two connections have no name"),
                    false => say!("two connections are named `{}`", shorten(&name)),
                };
                let place = fields.r#as.node().map_or(fields.place, |node| node.place);
                let label = say!("another `connect` opens a different connection");
                let help = match name.is_empty() {
                    true => say!("give one of them a name: `as: watch`"),
                    false => say!("give one of them another name"),
                };
                return cx.refuse("duplicate-name", place, message, label, help);
            }
            None => self.one_more_link(cx, &name, reach, true, fields.place)?,
        };
        self.all[usize::from(via.link)].opened = true;
        Some(via)
    }

    /// The link for messages: the one that `on` names, or the only long-lived one.
    fn talk_link(
        &mut self,
        cx: &mut Context<'_>,
        verb: &Verb<'_>,
        on: Field<'_>,
        in_body: bool,
    ) -> Option<Via<'c>> {
        let (word, place) = (verb.word(), verb.place());
        let number = match (on.node(), self.only_lasting()) {
            (Some(node), _) => usize::from(self.link_called(cx, node, word)?),
            (None, Some(only)) => usize::from(only),
            (None, None) if self.lasting().next().is_some() => {
                return self.which(cx, "on", place);
            }
            (None, None) => {
                let reach = self.reach(cx, (word, place), None, Needs::Lasting)?;
                usize::from(self.one_more_link(cx, &reach.name, reach, true, place)?.link)
            }
        };
        if !in_body && !matches!(verb, Verb::Disconnect(_)) {
            self.need_open(cx, word, number, place);
        }
        if matches!(verb, Verb::Send(_) | Verb::Request(_))
            && self.all[number].reach.is_event_stream()
        {
            one_way(cx, word, place);
            return None;
        }
        let via = self.via(number);
        check_verb(cx, verb, via.reach).map(|()| via)
    }

    /// Reports that this key must name one of several connections.
    pub(super) fn which<T>(&self, cx: &mut Context<'_>, key: &str, place: Place) -> Option<T> {
        let names = || self.lasting().map(|(_, draft)| draft.name.as_str());
        let first = names().next().unwrap_or_default();
        let help = say!("write `{key}: {}`; available: {}", shorten(first), words::names(names()));
        which_connection(cx, place, help)
    }

    /// The connection that is named at a node.
    pub(super) fn link_called(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        verb: &str,
    ) -> Option<u8> {
        let name = read_plain(cx, node)?;
        if let Some(number) = self.lasting_called(&name) {
            return Some(number as u8);
        }
        let names = || self.lasting().map(|(_, draft)| draft.name.as_str());
        let names = || names().filter(|name| !name.is_empty());
        if let Some(reach) = self.home.places.iter().find(|place| place.name == name)
            && !reach.is_http()
        {
            let message = say!("`{verb}` requires an open connection");
            let label = say!("no `connect` in this session connects to `{name}`");
            return cx.refuse("no-connect", node.place, message, label, connect_help(reach));
        }
        let message = say!("there is no connection `{}`", shorten(&name));
        let label = say!("no `connect` in this session opens it");
        let none = say!("leave out the name if the user has only one connection");
        cx.unknown("unknown-name", node.place, message, (&name, names()), label, none)
    }

    fn need_open(&mut self, cx: &mut Context<'_>, verb: &str, number: usize, place: Place) {
        if std::mem::replace(&mut self.all[number].opened, true) {
            return;
        }
        let reach = self.all[number].reach;
        if reach.scheme.is_none() {
            return;
        }
        let label = say!("no `connect` before it");
        let help = match (self.home.places.len(), reach.opening()) {
            (1, Some(path)) => say!("write `- connect: {path}` before it, or in `before`"),
            (1, None) => say!("write `- connect` before it, or in `before`"),
            _ => connect_help(reach),
        };
        cx.report("no-connect", place, say!("`{verb}` requires an open connection"), label, help);
    }

    /// A `stay` on long-lived connections requires one that is open.
    pub(super) fn stay_needs_open(&mut self, cx: &mut Context<'_>, fields: &ast::Stay<'_>) {
        let has_asked = self.home.places.iter().any(Reach::is_asked);
        let any_open = self.lasting().any(|(_, draft)| draft.opened);
        let first = self.lasting().next().map(|(number, _)| number);
        if let Some(number) = first.filter(|_| !has_asked && !any_open) {
            let place = fields.stay.place_or(fields.place);
            self.need_open(cx, "stay", usize::from(number), place);
        }
    }

    /// The target of a step: the one that it names, that of its session, or the only one that its
    /// verb supports.
    fn reach(
        &mut self,
        cx: &mut Context<'_>,
        (verb, place): (&str, Place),
        target: Option<&Node>,
        needs: Needs,
    ) -> Option<&'c Reach> {
        let home: &'c Home = self.home;
        if let Some(node) = target {
            let name = read_plain(cx, node)?;
            let names = || home.places.iter().map(|place| place.name.as_str());
            let names = || names().filter(|name| !name.is_empty());
            let Some(reach) = home.places.iter().find(|place| place.name == name) else {
                unknown_target(cx, node, &name, names());
                return None;
            };
            if fits(reach, needs) {
                return Some(reach);
            }
            return misfit(cx, verb, reach.scheme, node.place);
        }
        match self.usual(needs) {
            Ok(reach) => Some(reach),
            Err(several) if several.is_empty() => {
                let callable = home.places.iter().find(|place| place.has_methods());
                if let Some(reach) = callable.filter(|_| !named_by_itself(verb)) {
                    return no_connect(cx, verb, place, reach);
                }
                let scheme = match &home.places[..] {
                    [only] => only.scheme,
                    places => home.own.and_then(|own| places[own].scheme),
                };
                misfit(cx, verb, scheme, place)
            }
            Err(several) if !named_by_itself(verb) => no_connect(cx, verb, place, several[0]),
            Err(several) => {
                let names = || several.iter().map(|reach| reach.name.as_str());
                let first = names().next().unwrap_or_default();
                let message = say!("there are several possible targets for `{verb}`");
                let help = say!(
                    "write `target: {}` in the step or the session; available: {}",
                    shorten(first),
                    words::names(names())
                );
                cx.refuse("which-target", place, message, say!("the target is ambiguous"), help)
            }
        }
    }

    /// The event stream that a `connect` opens, at the target that an `http` step would use.
    fn stream(&mut self, cx: &mut Context<'_>, fields: &ast::Connect<'_>) -> Option<&'c Reach> {
        let home: &'c Home = self.home;
        if let Some((key, node)) = fields.connect.entry()
            && node.is_null()
        {
            let message = say!("an event stream requires a path");
            let help = say!("write `connect: /events`");
            return cx.refuse(
                "missing-key",
                key.place,
                message,
                say!("its value is missing"),
                help,
            );
        }
        let verb = (EVENTS, fields.events.place_or(fields.place));
        let reach = self.reach(cx, verb, fields.target.node(), Needs::Asked(&native::HTTP))?;
        home.stream_of(reach)
    }

    /// The call that a `connect` opens, at the target that a call step would use.
    fn call(&mut self, cx: &mut Context<'_>, fields: &ast::Connect<'_>) -> Option<&'c Reach> {
        let place = fields.connect.place_or(fields.place);
        let Some(node) = fields.connect.node().filter(|node| !node.is_null()) else {
            let message = say!("{} requires a method", native::of_call().one);
            let help = say!("write `connect: package.Service/Method`");
            return cx.refuse("missing-key", place, message, say!("its value is missing"), help);
        };
        let name = read_plain(cx, node)?;
        let called = find_method(cx, node, &name);
        let reach = self.reach(cx, ("connect", place), fields.target.node(), Needs::call())?;
        let home: &'c Home = self.home;
        home.call_of(reach, called?.id)
    }

    /// The target of steps that do not name one; otherwise all candidates.
    fn usual(&self, needs: Needs) -> Result<&'c Reach, Vec<&'c Reach>> {
        let home: &'c Home = self.home;
        let own = home.own.map(|own| &home.places[own]);
        if let Some(own) = own.filter(|own| fits(own, needs)) {
            return Ok(own);
        }
        let all: Vec<&Reach> = home.places.iter().filter(|one| fits(one, needs)).collect();
        match all[..] {
            [only] => Ok(only),
            _ => Err(all),
        }
    }

    /// The connection that a key of the session applies to; several are a mistake.
    pub(super) fn link_of_session(&mut self, cx: &mut Context<'_>, key: &Key) -> Option<Via<'c>> {
        if !self.has_lasting(cx, key) {
            return None;
        }
        match self.only_lasting() {
            Some(only) => Some(self.via(usize::from(only))),
            None => {
                let name = &key.text;
                let help = say!("write `{name}` in the `connect` step that opens the connection");
                which_connection(cx, key.place, help)
            }
        }
    }

    /// True if there is a long-lived connection; otherwise that is reported at the key that needs
    /// one.
    pub(super) fn has_lasting(&self, cx: &mut Context<'_>, key: &Key) -> bool {
        if self.lasting().next().is_some() {
            return true;
        }
        let name = &key.text;
        let place = self.home.places.iter().find(|place| !place.is_asked());
        match place.or(self.home.places.iter().find(|place| place.has_methods())) {
            Some(place) => {
                let message = say!("`{name}` requires an open connection");
                let label = say!("no `connect` in this session");
                cx.report("no-connect", key.place, message, label, connect_help(place));
            }
            None => {
                let scheme = self.home.only().and_then(|reach| reach.scheme);
                let scheme = scheme.unwrap_or(Scheme::Http).word();
                let message = say!("`{name}` is not supported with `{scheme}` targets");
                let label = say!("the target is `{scheme}://`");
                let help =
                    say!("a target with `ws://`, `wss://`, `tcp://` or `tls://` is required");
                cx.report("step-scheme", key.place, message, label, help);
            }
        }
        false
    }

    /// The links that `connect` opens.
    pub(super) fn lasting(&self) -> impl Iterator<Item = (u8, &Draft<'c>)> + Clone {
        (0..).zip(&self.all).filter(|(_, draft)| draft.link.lasts)
    }

    pub(super) fn only_lasting(&self) -> Option<u8> {
        let mut all = self.lasting();
        let first = all.next();
        first.filter(|_| all.next().is_none()).map(|(number, _)| number)
    }

    pub(super) fn lasting_called(&self, name: &str) -> Option<usize> {
        let mut all = self.lasting();
        all.find(|(_, draft)| draft.name == name).map(|(number, _)| usize::from(number))
    }

    pub(super) fn via(&self, number: usize) -> Via<'c> {
        Via { link: number as u8, reach: self.all[number].reach }
    }

    fn one_more_link(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
        reach: &'c Reach,
        lasts: bool,
        place: Place,
    ) -> Option<Via<'c>> {
        if self.all.len() < LINKS_MAX {
            return Some(self.add_link(name, reach, lasts));
        }
        let message = say!("a session has more than {LINKS_MAX} connections");
        let help = say!("split them across several sessions");
        cx.refuse("too-many", place, message, say!("this exceeds the limit"), help)
    }

    pub(super) fn add_link(&mut self, name: &str, reach: &'c Reach, lasts: bool) -> Via<'c> {
        self.reaches.uses(&reach.name);
        let link = Link {
            targets: reach.targets.clone(),
            protocol: reach.protocol.filter(|_| !reach.is_event_stream()),
            delimiter: match &reach.spoken {
                Spoken::Records(delimiter) => Some((**delimiter).into()),
                _ => None,
            },
            lasts,
            events: reach.is_event_stream(),
            ..Link::default()
        };
        let (heartbeat, settled) = (None, Vec::new());
        let name = name.to_string();
        self.all.push(Draft { name, reach, link, opened: false, heartbeat, settled });
        self.via(self.all.len() - 1)
    }

    /// The connection that the first handler names.
    pub(super) fn first_named(&self, handlers: &List<'_, ast::Handler<'_>>) -> Option<u8> {
        let from = handlers.content.iter().flat_map(|items| &items.list);
        match &from.filter_map(|handler| handler.from.node()).next()?.kind {
            Kind::Scalar { text, .. } => self.lasting_called(text).map(|number| number as u8),
            _ => None,
        }
    }

    /// Keys that require a long-lived connection; a missing one is reported.
    pub(super) fn of_connection<'n>(
        &self,
        cx: &mut Context<'_>,
        field: Field<'n>,
    ) -> Option<&'n Node> {
        let (key, node) = field.entry()?;
        self.has_lasting(cx, key).then_some(node)
    }

    /// The resulting links.
    pub(super) fn finish(mut self) -> Box<[Link]> {
        if let ([], Some(reach)) = (&self.all[..], self.home.only()) {
            self.add_link(&reach.name, reach, !reach.is_asked());
        }
        let is_only = self.all.len() == 1;
        let reaches = self.reaches;
        let width = self.width;
        let links = self.all.into_iter().map(|Draft { name, mut link, .. }| {
            link.width = width.filter(|_| !link.lasts);
            let first = link.targets.first().and_then(|one| reaches.targets.get(usize::from(*one)));
            link.name = match (is_only, name.is_empty()) {
                (true, _) => String::new(),
                (false, true) => first.map_or(name, Target::authority),
                (false, false) => name,
            };
            link
        });
        links.collect()
    }
}

/// What a step requires of a target.
#[derive(Clone, Copy)]
enum Needs {
    /// Requests that open their own connections, with this protocol.
    Asked(&'static Native),
    /// A long-lived connection.
    Lasting,
}

impl Needs {
    fn call() -> Needs {
        Needs::Asked(native::with_methods())
    }
}

impl Home {
    /// The requirements of a `connect` without `events`: a path starts with `/`, a method does not.
    fn needs_of_connect(&self, target: Option<&str>, path: Option<&str>) -> Needs {
        if let Some(named) = target.and_then(|name| self.places.iter().find(|one| one.name == name))
        {
            return if named.has_methods() { Needs::call() } else { Needs::Lasting };
        }
        let is_method = path.is_some_and(|path| !path.is_empty() && !path.starts_with('/'));
        let has = |is: fn(&Reach) -> bool| self.places.iter().any(is);
        match has(Reach::has_methods) && (is_method || self.places.iter().all(Reach::has_methods)) {
            true => Needs::call(),
            false => Needs::Lasting,
        }
    }
}

/// True if a step names its own target and needs no connection that another step opened.
fn named_by_itself(verb: &str) -> bool {
    let asks = native::of_verb(verb).is_some_and(|native| native.opens_itself);
    asks || matches!(verb, "connect" | EVENTS)
}

fn no_connect<T>(cx: &mut Context<'_>, verb: &str, place: Place, reach: &Reach) -> Option<T> {
    let message = say!("`{verb}` requires an open connection");
    cx.refuse("no-connect", place, message, say!("no `connect` before it"), connect_help(reach))
}

/// True if a target meets the requirements of a verb.
fn fits(reach: &Reach, needs: Needs) -> bool {
    reach.scheme.is_none()
        || match needs {
            Needs::Asked(native) => reach.asked().is_some_and(|one| std::ptr::eq(one, native)),
            Needs::Lasting => !reach.is_asked(),
        }
}

fn misfit<T>(cx: &mut Context<'_>, verb: &str, scheme: Option<Scheme>, place: Place) -> Option<T> {
    let help = native::of_scheme(scheme).refusal(verb).clone();
    let (message, label) = match scheme {
        Some(scheme) => (
            say!("`{verb}` is not supported with `{}` targets", scheme.word()),
            say!("the target is `{}://`", scheme.word()),
        ),
        None => (say!("no target supports `{verb}`"), say!("no target has a suitable scheme")),
    };
    cx.refuse("step-scheme", place, message, label, help)
}

pub(super) fn which_connection<T>(cx: &mut Context<'_>, place: Place, help: Said) -> Option<T> {
    let label = say!("the connection is ambiguous");
    cx.refuse("which-connection", place, say!("this session has several connections"), label, help)
}

fn connect_help(reach: &Reach) -> Said {
    let name = shorten(&reach.name);
    match (reach.opening(), name.is_empty()) {
        (Some(path), false) => say!("write `- {{connect: {path}, target: {name}}}` before it"),
        (None, false) => say!("write `- {{connect: , target: {name}}}` before it"),
        (Some(path), true) => say!("write `- connect: {path}` before it, or in `before`"),
        (None, true) => say!("write `- connect` before it, or in `before`"),
    }
}

/// Checks that the protocol supports the verb: a protocol with its own verbs has them instead of
/// the usual ones.
fn check_verb(cx: &mut Context<'_>, verb: &Verb<'_>, reach: &Reach) -> Option<()> {
    let (word, native) = (verb.word(), reach.native());
    if native.verbs.contains(&word) || reach.scheme.is_none() {
        return Some(());
    }
    let is_usual = matches!(verb, Verb::Send(_) | Verb::Request(_));
    let needed = native::of_verb(word).filter(|needed| needed.own.is_some());
    let (message, label, help) = match (needed, native.own) {
        (Some(needed), _) => {
            (say!("`{word}` requires {}", needed.one), needed.not_spoken(), needed.needs.clone())
        }
        (None, Some(own)) if is_usual => (
            say!("`{word}` is not supported on {}", native.one),
            say!("the connection uses {}", own.name),
            own.sends.clone(),
        ),
        _ => return Some(()),
    };
    cx.refuse("step-scheme", verb.place(), message, label, help)
}

/// Reports that event streams are receive-only.
fn one_way(cx: &mut Context<'_>, verb: &str, place: Place) {
    let message = say!("`{verb}` is not supported on an event stream");
    let label = say!("on an event stream, only the target sends events");
    let help = say!("to send data, use an `http` step; for incoming events, use `expect` and `on`");
    cx.report("step-scheme", place, message, label, help);
}

/// A constant name, as written.
fn read_plain(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar { text, .. } if !node.is_null() => Some(text.clone()),
        _ => cx.wrong_type(node, say!("a name"), say!("write a name")),
    }
}

/// The name that a `connect` gives to its connection.
fn name_of<'n>(connect: &ast::Connect<'n>) -> Option<&'n str> {
    connect.r#as.node().and_then(Node::text)
}
