//! What fingers have learnt from other tools: long flags with one dash, and short flags that mean
//! something else in every tool.

use std::ffi::OsString;

use throng_base::Diagnostic;

/// Flags that vegeta, hey and go-stress-testing write with one dash.
const ONE_DASH: [&str; 17] = [
    "-body",
    "-code",
    "-connections",
    "-cert",
    "-data",
    "-disable-keepalive",
    "-duration",
    "-header",
    "-http2",
    "-insecure",
    "-keepalive",
    "-key",
    "-method",
    "-rate",
    "-redirect",
    "-timeout",
    "-version",
];

/// Flags that are no flags here: why, and what to write instead.
const REFUSED: [(&str, &str, &str); 7] = [
    (
        "-t",
        "means threads in wrk, a time limit in ab, a timeout in hey and go-stress-testing",
        "write --shards, --duration or --timeout",
    ),
    (
        "-p",
        "means the body in ab, a cURL file in go-stress-testing, HTTP/2 streams in oha",
        "write --body-file (-D) or --curl",
    ),
    ("-A", "means Accept in hey and Basic authentication in ab", "write -H 'Accept: …' or --auth"),
    ("-i", "means HEAD in ab and headers in curl", "write --method HEAD"),
    ("-w", "is not understood here", "write --shards for threads, --json for another output"),
    ("--http2", "asks for HTTP/2, which this version does not speak", "leave it out: HTTP/1.1"),
    ("--http3", "asks for HTTP/3, which this version does not speak", "leave it out: HTTP/1.1"),
];

/// The arguments as they are meant; or why one of them is no good.
pub(crate) fn understood(words: Vec<OsString>) -> Result<Vec<OsString>, Box<Diagnostic>> {
    if words.get(1).is_none_or(|command| command != "bench") {
        return Ok(words);
    }
    let mut out = Vec::with_capacity(words.len());
    for word in words {
        let Some(text) = word.to_str() else {
            out.push(word);
            continue;
        };
        let name = text.split('=').next().unwrap_or(text);
        let meant = match ONE_DASH.contains(&name) {
            true => format!("-{text}"),
            false => text.to_string(),
        };
        let name = meant.split('=').next().unwrap_or(&meant);
        if let Some((flag, why, cure)) = REFUSED.iter().find(|(flag, _, _)| name == *flag) {
            let message = format!("`{flag}` {why}");
            return Err(Box::new(Diagnostic::error("ambiguous-flag", message).help(*cure)));
        }
        out.push(meant.into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn one_dash_becomes_two_and_values_stay() {
        let got = understood(words("throng bench -rate=5 -d30s --body -rat")).unwrap();
        assert_eq!(got, words("throng bench --rate=5 -d30s --body -rat"));
        assert_eq!(understood(words("throng run -t")).unwrap(), words("throng run -t"));
    }

    #[test]
    fn what_tools_disagree_about_is_refused_with_a_cure() {
        for flag in ["-t", "-p", "-http2"] {
            let error = understood(words(&format!("throng bench u {flag} 4"))).unwrap_err();
            assert!(error.help.is_some(), "{error:?}");
        }
    }
}
