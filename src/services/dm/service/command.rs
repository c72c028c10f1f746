//! The operations of the service and their answers. Only `service` uses it.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::store::ChangedBy;
use super::GameSession;
use super::session::said;
use crate::contract::Operation;
use crate::service::{Cx, Service};
use acheron_base::{Result, blocking};
use acheron_dm::act::{Act, ActResult};
use acheron_dm::continuity;
use acheron_dm::init::{self, Answers};
use acheron_dm::mechanics::maps::MapChange;
use acheron_dm::tools::Call;
use acheron_vfs::Node;

/// The game master.
pub struct Dm {
    session: Arc<GameSession>,
}

impl Dm {
    pub fn new(session: Arc<GameSession>) -> Dm {
        Dm { session }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Plays one input: a move such as `[LOOK]{the gate}`, or a control instruction such as `<continue>`.
    Play {
        input: String,
        /// The active one where absent.
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Makes a campaign from the template, binds it to a cartridge, makes it the active one.
    NewCampaign {
        /// Letters, digits, `_` and `-`.
        id: String,
        /// The cartridge that came with the program where absent.
        #[serde(default)]
        cartridge: Option<String>,
        /// Of the dice; made up where absent.
        #[serde(default)]
        seed: Option<u64>,
    },
    /// Makes another campaign the active one, if it is whole and fits its cartridge.
    SwitchCampaign { id: String },
    /// Begins a campaign. Without `confirm` the answers are only checked and summed up.
    Init {
        answers: Box<Answers>,
        #[serde(default)]
        confirm: bool,
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Picks the thread up: a summary of what is recorded, and nothing else.
    Load {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Takes back the last turn.
    Undo {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Makes the state panel again from the sessions, which win.
    Rebuild {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Opens a campaign again whose story has ended.
    PlayOn {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Ends the wait for a narrator that is silent: the rules engine tells the turn.
    SkipNarrator {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Checks that the files of the campaign agree with each other; with `cartridge`, lists every fault of that cartridge with
    /// its file and line.
    Check {
        #[serde(default)]
        cartridge: Option<String>,
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Plays the journal again in memory and compares every byte with the disk.
    Replay {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// The map as the player sees it.
    Map {
        #[serde(default)]
        campaign: Option<String>,
    },
    /// Changes the map of a cartridge: a version more, with its reason.
    ChangeMap { cartridge: String, change: MapChange, reason: String },
    /// Tool calls of a role: AUTHOR, BUILDER, DM or SAVE_READ.
    Tools {
        role: String,
        tool_calls: Vec<Call>,
        /// Whether the questions that AUTHOR and BUILDER must ask first are settled.
        #[serde(default)]
        scope_confirmed: bool,
        #[serde(default)]
        campaign: Option<String>,
    },
}

/// Text for people, and what there is to say about it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct TextOutput {
    pub campaign: String,
    pub output: String,
    /// Proposals of the narrator that the kernel rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Replayed")]
pub struct ReplayReport {
    pub campaign: String,
    pub entries: usize,
    pub equal: bool,
    /// The first file that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Told(TextOutput),
    Replayed(ReplayReport),
    Plain(Value),
}

#[async_trait]
impl Service for Dm {
    const NAME: &'static str = "dm";
    const ABOUT: &'static str = "A game master whose rules are code.\n\n\
        Write a move to a campaign's input, read its output; dice, indicators, clocks, quests and files \
        belong to the rules engine, and a model may only propose. Begin with new_campaign and init, then: \
        echo '[LOOK]{around}' > campaigns/<id>/input; cat campaigns/<id>/output. \
        A refused input is in campaigns/<id>/status.json; campaigns/<id>/files has what players may read.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::execute("play").example(json!({"input": "[LOOK]{around}"})).gives::<TextOutput>(),
            Operation::execute("new_campaign").example(json!({"id": "c1", "cartridge": "brinewick", "seed": 7})).gives::<TextOutput>(),
            Operation::execute("switch_campaign").example(json!({"id": "c1"})).gives::<TextOutput>(),
            Operation::execute("init")
                .example(json!({"answers": {"preset": "Mystery Investigation", "pc_name": "Ann", "pc_strengths": "clever, charming"}, "confirm": true}))
                .gives::<TextOutput>(),
            Operation::execute("load").example(json!({})).gives::<TextOutput>(),
            Operation::execute("undo").example(json!({})).gives::<TextOutput>(),
            Operation::execute("rebuild").example(json!({})).gives::<TextOutput>(),
            Operation::execute("play_on").example(json!({})).gives::<TextOutput>(),
            Operation::execute("skip_narrator").example(json!({})).gives::<TextOutput>(),
            Operation::read("check").example(json!({})),
            Operation::read("replay").example(json!({})).gives::<ReplayReport>(),
            Operation::read("map").example(json!({})).gives::<TextOutput>(),
            Operation::execute("change_map")
                .example(json!({"cartridge": "brinewick", "change": {"update-risk": {"at": "@reed_path", "rp": 2}}, "reason": "the guard has left"})),
            Operation::execute("tools")
                .example(json!({"role": "DM", "tool_calls": [{"name": "read_hot_pack", "arguments": {"campaign_path": "campaigns/c1"}}]})),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        super::files::files(&self.session)
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let session = &self.session;
        match command {
            Command::Play { input, campaign } => {
                let campaign = session.meant(campaign).await?;
                let done = session.play(&tells(cx, &campaign), &campaign, &input).await?;
                Ok(told(campaign, done))
            }
            Command::NewCampaign { id, cartridge, seed } => {
                let cartridge = cartridge.as_deref().unwrap_or("brinewick");
                let done = session.new_campaign(&tells(cx, &id), &id, cartridge, seed).await?;
                Ok(told(id, done))
            }
            Command::SwitchCampaign { id } => {
                let done = session.switch(&tells(cx, &id), id.trim_start_matches("campaigns/")).await?;
                Ok(told(id, done))
            }
            Command::Init { answers, confirm: true, campaign } => self.act(cx, campaign, Act::Init { answers }).await,
            Command::Init { answers, confirm: false, campaign } => {
                let campaign = session.meant(campaign).await?;
                let (save, world) = session.open(&campaign).await?;
                let at = session.now();
                let output = blocking(move || init::summary(&answers, &save, &world, &at)).await?;
                Ok(told(campaign, said(output)))
            }
            Command::Load { campaign } => self.act(cx, campaign, Act::Load).await,
            Command::Undo { campaign } => self.act(cx, campaign, Act::Undo).await,
            Command::Rebuild { campaign } => self.act(cx, campaign, Act::Rebuild).await,
            Command::PlayOn { campaign } => self.act(cx, campaign, Act::PlayOn).await,
            Command::SkipNarrator { campaign } => {
                let campaign = session.meant(campaign).await?;
                session.skip_narrator(&campaign)?;
                Ok(told(campaign, said("the rules engine tells the turn\n".into())))
            }
            Command::Check { cartridge: Some(id), .. } => {
                let session = session.clone();
                let report = blocking(move || session.campaigns().inspect(&id)).await?;
                Ok(Output::Plain(json!(report)))
            }
            Command::Check { campaign, cartridge: None } => {
                let (save, world) = session.open(&session.meant(campaign).await?).await?;
                let report = blocking(move || continuity::check(&save, &world)).await?;
                Ok(Output::Plain(json!(report)))
            }
            Command::Replay { campaign } => {
                let campaign = session.meant(campaign).await?;
                let (own, id) = (session.clone(), campaign.clone());
                let (entries, differs) = blocking(move || own.campaigns().replay(&id)).await?;
                Ok(Output::Replayed(ReplayReport { campaign, entries, equal: differs.is_none(), differs }))
            }
            Command::Map { campaign } => {
                let campaign = session.meant(campaign).await?;
                let (save, world) = session.open(&campaign).await?;
                let output = blocking(move || super::files::map(&save, &world)).await?;
                Ok(told(campaign, said(output)))
            }
            Command::ChangeMap { cartridge, change, reason } => {
                session.change_map(Some(cx), cartridge, change, reason).await.map(Output::Plain)
            }
            Command::Tools { role, tool_calls, scope_confirmed, campaign } => {
                session.tools(Some(cx), &role, campaign, tool_calls, scope_confirmed).await.map(Output::Plain)
            }
        }
    }
}

fn told(campaign: String, done: ActResult) -> Output {
    Output::Told(TextOutput { campaign, output: done.output, reports: done.reports })
}

/// A call that ends with the text of its act.
fn tells(cx: &Cx, campaign: &str) -> ChangedBy {
    let campaign = campaign.to_owned();
    ChangedBy::call(cx, move |done| {
        json!(TextOutput { campaign: campaign.clone(), output: done.output.clone(), reports: done.reports.clone() })
    })
}

impl Dm {
    async fn act(&self, cx: &Cx, campaign: Option<String>, act: Act) -> Result<Output> {
        let campaign = self.session.meant(campaign).await?;
        let done = self.session.act(&tells(cx, &campaign), &campaign, act).await?;
        Ok(told(campaign, done))
    }
}
