//! The page in a real browser: Chromium without a screen, driven by `browser.mjs`.
//!
//! The scenarios are in `scenarios.mjs`; here is what they are run against: a mounted host, its listener, and a model that says
//! what it is told, piece by piece. A scenario asks for something on its standard output and is answered on its standard input.

#[path = "../house/common.rs"]
#[allow(dead_code)]
mod common;
mod driver;
mod logins;
mod model;
mod modules;
mod panels;
#[path = "../house/served.rs"]
#[allow(dead_code)]
mod served;
mod size;
#[path = "../house/test_host.rs"]
#[allow(dead_code)]
mod test_host;
