//! The reading side: lines become a verdict. Pure; the caller reads the lines.

use std::fmt;

use serde_json::Value;

use super::Hash;
use super::key::{AuditKey, Head, Seam, has_signed_checkpoint, has_signed_seam};

/// What is the matter with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every line follows from the one before, and the last is the last that was written.
    Intact {
        /// The number of lines.
        lines: u64,
        /// The last line.
        head: Head,
        /// Where the retention has cut it.
        cut: Option<Seam>,
    },
    /// The line with this number does not follow from the one before.
    Broken {
        /// Its number.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Lines after this one were written and are gone.
    Truncated {
        /// The last line that is there.
        after: u64,
        /// The last line that was written.
        written: u64,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Intact { lines, head, cut } => {
                write!(f, "intact: {lines} lines up to {} ({})", head.seq, head.hash)?;
                match cut {
                    Some(cut) => write!(f, "; cut by retention after {} at {}", cut.cut.seq, cut.at_ms),
                    None => Ok(()),
                }
            }
            Verdict::Broken { seq, why } => write!(f, "broken at {seq}: {why}"),
            Verdict::Truncated { after, written } => {
                write!(f, "truncated after {after}: lines up to {written} were written")
            }
        }
    }
}

/// A verification under way: takes the lines in order.
pub struct Verification {
    before: Head,
    cut: Option<Seam>,
    /// The public key in force: the first line names it, and a line of kind `key` names another.
    public: Option<String>,
    lines: u64,
    /// Lines that are known from elsewhere, in order.
    anchors: Vec<Head>,
    broken: Option<Verdict>,
}

impl Verification {
    /// Begins with the first line, or after the last seam. `public` is the key of this host, if it is known.
    pub fn new(cut: Option<Seam>, public: Option<String>, mut anchors: Vec<Head>) -> Verification {
        let before = cut.as_ref().map_or(Head { seq: 0, hash: Hash::default() }, |seam| seam.cut);
        anchors.sort_by_key(|anchor| anchor.seq);
        let mut verification = Verification { before, cut, public: None, lines: 0, anchors, broken: None };
        if let Some(seam) = &verification.cut {
            let signed = public.as_ref().is_none_or(|public| has_signed_seam(public, seam));
            if !signed {
                verification.fail(before.seq, "the signature of the cut is not that of this host");
            }
            verification.public = public;
        }
        verification
    }

    fn fail(&mut self, seq: u64, why: impl Into<String>) {
        if self.broken.is_none() {
            self.broken = Some(Verdict::Broken { seq, why: why.into() });
        }
    }

    /// Whether the verdict is known already.
    pub fn is_decided(&self) -> bool {
        self.broken.is_some()
    }

    /// Takes the next line, without its end.
    pub fn take(&mut self, line: &str) {
        if self.is_decided() {
            return;
        }
        let wanted = self.before.seq + 1;
        let Some((seq, prev)) = links(line) else {
            return self.fail(wanted, "it is not a line of the audit");
        };
        if seq != wanted {
            return self.fail(wanted, format!("line {seq} stands in its place"));
        }
        if prev != self.before.hash {
            return self.fail(seq, "it does not follow from the line before: one of the two was changed");
        }
        if let Err(why) = self.check_kind(line, seq, &prev) {
            return self.fail(seq, why);
        }
        self.before = Head { seq, hash: Hash::of(line.as_bytes()) };
        self.lines += 1;
        self.compare_anchors();
    }

    /// Keys and checkpoints are looked at; the other kinds only follow.
    fn check_kind(&mut self, line: &str, seq: u64, prev: &Hash) -> Result<(), String> {
        let special = [r#","kind":"checkpoint""#, r#","kind":"key""#].iter().any(|kind| line.contains(kind));
        if !special {
            return match (&self.public, seq) {
                (None, 1) => Err("the first line does not name a key".to_owned()),
                _ => Ok(()),
            };
        }
        let line: Value = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        match text("kind") {
            "key" => self.public = Some(text("public").to_owned()),
            "checkpoint" => {
                let public = self.public.as_deref().unwrap_or_default();
                if !has_signed_checkpoint(public, seq, prev, text("signature")) {
                    return Err("its signature is not that of this host".to_owned());
                }
            }
            _ => (),
        }
        Ok(())
    }

    fn compare_anchors(&mut self) {
        let Head { seq, hash } = self.before;
        let differs = self.anchors.iter().any(|anchor| anchor.seq == seq && anchor.hash != hash);
        if differs {
            self.fail(seq, "it is not the line that was anchored elsewhere");
        }
    }

    /// The verdict after the last line. `head` is the head that was kept apart, with its code; without a key the code cannot
    /// be checked.
    pub fn end(mut self, head: Option<(Head, &[u8])>, key: Option<&AuditKey>) -> Verdict {
        if let (Some((head, code)), Some(key)) = (head, key)
            && !key.is_authentic(&head, code)
        {
            self.fail(head.seq, "the head of the log was forged");
        }
        if let Some(broken) = self.broken {
            return broken;
        }
        let last = self.before;
        let anchored = self.anchors.last().map_or(0, |anchor| anchor.seq);
        let written = head.map_or(0, |(head, _)| head.seq).max(anchored);
        if written > last.seq {
            return Verdict::Truncated { after: last.seq, written };
        }
        match head {
            Some((head, _)) if head != last => Verdict::Broken {
                seq: last.seq,
                why: format!("the log should end with line {} ({})", head.seq, head.hash),
            },
            _ => Verdict::Intact { lines: self.lines, head: last, cut: self.cut },
        }
    }
}

/// The number and the link of a line, which come first and have one form.
fn links(line: &str) -> Option<(u64, Hash)> {
    let rest = line.strip_prefix(r#"{"seq":"#)?;
    let (seq, rest) = rest.split_once(r#","prev":""#)?;
    let (prev, rest) = rest.split_at_checked(64)?;
    let well_formed = rest.starts_with(r#"","at_ms":"#) && line.ends_with('}') && !line.contains('\n');
    let number = seq.parse().ok().filter(|number: &u64| number.to_string() == seq)?;
    well_formed.then_some((number, prev.parse().ok()?))
}

#[cfg(test)]
mod tests;
