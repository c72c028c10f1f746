//! From a word of the configuration to a model.
//!
//! Keys come from the environment, which is handed in as a function, and from nowhere else.

use std::path::Path;
use std::sync::Arc;

use super::anthropic::{Anthropic, Messages};
use super::openai::{ChatCompletions, OpenAi};
use super::remote::Server;
use super::replay::Replay;
use super::script::Script;
use super::{Model, remote::Dialect};
use acheron_base::{Error, Result, quoted};
use acheron_http::Http;

/// The script that answers when nothing is configured.
pub const GUIDE: &str = include_str!("../../prompts/runtime/guide.ndjson");

/// The largest script or recording.
const LARGEST: u64 = 64 << 20;

/// What a model is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A script file, or the guide.
    Script(Option<String>),
    Replay(String),
    OpenAi {
        model: String,
        base_url: Option<String>,
    },
    Anthropic {
        model: String,
        base_url: Option<String>,
    },
    /// The turn is served by whoever reads the input and writes the reply.
    External,
}

impl Kind {
    /// Reads `kind` and `name` of the configuration, or the two halves of `--model KIND:NAME`.
    pub fn read(kind: &str, name: Option<&str>, base_url: Option<&str>) -> Result<Kind> {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        let base_url = base_url.map(str::to_owned);
        let needed = |what: &str| name.clone().ok_or_else(|| Error::invalid(format!("model {kind} needs {what}")));
        match kind {
            "script" => Ok(Kind::Script(name)),
            "replay" => Ok(Kind::Replay(needed("the file of a recording")?)),
            ChatCompletions::NAME => Ok(Kind::OpenAi { model: needed("the name of a model")?, base_url }),
            Messages::NAME => Ok(Kind::Anthropic { model: needed("the name of a model")?, base_url }),
            "external" if name.is_none() => Ok(Kind::External),
            "external" => Err(Error::invalid("model external takes no name")),
            _ => Err(Error::invalid(format!(
                "no model is of kind {}; there are script, replay, openai, anthropic and external",
                quoted(kind)
            ))),
        }
    }

    /// Opens the model for one agent; `None` is an external one. Files are relative to `base`.
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
            Kind::Script(None) => Arc::new(Script::read("guide", GUIDE)?),
            Kind::Script(Some(file)) => Arc::new(Script::read(file, &text(file)?)?),
            Kind::Replay(file) => Arc::new(Replay::read(file, &text(file)?, Some(agent))?),
            Kind::OpenAi { model, base_url } => {
                let server = Server::find::<ChatCompletions>(Some(model), base_url.as_deref(), env)?;
                Arc::new(OpenAi::new(server, http.clone(), seed))
            }
            Kind::Anthropic { model, base_url } => {
                let server = Server::find::<Messages>(Some(model), base_url.as_deref(), env)?;
                Arc::new(Anthropic::new(server, http.clone(), seed))
            }
            Kind::External => return Ok(None),
        }))
    }
}

/// The text of a script or a recording: a file and nothing else, of a size that can be held.
fn text(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read as _};
    use std::os::unix::fs::OpenOptionsExt as _;

    // A pipe that stands there must not keep us.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut text = String::new();
    match file.take(LARGEST + 1).read_to_string(&mut text)? as u64 > LARGEST {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {LARGEST} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_and_a_name_are_a_model() {
        for (kind, name, wanted) in [
            ("script", None, Ok(Kind::Script(None))),
            ("script", Some("a/b.ndjson"), Ok(Kind::Script(Some("a/b.ndjson".into())))),
            ("openai", Some("qwen3:8b"), Ok(Kind::OpenAi { model: "qwen3:8b".into(), base_url: None })),
            ("anthropic", Some(""), Err("model anthropic needs the name of a model")),
            ("replay", None, Err("model replay needs the file of a recording")),
            ("external", None, Ok(Kind::External)),
            (
                "oracle",
                None,
                Err("no model is of kind `oracle`; there are script, replay, openai, anthropic and external"),
            ),
        ] {
            let read = Kind::read(kind, name, None).map_err(|error| error.message);
            assert_eq!(read, wanted.map_err(str::to_owned), "{kind}");
        }
    }

    #[test]
    fn a_key_is_asked_for_by_name() {
        let kind = Kind::read("anthropic", Some("m"), None).unwrap();
        let http = Arc::new(Http::new(Default::default(), acheron_base::Clock::real()));
        let error = kind.open("ada", Path::new("."), &http, &|_| None, 0).err().unwrap();
        assert_eq!(error.message, "ANTHROPIC_API_KEY is not set, which anthropic needs");
    }

    #[test]
    fn a_script_is_a_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&dir.path().join("pipe"), dir.path(), Path::new("/dev/zero")] {
            assert_eq!(text(path).unwrap_err().to_string(), "it is not a file", "{}", path.display());
        }
    }

    #[test]
    fn the_guide_is_a_script() {
        Script::read("guide", GUIDE).unwrap();
    }
}
