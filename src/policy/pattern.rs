//! Path patterns: `*` matches part of one name, `**` any number of names, `/agents/self` the agent of the rule.

/// A pattern, split into names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    /// `**`
    Any,
    /// A name, with or without `*`.
    Name(String),
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err("must begin with /".to_owned());
        };
        if text.len() > 4096 || text.contains('\0') {
            return Err("is not a path".to_owned());
        }
        let mut parts = Vec::new();
        for name in rest.strip_suffix('/').unwrap_or(rest).split('/') {
            match name {
                "" if rest.is_empty() => {}
                "" => return Err("has a doubled slash".to_owned()),
                "." | ".." => return Err(format!("cannot contain {name}")),
                "**" if parts.last() == Some(&PatternPart::Any) => {}
                "**" => parts.push(PatternPart::Any),
                name if name.contains("**") => {
                    return Err(format!("** must stand alone between slashes, not in {name}"));
                }
                name => parts.push(PatternPart::Name(name.to_owned())),
            }
        }
        Ok(Pattern { parts })
    }

    /// Replaces `/agents/self` by the agent `id`.
    pub fn owned_by(mut self, id: &str) -> Pattern {
        if let [PatternPart::Name(agents), PatternPart::Name(own), ..] = &mut self.parts[..]
            && agents == "agents"
            && own == "self"
        {
            *own = id.to_owned();
        }
        self
    }

    pub fn matches(&self, names: &[&str]) -> bool {
        self.after(names)[self.parts.len()]
    }

    /// Whether something below `names` could match.
    pub fn leads_through(&self, names: &[&str]) -> bool {
        self.after(names)[..self.parts.len()].contains(&true)
    }

    /// Whether everything at and below `names` matches.
    pub fn covers(&self, names: &[&str]) -> bool {
        self.parts.last() == Some(&PatternPart::Any) && self.after(names)[self.parts.len() - 1]
    }

    /// The names that the pattern adds below `names`, if it matches one subtree only; `None` if it matches several.
    pub fn place_below(&self, names: &[&str]) -> Option<Vec<&str>> {
        let after = self.after(names);
        let mut reached = (0..self.parts.len()).filter(|position| after[*position]);
        let (Some(position), None) = (reached.next(), reached.next()) else { return None };
        let rest = &self.parts[position..];
        let rest = rest.strip_suffix(&[PatternPart::Any]).unwrap_or(rest);
        let plain = rest.iter().map(|part| match part {
            PatternPart::Name(name) if !name.contains('*') => Some(name.as_str()),
            _ => None,
        });
        plain.collect()
    }

    /// The positions of the pattern that these names can reach, in one pass for any number of `**`.
    fn after(&self, names: &[&str]) -> Vec<bool> {
        let mut at = vec![false; self.parts.len() + 1];
        at[0] = true;
        self.skip(&mut at);
        for name in names {
            let mut next = vec![false; at.len()];
            for (position, part) in self.parts.iter().enumerate().filter(|(position, _)| at[*position]) {
                match part {
                    PatternPart::Any => next[position] = true,
                    PatternPart::Name(pattern) => next[position + 1] |= star(pattern, name),
                }
            }
            self.skip(&mut next);
            at = next;
        }
        at
    }

    /// `**` may match zero names.
    fn skip(&self, at: &mut [bool]) {
        for position in 0..self.parts.len() {
            if at[position] && self.parts[position] == PatternPart::Any {
                at[position + 1] = true;
            }
        }
    }
}

/// Matches one name against a pattern with `*`. Linear, apart from retries of the last star.
fn star(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n, mut again) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            again = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((star, from)) = again {
            again = Some((star, from + 1));
            (p, n) = (star + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
