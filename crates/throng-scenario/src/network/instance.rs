//! What identifies the instance behind the address of a target: `instance` of a target.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Scheme, Target};

use crate::message::headers::is_token;
use crate::read::Context;
use crate::syntax::Node;
use crate::words::shorten;

const HELP: Said = say!("write `instance: header x-served-by`");

/// `header x-served-by`, for all addresses of a target.
pub(crate) fn read(cx: &mut Context<'_>, node: &Node, targets: &mut [Target]) {
    let Some(instance) = read_word(cx, node) else { return };
    let is_http = |target: &Target| matches!(target.scheme, Scheme::Http | Scheme::Https);
    if !targets.is_empty() && !targets.iter().any(is_http) {
        let message = say!("only HTTP responses can contain an instance name");
        cx.bad_value::<()>(node, message, say!("remove `instance`"));
    }
    targets.iter_mut().for_each(|target| target.instance = Some(Arc::clone(&instance)));
}

fn read_word(cx: &mut Context<'_>, node: &Node) -> Option<Arc<str>> {
    let text = cx.text(node, say!("a source of instance names"))?;
    match text.trim().strip_prefix("header ").map(str::trim).filter(|name| is_token(name)) {
        Some(name) => Some(name.to_ascii_lowercase().into()),
        None => {
            let message = say!("`{}` does not name a response header", shorten(&text));
            cx.bad_value(node, message, HELP)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{compile_set, program, render};

    fn scenario(target: &str) -> String {
        format!(
            "target: {target}\nsessions: {{a: {{steps: [{{http: GET /}}]}}}}\n\
             load: [{{users: 1, for: 1s}}]\n"
        )
    }

    #[test]
    fn a_response_header_names_the_instance_of_all_addresses() {
        let text = scenario("{addresses: [http://a, http://b], instance: header X-Served-By}");
        let targets = program(&text).targets;
        assert!(targets.iter().all(|target| target.instance.as_deref() == Some("x-served-by")));
        assert_eq!(program(&scenario("http://a")).targets[0].instance, None);
    }

    #[test]
    fn other_values_are_refused_with_advice() {
        let told = |target: &str| {
            let source = throng_base::Source::new("test.yaml", scenario(target));
            match compile_set(&source, &[]) {
                Ok((_, told)) | Err(told) => render(&told),
            }
        };
        for wrong in ["x-served-by", "header", "header x served", "\"header a:b\""] {
            let told = told(&format!("{{url: http://a, instance: {wrong}}}"));
            assert!(told.contains("write `instance: header x-served-by`"), "{told}");
        }
        let told = told("{url: tcp://a:1, instance: header x}");
        assert!(told.contains("only HTTP responses can contain an instance name"), "{told}");
    }
}
