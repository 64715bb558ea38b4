use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{HeartbeatRecord, Heartbeats};
use redis::Script;

use super::Redis;

/// Ends are in the server's time, so that clocks of instances do not matter.
const BEAT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + ARGV[3]) .. ARGV[2])
return 1
";

/// Those whose time is over are forgotten on the way.
const RECORDS: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local said = redis.call('HGETALL', KEYS[1])
local there = {}
for at = 1, #said, 2 do
    local space = string.find(said[at + 1], ' ', 1, true)
    if tonumber(string.sub(said[at + 1], 1, space - 1)) > now then
        there[#there + 1] = said[at]
        there[#there + 1] = string.sub(said[at + 1], space + 1)
    else
        redis.call('HDEL', KEYS[1], said[at])
    end
end
return there
";

/// A hash of records by instance, each behind the time at which it ends.
pub(super) struct RedisHeartbeats {
    redis: Arc<Redis>,
    beat: Script,
    records: Script,
}

impl RedisHeartbeats {
    pub(super) fn new(redis: Arc<Redis>) -> Self {
        Self {
            redis,
            beat: Script::new(BEAT),
            records: Script::new(RECORDS),
        }
    }

    fn hash(&self) -> String {
        self.redis.name("heartbeats")
    }
}

#[async_trait]
impl Heartbeats for RedisHeartbeats {
    async fn beat(&self, instance: &str, text: &str, ttl: Duration) -> PortResult<()> {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let mut script = self.beat.prepare_invoke();
        script.key(self.hash()).arg(instance).arg(text).arg(millis);
        self.redis.run_script("write a heartbeat", &script).await
    }

    async fn remove(&self, instance: &str) -> PortResult<()> {
        let mut command = redis::cmd("HDEL");
        command.arg(self.hash()).arg(instance);
        self.redis.run("remove a heartbeat", &command).await
    }

    async fn records(&self) -> PortResult<Vec<HeartbeatRecord>> {
        let mut script = self.records.prepare_invoke();
        script.key(self.hash());
        let there: Vec<(String, String)> =
            self.redis.run_script("list heartbeats", &script).await?;
        let mut records: Vec<HeartbeatRecord> = there
            .into_iter()
            .map(|(instance, text)| HeartbeatRecord {
                instance: instance.into(),
                text: text.into(),
            })
            .collect();
        records.sort_unstable();
        Ok(records)
    }
}
