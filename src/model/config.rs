//! Opens the model that the configuration names.
//!
//! Keys come only from the environment, which is passed in as a function.

use std::path::Path;
use std::sync::Arc;

use super::Model;
use super::anthropic::Anthropic;
use super::gateway_only::GatewayOnly;
use super::guide::Guide;
use super::openai::OpenAi;
use super::replay::Replay;
use super::responses::OpenAiResponses;
use super::script::Script;
use super::server::{ANTHROPIC, GEMINI, ModelServer, ServerPreset, Silence, all_presets};
use acheron_base::{Error, Result, quoted};
use acheron_http::Http;

/// The size limit of a script or recording, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The configuration of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelConfig {
    /// A script file; without one, the built-in guide.
    Script(Option<String>),
    Replay(String),
    Remote(RemoteConfig),
    /// No model: an external process reads the input and writes the reply.
    External,
    /// A program is the mind of the agent; there is no model to be asked.
    Program,
}

/// A model behind a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    preset: &'static ServerPreset,
    model: String,
    base_url: Option<String>,
    /// The responses API instead of chat completions.
    pub responses: bool,
    pub silence: Silence,
}

impl ModelConfig {
    /// Parses `kind` and `name` of the configuration, or the two halves of `--model KIND:NAME`.
    pub fn read(kind: &str, name: Option<&str>, base_url: Option<&str>) -> Result<ModelConfig> {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        let base_url = base_url.map(str::to_owned);
        let needed = |what: &str| name.clone().ok_or_else(|| Error::invalid(format!("model {kind} needs {what}")));
        match kind {
            "script" => Ok(ModelConfig::Script(name)),
            "replay" => Ok(ModelConfig::Replay(needed("the file of a recording")?)),
            "external" if name.is_none() => Ok(ModelConfig::External),
            "acp" if name.is_none() => Ok(ModelConfig::Program),
            "acp" => Err(Error::invalid("model acp takes a command in the mountspec, and no name")),
            "external" => Err(Error::invalid("model external takes no name")),
            _ => {
                let Some(preset) = all_presets().find(|preset| preset.kind == kind) else {
                    return Err(Error::invalid(format!("unknown model kind {}; kinds are {}", quoted(kind), kinds())));
                };
                let model = needed("the name of a model")?;
                let (responses, silence) = (false, Silence::default());
                Ok(ModelConfig::Remote(RemoteConfig { preset, model, base_url, responses, silence }))
            }
        }
    }

    /// Opens the model for one agent; `None` for an external one. File names are relative to `base`.
    pub fn open(
        &self,
        agent: &str,
        base: &Path,
        http: &Arc<Http>,
        env: &dyn Fn(&str) -> Option<String>,
        seed: u64,
    ) -> Result<Option<Arc<dyn Model>>> {
        let text = |file: &str| text(&base.join(file)).map_err(|error| Error::invalid(format!("{file}: {error}")));
        Ok(Some(match self {
            ModelConfig::Script(None) => Arc::new(Guide::default()),
            ModelConfig::Script(Some(file)) => Arc::new(Script::read(file, &text(file)?)?),
            ModelConfig::Replay(file) => Arc::new(Replay::read(file, &text(file)?, Some(agent))?),
            ModelConfig::Remote(remote) => remote.open(http, env, seed)?,
            ModelConfig::External | ModelConfig::Program => return Ok(None),
        }))
    }
}

impl RemoteConfig {
    /// The server, with its key.
    pub fn server(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<ModelServer> {
        let mut server = ModelServer::find(self.preset, &self.model, self.base_url.as_deref(), env)?;
        server.silence = self.silence;
        Ok(server)
    }

    fn open(&self, http: &Arc<Http>, env: &dyn Fn(&str) -> Option<String>, seed: u64) -> Result<Arc<dyn Model>> {
        if self.preset == &GEMINI {
            return Ok(Arc::new(GatewayOnly(self.model.clone())));
        }
        let (server, http) = (self.server(env)?, http.clone());
        Ok(match (self.preset == &ANTHROPIC, self.responses) {
            (true, false) => Arc::new(Anthropic::new(server, http, seed)),
            (true, true) => return Err(Error::invalid("anthropic has no responses API; leave `api` out")),
            (false, false) => Arc::new(OpenAi::new(server, http, seed)),
            (false, true) => Arc::new(OpenAiResponses::new(server, http, seed)),
        })
    }
}

fn kinds() -> String {
    let servers = all_presets().map(|preset| preset.kind);
    format!("script, replay, {} and external", servers.collect::<Vec<_>>().join(", "))
}

/// The text of a script or recording: a regular file up to the size limit.
pub fn text(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read as _};
    use std::os::unix::fs::OpenOptionsExt as _;

    // Opening a FIFO must not block.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut text = String::new();
    match file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {MAX_FILE_BYTES} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests;
