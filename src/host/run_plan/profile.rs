//! What is known of an agent program: a data file of the library, `programs/<name>.json`, one per program. A user's own files
//! stand in `$XDG_CONFIG_HOME/acheron/programs` and win.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use acheron_base::{Error, Result};

/// How a program is run behind the gateway. In every text, `{gateway}`, `{key}`, `{model}` and `{home}` stand for the address
/// of the gateway, the placeholder of a key, the name of the model and the home directory inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramProfile {
    pub about: String,
    /// The version with which this was tried.
    pub tried_with: String,
    /// How it is installed.
    pub install: String,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Arguments before those of the user.
    pub args: Vec<String>,
    /// Arguments before those of the user, unless the user gives the first of them too.
    pub unless_given: Vec<Vec<String>>,
    /// Settings in its home, by their path there: keys are added, those that are there stay.
    pub settings: BTreeMap<String, Value>,
    /// The model where neither the mountspec nor `--model` names one: `anthropic:claude-opus-5-5`.
    pub model: Option<String>,
    /// Subcommands and flags that make it read its standard input to the end before it begins: it gets none, unless it is
    /// a pipe or a file.
    pub waits_for_input: Vec<String>,
    /// How it is run with a log-in of its own, where there is no key for the gateway.
    pub login: Option<LoginProfile>,
}

/// How a program is run with a log-in of its own, which lasts in its home. This takes the place of all that leads it to the
/// gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginProfile {
    /// The hosts of its provider, as in `sandbox.network` of the mountspec.
    pub hosts: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub args: Vec<String>,
    pub unless_given: Vec<Vec<String>>,
    pub settings: BTreeMap<String, Value>,
}

/// What the texts of a profile are filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileValues {
    pub gateway: String,
    pub key: String,
    pub model: String,
    pub home: String,
}

impl ProfileValues {
    pub fn fill(&self, text: &str) -> String {
        let pairs =
            [("{gateway}", &self.gateway), ("{key}", &self.key), ("{model}", &self.model), ("{home}", &self.home)];
        pairs.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(all) => all.iter().map(|value| self.fill_all(value)).collect(),
            Value::Object(all) => all.iter().map(|(key, value)| (self.fill(key), self.fill_all(value))).collect(),
            other => other.clone(),
        }
    }
}

impl ProgramProfile {
    /// Parses the file of a profile.
    pub fn parse(name: &str, text: &str) -> Result<ProgramProfile> {
        serde_json::from_str(text).map_err(|err| Error::invalid(format!("the profile of {name}: {err}")))
    }

    /// For a program that nobody has described: most read one of these.
    pub fn unknown() -> ProgramProfile {
        let env = [
            ("OPENAI_BASE_URL", "{gateway}/v1"),
            ("OPENAI_API_BASE", "{gateway}/v1"),
            ("OPENAI_API_KEY", "{key}"),
            ("ANTHROPIC_BASE_URL", "{gateway}"),
            ("ANTHROPIC_API_KEY", "{key}"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ProgramProfile { env: env.into(), ..ProgramProfile::default() }
    }

    /// The profile for a program that uses a log-in of its own.
    pub fn for_login(self) -> ProgramProfile {
        let LoginProfile { env, args, unless_given, settings, .. } = self.login.clone().unwrap_or_default();
        ProgramProfile { env, args, unless_given, settings, ..self }
    }

    /// The arguments of the program: those of the profile, then the user's.
    pub fn arguments(&self, given: &[String], values: &ProfileValues) -> Vec<String> {
        let named = |option: &str| given.iter().any(|word| word == option || word.starts_with(&format!("{option}=")));
        let more = self.unless_given.iter().filter(|words| words.first().is_some_and(|first| !named(first))).flatten();
        let own = self.args.iter().chain(more).map(|word| values.fill(word));
        own.chain(given.iter().cloned()).collect()
    }

    pub fn variables(&self, values: &ProfileValues) -> BTreeMap<String, String> {
        self.env.iter().map(|(name, value)| (name.clone(), values.fill(value))).collect()
    }

    /// Whether the program would wait for the end of its input.
    pub fn waits_for_input(&self, given: &[String]) -> bool {
        given.iter().any(|word| self.waits_for_input.contains(word))
    }

    /// Adds the settings of the profile to those in the program's home.
    pub fn settle(&self, home: &Path, values: &ProfileValues) -> Result<()> {
        for (name, settings) in &self.settings {
            let home = acheron_base::ConfinedDir::open(home)?.without_links();
            let there = match home.read(name) {
                Ok(bytes) => serde_json::from_slice(&bytes)
                    .map_err(|err| Error::invalid(format!("{name} in the program's home is not JSON: {err}")))?,
                Err(error) if error.code == acheron_base::Code::NotFound => Value::Null,
                Err(error) => return Err(error.about(name)),
            };
            let merged = merged(&there, &values.fill_all(settings));
            if merged != there {
                let text = serde_json::to_vec_pretty(&merged).map_err(|err| Error::internal(err.to_string()))?;
                if let Some((above, _)) = name.rsplit_once('/') {
                    home.make_dir(above)?;
                }
                home.write(name, &text).map_err(|error| error.about(name))?;
            }
        }
        Ok(())
    }
}

/// What is there, with what is new added to it; what the user has set stays.
fn merged(there: &Value, new: &Value) -> Value {
    match (there, new) {
        (Value::Null, new) => new.clone(),
        (Value::Object(there), Value::Object(new)) => {
            let mut all = there.clone();
            for (key, value) in new {
                let merged = merged(all.get(key).unwrap_or(&Value::Null), value);
                all.insert(key.clone(), merged);
            }
            Value::Object(all)
        }
        (there, _) => there.clone(),
    }
}

#[cfg(test)]
mod tests;
