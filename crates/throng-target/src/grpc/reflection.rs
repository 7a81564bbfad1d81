//! Server reflection (github.com/grpc/grpc, `reflection/v1/reflection.proto`; v1alpha has the same
//! messages) for the single service. Its descriptor is generated from the file.

use std::sync::OnceLock;

use prost::{Message, Oneof};
use throng_base::grpc::Code;

const FILE: &str = "echo.proto";
const SERVICE: &str = "echo.v1.Echo";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReflectionRequest {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 5, 6, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(message, tag = "5")]
    Extension(Extension),
    #[prost(string, tag = "6")]
    Extensions(String),
    #[prost(string, tag = "7")]
    Services(String),
}

#[derive(Clone, PartialEq, Message)]
struct Extension {
    #[prost(string, tag = "1")]
    of: String,
    #[prost(int32, tag = "2")]
    number: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReflectionResponse {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(message, optional, tag = "2")]
    request: Option<ReflectionRequest>,
    #[prost(oneof = "ReflectionAnswer", tags = "4, 6, 7")]
    answer: Option<ReflectionAnswer>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ReflectionAnswer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Failure),
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Failure {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The descriptor of the file, and the names that it declares.
struct Descriptor {
    bytes: Vec<u8>,
    symbols: Vec<String>,
}

impl ReflectionRequest {
    pub(crate) fn answer(self) -> ReflectionResponse {
        let file = || {
            let files = vec![descriptor().bytes.clone()];
            ReflectionAnswer::Files(Files { files })
        };
        let failure = |code: Code, message: &str| {
            let code = i32::from(code.number());
            ReflectionAnswer::Error(Failure { code, message: message.to_owned() })
        };
        let answer = match &self.question {
            Some(Question::File(name)) if name == FILE => file(),
            Some(Question::Symbol(name)) if descriptor().symbols.contains(name) => file(),
            Some(Question::Services(_)) => {
                let services = vec![Service { name: SERVICE.to_owned() }];
                ReflectionAnswer::Services(Services { services })
            }
            Some(Question::File(name) | Question::Symbol(name)) => {
                failure(Code::NotFound, &format!("not found: {name}"))
            }
            Some(Question::Extension(_) | Question::Extensions(_)) => {
                failure(Code::NotFound, "there are no extensions")
            }
            None => failure(Code::InvalidArgument, "the request is empty"),
        };
        ReflectionResponse { host: self.host.clone(), request: Some(self), answer: Some(answer) }
    }
}

fn descriptor() -> &'static Descriptor {
    static DESCRIPTOR: OnceLock<Descriptor> = OnceLock::new();
    DESCRIPTOR.get_or_init(|| {
        let text = include_str!("../../../../examples/echo.proto");
        let mut file = protox_parse::parse(FILE, text).unwrap_or_default();
        file.source_code_info = None;
        let package = file.package().to_owned();
        let mut symbols = Vec::new();
        for service in &mut file.service {
            let name = format!("{package}.{}", service.name());
            for method in &mut service.method {
                symbols.push(format!("{name}.{}", method.name()));
                // The parser does not qualify names.
                for of in [&mut method.input_type, &mut method.output_type] {
                    *of = of.take().map(|of| format!(".{package}.{of}"));
                }
            }
            symbols.push(name);
        }
        for message in &file.message_type {
            let name = format!("{package}.{}", message.name());
            symbols.extend(message.field.iter().map(|field| format!("{name}.{}", field.name())));
            symbols.push(name);
        }
        Descriptor { bytes: file.encode_to_vec(), symbols }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::grpc::Method;

    fn ask(question: Question) -> ReflectionAnswer {
        let request = ReflectionRequest { host: "h".to_owned(), question: Some(question) };
        let response = request.clone().answer();
        assert_eq!((response.host.as_str(), response.request), ("h", Some(request)));
        response.answer.unwrap()
    }

    #[test]
    fn the_file_is_found_by_its_name_and_by_its_symbols() {
        let text = include_str!("../../../../examples/echo.proto");
        let ReflectionAnswer::Files(files) = ask(Question::File("echo.proto".to_owned())) else {
            panic!("a file")
        };
        for symbol in
            ["echo.v1.Echo", "echo.v1.Echo.Say", "echo.v1.SayReply", "echo.v1.SayRequest.text"]
        {
            assert_eq!(
                ask(Question::Symbol(symbol.to_owned())),
                ReflectionAnswer::Files(files.clone())
            );
        }
        for name in ["echo.v1", "Echo", "other.proto", ""] {
            let failure =
                |answer| matches!(answer, ReflectionAnswer::Error(Failure { code: 5, .. }));
            assert!(failure(ask(Question::Symbol(name.to_owned()))), "{name}");
            assert!(failure(ask(Question::File(name.to_owned()))), "{name}");
        }
        // It differs from the file only in comments and qualified names.
        let mut file = protox_parse::parse(FILE, text).unwrap();
        file.source_code_info = None;
        for method in &mut file.service[0].method {
            method.input_type = Some(format!(".echo.v1.{}", method.input_type()));
            method.output_type = Some(format!(".echo.v1.{}", method.output_type()));
        }
        assert_eq!(files.files, [file.encode_to_vec()]);
    }

    #[test]
    fn the_described_service_is_the_served_one() {
        let mut file = protox_parse::parse(FILE, include_str!("../../../../examples/echo.proto"));
        let file = file.as_mut().unwrap();
        let methods = file.service[0].method.iter().map(|method| {
            let path = format!("/{SERVICE}/{}", method.name());
            (Method::at(&path).unwrap(), method.client_streaming(), method.server_streaming())
        });
        let expected = [
            (Method::Say, false, false),
            (Method::Count, false, true),
            (Method::Collect, true, false),
            (Method::Chat, true, true),
        ];
        assert_eq!(methods.collect::<Vec<_>>(), expected);
        let ReflectionAnswer::Services(services) = ask(Question::Services("*".to_owned())) else {
            panic!("services")
        };
        assert_eq!(services.services, [Service { name: SERVICE.to_owned() }]);
        assert_eq!(Method::at("/echo.v1.Echo/Shout"), None);
    }

    #[test]
    fn fields_have_the_field_numbers_of_the_file() {
        use crate::grpc::{CountRequest, SayReply, SayRequest};
        let file = protox_parse::parse(FILE, include_str!("../../../../examples/echo.proto"));
        let file = file.unwrap();
        let say = SayRequest { text: "x".to_owned(), repeat: 1, code: 1 };
        let reply = SayReply { text: "x".to_owned(), number: 1 };
        let count = CountRequest { to: 1, pause_ms: 1 };
        for (message, bytes) in [
            ("SayRequest", say.encode_to_vec()),
            ("SayReply", reply.encode_to_vec()),
            ("CountRequest", count.encode_to_vec()),
        ] {
            let declared = file.message_type.iter().find(|one| one.name() == message).unwrap();
            // Varints have wire type 0, and strings 2; each value above takes one byte.
            let tags = declared.field.iter().map(|field| {
                let is_text = field.name() == "text";
                field.number() as u8 * 8 + u8::from(is_text) * 2
            });
            let mut rest = &bytes[..];
            let mut seen = BTreeSet::new();
            while let [tag, behind @ ..] = rest {
                seen.insert(*tag);
                rest = &behind[if tag & 7 == 2 { 2 } else { 1 }..];
            }
            assert_eq!(seen, tags.collect(), "{message}");
        }
    }
}
