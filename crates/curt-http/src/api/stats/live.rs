//! Clicks as they are counted, as Server-Sent Events.
//!
//! A feed asks the store every second what the rollups are and tells what has been added. So it shows what was flushed by
//! whichever process, nothing can be missed between two events, and a client that reads slowly gets fewer events with
//! larger numbers instead of a queue. Events carry the feed's [position](super::position) as their id, from which a
//! client that comes back goes on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use curt_clicks::report::Counts;
use curt_core::ClickClass;
use curt_core::limits::LIVE_FEED_RESUMES_WITHIN;
use futures_util::stream;
use http::header::CACHE_CONTROL;
use http::{HeaderName, HeaderValue};
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::body::CountsBody;
use super::feeds::Slot;
use super::position::{Gap, Position, Resumed};
use super::query::LiveQuery;
use super::subject::{Subject, Wanted};
use crate::api::time::Rfc3339;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

const ASKS_EVERY: Duration = Duration::from_secs(1);
/// Proxies and browsers give up on a connection that is silent for long.
const SPEAKS_EVERY: Duration = Duration::from_secs(15);
/// When a client whose connection broke off should come back: soon, because it misses nothing, and not at once, because
/// all clients of a server that restarts do.
const RETRY: Duration = Duration::from_secs(3);
/// Whoever may not see the numbers any more is not shown them for long.
const CHECKS_EVERY: Duration = Duration::from_secs(5);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What a feed is made of.
pub(super) struct Opening {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) wanted: Wanted,
    pub(super) query: LiveQuery,
    /// The id of the event that the client saw last.
    pub(super) last_event_id: Option<String>,
    pub(super) slot: Slot,
    pub(super) stop: CancellationToken,
}

struct Feed {
    from: Opening,
    subject: Subject,
    position: Position,
    resumed: Resumed,
    asks: Interval,
    checked: Instant,
    ends: Instant,
    state: State,
}

enum State {
    New,
    /// What was missed is to be told.
    Resuming,
    Open,
    Ended,
}

impl Opening {
    pub(super) async fn open(self) -> Result<Response, Problem> {
        let subject = self.wanted.allowed(&self.app, &self.caller).await?;
        let last_id = self.last_event_id.as_deref();
        let turn = self.slot.turn().await;
        let found = Position::find(&subject, last_id, self.app.clock.now()).await?;
        drop(turn);
        let now = Instant::now();
        let mut asks = tokio::time::interval_at(now + ASKS_EVERY, ASKS_EVERY);
        asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let feed = Feed {
            ends: now + self.query.lasts,
            checked: now,
            from: self,
            subject,
            position: found.0,
            resumed: found.1,
            asks,
            state: State::New,
        };
        Ok(feed.into_response())
    }
}

impl Feed {
    fn into_response(self) -> Response {
        let events = stream::unfold(self, async |mut feed| {
            let event = feed.next().await?;
            Some((Ok::<_, Infallible>(event), feed))
        });
        let alive = KeepAlive::new().interval(SPEAKS_EVERY);
        let mut response = Sse::new(events).keep_alive(alive).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Or nginx would collect events until they fill a buffer.
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        response
    }

    async fn next(&mut self) -> Option<Event> {
        match self.state {
            State::New => {
                self.state = State::Resuming;
                let open = Event::default().comment("open").retry(RETRY);
                // A client whose connection breaks off before the first click comes back with this id. But where something
                // was missed, only the event that tells it has the id: it could be lost on the way.
                return Some(match self.missed() {
                    None => open.id(self.position.id(&self.subject.clicks)),
                    Some(_) => open,
                });
            }
            State::Resuming => {
                self.state = State::Open;
                if let Some(event) = self.missed() {
                    return Some(event);
                }
            }
            State::Open => {}
            State::Ended => return None,
        }
        loop {
            tokio::select! {
                biased;
                () = self.from.stop.cancelled() => return Some(self.end("shutdown")),
                () = tokio::time::sleep_until(self.ends) => return Some(self.end("time")),
                _ = self.asks.tick() => {}
            }
            if !self.may_go_on().await {
                return Some(self.end("access"));
            }
            if let Some(event) = self.news().await {
                return Some(event);
            }
        }
    }

    /// What has been counted since the last event. A store that is away for now has no news; what it counted comes later.
    async fn news(&mut self) -> Option<Event> {
        let turn = self.from.slot.turn().await;
        let new = self.position.advance(&self.subject).await.ok()?;
        drop(turn);
        self.told(new)
    }

    fn missed(&self) -> Option<Event> {
        match self.resumed {
            Resumed::Fresh => None,
            Resumed::Missed(missed) => self.told(missed),
            Resumed::Gap(gap) => Some(self.gap(gap)),
        }
    }

    fn told(&self, new: Counts) -> Option<Event> {
        let new = of_class(new, self.from.query.class);
        (new.total() > 0).then(|| {
            let at = Rfc3339(self.from.app.clock.now());
            let data = json!({ "at": at, "counts": CountsBody::from(new) });
            self.event("clicks").data(data.to_string())
        })
    }

    /// Says that something may have been missed: the reports have it.
    fn gap(&self, gap: Gap) -> Event {
        let kept = LIVE_FEED_RESUMES_WITHIN.as_secs();
        let data = json!({ "reason": gap.as_str(), "kept_seconds": kept });
        self.event("gap").data(data.to_string())
    }

    fn event(&self, name: &str) -> Event {
        let id = self.position.id(&self.subject.clicks);
        Event::default().event(name).id(id)
    }

    /// Whether the caller may still see this. A store that is away is no reason to end.
    async fn may_go_on(&mut self) -> bool {
        if self.checked.elapsed() < CHECKS_EVERY {
            return true;
        }
        self.checked = Instant::now();
        let Opening {
            app,
            caller,
            wanted,
            ..
        } = &self.from;
        match wanted.allowed(app, caller).await {
            // A key that was given to another link meanwhile is not what was asked for.
            Ok(subject) if subject.clicks != self.subject.clicks => false,
            Ok(subject) => {
                self.subject = subject;
                true
            }
            Err(problem) => problem.code().status().is_server_error(),
        }
    }

    fn end(&mut self, reason: &str) -> Event {
        self.state = State::Ended;
        let data = json!({ "reason": reason });
        Event::default().event("end").data(data.to_string())
    }
}

fn of_class(counts: Counts, class: Option<ClickClass>) -> Counts {
    let Some(class) = class else {
        return counts;
    };
    let only = |this| if this == class { counts.of(this) } else { 0 };
    Counts {
        human: only(ClickClass::Human),
        bot: only(ClickClass::Bot),
        prefetch: only(ClickClass::Prefetch),
        head: only(ClickClass::Head),
    }
}
