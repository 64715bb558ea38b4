use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Member, Roster};
use redis::Script;

use super::Redis;

/// Ends are in the server's time, so that the clocks of the members do not matter.
const ANNOUNCE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + ARGV[3]) .. ARGV[2])
return 1
";

/// Those whose time is over are forgotten on the way.
const MEMBERS: &str = r"
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

/// A hash of what each member says, with the time until which it holds before it.
pub(super) struct RedisRoster {
    redis: Arc<Redis>,
    announce: Script,
    members: Script,
}

impl RedisRoster {
    pub(super) fn new(redis: Arc<Redis>) -> Self {
        Self {
            redis,
            announce: Script::new(ANNOUNCE),
            members: Script::new(MEMBERS),
        }
    }

    fn hash(&self) -> String {
        self.redis.name("roster")
    }
}

#[async_trait]
impl Roster for RedisRoster {
    async fn announce(&self, member: &str, says: &str, ttl: Duration) -> PortResult<()> {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let mut script = self.announce.prepare_invoke();
        script.key(self.hash()).arg(member).arg(says).arg(millis);
        self.redis.run_script("announce a process", &script).await
    }

    async fn leave(&self, member: &str) -> PortResult<()> {
        let mut command = redis::cmd("HDEL");
        command.arg(self.hash()).arg(member);
        self.redis.run("take a process off", &command).await
    }

    async fn members(&self) -> PortResult<Vec<Member>> {
        let mut script = self.members.prepare_invoke();
        script.key(self.hash());
        let there: Vec<(String, String)> = self.redis.run_script("list processes", &script).await?;
        let mut members: Vec<Member> = there
            .into_iter()
            .map(|(name, says)| Member {
                name: name.into(),
                says: says.into(),
            })
            .collect();
        members.sort_unstable();
        Ok(members)
    }
}
