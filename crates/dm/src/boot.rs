//! Stage C0: reads the least that a turn needs, sums it up in at most twelve lines, and says whether the campaign can be played.

use serde_json::Value;

use crate::files::{ReadFiles, need};
use crate::pack;
use crate::pc::Pc;
use crate::session;
use crate::state::State;
use crate::world::Cartridge;
use crate::{json, md};
use acheron_base::{Error, Result};

pub const BOOTSTRAP: &str = "sessions/session_0000_bootstrap.md";
const PREFERENCES: [&str; 7] =
    ["STYLE", "DIFFICULTY", "RULES", "PACING", "COMBAT_FREQ", "MYSTERY_VS_ACTION", "LINES_VEILS"];

/// The preference that is about safety.
const VEILS: &str = "LINES_VEILS";

/// The facts that a turn starts from.
#[derive(Clone, Debug)]
pub struct Boot {
    pub session: String,
    pub snapshot: String,
    pub panel: Value,
    pub pack: Value,
    pub pc: Pc,
    pub style: String,
    /// At most [`MOST_PREFERENCES`], as the profile has them.
    pub preferences: Vec<(String, String)>,
    /// The preferences beyond those, which are not read.
    pub unread: usize,
    pub state: State,
    /// Where the panel and the sessions differed; the panel here is already the sessions'.
    pub corrections: Vec<String>,
}

/// The file that `CURRENT_SESSION.md` points to.
pub fn current(files: &dyn ReadFiles) -> Result<String> {
    let text = need(files, "sessions/CURRENT_SESSION.md")?;
    let named = text.split_whitespace().map(|word| word.trim_matches('`')).find(|word| word.contains("session_"));
    let path = named.ok_or_else(|| Error::invalid("sessions/CURRENT_SESSION.md names no session"))?;
    // An origin's pointer may begin at the root or at the campaign.
    let at = path.rfind("session_").unwrap_or(0);
    Ok(format!("sessions/{}", &path[at..]))
}

/// The most preferences that are read.
pub const MOST_PREFERENCES: usize = 8;

/// The `KEY=VALUE` lines of a profile.
pub fn preferences(profile: &str) -> impl Iterator<Item = (&str, &str)> {
    profile.lines().filter_map(|line| {
        let (key, value) = line.trim().trim_start_matches("- ").split_once('=')?;
        let named = !key.is_empty() && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        named.then(|| (key, value.trim()))
    })
}

/// The preference of that name in `PLAYER_PROFILE.md`.
fn preference<'a>(profile: &'a str, key: &str) -> &'a str {
    let line =
        profile.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key)?.strip_prefix('='));
    line.map(str::trim).unwrap_or("-")
}

/// Why the campaign cannot be played yet, if it cannot.
pub fn uninitialised(files: &dyn ReadFiles) -> Result<Option<&'static str>> {
    if current(files)? == BOOTSTRAP {
        return Ok(Some("not initialised: the bootstrap session is still current; send <initialize>"));
    }
    let profile = files.read("PLAYER_PROFILE.md")?.unwrap_or_default();
    let blank = PREFERENCES.iter().all(|key| matches!(preference(&profile, key), "-" | ""));
    Ok(blank.then_some("not initialised: no preference is set; send <initialize>"))
}

pub fn read(files: &dyn ReadFiles, world: &Cartridge) -> Result<Boot> {
    let session = current(files)?;
    let mut panel = json::read("STATE_PANEL.json", &need(files, "STATE_PANEL.json")?)?;
    let pack = json::read("HOT_PACK.json", &need(files, "HOT_PACK.json")?)?;
    let pc = Pc::read(&files.read("characters/PCs/pc_current.md")?.unwrap_or_default());
    let snapshot = match files.read(&session::snapshot_path(&session))? {
        Some(text) => text,
        // An origin's campaign has none yet.
        None => session::snapshot(&need(files, &session)?),
    };
    let mut corrections = Vec::new();
    let last = session::turns(&snapshot).pop().unwrap_or_default();
    let agreed = session::field(last, "Panel").is_none_or(|sum| sum == crate::delta::apply::sum(&json::render(&panel)));
    if !agreed && let Some(told) = told(files)? {
        corrections = session::conflicts(&panel, &told);
        for (key, value) in told.as_object().into_iter().flatten() {
            panel[key] = value.clone();
        }
    }
    let profile = files.read("PLAYER_PROFILE.md")?.unwrap_or_default();
    let style = preference(&profile, "STYLE").to_owned();
    let mut preferences: Vec<(String, String)> =
        preferences(&profile).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let unread = preferences.len().saturating_sub(MOST_PREFERENCES);
    preferences.truncate(MOST_PREFERENCES);
    let state = State::read(&panel, world);
    Ok(Boot { session, snapshot, panel, pack, pc, style, preferences, unread, state, corrections })
}

/// The panel that all sessions together tell of.
pub fn told(files: &dyn ReadFiles) -> Result<Option<Value>> {
    let mut texts = Vec::new();
    for path in files.paths()?.into_iter().filter(|path| session::is_session(path)) {
        texts.push(need(files, &path)?);
    }
    session::fold(texts.iter().map(String::as_str))
}

/// What always holds in a world, and which features it does without.
fn laws(world: &Cartridge) -> Option<String> {
    let mut parts: Vec<&str> = world.invariants.iter().map(|own| own.text.as_str()).collect();
    let off: Vec<&str> = world.flags.iter().filter(|(_, on)| !**on).map(|(name, _)| name.as_str()).collect();
    let off = format!("off: {}", off.join(", "));
    if !off.ends_with(": ") {
        parts.push(&off);
    }
    (!parts.is_empty()).then(|| format!("always: {}", md::clip(&parts.join(" · "), 600)))
}

impl Boot {
    /// At most twelve lines.
    pub fn summary(&self, world: &Cartridge) -> String {
        let state = &self.state;
        let list = |entries: Vec<String>| {
            if entries.is_empty() { "-".to_owned() } else { md::clip(&entries.join(" · "), 160) }
        };
        let levels = state.indicators.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let clocks = state
            .shown_clocks(world)
            .map(|clock| format!("{} {}/{}", clock.id, clock.filled, clock.segments))
            .collect();
        let quests = state
            .quests
            .iter()
            .filter(|(_, quest)| quest.status == "active")
            .map(|(handle, _)| world.name(handle).to_owned());
        let people = super::hud::people(state, world).map(|npc| npc.name.clone());
        let people = people.chain(super::hud::brought_here(state)).collect();
        let last = session::turns(&self.snapshot).pop().unwrap_or_default();
        let decision = last.lines().next().unwrap_or("-").trim_start_matches(['#', ' ']).to_owned();
        let mut lines = vec![
            self.asked(),
            format!("time: {}", state.time),
            format!("place: {} ({})", world.name(&state.location), state.location),
            format!("indicators: {}", list(levels)),
            format!("clocks: {}", list(clocks)),
            format!("quests: {}", list(quests.collect())),
            format!("people: {}", list(people)),
            format!("character: {} · {}", self.pc.name, md::clip(&self.pc.drive, 80))
                .trim_end_matches(" · ")
                .to_owned(),
            md::clip(&decision, 160),
            format!("resolution: {}", md::clip(session::field(last, "Resolution").unwrap_or("-"), 160)),
        ];
        if let Some(line) = laws(world) {
            lines.push(line);
        }
        let spine = pack::spine(&self.pack);
        lines.push(format!("spine: {}", md::clip(&spine.join(" / "), 400)));
        lines.truncate(12);
        lines.join("\n") + "\n"
    }

    /// The preferences on one line, the limits of the players first: they are for their safety.
    fn asked(&self) -> String {
        let mut own: Vec<&(String, String)> = self.preferences.iter().filter(|(_, value)| value != "-").collect();
        own.sort_by_key(|(key, _)| key != VEILS);
        let mut shown: Vec<String> = own.iter().map(|(key, value)| format!("{key}={}", md::clip(value, 200))).collect();
        if self.unread > 0 {
            shown.push(format!("{} more are not read: a profile has at most {MOST_PREFERENCES}", self.unread));
        }
        format!("preferences: {}", if shown.is_empty() { "-".to_owned() } else { shown.join(" · ") })
    }

    /// What the players want kept out of the story, or off stage.
    pub fn lines_veils(&self) -> &str {
        self.preferences.iter().find(|(key, _)| key == VEILS).map_or("-", |(_, value)| value.as_str())
    }

    /// Whether the guide is still to be shown.
    pub fn guide(&self) -> bool {
        !matches!(&self.pack["context"]["guide_shown"], Value::Number(n) if n.as_i64() == Some(1))
            && self.pack["context"]["guide_shown"] != "1"
    }
}
