use std::sync::Arc;

use curt_core::ports::ClickWriter;
use curt_kafka::KafkaMetrics;
use curt_testkit::conformance::clicks::dead_letters::Letters;
use curt_testkit::conformance::clicks::sink::Stream;
use curt_testkit::conformance::clicks::source::Written;
use curt_testkit::engines::kafka;
use curt_testkit::need;

use crate::world::{Stranger, address, open, source};

curt_testkit::click_sink_tests!({
    let cluster = need!(kafka::shared());
    let kafka = open(&address(&cluster), 1);
    let (source, _) = source(&kafka);
    let sink = kafka.sink().unwrap();
    (cluster, Stream { sink, source })
});

curt_testkit::click_source_tests!({
    let cluster = need!(kafka::shared());
    let address = address(&cluster);
    let kafka = open(&address, 2);
    let (source, _) = source(&kafka);
    // Makes the topic.
    source.assignment().await.unwrap();
    let writer = |partition| Box::new(Stranger::new(&address, partition)) as Box<dyn ClickWriter>;
    let writers = (0..2).map(writer).collect();
    (cluster, Written { source, writers })
});

curt_testkit::dead_letter_tests!({
    let cluster = need!(kafka::shared());
    let kafka = open(&address(&cluster), 1);
    let metrics = KafkaMetrics::default();
    let port = kafka.dead_letters(metrics.clone()).unwrap();
    let count = Box::new(move |reason| metrics.dead_letters(reason));
    (Arc::clone(&cluster), Letters { port, count })
});
