//! The rules of the game master. The rules are code, so a model can only propose. "Kernel" in this crate means these rules,
//! never the kernel of Linux; a turn runs through the stages C0 ([`boot`]), C1 ([`input`]), C2 ([`fetch`]),
//! C3 ([`play`]), C4 ([`render`]), C5 ([`menu`]), C6 ([`hud`]) and C7 ([`delta`]).
//!
//! Data in, data out: a campaign is a set of text files ([`files::Files`], or anything that implements
//! [`files::ReadFiles`]), an input is a line of text, the time and the seed of the dice are arguments. The result is a list of
//! changes to files and a text for the player. Each change of a campaign is an [`act::Act`] in a journal; replaying the
//! journal ([`campaign::replay`]) gives the same bytes.
//!
//! Any crate may use it. It uses the error of `acheron-base` and nothing else of ours: no tree, no host, no clock, no network,
//! no files of the machine. The pages of the engine, the cartridges and the template of a campaign are embedded.

#![forbid(unsafe_code)]

pub mod act;
pub mod adopt;
pub mod answer;
pub mod authored;
pub mod boot;
pub mod brief;
pub mod campaign;
pub mod campaign_pages;
pub mod check;
pub mod continuity;
pub mod deeds;
pub mod delta;
pub mod dice;
pub mod ending;
pub mod engine;
pub mod fetch;
pub mod files;
pub mod fold;
pub mod grammar;
pub mod hotstart;
pub mod hud;
pub mod index;
pub mod init;
pub mod input;
pub mod inspect;
pub mod json;
pub mod known;
pub mod lint;
pub mod load;
pub mod md;
pub mod mechanics;
pub mod memory;
pub mod menu;
pub mod pack;
pub mod panel_rules;
pub mod pc;
pub mod play;
pub mod players;
pub mod presence;
pub mod proposal;
pub mod prose;
pub mod questions;
pub mod refs;
pub mod render;
pub mod rule;
pub mod session;
pub mod shipped;
pub mod state;
pub mod story;
pub mod telling;
pub mod time;
pub mod tools;
pub mod turn;
pub mod verbs;
pub mod water;
pub mod world;

#[cfg(test)]
mod tests;
