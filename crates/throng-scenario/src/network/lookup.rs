//! When the name of a target is resolved again: `resolve` of a target.

use std::net::IpAddr;
use std::time::Duration;

use throng_base::Said;
use throng_base::units::parse_time;
use throng_program::{Lookup, Target};

use crate::read::Context;
use crate::syntax::Node;
use crate::words::shorten;

const HELP: Said = say!("write `resolve: every 30s`, `resolve: on failure` or `resolve: once`");
/// Minimum interval between lookups of a name.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// `once`, `on failure`, `every 30s`, for all addresses of a target.
pub(crate) fn read(cx: &mut Context<'_>, node: &Node, targets: &mut [Target]) {
    let Some(lookup) = read_word(cx, node) else { return };
    let has_name = |target: &Target| {
        target.unix_socket.is_none() && target.host_alone().parse::<IpAddr>().is_err()
    };
    if lookup != Lookup::Once && !targets.is_empty() && !targets.iter().any(has_name) {
        let label = say!("the target is an address, not a host name");
        let help = say!("remove it, or write the host name in the target's URL");
        cx.warn("unused-route", node.place, say!("`resolve` has no effect here"), label, help);
    }
    targets.iter_mut().for_each(|target| target.lookup = lookup);
}

fn read_word(cx: &mut Context<'_>, node: &Node) -> Option<Lookup> {
    let text = cx.text(node, say!("a name lookup policy"))?;
    let time = match text.trim() {
        "once" => return Some(Lookup::Once),
        "on failure" => return Some(Lookup::OnFailure),
        other => other.strip_prefix("every ").map(|time| parse_time(time.trim())),
    };
    match time {
        Some(Ok(time)) if time >= EVERY_MIN => Some(Lookup::Every(time)),
        Some(Ok(_)) => cx.bad_value(
            node,
            say!("a name can be looked up at most once per second"),
            say!("write `resolve: every 1s`"),
        ),
        Some(Err(_)) | None => {
            let message = say!("`{}` is not a valid value of `resolve`", shorten(&text));
            cx.bad_value(node, message, HELP)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{compile_set, program, render};

    use super::*;

    fn scenario(target: &str) -> String {
        format!(
            "target: {target}\nsessions: {{a: {{steps: [{{http: GET /}}]}}}}\nload: [{{users: 1, for: 1s}}]\n"
        )
    }

    #[test]
    fn names_are_resolved_as_the_target_configures() {
        let of = |target: &str| program(&scenario(target)).targets[0].lookup;
        assert_eq!(of("http://shop.example"), Lookup::Once);
        assert_eq!(of("{url: http://shop.example, resolve: once}"), Lookup::Once);
        assert_eq!(of("{url: http://shop.example, resolve: on failure}"), Lookup::OnFailure);
        let every = Lookup::Every(Duration::from_secs(90));
        assert_eq!(of("{url: http://shop.example, resolve: every 90s}"), every);
        let both = "{addresses: [http://a.example, http://10.0.0.1], resolve: every 90s}";
        assert!(program(&scenario(both)).targets.iter().all(|target| target.lookup == every));
    }

    #[test]
    fn impossible_values_are_refused_with_advice() {
        let told = |target: &str| {
            let source = throng_base::Source::new("test.yaml", scenario(target));
            match compile_set(&source, &[]) {
                Ok((_, told)) | Err(told) => render(&told),
            }
        };
        for (resolve, text) in [
            ("30s", "write `resolve: every 30s`"),
            ("every", "write `resolve: every 30s`"),
            ("every 1 week", "write `resolve: every 30s`"),
            ("every 10ms", "at most once per second"),
        ] {
            let told = told(&format!("{{url: http://shop.example, resolve: {resolve}}}"));
            assert!(told.contains("error") && told.contains(text), "{told}");
        }
        for host in ["127.0.0.1", "[::1]"] {
            let told = told(&format!("{{url: \"http://{host}\", resolve: every 30s}}"));
            assert!(told.contains("warning") && told.contains("not a host name"), "{told}");
        }
    }
}
