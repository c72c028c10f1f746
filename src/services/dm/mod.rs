//! The game master's kernel: rules that code keeps, so that a model may only propose.
//!
//! Everything under here but `store` and `service` is pure: text and data in, text and data out. A campaign is a folder of plain
//! files, each change of it is an act in a journal, and the journal played again leaves the same bytes.

pub mod act;
pub mod boot;
pub mod check;
pub mod continuity;
pub mod delta;
pub mod dice;
pub mod engine;
pub mod fetch;
pub mod hotstart;
pub mod hud;
pub mod index;
pub mod init;
pub mod input;
pub mod json;
pub mod lint;
pub mod load;
pub mod md;
pub mod mechanics;
pub mod menu;
pub mod narrator;
pub mod pack;
pub mod pc;
pub mod play;
pub mod proposal;
pub mod refs;
pub mod render;
pub mod rule;
pub mod service;
pub mod session;
pub mod shelf;
pub mod state;
pub mod store;
pub mod time;
pub mod tools;
pub mod turn;
pub mod world;

#[cfg(test)]
mod tests;
