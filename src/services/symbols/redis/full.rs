//! Taking documents away from a server that is full: a transaction is refused there, a script that says so is not.

use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd};

use super::Redis;
use super::transaction::Commands;
use acheron_base::Result;

/// Runs commands if some keys still have their values. Since Redis 7 a script may run without room.
const SCRIPT: &str = "#!lua flags=allow-oom
local keys, values, commands = cjson.decode(ARGV[1]), cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
for number, key in ipairs(keys) do
  if (redis.call('GET', key) or '') ~= values[number] then return 0 end
end
for _, command in ipairs(commands) do redis.call(unpack(command)) end
return 1";

impl Redis {
    /// `None` when another client changed one of the keys meanwhile.
    pub(super) async fn run_though_full(
        &self,
        connection: &mut MultiplexedConnection,
        keys: &[String],
        values: &[Option<String>],
        work: &Commands,
    ) -> Result<Option<()>> {
        let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or_default()).collect();
        let text = |value: serde_json::Value| value.to_string();
        let mut command = cmd("EVAL");
        command.arg(SCRIPT).arg(0);
        command.arg(text(serde_json::json!(keys))).arg(text(serde_json::json!(values)));
        command.arg(text(serde_json::json!(work.0)));
        let done: i64 = command.query_async(connection).await.map_err(|fault: RedisError| self.fault(&fault))?;
        Ok((done == 1).then_some(()))
    }
}
