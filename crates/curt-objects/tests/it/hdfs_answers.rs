//! Whatever a NameNode answers, a call ends with names of key files or an error.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use curt_core::ports::KeyFile;
use curt_core::{ErrorKind, PortResult};
use curt_objects::{HdfsKeyFile, HdfsSettings};
use curt_testkit::fuzz::Fuzz;

/// Long enough for a sound answer on a busy machine.
const PATIENT: HdfsSettings = settings(Duration::from_secs(10));
/// After an answer that it cannot read the client asks again and again; the deadline of the call ends that.
const BRIEF: HdfsSettings = settings(Duration::from_millis(10));

const fn settings(timeout: Duration) -> HdfsSettings {
    HdfsSettings {
        answer_timeout: timeout,
        transfer_timeout: timeout,
    }
}

/// `hrpc`, version, service class, authentication.
const GREETING_BYTES: usize = 7;

const SUCCESS: u8 = 0;
const ERROR: u8 = 1;
const FATAL: u8 = 2;
const FOLDER: u8 = 1;
const FILE: u8 = 2;

/// A field of a protocol buffer that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    // Longer ones need a second byte; none of the samples has any.
    assert!(length < 0x80);
    [&[number << 3 | 2, length], bytes].concat()
}

/// One that holds a number below 128.
fn number(field: u8, value: u8) -> [u8; 2] {
    [field << 3, value]
}

/// An answer to the first call of a connection: its header and the message.
fn answer(status: u8, failure: &[Vec<u8>], message: &[u8]) -> Vec<u8> {
    let header = [&number(1, 0)[..], &number(2, status), &failure.concat()].concat();
    let sized = |part: &[u8]| field(0, part)[1..].to_vec();
    [sized(&header), sized(message)].concat()
}

fn failure(status: u8, class: &str, message: &str) -> Vec<u8> {
    let failure = [field(4, class.as_bytes()), field(5, message.as_bytes())];
    answer(status, &failure, b"")
}

fn listing(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let entries = entries.iter().map(|(file_type, name)| {
        let status = [
            &number(1, *file_type)[..],
            &field(2, name),
            &number(3, 100),
            &field(4, &number(1, 7)),
            &field(5, b"o"),
            &field(6, b"g"),
            &number(7, 1),
            &number(8, 1),
        ];
        field(1, &status.concat())
    });
    let remaining = number(2, 0).to_vec();
    let list: Vec<u8> = entries.chain([remaining]).flatten().collect();
    answer(SUCCESS, &[], &field(1, &list))
}

/// Answers the first call of each connection with the bytes that are set, and closes it.
fn answer_one(mut stream: TcpStream, bytes: &Mutex<Vec<u8>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENT.answer_timeout))?;
    stream.read_exact(&mut [0; GREETING_BYTES])?;
    for _ in ["the context of the connection", "the call"] {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        io::copy(
            &mut (&stream).take(u32::from_be_bytes(length).into()),
            &mut io::sink(),
        )?;
    }
    // The length in front is never fuzzed: the client reserves whatever it claims, up to 4 GiB.
    let bytes = bytes.lock().unwrap().clone();
    let length = u32::try_from(bytes.len()).unwrap();
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat())
}

/// Answers every call with the bytes that were set last.
struct FakeNameNode {
    address: String,
    answer: Arc<Mutex<Vec<u8>>>,
    runtime: tokio::runtime::Runtime,
}

impl FakeNameNode {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("hdfs://{}/keys", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(Vec::new()));
        let bytes = Arc::clone(&answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that left early is no failure.
                answer_one(stream, &bytes).ok();
            }
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Self {
            address,
            answer,
            runtime,
        }
    }

    fn names(&self, answer: &[u8], settings: HdfsSettings) -> PortResult<Vec<Box<str>>> {
        *self.answer.lock().unwrap() = answer.to_vec();
        let files = HdfsKeyFile::open(&self.address, settings).unwrap();
        self.runtime.block_on(files.names())
    }
}

#[test]
fn a_file_name_that_is_no_text_is_an_error() {
    let name_node = FakeNameNode::start();
    let names = name_node.names(
        &listing(&[(FILE, b"a.keys"), (FILE, b"\xff.keys")]),
        PATIENT,
    );
    assert_eq!(names.unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn mutated_answers_are_names_or_errors() {
    let name_node = FakeNameNode::start();
    let samples = [
        listing(&[(FILE, b"a.keys"), (FOLDER, b"b.keys")]),
        listing(&[(FILE, b".a.00.part")]),
        answer(SUCCESS, &[], b""),
        failure(ERROR, "java.io.FileNotFoundException", "gone"),
    ];
    let refusals = [
        failure(ERROR, "x.AccessControlException", "a\n\tat java"),
        failure(FATAL, "org.apache.hadoop.ipc.RpcServerException", "b"),
    ];
    let words = [&b"\xff"[..], b"/", b"..keys", b"Exception", b"$"];
    let words = words.into_iter().chain(refusals.iter().map(Vec::as_slice));
    let samples_left = Cell::new(samples.len());
    let fuzz = Fuzz::new("HDFS answers", samples).with_words(words);
    fuzz.run(|input| {
        let settings = if samples_left.get() > 0 {
            samples_left.update(|left| left - 1);
            PATIENT
        } else {
            BRIEF
        };
        match name_node.names(input, settings) {
            Ok(names) => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
                let is_name = |name: &str| name.bytes().all(is_plain);
                assert!(names.iter().all(|name| is_name(name)), "{names:?}");
                true
            }
            Err(error) => {
                assert_ne!(error.kind, ErrorKind::Bug, "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
                false
            }
        }
    });
}
