use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{ClickCounters, Counted, CounterAddition, CounterWindow, StreamPartition};
use curt_core::{ErrorKind, PortError, PortResult};
use redis::Script;

use super::{BACKEND, Redis};

/// How long a window is kept after the last addition. It is flushed long before; what a partition has that nobody
/// consumes any more is still in the stream.
const KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Fields of a window. What it holds has names that begin with one of [`COUNT`] and [`PIECE`].
const FROM: &str = "from";
const TO: &str = "to";
const BYTES: &str = "bytes";
const COUNT: u8 = b'=';
const PIECE: u8 = b'+';

/// Adds to a window if it goes up to where the addition begins. Offsets are compared as texts: Lua's numbers do not hold
/// all of them. The first write of a script is refused when memory is short and the later ones are not, so that it
/// happens whole or not at all.
const ADD: &str = r"
local from, seen, next_offset, kept, piece = unpack(ARGV, 1, 5)
local known = redis.call('HMGET', KEYS[1], 'from', 'to', 'bytes')
if known[1] then
    if known[1] ~= from or known[2] ~= seen then
        return false
    end
elseif from ~= seen then
    return false
end
local bytes = tonumber(known[3] or 0)
redis.call('HSET', KEYS[1], 'from', from, 'to', next_offset)
redis.call('PEXPIRE', KEYS[1], kept)
if piece ~= '' then
    redis.call('HSET', KEYS[1], '+' .. seen, piece)
    bytes = bytes + #piece
end
for place = 6, #ARGV, 2 do
    local name, count = ARGV[place], ARGV[place + 1]
    local is_new = redis.call('HEXISTS', KEYS[1], '=' .. name) == 0
    redis.call('HINCRBY', KEYS[1], '=' .. name, count)
    if is_new then
        bytes = bytes + #name + 16
    end
end
redis.call('HSET', KEYS[1], 'bytes', string.format('%.0f', bytes))
return bytes
";

const FORGET: &str = r"
if redis.call('HGET', KEYS[1], 'from') == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
return 1
";

/// Each window is one hash, so that it is evicted, expires and is lost as a whole.
pub(super) struct RedisClickCounters {
    redis: Arc<Redis>,
    add: Script,
    forget: Script,
}

impl RedisClickCounters {
    pub(super) fn new(redis: Arc<Redis>) -> Self {
        Self {
            redis,
            add: Script::new(ADD),
            forget: Script::new(FORGET),
        }
    }

    fn window_name(&self, partition: StreamPartition) -> String {
        let StreamPartition { stream, number } = partition;
        let name = format!("clicks:{{{:016x}:{number}}}", stream.0);
        self.redis.name(&name)
    }
}

#[async_trait]
impl ClickCounters for RedisClickCounters {
    async fn add(
        &self,
        partition: StreamPartition,
        addition: CounterAddition,
    ) -> PortResult<Option<u64>> {
        let mut script = self.add.prepare_invoke();
        script
            .key(self.window_name(partition))
            .arg(addition.from)
            .arg(addition.seen)
            .arg(addition.next)
            .arg(KEPT.as_millis().to_string())
            .arg(&addition.piece[..]);
        for Counted { name, count } in &addition.counts {
            script.arg(&name[..]).arg(*count);
        }
        self.redis.run_script("add clicks", &script).await
    }

    async fn window(&self, partition: StreamPartition) -> PortResult<Option<CounterWindow>> {
        const OP: &str = "read a window of clicks";
        let name = self.window_name(partition);
        let fields: Vec<(Vec<u8>, Vec<u8>)> =
            self.redis.run(OP, redis::cmd("HGETALL").arg(&name)).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        if let Some(window) = read_window(fields) {
            return Ok(Some(window));
        }
        self.redis
            .run::<()>(OP, redis::cmd("DEL").arg(&name))
            .await?;
        let detail = format!("{name} was no window of clicks");
        Err(PortError::new(ErrorKind::Corrupt, BACKEND, OP, detail))
    }

    async fn forget(&self, partition: StreamPartition, from: u64) -> PortResult<()> {
        let mut script = self.forget.prepare_invoke();
        script.key(self.window_name(partition)).arg(from);
        self.redis
            .run_script("forget a window of clicks", &script)
            .await
    }
}

/// `None`: somebody else wrote into it.
fn read_window(fields: Vec<(Vec<u8>, Vec<u8>)>) -> Option<CounterWindow> {
    let (mut from, mut to) = (None, None);
    let (mut counts, mut pieces) = (Vec::new(), Vec::new());
    for (name, value) in fields {
        match name.split_first()? {
            (&COUNT, name) => counts.push(Counted {
                name: name.into(),
                count: number(&value)?,
            }),
            (&PIECE, seen) => pieces.push((number(seen)?, value)),
            _ if name == FROM.as_bytes() => from = Some(number(&value)?),
            _ if name == TO.as_bytes() => to = Some(number(&value)?),
            _ if name == BYTES.as_bytes() => {}
            _ => return None,
        }
    }
    counts.sort_unstable();
    pieces.sort_unstable_by_key(|(seen, _)| *seen);
    Some(CounterWindow {
        from: from?,
        to: to?,
        counts,
        pieces: pieces.into_iter().map(|(_, piece)| piece).collect(),
    })
}

fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}
