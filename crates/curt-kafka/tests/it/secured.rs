//! Brokers that want TLS and an account.

use std::sync::Arc;

use curt_core::ErrorKind;
use curt_core::ports::{ClickSink as _, ProducerId, SequencedRecord};
use curt_kafka::HAS_TLS;
use curt_testkit::engines::kafka::{self, Secured};
use curt_testkit::engines::{Missing, unique};
use curt_testkit::need;

use crate::world::{open, source, texts};

/// A broker, where this build can talk to it.
fn secured() -> anyhow::Result<Arc<Secured>> {
    const TLS: Missing = Missing {
        engine: "TLS for Kafka",
        install: "apt-get install libssl-dev pkg-config, and the cargo feature kafka-tls",
    };
    match HAS_TLS {
        true => kafka::shared_secured(),
        false => Err(TLS.into()),
    }
}

fn address(broker: &Secured, more: &str) -> String {
    let (name, account) = (unique("clicks"), broker.account_and_address());
    format!("kafka://{account}/{name}?group={name}{more}")
}

#[tokio::test(flavor = "multi_thread")]
async fn records_come_over_tls_with_every_kind_of_account() {
    let broker = need!(secured());
    let authority = broker.authority().display();
    for mechanism in ["plain", "scram-sha-256", "scram-sha-512"] {
        let more = format!("&ca={authority}&sasl={mechanism}");
        let kafka = open(&address(&broker, &more), 1);
        let records = ["a", "b"].map(|text| SequencedRecord {
            sequence: u64::from(text.as_bytes()[0]),
            bytes: text.as_bytes().into(),
        });
        let sink = kafka.sink().unwrap();
        sink.append(ProducerId(1), &records).await.unwrap();
        let (source, _) = source(&kafka);
        assert_eq!(source.assignment().await.unwrap(), [0], "{mechanism}");
        assert_eq!(texts(&source, 0, 0).await, ["a", "b"], "{mechanism}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_or_authority_is_told() {
    let broker = need!(secured());
    let right = format!("&sasl=scram-sha-256&ca={}", broker.authority().display());
    open(&address(&broker, &right), 1).ping().await.unwrap();
    let wrong = address(&broker, &right).replace("only-for-tests", "wrong-one");
    let error = open(&wrong, 1).ping().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    let said = error.to_string().to_lowercase();
    assert!(said.contains("authentication"), "{error}");
    assert!(!format!("{error:?}").contains("wrong-one"), "{error:?}");
    // Neither it nor those of the system have signed the broker's.
    let other = format!("&ca={}", broker.other_authority().display());
    for untrusted in [&other, "&tls=true"] {
        let error = open(&address(&broker, untrusted), 1)
            .ping()
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
