//! Reads cURL commands as browsers copy them ("Copy as cURL") for bash and for cmd.exe, and
//! interprets them as curl does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_base::clean::without_mark;
use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Said, Source, plain};

use crate::bench::{Bench, BenchBody, FormContent, FormPart};
use crate::message::headers::is_token;
use crate::syntax::{Place, SOURCE_BYTES_MAX};
use crate::url::{Url, form_encode};
use crate::words::shorten;

mod flags;
mod hidden;
mod way;
mod words;

use flags::{FLAGS, Meaning};
use way::ProxyWords;
use words::Word;

/// What a command asks for, with the headers that are sent.
#[derive(Clone, Debug, Default)]
pub struct CurlRequest {
    pub bench: Bench,
    /// Options that are accepted but behave differently than in curl.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the commands in a file.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<Arc<Source>, Vec<Diagnostic>> {
    let unreadable = |reason: Said| {
        let message = say!("cannot read the cURL file {}: {reason}", path.display());
        let error = Diagnostic::error("file-unreadable", message);
        vec![error.help(say!("set --curl to the path of a text file"))]
    };
    let text = plain::read_given_text(path, SOURCE_BYTES_MAX)
        .map_err(|error| unreadable(Said::of_error(&error)))?;
    Ok(Source::new(path.display().to_string(), without_mark(&text)))
}

/// Reads the only command of a file. Returns all mistakes, each with its place.
pub fn parse(source: &Arc<Source>) -> Result<CurlRequest, Vec<Diagnostic>> {
    let commands = commands(source)?;
    let first = read_command(source, &commands[0]);
    let Some(second) = commands.get(1).and_then(|words| words.first().zip(words.last())) else {
        return first;
    };
    let (begin, end) = second;
    let place = Place::new(0, begin.place.start(), end.place.end());
    let mut reader = CurlReader::new(source);
    reader.errors.extend(first.err().into_iter().flatten());
    let message = say!("the file contains a second command");
    reader.wrong("curl-second", message, place, SECOND_HELP);
    Err(reader.errors)
}

const SECOND_HELP: Said = say!(
    "convert all commands to one scenario with `throng init http all.yaml --curl FILE`, or use \
     one file per command"
);

/// Reads all commands of a file, as browsers write them with "Copy all as cURL".
pub fn parse_all(source: &Arc<Source>) -> Result<Vec<CurlRequest>, Vec<Diagnostic>> {
    let (mut requests, mut errors) = (Vec::new(), Vec::new());
    for words in commands(source)? {
        match read_command(source, &words) {
            Ok(request) => requests.push(request),
            Err(found) => errors.extend(found),
        }
    }
    errors.truncate(crate::DIAGNOSTICS_MAX);
    if errors.is_empty() { Ok(requests) } else { Err(errors) }
}

/// The words of each command; at least one command, each with at least one word.
fn commands(source: &Arc<Source>) -> Result<Vec<Vec<Word>>, Vec<Diagnostic>> {
    let place = Place::new(0, 0, source.text.len().min(1));
    let whole = |code, message: Said, help: Said| {
        vec![Diagnostic::error(code, message).at(place.span(source)).label(say!("here")).help(help)]
    };
    if source.text.len() > SOURCE_BYTES_MAX {
        let help = say!("put the body into a separate file: `--data-binary @file`");
        return Err(whole("file-too-large", say!("the command is larger than 16 MiB"), help));
    }
    let mut commands = words::split(source).map_err(|error| vec![*error])?;
    for words in &mut commands {
        if words.first().is_some_and(|word| word.bytes == b"$" || word.bytes == b">") {
            words.remove(0);
        }
    }
    commands.retain(|words| !words.is_empty());
    if commands.is_empty() {
        let help =
            say!("in the browser's network panel, right-click a request and choose Copy as cURL");
        return Err(whole("curl-empty", say!("the file contains no cURL command"), help));
    }
    Ok(commands)
}

fn read_command(source: &Arc<Source>, words: &[Word]) -> Result<CurlRequest, Vec<Diagnostic>> {
    let mut reader = CurlReader::new(source);
    let Some((first, words)) = words.split_first() else { return reader.finish(Place::default()) };
    let name = first.text();
    let program = name.rsplit(['/', '\\']).next().unwrap_or("");
    if !matches!(program, "curl" | "curl.exe") {
        let message = say!("`{}` is not `curl`", shorten(&name));
        let help = match source.text.trim_start().starts_with('{') {
            true => say!("this looks like JSON; import a HAR file with `throng import har FILE`"),
            false => say!("a cURL command must start with `curl`"),
        };
        reader.wrong("curl-empty", message, first.place, help);
        return Err(reader.errors);
    }
    reader.hidden = hidden::places(words);
    reader.read(words);
    let hidden = std::mem::take(&mut reader.hidden);
    let mut read = reader.finish(first.place);
    let told = match &mut read {
        Ok(request) => &mut request.warnings,
        Err(errors) => errors,
    };
    hidden::hide(source, &hidden, told);
    read
}

/// Splits `-E file:password`: the password belongs to the key, which is given without one.
pub fn certificate_of_curl(given: &Path) -> PathBuf {
    match given.to_str().and_then(|text| text.rsplit_once(':')) {
        Some((file, _)) if !given.exists() && !file.is_empty() => file.into(),
        _ => given.to_path_buf(),
    }
}

/// `user:password`
fn credentials(text: &str) -> (String, String) {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    (user.to_string(), password.to_string())
}

/// A piece of data; pieces are joined with `&`.
enum Data {
    Bytes(Vec<u8>),
    File { path: PathBuf, place: Place },
}

#[derive(Default)]
struct CurlReader {
    source: Arc<Source>,
    bench: Bench,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
    urls: Vec<(String, Place)>,
    data: Vec<Data>,
    forms: Vec<FormPart>,
    method: Option<(String, Place)>,
    json: bool,
    compressed: bool,
    /// An unknown option precedes: the next word may be its value.
    unknown: bool,
    head: bool,
    get: bool,
    /// Headers that `-H 'Name:'` removes.
    removed: Vec<String>,
    proxy: ProxyWords,
    /// Words with secrets, masked in messages.
    hidden: Vec<Place>,
}

impl CurlReader {
    fn new(source: &Arc<Source>) -> CurlReader {
        CurlReader { source: Arc::clone(source), ..CurlReader::default() }
    }

    fn wrong(&mut self, code: &'static str, message: Said, place: Place, help: Said) {
        let error =
            Diagnostic::error(code, message).at(place.span(&self.source)).label(say!("here"));
        if self.errors.len() < crate::DIAGNOSTICS_MAX {
            self.errors.push(error.help(help));
        }
    }

    fn warn(&mut self, message: Said, place: Place, help: Said) {
        let warning = Diagnostic::warning("curl-different", message).at(place.span(&self.source));
        if self.warnings.len() < crate::DIAGNOSTICS_MAX {
            self.warnings.push(warning.label(say!("handled differently")).help(help));
        }
    }

    fn read(&mut self, words: &[Word]) {
        let mut words = words.iter();
        let mut options = true;
        while let Some(word) = words.next() {
            let text = word.text();
            match text.strip_prefix('-') {
                Some("-") if options => options = false,
                Some(long) if options && long.starts_with('-') => {
                    self.long(word, &long[1..], &mut words);
                }
                Some(short) if options && !short.is_empty() => {
                    self.short(word, short, &mut words);
                }
                _ => self.urls.push((text, word.place)),
            }
        }
    }

    fn long<'w>(&mut self, word: &Word, name: &str, words: &mut impl Iterator<Item = &'w Word>) {
        let (plain, attached) = match name.split_once('=') {
            Some((plain, _)) => {
                let behind = word.bytes.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
                let value = word.bytes[behind..].to_vec();
                (plain, Some(Word { bytes: value, place: word.place }))
            }
            None => (name, None),
        };
        let negated = plain.strip_prefix("no-").and_then(flags::by_name);
        let negated = negated.filter(|meaning| !meaning.takes_value()).map(|_| &Meaning::Ignored);
        match flags::by_name(plain).or(negated) {
            Some(meaning) => {
                let name = format!("--{plain}");
                let value = match meaning.takes_value() {
                    true => attached.or_else(|| words.next().cloned()),
                    false => None,
                };
                self.option(&name, word.place, meaning, value);
            }
            None => self.unknown(&format!("--{plain}"), word.place),
        }
    }

    fn short<'w>(
        &mut self,
        word: &Word,
        letters: &str,
        words: &mut impl Iterator<Item = &'w Word>,
    ) {
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let Some(meaning) = flags::by_letter(letter) else {
                return self.unknown(&name, word.place);
            };
            if !meaning.takes_value() {
                self.option(&name, word.place, meaning, None);
                continue;
            }
            let rest = at + letter.len_utf8();
            let value = match rest < letters.len() {
                // The word may not be valid UTF-8: split its bytes.
                true => {
                    let from = (1 + rest).min(word.bytes.len());
                    Some(Word { bytes: word.bytes[from..].to_vec(), place: word.place })
                }
                false => words.next().cloned(),
            };
            return self.option(&name, word.place, meaning, value);
        }
    }

    fn unknown(&mut self, name: &str, place: Place) {
        self.unknown = true;
        let message = say!("the option `{}` is not supported", shorten(name));
        let near = did_you_mean(
            name.trim_start_matches('-'),
            FLAGS.iter().map(|(_, name, _)| *name).filter(|_| name.starts_with("--")),
        );
        let help = match near {
            Some(near) => say!("did you mean `--{near}`? otherwise, remove it"),
            None => say!("remove it if it does not affect the request"),
        };
        self.wrong("curl-option", message, place, help);
    }

    fn option(&mut self, name: &str, place: Place, meaning: &Meaning, value: Option<Word>) {
        if meaning.takes_value() && value.is_none() {
            let message = say!("`{name}` requires a value");
            return self.wrong(
                "curl-value",
                message,
                place,
                say!("check that you copied the whole command"),
            );
        }
        match (meaning, value) {
            (Meaning::Different(what) | Meaning::DifferentValue(what), _) => {
                self.warn(say!("`{name}` works differently from curl"), place, what.clone());
            }
            (Meaning::Refused(help) | Meaning::RefusedValue(help), _) => {
                let message = say!("`{name}` is not allowed here");
                self.wrong("curl-option", message, place, help.clone());
            }
            (Meaning::Set(set), _) => set(self),
            (Meaning::Bytes(set), Some(word)) => set(self, &word),
            (Meaning::Text(set), Some(word)) => match std::str::from_utf8(&word.bytes) {
                Ok(text) => set(self, text, word.place),
                Err(_) => {
                    let help = say!("only a body can contain arbitrary bytes");
                    self.wrong("curl-value", say!("this value is not UTF-8"), word.place, help);
                }
            },
            _ => {}
        }
    }

    fn json(&mut self, word: &Word) {
        self.json = true;
        self.data_or_file(word, false);
    }

    fn referer(&mut self, text: &str, place: Place) {
        let url = text.strip_suffix(";auto").unwrap_or(text);
        if !url.is_empty() {
            self.replace_header("Referer", url, place);
        }
    }

    fn redirects_max(&mut self, text: &str, place: Place) {
        match text.parse::<i64>() {
            Ok(number) => self.bench.redirects_max = Some(number.clamp(-1, 255) as u8),
            Err(_) => self.bad_number(text, place),
        }
    }

    fn bad_number(&mut self, text: &str, place: Place) {
        let message = say!("`{}` is not a number", shorten(text));
        self.wrong("curl-value", message, place, say!("write a number: `10`"));
    }

    /// A number of seconds; curl takes 0 for no limit.
    fn seconds(&mut self, text: &str, place: Place) -> Option<Duration> {
        let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
        match seconds.filter(|time| time.as_secs() < 100 * 365 * 86_400) {
            Some(time) => Some(time).filter(|time| !time.is_zero()),
            None => {
                self.bad_number(text, place);
                None
            }
        }
    }

    fn header(&mut self, text: &str, place: Place) {
        if text.starts_with('@') {
            let message = say!("headers cannot be read from a file here");
            return self.wrong("curl-option", message, place, say!("write each header with `-H`"));
        }
        // HTTP/2 names such as `:method` are part of the request line here.
        if text.starts_with(':') {
            return;
        }
        match (text.split_once(':'), text.strip_suffix(';')) {
            (Some((name, value)), _) if value.trim().is_empty() => {
                self.removed.push(name.trim().to_ascii_lowercase());
            }
            (Some((name, value)), _) => self.add_header(name.trim(), value.trim(), place),
            (None, Some(name)) => self.add_header(name.trim(), "", place),
            (None, None) => {
                let message = say!("`{}` is not a header", shorten(text));
                self.wrong("curl-value", message, place, say!("write `-H 'Name: value'`"));
            }
        }
    }

    fn add_header(&mut self, name: &str, value: &str, place: Place) {
        let control = value.chars().any(|c| c.is_ascii_control() && c != '\t');
        if !is_token(name) || control {
            let message = say!("`{}` is not a valid header", shorten(name));
            let help = say!(
                "a header name consists of letters, digits and `-`; a value cannot contain line \
                 breaks"
            );
            return self.wrong("curl-value", message, place, help);
        }
        // Both depend on the body that is sent.
        let lower = name.to_ascii_lowercase();
        if lower != "content-length" && lower != "transfer-encoding" {
            self.bench.headers.push((name.to_string(), value.to_string()));
        }
    }

    /// Sets a header from an option unless `-H` sets the same header.
    fn replace_header(&mut self, name: &str, value: &str, place: Place) {
        if !self.has_header(name) {
            self.add_header(name, value, place);
        }
    }

    fn has_header(&self, name: &str) -> bool {
        self.bench.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
            || self.removed.iter().any(|other| other.eq_ignore_ascii_case(name))
    }

    fn cookie(&mut self, text: &str, place: Place) {
        if !text.contains('=') {
            let message = say!("cookies cannot be read from a file here");
            let help = say!("write the cookies in the command: `-b 'name=value; other=value'`");
            return self.wrong("curl-option", message, place, help);
        }
        let cookies = self.bench.headers.iter_mut();
        match cookies.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
            Some((_, value)) => {
                value.push_str("; ");
                value.push_str(text);
            }
            None => self.add_header("Cookie", text, place),
        }
    }

    fn data_or_file(&mut self, word: &Word, strips: bool) {
        let Some(path) = word.bytes.strip_prefix(b"@") else {
            return self.data.push(Data::Bytes(word.bytes.clone()));
        };
        let path = String::from_utf8_lossy(path).into_owned();
        if path == "-" || path.is_empty() {
            let message = say!("the body cannot be read from standard input");
            return self.wrong(
                "curl-option",
                message,
                word.place,
                say!("write `--data-binary @file`"),
            );
        }
        if strips {
            let message = say!("in curl, `-d @file` removes the line breaks from the file");
            self.warn(
                message,
                word.place,
                say!("throng sends the file unchanged, like `--data-binary`"),
            );
        }
        self.data.push(Data::File { path: path.into(), place: word.place });
    }

    /// `content`, `=content`, `name=content`; the forms with a file are refused.
    fn url_encoded(&mut self, word: &Word) {
        let at = word.bytes.iter().position(|b| matches!(b, b'=' | b'@'));
        let (name, content) = match at.map(|at| (word.bytes[at], at)) {
            Some((b'@', _)) => {
                let message = say!("a file cannot be URL-encoded here");
                let help = say!("encode the file and send it with `--data-binary @file`");
                return self.wrong("curl-option", message, word.place, help);
            }
            Some((_, at)) => (&word.bytes[..at], &word.bytes[at + 1..]),
            None => (&[][..], &word.bytes[..]),
        };
        let mut out = name.to_vec();
        if !name.is_empty() {
            out.push(b'=');
        }
        form_encode(content, &mut out);
        self.data.push(Data::Bytes(out));
    }

    fn form_field(&mut self, text: &str, place: Place) {
        match text.split_once('=') {
            Some((name, value)) => self.forms.push(FormPart {
                name: name.into(),
                content: FormContent::Text(value.into()),
                filename: None,
                content_type: None,
            }),
            None => {
                let message = say!("`{}` is not a form field", shorten(text));
                self.wrong("curl-value", message, place, say!("write `-F 'name=value'`"));
            }
        }
    }

    /// `name=value`, `name=@file`, `name=<file`, each with `;type=…` and `;filename=…`.
    fn form(&mut self, text: &str, place: Place) {
        let Some((name, rest)) = text.split_once('=') else {
            return self.form_field(text, place);
        };
        let mut pieces = split_form(rest).into_iter();
        let first = pieces.next().unwrap_or_default();
        let (mut filename, mut content_type) = (None, None);
        for piece in pieces {
            match piece.trim().split_once('=') {
                Some(("type", value)) => content_type = Some(unquote(value)),
                Some(("filename", value)) => filename = Some(unquote(value)),
                _ => {
                    let message = say!("`{}` is not supported in a form field", shorten(&piece));
                    self.wrong(
                        "curl-value",
                        message,
                        place,
                        say!("`;type=…` and `;filename=…` are supported"),
                    );
                }
            }
        }
        let content = match (first.strip_prefix('@'), first.strip_prefix('<')) {
            (Some(path), _) if path == "-" || path.contains(',') => {
                let message = say!("a form field can have only one file here");
                return self.wrong("curl-option", message, place, say!("write one `-F` per file"));
            }
            (Some(path), _) => FormContent::File(unquote(path).into()),
            (_, Some(_)) => {
                let message = say!("the text of a form field cannot be read from a file");
                return self.wrong(
                    "curl-option",
                    message,
                    place,
                    say!("write the text itself, or `@file`"),
                );
            }
            _ => FormContent::Text(unquote(&first)),
        };
        let content_type = content_type.or_else(|| guessed_type(filename.as_deref(), &content));
        self.forms.push(FormPart { name: name.into(), content, filename, content_type });
    }

    fn finish(mut self, start: Place) -> Result<CurlRequest, Vec<Diagnostic>> {
        self.pick_url(start);
        self.finish_proxy();
        // An explicit header replaces `-u`, except for digest, which responds to a challenge.
        if self.has_header("authorization") && !self.bench.digest {
            self.bench.basic_auth = None;
        }
        let has_data = !self.data.is_empty();
        if has_data && !self.forms.is_empty() {
            let message = say!("`-d` and `-F` cannot be used together");
            self.wrong("curl-option", message, start, say!("keep one of them"));
        }
        if self.get && has_data {
            self.data_into_url(start);
        } else if has_data {
            self.bench.body = self.join_data();
        } else if !self.forms.is_empty() {
            self.bench.body = BenchBody::Form(std::mem::take(&mut self.forms));
        }
        let has_body = self.bench.body != BenchBody::None;
        let method = match self.method.take() {
            Some((method, place)) => {
                if !is_token(&method) {
                    let message = say!("`{}` is not an HTTP method", shorten(&method));
                    self.wrong("curl-value", message, place, say!("write `-X POST`"));
                }
                method
            }
            None if self.head => "HEAD".into(),
            None => if has_body { "POST" } else { "GET" }.into(),
        };
        self.bench.method = Some(method);
        self.default_headers(has_body && has_data);
        let removed = std::mem::take(&mut self.removed);
        let keep = |name: &str| !removed.iter().any(|other| other.eq_ignore_ascii_case(name));
        self.bench.headers.retain(|(name, _)| keep(name));
        // Headers that are sent by default; an empty one removes them.
        let own = ["accept", "user-agent"].into_iter().filter(|name| !keep(name));
        self.bench.headers.extend(own.map(|name| (name.to_string(), String::new())));
        match self.errors.is_empty() {
            true => {
                as_websocket(&mut self.bench);
                Ok(CurlRequest { bench: self.bench, warnings: self.warnings })
            }
            false => {
                self.errors.sort_by_key(|error| error.span.as_ref().map_or(0, |span| span.start));
                Err(self.errors)
            }
        }
    }

    fn default_headers(&mut self, data: bool) {
        let here = Place::default();
        if self.json {
            self.replace_header("Content-Type", "application/json", here);
            self.replace_header("Accept", "application/json", here);
        } else if data {
            self.replace_header("Content-Type", "application/x-www-form-urlencoded", here);
        }
        if self.compressed {
            self.replace_header("Accept-Encoding", "gzip, deflate, br", here);
        }
    }

    fn pick_url(&mut self, start: Place) {
        let mut urls = std::mem::take(&mut self.urls);
        if self.unknown {
            urls.retain(|(url, _)| url.contains("://"));
        }
        let mut urls = urls.into_iter();
        let Some((url, place)) = urls.next() else {
            if self.unknown {
                return;
            }
            let message = say!("the command has no URL");
            return self.wrong(
                "curl-url",
                message,
                start,
                say!("write `curl http://127.0.0.1:8080/`"),
            );
        };
        if let Some((_, second)) = urls.next() {
            let message = say!("a command can have only one URL here");
            self.wrong(
                "curl-url",
                message,
                second,
                say!("check for a missing quote, or use one file per URL"),
            );
        }
        let url = match url.contains("://") {
            true => url,
            false => format!("http://{url}"),
        };
        if let Err(reason) = Url::parse(&url) {
            let message =
                say!("`{}` is not a URL: {}", shorten(&hidden::without_user(&url)), reason.message);
            self.wrong("curl-url", message, place, reason.help);
        }
        self.bench.url = url;
    }

    /// `-G` moves the data to the query.
    fn data_into_url(&mut self, start: Place) {
        match self.join_data() {
            BenchBody::Text(query) => {
                let url = self.bench.url.split('#').next().unwrap_or("").to_string();
                let mark = if url.contains('?') { '&' } else { '?' };
                self.bench.url = format!("{url}{mark}{query}");
            }
            _ => {
                let message = say!("`-G` requires text data");
                self.wrong("curl-option", message, start, say!("write the query into the URL"));
            }
        }
    }

    fn join_data(&mut self) -> BenchBody {
        let data = std::mem::take(&mut self.data);
        if let [Data::File { path, .. }] = data.as_slice() {
            return BenchBody::File(path.clone());
        }
        let mut joined = Vec::new();
        // Pieces of `--json` follow each other; pieces of `-d` are joined with `&`.
        let separator: &[u8] = if self.json { b"" } else { b"&" };
        for (i, piece) in data.into_iter().enumerate() {
            if i > 0 {
                joined.extend_from_slice(separator);
            }
            match piece {
                Data::Bytes(bytes) => joined.extend_from_slice(&bytes),
                Data::File { place, .. } => {
                    let message = say!("a file cannot be combined with other data here");
                    let help = say!("put the whole body into one file: `--data-binary @file`");
                    self.wrong("curl-option", message, place, help);
                }
            }
        }
        match String::from_utf8(joined) {
            Ok(text) => BenchBody::Text(text),
            Err(error) => BenchBody::Bytes(error.into_bytes()),
        }
    }
}

/// A copied upgrade: sub-protocols and compression have words of their own.
fn as_websocket(bench: &mut Bench) {
    if !bench.url.starts_with("ws://") && !bench.url.starts_with("wss://") {
        return;
    }
    bench.method = None;
    for (name, value) in &bench.headers {
        if name.eq_ignore_ascii_case("sec-websocket-protocol") {
            bench.protocols = value.split(',').map(|one| one.trim().to_string()).collect();
        }
        if name.eq_ignore_ascii_case("sec-websocket-extensions") {
            bench.deflate |= value.contains("permessage-deflate");
        }
    }
    bench.headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("sec-websocket-") && name != "upgrade" && name != "connection"
    });
}

/// The type that curl assigns to a part without one (`Curl_mime_contenttype`), by file extension;
/// other files are `application/octet-stream`.
fn guessed_type(filename: Option<&str>, content: &FormContent) -> Option<String> {
    const TYPES: [(&str, &str); 9] = [
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
    ];
    let path = match content {
        FormContent::File(path) => path.to_str(),
        FormContent::Text(_) => None,
    };
    let of_name = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let known = TYPES.iter().find(|(end, _)| lower.ends_with(end)).map(|(_, kind)| *kind);
        known.or(lower.ends_with(".xml").then_some("application/xml")).map(String::from)
    };
    filename.and_then(of_name).or_else(|| path.and_then(of_name))
}

/// Splits at semicolons outside of double quotes.
fn split_form(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut quoted = false;
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ';' if !quoted => {
                pieces.push(String::new());
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

fn unquote(text: &str) -> String {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests;
