//! Log lines for people that programs can read, too: time, level and message, then `name=value` pairs as logfmt has them:
//! a value with a space, a quote or an equals sign is quoted.

use std::fmt::{self, Debug, Write as _};

use jiff::Timestamp;
use tracing::field::Field;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Appends ` name=value`.
pub(super) fn push_field(line: &mut String, name: &str, value: &str) {
    let is_plain =
        |letter: char| !(letter.is_whitespace() || letter.is_control() || "\"=".contains(letter));
    let written = match !value.is_empty() && value.chars().all(is_plain) {
        true => write!(line, " {name}={value}"),
        false => write!(line, " {name}={value:?}"),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
}

/// The fields of an event or a span.
#[derive(Default)]
struct CollectedFields {
    message: String,
    fields: String,
}

impl tracing::field::Visit for CollectedFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => push_field(&mut self.fields, name, value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Writes the fields of spans.
pub(super) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut collected = CollectedFields::default();
        fields.record(&mut collected);
        writer.write_str(collected.fields.trim_start())
    }
}

/// Writes whole lines.
pub(super) struct TextLines {
    pub(super) has_colours: bool,
}

impl TextLines {
    fn level(&self, level: Level) -> String {
        if !self.has_colours {
            return format!("{level:>5}");
        }
        let colour = match level {
            Level::ERROR => 31,
            Level::WARN => 33,
            Level::INFO => 32,
            Level::DEBUG => 34,
            Level::TRACE => 35,
        };
        format!("\x1b[{colour}m{level:>5}\x1b[0m")
    }
}

impl<S> FormatEvent<S, TextFields> for TextLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, TextFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut collected = CollectedFields::default();
        event.record(&mut collected);
        let level = self.level(*event.metadata().level());
        let CollectedFields { message, fields } = collected;
        write!(writer, "{:.6} {level} {message}{fields}", Timestamp::now())?;
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<TextFields>>() else {
                continue;
            };
            if !fields.is_empty() {
                write!(writer, " {fields}")?;
            }
        }
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn values_that_would_not_parse_are_quoted_and_span_fields_follow() {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt()
            .fmt_fields(TextFields)
            .event_format(TextLines { has_colours: false })
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(lines.finish(), || {
            let span =
                tracing::error_span!("request", request_id = "a1", user = tracing::field::Empty);
            span.record("user", 7);
            let _entered = span.enter();
            tracing::warn!(
                event = "store_failed",
                addresses = %"http=127.0.0.1:80 admin=x",
                said = "he said \"no\"\n",
                nothing = "",
                micros = 12_u64,
                "engine does not answer"
            );
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.parse::<Timestamp>().is_ok(), "{time}");
        let expected = concat!(
            " WARN engine does not answer event=store_failed addresses=\"http=127.0.0.1:80 admin=x\" ",
            r#"said="he said \"no\"\n" nothing="" micros=12 request_id=a1 user=7"#,
            "\n"
        );
        assert_eq!(rest, expected);
    }
}
