//! The cases of Autobahn's test suite (github.com/crossbario/autobahn-testsuite) for a client,
//! served by Python's package `kosoku`: messages are echoed, and the suite judges that and how the
//! connection ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use throng_base::Random;

use super::*;

/// Serves all cases but those about how fast we are and how much we hold (9), and the thousands of
/// messages about compression (12 and 13), which tests against node's `ws` are about. Prints its
/// port, and in the end what each case came to.
const SERVER: &str = r#"
import asyncio, kosoku

async def serve():
    async with kosoku.run_fuzzingserver(exclude_cases=["9.*", "12.*", "13.*"], port=0) as server:
        print(server.port, flush=True)
        try:
            results = await server.get_result()
        except kosoku.FailureError as failure:
            results = failure.results
        for result in results:
            behavior = f"{result.behavior} {result.behavior_close}"
            print(result.case_id, behavior.replace("Behavior.", "").replace("BehaviorClose.", ""))

asyncio.run(serve())
"#;

struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .env("PYTHONPATH", throng_fuzz::python_packages("kosoku"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("a port");
        Server { child, out, port }
    }

    /// Opens a WebSocket and echoes until it ends; returns the last text received.
    fn echo(&self, path: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let mut out = Vec::new();
        let key = Key::random(&mut Random::new(1));
        let host = format!("127.0.0.1:{}", self.port);
        let none: [(&str, &[u8]); 0] = [];
        write_upgrade(&mut out, &host, path, &key, none, &[""; 0], DeflateOffer::Nothing)
            .expect("a request");
        let mut echo = Echo::default();
        let mut bytes = vec![0; 64 * 1024];
        let mut head = Vec::new();
        while socket.write_all(&out).is_ok() && !echo.is_over() {
            out.clear();
            let Ok(count @ 1..) = socket.read(&mut bytes) else { break };
            let mut came = &bytes[..count];
            if echo.reader.is_none() {
                head.extend_from_slice(came);
                let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") else {
                    continue;
                };
                echo.begin(&head[..end + 4], &key);
                came = &came[count - (head.len() - end - 4)..];
            }
            echo.receive(came, &mut out);
        }
        echo.text
    }
}

#[derive(Default)]
struct Echo {
    reader: Option<FrameReader>,
    inflater: Inflater,
    text: String,
}

impl Echo {
    fn begin(&mut self, head: &[u8], key: &Key) {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(head).expect("an answer");
        let status = response.code.expect("a status");
        let headers = response.headers.iter().map(|it| (it.name.as_bytes(), it.value));
        let accepted =
            check_upgrade(status, headers, &key.expected_accept(), &[""; 0], DeflateOffer::Nothing);
        self.reader = Some(FrameReader::new(Role::Client, accepted.expect("an upgrade").deflate));
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);
        let Some(reader) = &mut self.reader else { return };
        let (mut rest, limits, mut room) = (bytes, Limits::default(), Vec::new());
        loop {
            let message = match reader.next(&mut rest, &limits, &mut self.inflater, &mut room) {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => return write_close(out, Some(error.close_code()), "", MASK),
            };
            let code;
            let (opcode, payload) = match message {
                Message::Text(came) => {
                    self.text.replace_range(.., came);
                    (Opcode::Text, came.as_bytes())
                }
                Message::Binary(came) => (Opcode::Binary, came),
                Message::Ping(came) => (Opcode::Pong, came),
                Message::Pong(_) => continue,
                Message::Close { code: given, .. } => {
                    code = given.map(u16::to_be_bytes);
                    (Opcode::Close, code.as_ref().map_or(&[][..], |code| &code[..]))
                }
            };
            write_frame(out, opcode, true, false, MASK, payload);
        }
    }

    fn is_over(&self) -> bool {
        self.reader.as_ref().is_some_and(FrameReader::is_done)
    }
}

#[test]
fn the_client_passes_autobahn() {
    let mut server = Server::start();
    let count: usize = server.echo("/getCaseCount").parse().expect("a number");
    assert!(count > 240, "{count} cases");
    for case in 1..=count {
        server.echo(&format!("/runCase?case={case}&agent=throng"));
    }
    server.echo("/updateReports?agent=throng");
    let results: Vec<String> = server.out.by_ref().lines().map_while(Result::ok).collect();
    server.child.wait().expect("its end");
    let well = |line: &&String| !line.contains("FAILED") && !line.contains("UNCLEAN");
    let different: Vec<&str> =
        results.iter().filter(|line| !well(line)).map(String::as_str).collect();
    assert_eq!((results.len(), different), (count, Vec::new()));
}
