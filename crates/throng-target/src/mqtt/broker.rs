//! The state shared by all workers of the broker: subscriptions, retained messages, sessions.
//!
//! Locks are acquired in this order: all clients, the topics, one client.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use throng_base::Time;

use super::client::{Client, How, Message, Target};
use super::codec::Connect;
use super::topics::{Topics, is_filter, shared};
use crate::address::Address;
use crate::stats::MqttStats;
use crate::sums::{Shards, lock};

#[derive(Debug)]
struct Subscription {
    client: Arc<Client>,
    /// As received in SUBSCRIBE.
    options: u8,
    identifier: Option<u32>,
}

/// The subscribers of one filter.
#[derive(Debug, Default)]
struct Subscribers {
    all: HashMap<String, Subscription>,
    groups: HashMap<String, Group>,
}

/// A shared subscription: each message goes to one of its members, in turn.
#[derive(Debug, Default)]
struct Group {
    members: Vec<Subscription>,
    turn: AtomicUsize,
}

/// A message for the clients that are connected to one worker.
pub(crate) struct Bundle {
    pub(crate) worker: u16,
    pub(crate) targets: Vec<Target>,
    pub(crate) message: Arc<Message>,
}

/// The result of a CONNECT.
pub(crate) struct Accepted {
    pub(crate) client: Arc<Client>,
    pub(crate) present: bool,
    /// The client's previous connection.
    pub(crate) before: Option<Address>,
    /// The will of that connection.
    pub(crate) bundles: Vec<Bundle>,
}

#[derive(Default)]
pub(crate) struct Broker {
    topics: RwLock<Topics<Subscribers>>,
    clients: Mutex<HashMap<String, Arc<Client>>>,
    retained: Mutex<BTreeMap<Box<str>, Arc<Message>>>,
    subscriptions: AtomicU64,
    assigned: AtomicU64,
    counts: Shards<MqttStats>,
}

impl Broker {
    pub(crate) fn count(&self, worker: u16, count: impl FnOnce(&mut MqttStats)) {
        count(&mut self.counts.of(worker.into()));
    }

    pub(crate) fn stats(&self) -> MqttStats {
        let mut sum = self.counts.sum();
        sum.sessions = lock(&self.clients).len() as u64;
        sum.subscriptions = self.subscriptions.load(Ordering::Relaxed);
        sum.retained = lock(&self.retained).len() as u64;
        sum
    }

    pub(crate) fn reset(&self) {
        self.counts.reset();
    }

    /// An identifier for a client without one.
    pub(crate) fn assign(&self) -> String {
        format!("throng-{}", self.assigned.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A client connects: its session is resumed or created.
    pub(crate) fn connect(
        &self,
        connect: &Connect<'_>,
        id: &str,
        address: Address,
        now: Time,
    ) -> Accepted {
        let (mut before, mut will, mut ended) = (None, None, None);
        let clients = &mut *lock(&self.clients);
        if let Some(client) = clients.get(id) {
            let mut state = client.state();
            before = state.address.take();
            let ends = connect.clean_start || state.expires_at <= now;
            // A delayed will is not published if the session continues (3.1.3.2.2).
            let publishes = ends
                || before.is_some() && state.expiry_s == 0
                || state.will.as_ref().is_some_and(|will| will.delay_s == 0);
            will = state.will.take().filter(|_| publishes).map(|will| will.message);
            if ends {
                ended = Some(Arc::clone(client));
            } else {
                state.begin(connect, address, now);
                let client = Arc::clone(client);
                drop(state);
                let bundles = self.publish_will(will);
                return Accepted { client, present: true, before, bundles };
            }
        }
        let client = Arc::new(Client::new(id));
        client.state().begin(connect, address, now);
        clients.insert(id.to_owned(), Arc::clone(&client));
        ended.iter().for_each(|client| self.unsubscribe_all(client));
        let bundles = self.publish_will(will);
        Accepted { client, present: false, before, bundles }
    }

    fn publish_will(&self, will: Option<Arc<Message>>) -> Vec<Bundle> {
        let Some(message) = will else { return Vec::new() };
        self.count(0, |counts| counts.wills += 1);
        self.publish(&message, None).1
    }

    /// A connection ends; `graceful` if its client sent DISCONNECT.
    pub(crate) fn leave(
        &self,
        client: &Arc<Client>,
        address: Address,
        graceful: bool,
        now: Time,
    ) -> Vec<Bundle> {
        {
            let mut state = client.state();
            if state.address != Some(address) {
                return Vec::new();
            }
            if graceful {
                state.will = None;
            }
            state.leave(now);
        }
        self.look_at(client, now)
    }

    /// Publishes wills that are due, and ends expired sessions.
    pub(crate) fn sweep(&self, now: Time) -> Vec<Bundle> {
        let due = |client: &&Arc<Client>| {
            let state = client.state();
            state.address.is_none()
                && (state.expires_at <= now
                    || state.will.as_ref().is_some_and(|will| will.due <= now))
        };
        let due: Vec<_> = lock(&self.clients).values().filter(due).cloned().collect();
        due.iter().flat_map(|client| self.look_at(client, now)).collect()
    }

    fn look_at(&self, client: &Arc<Client>, now: Time) -> Vec<Bundle> {
        let (will, expired) = {
            let mut state = client.state();
            if state.address.is_some() {
                return Vec::new();
            }
            (state.will.take_if(|will| will.due <= now), state.expires_at <= now)
        };
        if expired {
            let clients = &mut *lock(&self.clients);
            if clients.get(&client.id).is_some_and(|found| Arc::ptr_eq(found, client)) {
                clients.remove(&client.id);
            }
            self.unsubscribe_all(client);
        }
        self.publish_will(will.map(|will| will.message))
    }

    /// Subscribes a client. Returns whether the subscription is new; `None` for an invalid filter.
    pub(crate) fn subscribe(
        &self,
        client: &Arc<Client>,
        filter: &str,
        options: u8,
        identifier: Option<u32>,
    ) -> Option<bool> {
        let (group, inner) = match shared(filter) {
            Some((group, inner)) => (Some(group), inner),
            None => (None, filter),
        };
        if !is_filter(inner) || group.is_some_and(|it| it.is_empty() || it.contains(['+', '#'])) {
            return None;
        }
        let subscription = Subscription { client: Arc::clone(client), options, identifier };
        let is_new = {
            let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
            let subscribers = topics.of(inner);
            match group {
                None => subscribers.all.insert(client.id.clone(), subscription).is_none(),
                Some(group) => {
                    let members =
                        &mut subscribers.groups.entry(group.to_owned()).or_default().members;
                    let known = members.iter().position(|it| Arc::ptr_eq(&it.client, client));
                    known.into_iter().for_each(|at| drop(members.remove(at)));
                    members.push(subscription);
                    known.is_none()
                }
            }
        };
        if is_new {
            client.state().filters.push(filter.to_owned());
            self.subscriptions.fetch_add(1, Ordering::Relaxed);
        }
        Some(is_new)
    }

    /// Returns whether the subscription existed.
    pub(crate) fn unsubscribe(&self, client: &Arc<Client>, filter: &str) -> bool {
        {
            let filters = &mut client.state().filters;
            let Some(at) = filters.iter().position(|known| known == filter) else { return false };
            filters.swap_remove(at);
        }
        self.forget(client, filter);
        true
    }

    fn unsubscribe_all(&self, client: &Arc<Client>) {
        let filters = std::mem::take(&mut client.state().filters);
        filters.iter().for_each(|filter| self.forget(client, filter));
    }

    fn forget(&self, client: &Arc<Client>, filter: &str) {
        self.subscriptions.fetch_sub(1, Ordering::Relaxed);
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        match shared(filter) {
            None => {
                let all = &mut topics.of(filter).all;
                // The ID may belong to another session of the client by now.
                if all.get(&client.id).is_some_and(|it| Arc::ptr_eq(&it.client, client)) {
                    all.remove(&client.id);
                }
            }
            Some((group, inner)) => {
                let groups = &mut topics.of(inner).groups;
                if let Some(found) = groups.get_mut(group) {
                    found.members.retain(|it| !Arc::ptr_eq(&it.client, client));
                    if found.members.is_empty() {
                        groups.remove(group);
                    }
                }
            }
        }
    }

    /// Sends a message to all subscribers of its topic, and returns their number.
    pub(crate) fn publish(
        &self,
        message: &Arc<Message>,
        from: Option<&Arc<Client>>,
    ) -> (usize, Vec<Bundle>) {
        if message.retain {
            let retained = &mut *lock(&self.retained);
            match message.payload.is_empty() {
                true => drop(retained.remove(&message.topic)),
                false => drop(retained.insert(message.topic.clone(), Arc::clone(message))),
            }
        }
        let targets = self.targets(message, from);
        (targets.len(), self.bundles(targets, message))
    }

    fn targets(&self, message: &Message, from: Option<&Arc<Client>>) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        let mut known: HashMap<*const Client, usize> = HashMap::new();
        let mut add = |subscription: &Subscription, shared: bool| {
            let client = &subscription.client;
            let own = from.is_some_and(|from| Arc::ptr_eq(from, client));
            if own && subscription.options & 4 != 0 {
                return;
            }
            let how = How {
                qos: message.qos.min(subscription.options & 3),
                retain: message.retain && subscription.options & 8 != 0,
                identifiers: subscription.identifier.into_iter().collect(),
            };
            // A message that matches several subscriptions of a client is sent once (3.3.4), with
            // the highest QoS; shared subscriptions are separate.
            match known.get(&Arc::as_ptr(client)).filter(|_| !shared) {
                Some(at) => {
                    let first = &mut targets[*at].how;
                    first.qos = first.qos.max(how.qos);
                    first.retain |= how.retain;
                    first.identifiers.extend(how.identifiers);
                }
                None => {
                    if !shared {
                        known.insert(Arc::as_ptr(client), targets.len());
                    }
                    targets.push(Target { client: Arc::clone(client), how });
                }
            }
        };
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.matching(&message.topic, &mut |subscribers: &Subscribers| {
            subscribers.all.values().for_each(|subscription| add(subscription, false));
            for group in subscribers.groups.values() {
                let turn = group.turn.fetch_add(1, Ordering::Relaxed);
                group.next(turn).into_iter().for_each(|member| add(member, true));
            }
        });
        targets
    }

    /// A message for these clients by worker. Messages for disconnected clients are queued.
    pub(crate) fn bundles(&self, targets: Vec<Target>, message: &Arc<Message>) -> Vec<Bundle> {
        let mut bundles: Vec<Bundle> = Vec::new();
        for target in targets {
            let mut state = target.client.state();
            let Some(Address { worker, .. }) = state.address else {
                let kept = target.how.qos == 0 || state.take(message, target.how.clone());
                self.count(0, |counts| counts.left_out += u64::from(!kept));
                continue;
            };
            drop(state);
            match bundles.iter_mut().find(|bundle| bundle.worker == worker) {
                Some(bundle) => bundle.targets.push(target),
                None => {
                    let (targets, message) = (vec![target], Arc::clone(message));
                    bundles.push(Bundle { worker, targets, message });
                }
            }
        }
        bundles
    }

    /// The retained messages that match a new subscription.
    pub(crate) fn retained(
        &self,
        client: &Arc<Client>,
        filter: &str,
        options: u8,
        identifier: Option<u32>,
    ) -> Vec<Bundle> {
        let mut filters = Topics::<bool>::default();
        *filters.of(filter) = true;
        let matches = |topic: &str| {
            let mut found = false;
            filters.matching(topic, &mut |is| found |= is);
            found
        };
        let retained = lock(&self.retained);
        let found = retained.iter().filter(|(topic, _)| matches(topic));
        let found: Vec<_> = found.map(|(_, message)| Arc::clone(message)).collect();
        drop(retained);
        let bundles = |message: Arc<Message>| {
            let how = How {
                qos: message.qos.min(options & 3),
                retain: true,
                identifiers: identifier.into_iter().collect(),
            };
            self.bundles(vec![Target { client: Arc::clone(client), how }], &message)
        };
        found.into_iter().flat_map(bundles).collect()
    }
}

impl Group {
    /// The next member; preferably a connected one.
    fn next(&self, turn: usize) -> Option<&Subscription> {
        let count = self.members.len();
        let mut in_turn = (0..count).map(|at| &self.members[(turn + at) % count]);
        let connected = in_turn.find(|member| member.client.state().address.is_some());
        connected.or_else(|| self.members.get(turn % count.max(1)))
    }
}
