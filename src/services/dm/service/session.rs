//! The game of one agent: its campaigns on disk, its narrator, and one turn per campaign at a time. The operations and the
//! files of the service use it; it uses the rules of `acheron-dm`, and `store` for everything on disk.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedMutexGuard, watch};

use super::super::narrator::Narrator;
use super::super::store::{Campaigns, ChangedBy, Save};
use acheron_base::{Clock, Error, Result, blocking};
use acheron_dm::act::{Act, ActResult};
use acheron_dm::answer;
use acheron_dm::brief::Brief;
use acheron_dm::files::{self, ReadFiles as _};
use acheron_dm::init;
use acheron_dm::input::{Control, Input, begins, parse};
use acheron_dm::turn::ready;
use acheron_dm::world::Cartridge;
use acheron_vfs::Listing;

/// The game of one agent. It holds the campaigns on disk, the narrator, the clock, a [`CampaignTurn`] per campaign, and the
/// directories that the service shows.
pub struct GameSession {
    campaigns: Campaigns,
    pub(super) narrator: Arc<dyn Narrator>,
    clock: Clock,
    turns: Mutex<HashMap<String, Arc<CampaignTurn>>>,
    /// The directory of campaigns; a new campaign is added to it.
    pub(super) campaign_dirs: Arc<Listing>,
    /// The directory of cartridges. Their bytes are read when they are asked for.
    pub(super) cartridge_dirs: Arc<Listing>,
    /// The names of files in it, per cartridge.
    shown: Mutex<HashMap<String, Vec<String>>>,
}

/// The turn of one campaign. It holds the lock that a turn takes, whether one is under way, and the last refusal.
pub(super) struct CampaignTurn {
    /// Held by the writer of an input from its first byte until the turn is accepted.
    entry: Arc<tokio::sync::Mutex<()>>,
    /// Held by the turn that is played. Inputs that were written wait for it in their order.
    lock: Arc<tokio::sync::Mutex<()>>,
    busy: watch::Sender<bool>,
    /// Whether the turn waits for the narrator, and how that wait is ended.
    pub(super) asking: watch::Sender<bool>,
    pub(super) skip: Notify,
    refusal: Mutex<Option<Error>>,
    /// The directory of its session files; names are in memory, only their bytes are on disk.
    pub sessions: Arc<Listing>,
    /// The directory of the campaign's files that its players may read, and their paths.
    pub files: Arc<Listing>,
    listed: Mutex<Vec<String>>,
}

impl CampaignTurn {
    pub fn refusal(&self) -> Option<Error> {
        self.refusal.lock().clone()
    }

    /// Records that the last input was refused.
    pub fn refused(&self, error: &Error) {
        *self.refusal.lock() = Some(error.clone());
    }

    pub fn is_busy(&self) -> bool {
        *self.busy.borrow()
    }

    /// The right to send the next input. While it is held, every other input is refused.
    pub fn claim(&self, id: &str) -> Result<TurnClaim> {
        self.entry.clone().try_lock_owned().map_err(|_| in_a_turn(id))
    }

    /// Whether somebody is sending an input.
    pub fn is_entered(&self) -> bool {
        self.entry.try_lock().is_err()
    }

    /// The right to play, for one who does not wait for it.
    pub fn free(&self, id: &str) -> Result<TurnClaim> {
        self.lock.clone().try_lock_owned().map_err(|_| in_a_turn(id))
    }

    /// The right to play, after the turn that is under way.
    pub async fn queued(&self) -> TurnClaim {
        self.lock.clone().lock_owned().await
    }

    /// Whether the turn under way waits for the narrator.
    pub fn is_asking(&self) -> bool {
        *self.asking.borrow()
    }

    /// Waits until the turn waits for the narrator: it is accepted then, and only the telling is left.
    pub async fn accepted(&self) {
        // The sender lives as long as `self`, so this ends only when the value changes.
        let _ = self.asking.subscribe().wait_for(|asking| *asking).await;
    }

    /// Waits until no turn is under way.
    pub async fn quiet(&self) {
        // The sender lives as long as `self`, so this ends only when the value changes.
        let _ = self.busy.subscribe().wait_for(|busy| !busy).await;
    }
}

/// The right to send an input of a campaign, or to play it.
pub(super) type TurnClaim = OwnedMutexGuard<()>;

/// Clears the busy flag when the turn ends, in whatever way.
struct BusyGuard<'a>(&'a watch::Sender<bool>);

impl Drop for BusyGuard<'_> {
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

/// The refusal of an input while another one is played.
pub(super) fn in_a_turn(id: &str) -> Error {
    Error::busy(format!("campaign {id} is in the middle of a turn"))
}

/// A result that is only text.
pub(super) fn said(output: String) -> ActResult {
    ActResult { output, ..ActResult::default() }
}

impl GameSession {
    pub fn new(campaigns: Campaigns, narrator: Arc<dyn Narrator>, clock: Clock) -> Arc<GameSession> {
        let (campaign_dirs, cartridge_dirs) = (Arc::new(Listing::timed(&clock)), Arc::new(Listing::timed(&clock)));
        let (turns, shown) = (Mutex::default(), Mutex::default());
        Arc::new(GameSession { campaigns, narrator, clock, turns, campaign_dirs, cartridge_dirs, shown })
    }

    pub fn campaigns(&self) -> &Campaigns {
        &self.campaigns
    }

    pub fn now(&self) -> String {
        stamp(self.now_ms())
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(super) fn turn_of(&self, id: &str) -> Arc<CampaignTurn> {
        let mut turns = self.turns.lock();
        let fresh = || {
            Arc::new(CampaignTurn {
                entry: Arc::default(),
                lock: Arc::default(),
                busy: watch::Sender::new(false),
                asking: watch::Sender::new(false),
                skip: Notify::new(),
                refusal: Mutex::default(),
                sessions: Arc::new(Listing::timed(&self.clock)),
                files: Arc::new(Listing::timed(&self.clock)),
                listed: Mutex::default(),
            })
        };
        turns.entry(id.to_owned()).or_insert_with(fresh).clone()
    }

    /// The id of the named campaign, else of the active one.
    pub async fn meant(self: &Arc<Self>, named: Option<String>) -> Result<String> {
        if let Some(id) = named.filter(|id| !id.is_empty()) {
            return Ok(id.trim_start_matches("campaigns/").to_owned());
        }
        let session = self.clone();
        let active = blocking(move || session.campaigns.active()).await?;
        active.campaign.ok_or_else(|| Error::not_found("no campaign is active: make one with new_campaign"))
    }

    /// Plays one input: a move, or a control instruction.
    pub async fn play(self: &Arc<Self>, by: &ChangedBy, id: &str, input: &str) -> Result<ActResult> {
        let turn = self.turn_of(id);
        let (_sent, claim) = (turn.claim(id)?, turn.free(id)?);
        self.play_claimed(by, id, input, claim).await
    }

    /// Plays one input whose right to be played was claimed before.
    pub(super) async fn play_claimed(
        self: &Arc<Self>,
        by: &ChangedBy,
        id: &str,
        input: &str,
        _claim: TurnClaim,
    ) -> Result<ActResult> {
        let turn = self.turn_of(id);
        turn.busy.send_replace(true);
        let _over = BusyGuard(&turn.busy);
        // Until there is an answer, the answer is that there is none: a host that is killed cannot say so later.
        let _ = self.keep(id, Err(answer::unfinished(input))).await;
        let mut answer = self.answer(by, id, input).await;
        *turn.refusal.lock() = answer.as_ref().err().cloned();
        let kept = match &answer {
            Ok(done) => self.keep(id, Ok(done.output.clone())).await,
            Err(fault) => self.keep(id, Err(fault.clone())).await,
        };
        if let (Ok(done), Err(fault)) = (&mut answer, kept) {
            done.reports.push(format!("output does not show this answer: {}", fault.message));
        }
        answer
    }

    /// Keeps the answer to an input on disk, for `output`.
    async fn keep(self: &Arc<Self>, id: &str, answer: Result<String>) -> Result<()> {
        let (session, id) = (self.clone(), id.to_owned());
        blocking(move || {
            let save = session.campaigns.campaign(&id)?;
            match answer {
                Ok(output) => save.answered(&output, None),
                Err(fault) => save.answered(&session.refusal_shown(&id, &fault), Some(&fault)),
            }
        })
        .await
    }

    /// A refusal as `output` shows it, with the HUD if the campaign can be played.
    pub(super) fn refusal_shown(&self, id: &str, fault: &Error) -> String {
        let at = self.now();
        match self.campaigns.play(id) {
            Ok((save, world)) => answer::refused(Some(save.context(&world, &at)), fault),
            Err(_) => answer::refused(None, fault),
        }
    }

    /// Refuses an input by its first bytes. `false` while they do not show it.
    pub(super) async fn begins(self: &Arc<Self>, id: &str, text: String) -> Result<bool> {
        let (session, own) = (self.clone(), id.to_owned());
        let begun = blocking(move || {
            // A campaign that cannot be opened has no headers of its own; the move itself is refused with the reason.
            let extra = session.campaigns.play(&own).map(|(_, world)| world.extra.clone()).unwrap_or_default();
            begins(&text, &extra).map_err(|refusal| Error::invalid(refusal.render().trim_end()))
        })
        .await;
        if let Err(fault) = &begun {
            self.keep(id, Err(fault.clone())).await?;
        }
        begun
    }

    async fn answer(self: &Arc<Self>, by: &ChangedBy, id: &str, input: &str) -> Result<ActResult> {
        match parse(input, &[]) {
            Ok(Input::Control(control)) => self.control(by, id, control).await,
            _ => self.turn(by, id, input).await,
        }
    }

    async fn turn(self: &Arc<Self>, by: &ChangedBy, id: &str, input: &str) -> Result<ActResult> {
        let (session, own, text) = (self.clone(), id.to_owned(), input.to_owned());
        let brief = blocking(move || {
            let (save, world) = session.campaigns.play(&own)?;
            let at = session.now();
            Ok(Brief::new(&ready(save.context(&world, &at), &text)?, &text, &world))
        })
        .await?;
        let proposal = self.proposal(id, &brief).await;
        self.act(by, id, Act::Turn { input: input.trim_end_matches('\n').to_owned(), proposal }).await
    }

    /// Refuses a whole move by what the campaign knows, before anything is played.
    pub(super) async fn admits(self: &Arc<Self>, id: &str, text: String) -> Result<bool> {
        let (session, own) = (self.clone(), id.to_owned());
        let admitted = blocking(move || {
            let (save, world) = session.campaigns.play(&own)?;
            let at = session.now();
            ready(save.context(&world, &at), &text).map(|_| true)
        })
        .await;
        if let Err(fault) = &admitted {
            self.keep(id, Err(fault.clone())).await?;
        }
        admitted
    }

    /// Plays one act on one campaign.
    pub async fn act(self: &Arc<Self>, by: &ChangedBy, id: &str, act: Act) -> Result<ActResult> {
        let (session, by, id) = (self.clone(), by.clone(), id.to_owned());
        blocking(move || {
            let (save, world) = session.campaigns.play(&id)?;
            let done = save.act(&by, &world, &act, &session.now())?;
            session.list(&save)?;
            session.show_cartridge(&world.id);
            // The campaign has moved on: the refusal of an earlier input is no longer the last answer.
            *session.turn_of(&id).refusal.lock() = None;
            Ok(done)
        })
        .await
    }

    async fn control(self: &Arc<Self>, by: &ChangedBy, id: &str, control: Control) -> Result<ActResult> {
        match control {
            Control::Continue => self.act(by, id, Act::Load).await,
            Control::PlayOn => self.act(by, id, Act::PlayOn).await,
            Control::Initialize => {
                let (save, world) = self.open(id).await?;
                blocking(move || init::asked(&save, &world)).await.map(said)
            }
            Control::SwitchCampaign(to) => self.switch(by, &to).await,
            Control::NewCampaign(new) => {
                let (_, world) = self.open(id).await?;
                self.new_campaign(by, &new, &world.id, None).await
            }
        }
    }

    pub async fn open(self: &Arc<Self>, id: &str) -> Result<(Save, Arc<Cartridge>)> {
        let (session, id) = (self.clone(), id.to_owned());
        blocking(move || session.campaigns.play(&id)).await
    }

    pub async fn new_campaign(
        self: &Arc<Self>,
        by: &ChangedBy,
        id: &str,
        cartridge: &str,
        seed: Option<u64>,
    ) -> Result<ActResult> {
        let (session, by, id, cartridge) = (self.clone(), by.clone(), id.to_owned(), cartridge.to_owned());
        let seed = seed.unwrap_or_else(|| self.clock.now_ms());
        blocking(move || {
            let done = said(format!("campaign {id} is made and active; send <initialize>\n"));
            session.campaigns.new_campaign(&by, &id, &cartridge, seed, &session.now(), &done)?;
            session.show(&id);
            Ok(done)
        })
        .await
    }

    pub async fn switch(self: &Arc<Self>, by: &ChangedBy, id: &str) -> Result<ActResult> {
        let (session, by, id) = (self.clone(), by.clone(), id.to_owned());
        blocking(move || {
            let done = said(format!("campaign {id} is active\n"));
            session.campaigns.switch(&by, &id, &done)?;
            Ok(done)
        })
        .await
    }

    /// Adds the session files that are new to their directory, and shows the files of the campaign if their names changed.
    fn list(self: &Arc<Self>, save: &Save) -> Result<()> {
        let turn = self.turn_of(&save.id);
        let sessions = &turn.sessions;
        let known = sessions.names();
        let paths = save.paths()?;
        for name in paths.iter().filter_map(|path| path.strip_prefix("sessions/")) {
            if !known.iter().any(|own| own == name) {
                sessions.put(name, super::files::session_page(self, &save.id, name));
            }
        }
        let shown: Vec<String> = paths.iter().filter(|path| files::shown(path)).cloned().collect();
        let mut listed = turn.listed.lock();
        if *listed != shown {
            super::files::show_pages(self, &save.id, &shown, &turn.files);
            *listed = shown;
        }
        Ok(())
    }

    /// Shows the directory of a cartridge, if its files have other names than before.
    pub(super) fn show_cartridge(self: &Arc<Self>, id: &str) {
        let Ok(paths) = self.campaigns.cartridge_paths(id) else { return };
        let mut shown = self.shown.lock();
        if shown.get(id) != Some(&paths) {
            self.cartridge_dirs.put(id, super::files::cartridge(self, id, &paths));
            shown.insert(id.to_owned(), paths);
        }
    }

    /// Shows the directory of a campaign under `campaigns/`.
    pub(super) fn show(self: &Arc<Self>, id: &str) {
        self.campaign_dirs.put(id, super::files::campaign(self, id));
        if let Ok(save) = self.campaigns.campaign(id) {
            // A campaign that cannot be listed can still be opened; opening it reports the reason.
            let _ = self.list(&save);
        }
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
