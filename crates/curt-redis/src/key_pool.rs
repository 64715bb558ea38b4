use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::names::event;
use curt_core::ports::{BatchId, KeyPool};
use curt_core::{ErrorKind, Key, PortError, PortResult};
use redis::Script;

use super::{BACKEND, Redis};

/// How long the answer to a push is remembered. A push is repeated at once by its own process, or minutes later by the
/// one that settles what a dead process left; a batch that lies open for longer meets its keys' links at the insert.
const BATCH_REMEMBERED: Duration = Duration::from_secs(24 * 3_600);

/// Pushes what fits, once per batch. The first write of a script is refused when memory is short and the later ones are
/// not, so that it happens whole or not at all. Lua cannot pass more than some thousand arguments at a time.
const PUSH: &str = r"
local answered = redis.call('GET', KEYS[2])
if answered then
    return tonumber(answered)
end
local given = #ARGV - 2
local room = math.max(0, tonumber(ARGV[1]) - redis.call('LLEN', KEYS[1]))
local fitting = math.min(given, room)
redis.call('SET', KEYS[2], fitting, 'PX', ARGV[2])
for first = 1, fitting, 1000 do
    local last = math.min(first + 999, fitting)
    redis.call('RPUSH', KEYS[1], unpack(ARGV, first + 2, last + 2))
end
return fitting
";

/// A pool shard on a list. A pop whose answer is lost may have taken its keys: nobody has them then, and they count as
/// leaked, at most `limit` of them.
pub(super) struct RedisKeyPool {
    redis: Arc<Redis>,
    list: String,
    cap: usize,
    push: Script,
}

/// The list of a shard. Everything else about the shard has a name that begins with it.
fn list(redis: &Redis, shard: usize) -> String {
    redis.name(&format!("available_keys:{{{shard}}}"))
}

impl RedisKeyPool {
    pub(super) fn new(redis: Arc<Redis>, shard: usize, cap: usize) -> Self {
        Self {
            list: list(&redis, shard),
            redis,
            cap,
            push: Script::new(PUSH),
        }
    }
}

#[async_trait]
impl KeyPool for RedisKeyPool {
    async fn push(&self, batch: &BatchId, keys: &[Key]) -> PortResult<usize> {
        const OP: &str = "push keys";
        let mut script = self.push.prepare_invoke();
        script
            .key(&self.list)
            .key(format!("{}:batch:{}", self.list, batch.0))
            .arg(self.cap)
            .arg(BATCH_REMEMBERED.as_millis().to_string());
        for key in keys {
            script.arg(key.as_str());
        }
        let pushed: usize = self.redis.run_script(OP, &script).await?;
        if pushed > keys.len() {
            let detail = format!("the batch was pushed before with {pushed} keys");
            return Err(PortError::new(ErrorKind::Bug, BACKEND, OP, detail));
        }
        Ok(pushed)
    }

    async fn pop(&self, limit: usize) -> PortResult<Vec<Key>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("LPOP");
        command.arg(&self.list).arg(limit);
        let popped: Option<Vec<Vec<u8>>> = self.redis.run("pop keys", &command).await?;
        Ok(popped.into_iter().flatten().filter_map(checked).collect())
    }

    async fn peek(&self, first: u64, limit: usize) -> PortResult<Vec<Key>> {
        let Some(further) = limit.checked_sub(1) else {
            return Ok(Vec::new());
        };
        let mut command = redis::cmd("LRANGE");
        command
            .arg(&self.list)
            .arg(first)
            .arg(first.saturating_add(further as u64));
        let met: Vec<Vec<u8>> = self.redis.run("look at keys", &command).await?;
        Ok(met.into_iter().filter_map(checked).collect())
    }

    async fn depth(&self) -> PortResult<u64> {
        let mut command = redis::cmd("LLEN");
        command.arg(&self.list);
        self.redis.run("count keys", &command).await
    }
}

/// What somebody else put into the list is left out: an error would lose the keys that were popped with it.
fn checked(bytes: Vec<u8>) -> Option<Key> {
    let key = str::from_utf8(&bytes)
        .ok()
        .and_then(|text| Key::parse(text).ok());
    if key.is_none() {
        // Quoted: a line end in it would begin a line of the log.
        let text = String::from_utf8_lossy(&bytes);
        tracing::warn!(event = event::FOREIGN_KEY_DROPPED, ?text, "not a key");
    }
    key
}
