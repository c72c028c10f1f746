//! What the services of one agent are built from.

use std::path::PathBuf;
use std::sync::Arc;

use crate::events::Diary;
use crate::host::House;
use crate::spec::Agent;
use acheron_base::Result;

/// One agent's view of the house: capability by argument.
pub struct World {
    pub agent: String,
    pub spec: Agent,
    /// Where the agent's own files are kept; there when somebody makes it.
    pub home: PathBuf,
    pub diary: Arc<Diary>,
    pub house: Arc<House>,
}

impl World {
    pub fn new(house: &Arc<House>, agent: &str, diary: Arc<Diary>) -> Result<World> {
        let spec = house.roster.get(agent)?.spec;
        let home = house.state.join("agents").join(agent);
        Ok(World { agent: agent.to_owned(), spec, home, diary, house: house.clone() })
    }
}
