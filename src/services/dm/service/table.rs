//! The table that everybody sits at: one hall, one narrator, one player a campaign at a time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::act::{Act, Done};
use super::super::init;
use super::super::input::{Control, Input, parse};
use super::super::narrator::{Narrator, brief};
use super::super::proposal::FAILED;
use super::super::shelf::Shelf as _;
use super::super::store::{Hall, Save};
use super::super::tools::control::{self, Plan, is_control};
use super::super::tools::{self, Call, Role, run};
use super::super::turn::ready;
use super::super::world::Cartridge;
use acheron_base::Clock;
use acheron_base::blocking;
use acheron_base::{Error, Result};
use acheron_vfs::Listing;

pub struct Table {
    hall: Hall,
    narrator: Arc<dyn Narrator>,
    clock: Clock,
    sittings: Mutex<HashMap<String, Arc<Sitting>>>,
    /// The directory of campaigns, which grows when one is made.
    pub(super) campaigns: Arc<Listing>,
    /// The directory of cartridges. The bytes in it are those of the moment.
    pub(super) cartridges: Arc<Listing>,
    /// The names that stand in it.
    shown: Mutex<HashMap<String, Vec<String>>>,
}

/// One campaign being played: whether a turn is under way, and what was last refused.
pub(super) struct Sitting {
    turn: tokio::sync::Mutex<()>,
    busy: watch::Sender<bool>,
    refusal: Mutex<Option<String>>,
    /// The directory of its session files; names are in memory, only their bytes are on disk.
    pub sessions: Arc<Listing>,
}

impl Sitting {
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    #[cfg(test)]
    pub fn is_busy(&self) -> bool {
        *self.busy.borrow()
    }

    /// Waits until no turn is under way.
    pub async fn quiet(&self) {
        // The sender lives as long as the sitting, so this ends only when the value does.
        let _ = self.busy.subscribe().wait_for(|busy| !busy).await;
    }
}

/// Says that the turn is over, however it ended.
struct Over<'a>(&'a watch::Sender<bool>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// Milliseconds since 1970 as `2026-11-16T10:00:00Z`.
pub fn stamp(ms: u64) -> String {
    let (days, second) = ((ms / 86_400_000) as i64, ms / 1000 % 86_400);
    // Days to a date of the Gregorian calendar, years beginning in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

impl Table {
    pub fn new(hall: Hall, narrator: Arc<dyn Narrator>, clock: Clock) -> Arc<Table> {
        let (campaigns, cartridges) = (Arc::new(Listing::timed(&clock)), Arc::new(Listing::timed(&clock)));
        let (sittings, shown) = (Mutex::default(), Mutex::default());
        Arc::new(Table { hall, narrator, clock, sittings, campaigns, cartridges, shown })
    }

    pub fn hall(&self) -> &Hall {
        &self.hall
    }

    pub fn now(&self) -> String {
        stamp(self.clock.now_ms())
    }

    pub(super) fn sitting(&self, id: &str) -> Arc<Sitting> {
        let mut sittings = self.sittings.lock();
        let fresh = || {
            let (turn, busy) = (tokio::sync::Mutex::default(), watch::Sender::new(false));
            Arc::new(Sitting { turn, busy, refusal: Mutex::default(), sessions: Arc::new(Listing::timed(&self.clock)) })
        };
        sittings.entry(id.to_owned()).or_insert_with(fresh).clone()
    }

    /// The campaign that is meant: the one named, else the active one.
    pub async fn meant(self: &Arc<Self>, named: Option<String>) -> Result<String> {
        if let Some(id) = named.filter(|id| !id.is_empty()) {
            return Ok(id.trim_start_matches("campaigns/").to_owned());
        }
        let table = self.clone();
        let active = blocking(move || table.hall.active()).await?;
        active.campaign.ok_or_else(|| Error::not_found("no campaign is active: make one with new_campaign"))
    }

    /// One input: a move, or a control instruction.
    pub async fn play(self: &Arc<Self>, id: &str, input: &str) -> Result<Done> {
        let sitting = self.sitting(id);
        let busy = || Error::busy(format!("campaign {id} is in the middle of a turn"));
        let _turn = sitting.turn.try_lock().map_err(|_| busy())?;
        sitting.busy.send_replace(true);
        let _over = Over(&sitting.busy);
        let answer = self.answer(id, input).await;
        let said = answer.as_ref().err().map(|fault| format!("{}\n", fault.message.trim_end()));
        *sitting.refusal.lock() = said;
        answer
    }

    async fn answer(self: &Arc<Self>, id: &str, input: &str) -> Result<Done> {
        match parse(input, &[]) {
            Ok(Input::Control(control)) => self.control(id, control).await,
            _ => self.turn(id, input).await,
        }
    }

    async fn turn(self: &Arc<Self>, id: &str, input: &str) -> Result<Done> {
        let (table, own, text) = (self.clone(), id.to_owned(), input.to_owned());
        let brief = blocking(move || {
            let (save, world) = table.hall.play(&own)?;
            let at = table.now();
            Ok(brief(&ready(save.seat(&world, &at), &text)?, &text, &world))
        })
        .await?;
        // A narrator that fails is a narrator that is silent.
        let proposal = self.narrator.propose(&brief).await.unwrap_or_else(|fault| Some(json!({FAILED: fault.message})));
        self.act(id, Act::Turn { input: input.trim_end_matches('\n').to_owned(), proposal }).await
    }

    /// One act on one campaign.
    pub async fn act(self: &Arc<Self>, id: &str, act: Act) -> Result<Done> {
        let (table, id) = (self.clone(), id.to_owned());
        blocking(move || {
            let (save, world) = table.hall.play(&id)?;
            let done = save.act(&world, &act, &table.now())?;
            table.list(&save)?;
            table.show_cartridge(&world.id);
            Ok(done)
        })
        .await
    }

    async fn control(self: &Arc<Self>, id: &str, control: Control) -> Result<Done> {
        let said = |output: String| Done { output, ..Done::default() };
        match control {
            Control::Continue => self.act(id, Act::Load).await,
            Control::Initialize => {
                let (_, world) = self.open(id).await?;
                Ok(said(init::questionnaire(&world)))
            }
            Control::SwitchCampaign(to) => self.switch(&to).await.map(said),
            Control::NewCampaign(new) => {
                let (_, world) = self.open(id).await?;
                self.new_campaign(&new, &world.id, None).await.map(said)
            }
        }
    }

    pub async fn open(self: &Arc<Self>, id: &str) -> Result<(Save, Arc<Cartridge>)> {
        let (table, id) = (self.clone(), id.to_owned());
        blocking(move || table.hall.play(&id)).await
    }

    pub async fn new_campaign(self: &Arc<Self>, id: &str, cartridge: &str, seed: Option<u64>) -> Result<String> {
        let (table, own, cartridge) = (self.clone(), id.to_owned(), cartridge.to_owned());
        let seed = seed.unwrap_or_else(|| self.clock.now_ms());
        blocking(move || table.hall.new_campaign(&own, &cartridge, seed, &table.now())).await?;
        let (table, own) = (self.clone(), id.to_owned());
        blocking(move || {
            table.show(&own);
            Ok(())
        })
        .await?;
        Ok(format!("campaign {id} is made and active; send <initialize>\n"))
    }

    pub async fn switch(self: &Arc<Self>, id: &str) -> Result<String> {
        let (table, own) = (self.clone(), id.to_owned());
        blocking(move || table.hall.switch(&own)).await?;
        Ok(format!("campaign {id} is active\n"))
    }

    /// The sessions that there are by now have their names.
    fn list(self: &Arc<Self>, save: &Save) -> Result<()> {
        let sessions = &self.sitting(&save.id).sessions;
        let known = sessions.names();
        let paths = save.paths()?;
        for name in paths.iter().filter_map(|path| path.strip_prefix("sessions/")) {
            if !known.iter().any(|own| own == name) {
                sessions.put(name, super::files::session_page(self, &save.id, name));
            }
        }
        Ok(())
    }

    /// The files that a cartridge has by now have their names.
    pub(super) fn show_cartridge(self: &Arc<Self>, id: &str) {
        let Ok(paths) = self.hall.cartridge_paths(id) else { return };
        let mut shown = self.shown.lock();
        if shown.get(id) != Some(&paths) {
            self.cartridges.put(id, super::files::cartridge(self, id, &paths));
            shown.insert(id.to_owned(), paths);
        }
    }

    /// The directory of a campaign stands under `campaigns/`.
    pub(super) fn show(self: &Arc<Self>, id: &str) {
        self.campaigns.put(id, super::files::campaign(self, id));
        if let Ok(save) = self.hall.campaign(id) {
            // A campaign that cannot be listed can still be opened, and then says why.
            let _ = self.list(&save);
        }
    }

    /// Tool calls of a role. What is only read is read first; what is changed of a campaign is one transaction, and so are
    /// the control tools of a batch: if anything fails, nothing has been changed. An author's writes go one by one.
    pub async fn tools(
        self: &Arc<Self>,
        role: &str,
        id: Option<String>,
        calls: Vec<Call>,
        scope_confirmed: bool,
    ) -> Result<Value> {
        let named = Role::named(role)?;
        for call in &calls {
            tools::admit(named, call)?;
        }
        let writes = |call: &Call| {
            matches!(
                call.name.as_str(),
                "write_patch" | "register_handle" | "copy_template" | "bind_campaign" | "init_campaign" | "set_active"
            )
        };
        if matches!(named, Role::Author | Role::Builder) && !scope_confirmed && calls.iter().any(writes) {
            let asked = run::questionnaire(&json!({"role": role, "scope": "pending", "count": 10}));
            return Err(Error::forbidden(format!(
                "pending scope: {role} writes after these are settled (scope_confirmed): {}",
                asked["questions"]
            )));
        }
        let changes = |call: &Call| tools::changes_campaign(named, call);
        if calls.iter().any(is_control) && calls.iter().any(changes) {
            return Err(Error::invalid("control tools and changes of a campaign do not go into one batch"));
        }
        let mut results = vec![json!({"status": "ok"}); calls.len()];
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| !is_control(call) && !changes(call)) {
            results[at] = self.look(named, id.clone(), call).await?;
        }
        let own: Vec<usize> = (0..calls.len()).filter(|at| changes(&calls[*at])).collect();
        if !own.is_empty() {
            let (id, batch) = (self.meant(id).await?, own.iter().map(|at| calls[*at].clone()).collect());
            let done = self.act(&id, Act::Tools { role: role.to_owned(), calls: batch }).await?;
            let done: Value = serde_json::from_str(&done.output).map_err(|fault| Error::internal(fault.to_string()))?;
            for (n, at) in own.into_iter().enumerate() {
                results[at] = done["tool_results"][n]["result"].clone();
            }
        }
        let control: Vec<&Call> = calls.iter().filter(|call| is_control(call)).collect();
        if !control.is_empty() {
            self.carry_out(control::plan(&control)?).await?;
        }
        let named = calls.iter().zip(results).map(|(call, result)| json!({"name": call.name, "result": result}));
        Ok(json!({ "tool_results": named.collect::<Vec<_>>() }))
    }

    async fn carry_out(self: &Arc<Self>, plan: Plan) -> Result<()> {
        let (table, seed) = (self.clone(), self.clock.now_ms());
        blocking(move || {
            table.hall.carry_out(&plan, seed, &table.now())?;
            if plan.made {
                table.show(&plan.id);
            }
            Ok(())
        })
        .await
    }

    /// A call that changes no campaign.
    async fn look(self: &Arc<Self>, role: Role, id: Option<String>, call: &Call) -> Result<Value> {
        if role == Role::Author || call.name == "generate_questionnaire" {
            return self.author(call).await;
        }
        let named = call.arguments["campaign_path"].as_str().unwrap_or_default().trim_start_matches("campaigns/");
        let named = Some(named.to_owned()).filter(|own| !own.is_empty()).or(id);
        let (table, id, call) = (self.clone(), self.meant(named).await?, call.clone());
        blocking(move || {
            let (save, world) = table.hall.play(&id)?;
            run::look(save.seat(&world, &table.now()), &call)
        })
        .await
    }

    async fn author(self: &Arc<Self>, call: &Call) -> Result<Value> {
        let (table, call) = (self.clone(), call.clone());
        blocking(move || {
            if call.name == "generate_questionnaire" {
                return Ok(run::questionnaire(&call.arguments));
            }
            let named = ["cartridge_path", "path", "index_path"].iter().find_map(|key| call.arguments[*key].as_str());
            let own = named.and_then(|path| path.strip_prefix("cartridges/")).and_then(|path| path.split('/').next());
            let own =
                own.ok_or_else(|| Error::invalid(format!("{}: the path must begin with cartridges/<id>/", call.name)))?;
            let files = table.hall.cartridge_files(own)?;
            let (answer, write) = run::author(&files, &call, own)?;
            if let Some((path, text)) = write {
                table.hall.write_cartridge(own, &path, &text)?;
                table.show_cartridge(own);
            }
            Ok(answer)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn a_stamp_is_a_date() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(stamp(1_709_164_800_000), "2024-02-29T00:00:00Z");
        assert_eq!(stamp(1_794_823_200_000), "2026-11-16T10:00:00Z");
    }
}
