//! Descriptors from a server that reflects.

use prost_reflect::DescriptorPool;

use throng_base::Said;

use super::reflection::*;
use crate::protobuf::wire::write_bytes;

const SHOP: &str = "syntax = \"proto3\"; package shop; import \"item.proto\"; \
    import \"google/protobuf/timestamp.proto\"; \
    message Order { Item item = 1; google.protobuf.Timestamp at = 2; } \
    service Orders { rpc Get(Order) returns (stream Item); }";
const ITEM: &str = "syntax = \"proto3\"; package shop; message Item { string name = 1; }";

/// A server with these files.
struct Server {
    pool: DescriptorPool,
}

impl Server {
    fn new() -> Server {
        let mut pool = DescriptorPool::global();
        for (name, text) in [("item.proto", ITEM), ("shop.proto", SHOP)] {
            pool.add_file_descriptor_proto(protox_parse::parse(name, text).unwrap()).unwrap();
        }
        Server { pool }
    }

    /// A `ServerReflectionResponse`; only with the file that was asked for, without its imports.
    fn answer(&self, question: &Question) -> Vec<u8> {
        let file = match question {
            Question::Services => {
                let names: Vec<u8> = ["shop.Orders", "grpc.reflection.v1.ServerReflection"]
                    .iter()
                    .flat_map(|name| {
                        let mut inner = Vec::new();
                        write_bytes(1, name.as_bytes(), &mut inner);
                        let mut out = Vec::new();
                        write_bytes(1, &inner, &mut out);
                        out
                    })
                    .collect();
                return field(6, &names);
            }
            Question::Symbol(name) => {
                self.pool.get_service_by_name(name).map(|service| service.parent_file())
            }
            Question::File(name) => self.pool.get_file_by_name(name),
        };
        match file {
            Some(file) => field(4, &field(1, &file.encode_to_vec())),
            None => field(7, b"\x08\x05\x12\x09not found"),
        }
    }
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(number, content, &mut out);
    out
}

/// Asks until all is there; what was asked.
fn discovered(server: &Server, mut discovery: Discovery) -> Result<Vec<Question>, Said> {
    let mut asked = Vec::new();
    while let Some(question) = discovery.question().cloned() {
        discovery.answer(&server.answer(&question))?;
        asked.push(question);
    }
    let schema = discovery.finish()?;
    assert!(schema.find_method("shop.Orders/Get").is_ok());
    Ok(asked)
}

#[test]
fn a_schema_is_requested_file_by_file() {
    let server = Server::new();
    let asked = discovered(&server, Discovery::new([])).unwrap();
    let want = [
        Question::Services,
        Question::Symbol("shop.Orders".into()),
        Question::File("item.proto".into()),
    ];
    assert_eq!(asked, want);
    let asked = discovered(&server, Discovery::new(["shop.Orders"])).unwrap();
    assert_eq!(asked, want[1..]);
    let told = discovered(&server, Discovery::new(["shop.Order"])).unwrap_err();
    assert_eq!(told, "the server does not describe `shop.Order`: not found");
}

#[test]
fn requests_match_the_specification() {
    let written = |question: Question| {
        let mut out = Vec::new();
        question.write(&mut out);
        out
    };
    assert_eq!(written(Question::Services), b"\x3a\x01*");
    assert_eq!(written(Question::Symbol("a.B".into())), b"\x22\x03a.B");
    assert_eq!(written(Question::File("a.proto".into())), b"\x1a\x07a.proto");
}

#[test]
fn mismatched_responses_are_reported() {
    let server = Server::new();
    let files = server.answer(&Question::File("item.proto".into()));
    let told = |bytes: &[u8]| Discovery::new([]).answer(bytes).unwrap_err();
    assert_eq!(told(&files), "server reflection sent an unexpected reply");
    assert!(told(b"").english().ends_with("the server reflection response is empty"));
    assert!(told(b"\x32\xff").english().starts_with("server reflection, byte 1:"));
    assert!(
        told(&server.answer(&Question::File("x".into())))
            .english()
            .ends_with("services: not found")
    );
    // A file whose import is missing.
    let mut discovery = Discovery::new(["shop.Orders"]);
    discovery.answer(&server.answer(&Question::Symbol("shop.Orders".into()))).unwrap();
    assert!(
        discovery.finish().unwrap_err().english().starts_with("the descriptors are inconsistent:")
    );
    // One of a syntax that is not known.
    let mut discovery = Discovery::new(["a"]);
    let file = field(1, b"\x0a\x01a\x62\x06proto9");
    discovery.answer(&field(4, &file)).unwrap();
    let told = discovery.finish().unwrap_err();
    assert_eq!(told, "the syntax of `a` is not proto2, proto3 or an edition");
    // More than a server may have.
    let mut discovery = Discovery::new(["a"]);
    let files: Vec<u8> =
        (0..=FILES_MAX).flat_map(|at| field(1, &field(1, at.to_string().as_bytes()))).collect();
    let told = discovery.answer(&field(4, &files)).unwrap_err();
    assert!(
        told.english().starts_with("the server has more than 1024 descriptor files"),
        "{told:?}"
    );
}

#[test]
fn fuzz_answers() {
    let server = Server::new();
    let answers: Vec<Vec<u8>> =
        [Question::Services, Question::Symbol("shop.Orders".into()), Question::File("none".into())]
            .iter()
            .map(|question| server.answer(question))
            .collect();
    let corpus: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
    throng_fuzz::mutations(&corpus, |input, _| {
        let _ = ReflectionAnswer::read(input);
        let mut discovery = Discovery::new(["shop.Orders"]);
        if discovery.answer(input).is_ok() {
            while let Some(question) = discovery.question().cloned() {
                if discovery.answer(&server.answer(&question)).is_err() {
                    return;
                }
            }
            let _ = discovery.finish();
        }
    });
}

#[test]
fn descriptors_are_collected_in_the_order_of_their_imports() {
    let server = Server::new();
    let mut discovery = Discovery::new(["shop.Orders"]);
    while let Some(question) = discovery.question().cloned() {
        discovery.answer(&server.answer(&question)).unwrap();
    }
    let set = discovery.descriptor_set();
    let files = crate::protobuf::descriptor_set(&set).unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.name()).collect();
    assert_eq!(names, ["item.proto", "google/protobuf/timestamp.proto", "shop.proto"]);
    let schema = crate::protobuf::Schema::from_descriptor_set(&set).unwrap();
    assert!(schema.find_method("shop.Orders/Get").is_ok());
}
