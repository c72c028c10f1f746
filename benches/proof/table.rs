//! What was measured, beside what was aimed at: as a table, and as JSON.

use serde_json::{Value, json};

use super::method::Compared;

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    /// These very words, for what is counted.
    Exactly(&'static str),
    /// Only reported.
    Told,
}

#[derive(Clone, Debug)]
pub enum Measured {
    Number(f64, &'static str),
    Words(String),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    pub what: String,
    pub measured: Measured,
    pub aim: Aim,
    pub noise: Option<f64>,
    pub detail: String,
    /// Why the aim is missed, where that was found out; said only when it is.
    pub because: &'static str,
}

impl Figure {
    pub fn new(what: impl Into<String>, measured: Measured, aim: Aim) -> Figure {
        Figure { what: what.into(), measured, aim, noise: None, detail: String::new(), because: "" }
    }

    pub fn number(what: impl Into<String>, number: f64, unit: &'static str, aim: Aim) -> Figure {
        Figure::new(what, Measured::Number(number, unit), aim)
    }

    pub fn words(what: impl Into<String>, words: impl Into<String>, aim: Aim) -> Figure {
        Figure::new(what, Measured::Words(words.into()), aim)
    }

    /// A ratio, with its noise and the times that it is made of.
    pub fn ratio(what: impl Into<String>, compared: Compared, aim: Aim) -> Figure {
        let detail = format!("{} / {}", time(compared.ours), time(compared.base));
        let noise = Some(compared.noise);
        Figure { noise, detail, ..Figure::number(what, compared.ratio, "x", aim) }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Figure {
        self.detail = detail.into();
        self
    }

    pub fn because(mut self, because: &'static str) -> Figure {
        self.because = because;
        self
    }

    pub fn met(&self) -> bool {
        match (&self.measured, self.aim) {
            (_, Aim::Told) => true,
            (Measured::Number(number, _), Aim::AtMost(most)) => *number <= most,
            (Measured::Number(number, _), Aim::Below(limit)) => *number < limit,
            (Measured::Number(number, _), Aim::AtLeast(least)) => *number >= least,
            (Measured::Words(words), Aim::Exactly(wanted)) => words == wanted,
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match &self.measured {
            Measured::Number(number, "x") => format!("{number:.2}"),
            Measured::Number(number, unit) if number.fract() == 0.0 || *number >= 100.0 => {
                format!("{number:.0} {unit}").trim().to_owned()
            }
            Measured::Number(number, unit) => format!("{number:.2} {unit}").trim().to_owned(),
            Measured::Words(words) => words.clone(),
        }
    }

    fn mark(&self) -> &'static str {
        match self.aim {
            Aim::Told => "",
            _ if self.met() => "yes",
            _ => "**no**",
        }
    }
}

impl Aim {
    fn shown(self) -> String {
        match self {
            Aim::AtMost(most) => format!("≤ {most}"),
            Aim::Below(limit) => format!("< {limit}"),
            Aim::AtLeast(least) => format!("≥ {least}"),
            Aim::Exactly(words) => words.to_owned(),
            Aim::Told => String::new(),
        }
    }
}

/// Seconds, in the unit that reads best.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// The table, in Markdown; a line that misses its aim has the reason beside its figure.
pub fn markdown(figures: &[Figure]) -> String {
    let mut lines = vec![
        "| row | measured | aim | met | A/A | detail |".to_owned(), //
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for figure in figures {
        let noise = figure.noise.map_or_else(String::new, |noise| format!("{noise:.3}"));
        let why = match (figure.met(), figure.because) {
            (true, _) | (_, "") => String::new(),
            (false, because) => format!(" — {because}"),
        };
        let (shown, aim, mark, detail) = (figure.shown(), figure.aim.shown(), figure.mark(), &figure.detail);
        lines.push(format!("| {} | {shown} | {aim} | {mark} | {noise} | {detail}{why} |", figure.what));
    }
    lines.join("\n") + "\n"
}

pub fn json(figures: &[Figure]) -> Value {
    let lines: Vec<Value> = figures
        .iter()
        .map(|figure| {
            let (value, unit) = match &figure.measured {
                Measured::Number(number, unit) => (json!(number), *unit),
                Measured::Words(words) => (json!(words), ""),
            };
            json!({
                "row": figure.what,
                "measured": value,
                "unit": unit,
                "aim": figure.aim.shown(),
                "met": figure.met(),
                "noise": figure.noise,
                "detail": figure.detail,
                "because": if figure.met() { "" } else { figure.because },
            })
        })
        .collect();
    Value::Array(lines)
}
