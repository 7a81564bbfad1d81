//! Selects the requests of the service in a recording: pages load from many hosts, and most of
//! their resources are static. Omissions are counted by host and by kind.

use std::collections::BTreeMap;

use crate::Options;
use crate::model::{Exchange, Item, LeftOut, Recording, Resource, Think};
use crate::text::Text;

/// Hosts that are named in a remark.
const HOSTS_SHOWN_MAX: usize = 8;

pub(super) fn select(recording: &mut Recording, options: &Options) {
    let Some(main) = main_host(recording) else { return };
    let mut strangers: BTreeMap<String, usize> = BTreeMap::new();
    let (mut assets, mut preflights) = (0, 0);
    for session in &mut recording.sessions {
        let mut steps: Vec<Item> = Vec::new();
        for item in std::mem::take(&mut session.steps) {
            let (url, is_asset, is_preflight) = match &item {
                Item::Http(exchange) => {
                    let is_preflight = exchange.method == "OPTIONS"
                        && exchange.header("access-control-request-method").is_some();
                    (&exchange.url, exchange.kind == Resource::Asset, is_preflight)
                }
                Item::Socket(socket) => (&socket.url, false, false),
                _ => {
                    steps.push(item);
                    continue;
                }
            };
            let host = host_of(url);
            if !is_wanted(&host, &main, &options.hosts) {
                let continues = matches!(&item, Item::Socket(socket) if socket.continues);
                *strangers.entry(host).or_default() += usize::from(!continues);
            } else if is_preflight {
                preflights += 1;
            } else if is_asset && !options.assets {
                assets += 1;
            } else {
                push(&mut steps, item, is_asset);
            }
        }
        merge_pauses(&mut steps);
        session.steps = steps;
    }
    tell(recording, assets, preflights, &strangers);
}

/// The resources of a page follow it at the same time.
fn push(steps: &mut Vec<Item>, item: Item, is_asset: bool) {
    match steps.last_mut() {
        Some(Item::Parallel(branches)) if is_asset => branches.push(vec![item]),
        _ if is_asset => steps.push(Item::Parallel(vec![vec![item]])),
        _ => steps.push(item),
    }
}

/// Of adjacent pauses, the longest is kept; a pause is not the first or the last step.
fn merge_pauses(steps: &mut Vec<Item>) {
    steps.dedup_by(|new, old| match (new, old) {
        (Item::Think(Think::Fixed(new)), Item::Think(Think::Fixed(old))) => {
            *old = (*old).max(*new);
            true
        }
        _ => false,
    });
    let is_pause = |item: &mut Item| matches!(item, Item::Think(_));
    steps.pop_if(is_pause);
    if steps.first_mut().is_some_and(is_pause) {
        steps.remove(0);
    }
}

fn tell(
    recording: &mut Recording,
    assets: usize,
    preflights: usize,
    strangers: &BTreeMap<String, usize>,
) {
    let left_out = &mut recording.left_out;
    if assets > 0 {
        let what = say!("static resources (images, scripts, styles, fonts); --assets keeps them");
        left_out.push(LeftOut::of_all(assets, what));
    }
    if preflights > 0 {
        left_out.push(LeftOut::of_all(preflights, say!("browser preflight requests (CORS)")));
    }
    if !strangers.is_empty() {
        let mut hosts: Vec<(&String, &usize)> = strangers.iter().collect();
        hosts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let more = hosts.len().saturating_sub(HOSTS_SHOWN_MAX);
        let shown = hosts.iter().take(HOSTS_SHOWN_MAX).map(|(host, _)| host.as_str());
        let mut list = shown.collect::<Vec<_>>().join(", ");
        if more > 0 {
            list.push_str(", …");
        }
        let what = say!("requests to other hosts ({list}); --host NAME or --host all keeps them");
        left_out.push(LeftOut::of_all(strangers.values().sum(), what));
    }
}

/// The host of the first page, or else of the first request that is not static.
fn main_host(recording: &Recording) -> Option<String> {
    let exchanges = || {
        recording.sessions.iter().flat_map(|session| &session.steps).filter_map(|item| match item {
            Item::Http(exchange) => Some(&**exchange),
            _ => None,
        })
    };
    let is_page = |exchange: &&Exchange| exchange.kind == Resource::Document;
    let is_call = |exchange: &&Exchange| exchange.kind == Resource::Call;
    let first = exchanges().find(is_page).or_else(|| exchanges().find(is_call));
    let first = first.or_else(|| exchanges().next()).map(|exchange| host_of(&exchange.url));
    first.or_else(|| {
        recording.sessions.iter().flat_map(|session| &session.steps).find_map(|item| match item {
            Item::Socket(socket) => Some(host_of(&socket.url)),
            _ => None,
        })
    })
}

/// The name of the host, without a port.
fn host_of(url: &Text) -> String {
    let url = url.to_string();
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.starts_with('[') {
        true => host.split(']').next().unwrap_or_default().to_string() + "]",
        false => host.split(':').next().unwrap_or_default().to_ascii_lowercase(),
    }
}

/// A site consists of `shop.example` and all hosts that end with it.
fn is_wanted(host: &str, main: &str, given: &[String]) -> bool {
    let is_given = |name: &String| {
        name == "all"
            || host == name
            || host.ends_with(&format!(".{}", name.trim_start_matches('.')))
    };
    host == main || site(host) == site(main) || given.iter().any(is_given)
}

/// The last two labels of a name, or three if the second-level label is a short one such as
/// `co.uk`.
fn site(host: &str) -> &str {
    let is_address = host.starts_with('[') || host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_address {
        return host;
    }
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    let (Some(last), Some(second)) = (dots.next(), dots.next()) else { return host };
    let is_short = last - second <= 4 && host.len() - last <= 3;
    match (is_short, dots.next()) {
        (true, Some(third)) => &host[third + 1..],
        (true, None) => host,
        (false, _) => &host[second + 1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_site_belong_together() {
        let wanted = |host: &str, main: &str| is_wanted(host, main, &[]);
        assert!(wanted("api.shop.example", "www.shop.example"));
        assert!(!wanted("tracker.example", "www.shop.example"));
        assert!(!wanted("a.co.uk", "b.co.uk"));
        assert!(wanted("www.a.co.uk", "a.co.uk"));
        assert!(!wanted("127.0.0.1", "128.0.0.1"));
        assert!(wanted("localhost", "localhost"));
        let given = ["tracker.example".to_string()];
        assert!(is_wanted("x.tracker.example", "shop.example", &given));
        assert_eq!(host_of(&Text::literal("https://u:p@[::1]:80/x")), "[::1]");
    }
}
