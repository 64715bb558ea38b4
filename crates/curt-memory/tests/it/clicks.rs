//! The memory adapters of the ports of clicks, against their suites.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::ports::{
    ClickSink, ClickSource, ClickWriter, ProducerId, SequencedRecord, SplitRecord, StreamRecord,
};
use curt_memory::{MemoryClickCounters, MemoryClickStore, MemoryClickStream, MemoryDeadLetters};
use curt_testkit::conformance::clicks::dead_letters::Letters;
use curt_testkit::conformance::clicks::sink::Stream;
use curt_testkit::conformance::clicks::source::Written;

curt_testkit::click_database_tests!(((), Arc::new(MemoryClickStore::new())));
curt_testkit::click_source_tests!(((), written(3)));
curt_testkit::click_sink_tests!(((), stream(3)));
curt_testkit::dead_letter_tests!(((), letters()));
curt_testkit::click_counter_tests!(((), Arc::new(MemoryClickCounters::new())));

mod one_partition {
    use super::*;

    curt_testkit::click_source_tests!(((), written(1)));
    curt_testkit::click_sink_tests!(((), stream(1)));
}

/// A producer whose records go to the partition of its number.
#[derive(Debug)]
struct Writer {
    stream: Arc<MemoryClickStream>,
    producer: u32,
    sequence: u64,
}

impl ClickWriter for Writer {
    fn write(&mut self, record: SplitRecord<'_>) -> bool {
        let mut bytes = Vec::new();
        record.join(&mut bytes);
        self.sequence += 1;
        let record = SequencedRecord {
            sequence: self.sequence,
            bytes: bytes.into(),
        };
        let producer = ProducerId(self.producer.into());
        let append = self.stream.append(producer, std::slice::from_ref(&record));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        // Of its own thread, because a runtime cannot wait within another one.
        std::thread::scope(|scope| {
            let written = scope.spawn(move || runtime.unwrap().block_on(append).is_ok());
            written.join().unwrap()
        })
    }
}

fn written(partitions: u32) -> Written {
    let stream = Arc::new(MemoryClickStream::new(partitions, 1_000));
    let writer = |producer| {
        let stream = Arc::clone(&stream);
        Box::new(Writer {
            stream,
            producer,
            sequence: 0,
        }) as Box<dyn ClickWriter>
    };
    Written {
        writers: (0..partitions).map(writer).collect(),
        source: stream,
    }
}

fn stream(partitions: u32) -> Stream {
    let stream = Arc::new(MemoryClickStream::new(partitions, 1_000));
    Stream {
        sink: stream.clone(),
        source: stream,
    }
}

fn letters() -> Letters {
    let port = Arc::new(MemoryDeadLetters::default());
    let kept = Arc::clone(&port);
    let count = move |reason| {
        let letters = kept.letters();
        letters.iter().filter(|letter| letter.2 == reason).count() as u64
    };
    Letters {
        port,
        count: Box::new(count),
    }
}

#[tokio::test]
async fn a_full_stream_throttles_until_it_is_committed() {
    let stream = MemoryClickStream::new(1, 3);
    let append = async |numbers: std::ops::Range<u64>| {
        let record = |sequence| SequencedRecord {
            sequence,
            bytes: b"click".as_slice().into(),
        };
        let records: Vec<_> = numbers.map(record).collect();
        stream.append(ProducerId(0), &records).await
    };
    append(0..3).await.unwrap();
    let refused = append(3..4).await.map_err(|error| error.kind);
    assert_eq!(refused, Err(ErrorKind::Throttled));
    stream.commit(0, 2).await.unwrap();
    append(3..5).await.unwrap();
    let records = stream.poll(0, 0, 9, Duration::ZERO).await.unwrap();
    let offset = |record: &StreamRecord| record.offset;
    assert_eq!(records.iter().map(offset).collect::<Vec<_>>(), [2, 3, 4]);
}
