//! Puts calls together that arrive in fragments.
//!
//! Servers differ. OpenAI numbers the calls and sends an id and a name with the first fragment of each; Ollama has numbered
//! every call 0, others send no number, no id, or both with every fragment. A fragment begins a call if its number is new, if
//! it has another id than the call of that number, or if it names a tool while the arguments of that call are complete.

use std::collections::HashMap;

use super::native::NativeCall;

/// A part of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallFragment<'a> {
    /// The provider's number of the call; without one it belongs to the last call.
    pub number: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

#[derive(Debug, Default)]
pub struct CallAssembly {
    calls: Vec<(NativeCall, ObjectEnd)>,
    /// The number of each call, as far as it has one.
    numbers: Vec<Option<u64>>,
    /// The last call of each number.
    numbered: HashMap<u64, usize>,
}

impl CallAssembly {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub fn add(&mut self, fragment: CallFragment<'_>) {
        let CallFragment { number, id, name, arguments } = fragment;
        let found = match number {
            Some(number) => self.numbered.get(&number).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let same = |(call, end): &(NativeCall, ObjectEnd)| {
            let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
            let another = !name.is_empty() && !arguments.is_empty() && end.is_reached();
            !other_id && !another
        };
        let at = match found.filter(|at| same(&self.calls[*at])) {
            Some(at) => at,
            None => {
                self.calls.push(Default::default());
                self.numbers.push(number);
                let at = self.calls.len() - 1;
                if let Some(number) = number {
                    self.numbered.insert(number, at);
                }
                at
            }
        };
        let (call, end) = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        // Some servers repeat the name with every fragment.
        if call.name != name {
            call.name.push_str(name);
        }
        call.arguments.push_str(arguments);
        end.feed(arguments);
    }

    /// A whole call. It takes the place of the fragments of its number.
    pub fn whole(&mut self, fragment: CallFragment<'_>) {
        let CallFragment { number, id, name, arguments } = fragment;
        let mut end = ObjectEnd::default();
        end.feed(arguments);
        let call = NativeCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
        let same = || self.calls.iter().rposition(|(call, _)| number.is_none() && !id.is_empty() && call.id == id);
        match number.and_then(|number| self.numbered.get(&number).copied()).or_else(same) {
            Some(at) => self.calls[at] = (call, end),
            None => {
                if let Some(number) = number {
                    self.numbered.insert(number, self.calls.len());
                }
                self.calls.push((call, end));
                self.numbers.push(number);
            }
        }
    }

    /// The calls in the order of their numbers; in which they began, where not all have one.
    pub fn calls(self) -> Vec<NativeCall> {
        let said = |call: &NativeCall| !(call.name.is_empty() && call.arguments.is_empty());
        let mut calls: Vec<_> = self.numbers.iter().zip(self.calls.into_iter().map(|(call, _)| call)).collect();
        if self.numbers.iter().all(Option::is_some) {
            calls.sort_by_key(|(number, _)| **number); // stable: some servers number every call 0
        }
        calls.into_iter().map(|(_, call)| call).filter(said).collect()
    }
}

/// Follows the text of a JSON object until its end; it costs the same however the text is cut.
#[derive(Debug, Default)]
struct ObjectEnd {
    depth: u64,
    in_string: bool,
    escaped: bool,
    reached: bool,
}

impl ObjectEnd {
    fn is_reached(&self) -> bool {
        self.reached
    }

    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => (),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.reached |= self.depth == 0;
                }
                _ => (),
            }
        }
    }
}

#[cfg(test)]
mod tests;
