//! The plan of `acheron run`, and how `--dry-run` shows it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::RunArgs;
use crate::cli::host_connection::tree_of;
use crate::cli::{CommandResult, Failure, say};
use crate::host::library;
use crate::host::run_plan::compose::{self, Additions};
use crate::host::run_plan::find::{self, FoundProgram};
use crate::host::run_plan::profile::{ProfileValues, ProgramProfile};
use crate::host::run_plan::{GATEWAY_PORT, PLACEHOLDER, own_profiles};
use crate::host::runs::messages::RunStarted;
use crate::spec::Spec;
use acheron_base::Error;
use acheron_sandbox::Plan;

/// The last word of a program's path.
pub fn word(name: &str) -> String {
    let file = Path::new(name).file_name().unwrap_or_default();
    file.to_string_lossy().into_owned()
}

/// What is known of the program: the user's own file, that of the library which the host shows, or what most programs read.
/// `tree` is where the host is mounted, if it is; one that is started shows the library of its mountspec.
pub fn profile(name: &str, tree: &Path, spec: Option<&Path>) -> Result<ProgramProfile, Failure> {
    let word = word(name);
    let own = own_profiles();
    let shown = tree.join("global/library");
    let library = match (shown.is_dir(), spec) {
        (true, _) => Some(shown),
        // The host is started at the root of the machine.
        (false, Some(spec)) => Spec::load(spec)?.library.map(|folder| Path::new("/").join(folder)),
        (false, None) => None,
    };
    let places = own.into_iter().chain(library.iter().map(|library| library.join("programs")));
    for file in places.map(|place| place.join(format!("{word}.json"))) {
        match std::fs::read_to_string(&file) {
            Ok(text) => return Ok(ProgramProfile::parse(&file.display().to_string(), &text)?),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => (),
            Err(err) => return Err(Error::from(err).about(file.display().to_string()).into()),
        }
    }
    // A library of the operator's own takes the place of ours as a whole.
    let page = if library.is_some() { None } else { embedded(&word) };
    Ok(match page {
        Some(page) => ProgramProfile::parse(&word, &page)?,
        None => ProgramProfile::unknown(),
    })
}

fn embedded(word: &str) -> Option<String> {
    let page = library::embedded().into_iter().find(|page| page.path == format!("programs/{word}.json"));
    page.map(|page| page.text)
}

/// The program on this machine.
pub fn found(name: &str, profile: &ProgramProfile) -> Result<FoundProgram, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find::find(name, &path).map_err(|error| match profile.install.is_empty() {
        true => Failure::from(error).exit(127),
        false => Failure::hint(error, profile.install.clone()).exit(127),
    })
}

/// The home directory as the program sees it: under the name that the user's own has. One that would hold the project stands
/// elsewhere, because what may be written in a home must not be what is protected in a project.
pub fn home(directory: &Path) -> PathBuf {
    let own = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let first = |home: &PathBuf| home.components().nth(1).map(|first| first.as_os_str().to_owned());
    let own = own.filter(|home| first(home).is_some_and(|first| first == "home" || first == "root"));
    let places = own.into_iter().chain(["/home", "/root"].map(PathBuf::from));
    let mut free = places.filter(|home| !directory.starts_with(home));
    free.next().unwrap_or_else(|| PathBuf::from("/home"))
}

fn values(model: &str, directory: &Path) -> ProfileValues {
    ProfileValues {
        gateway: format!("http://127.0.0.1:{GATEWAY_PORT}"),
        key: PLACEHOLDER.to_owned(),
        model: model.to_owned(),
        home: home(directory).display().to_string(),
    }
}

/// The plan of the host with all that the program needs.
pub fn complete(
    started: RunStarted,
    directory: &Path,
    profile: &ProgramProfile,
    found: &FoundProgram,
    given: &[String],
    mut more: Additions,
) -> Result<Plan, Failure> {
    let mut plan = started.plan;
    let values = values(&started.model, directory);
    let cwd = compose::show_as_outside(&mut plan, &started.project, directory);
    more.cwd.get_or_insert(cwd);
    more.skills = started.skills;
    let mut env = profile.variables(&values);
    env.extend(std::mem::take(&mut more.env));
    more.env = env;
    compose::add_program(&mut plan, found, profile.arguments(given, &values));
    if plan.network {
        // The address of the gateway would be the machine's own, where anybody may listen.
        let said =
            format!("{} shares the network of the machine, where the gateway cannot be its alone", started.agent);
        return Err(Failure::hint(
            Error::invalid(said),
            "take the agent out of sandbox.network, or name another agent",
        ));
    }
    if started.login.is_none() {
        plan.listen.push(GATEWAY_PORT);
    }
    if let Some((home, _)) = &more.home {
        profile.settle(home, &values)?;
    }
    compose::add(&mut plan, &more)?;
    Ok(plan)
}

/// `--dry-run`.
pub fn show(args: &RunArgs, directory: &Path, state: &Path, profile: &ProgramProfile) -> CommandResult {
    let (name, given) = (&args.command[0], &args.command[1..]);
    let model =
        args.model.clone().or_else(|| profile.model.clone()).unwrap_or_else(|| "that of the mountspec".to_owned());
    let values = values(model.split_once(':').map_or(model.as_str(), |(_, name)| name), directory);
    let agent = args.agent.clone().unwrap_or_else(|| word(name));
    let profile = if args.login { &profile.clone().for_login() } else { profile };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = find::find(name, &path);
    let mut lines = Vec::new();
    match &found {
        Ok(found) => lines.push(format!("program    {}", found.file.display())),
        Err(_) if profile.install.is_empty() => lines.push(format!("program    {name} (not installed)")),
        Err(_) => lines.push(format!("program    {name} (not installed: {})", profile.install)),
    }
    lines.push(format!("arguments  {}", profile.arguments(given, &values).join(" ")));
    lines.push(format!("agent      {agent}"));
    lines.push(match args.login {
        true => "model      that of the program's own log-in".to_owned(),
        false => format!("model      {model}, behind {}", values.gateway),
    });
    lines.push(format!("budget     {}", args.budget.as_deref().unwrap_or("that of the mountspec")));
    lines.push(format!("directory  {} (writable)", directory.display()));
    let home = args.place.home.clone().unwrap_or_else(|| state.join("agents").join(&agent).join("home"));
    lines.push(format!("home       {} as {}", home.display(), values.home));
    lines.push(format!("tree       {} as /agents/{agent}, /global, /AGENTS.md", tree_of(state).display()));
    let binds = found.iter().flat_map(|found| &found.binds).map(|path| format!("{} (read-only)", path.display()));
    lines.extend(binds.chain(args.place.bind.iter().cloned()).map(|bind| format!("bind       {bind}")));
    let variables = profile.variables(&values).into_iter().map(|(name, value)| format!("{name}={value}"));
    lines.extend(variables.chain(args.place.env.iter().cloned()).map(|variable| format!("variable   {variable}")));
    lines.extend(profile.settings.keys().map(|file| format!("settings   ~/{file}")));
    let login = profile.login.iter().flat_map(|login| &login.hosts);
    let hosts: Vec<&str> =
        args.network.iter().chain(login.clone().filter(|_| args.login)).map(String::as_str).collect();
    lines.push(match (hosts.is_empty(), args.login) {
        (true, _) => "network    none but the gateway".to_owned(),
        (false, true) => format!("network    {}", hosts.join(", ")),
        (false, false) => format!("network    the gateway, {}", hosts.join(", ")),
    });
    let login: Vec<&str> = login.map(String::as_str).collect();
    if !args.login && !login.is_empty() {
        lines.push(format!("no key     its own log-in, and {}", login.join(", ")));
    }
    say(&format!("{}\n", lines.join("\n")));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_never_holds_the_project() {
        for directory in ["/home/me/project", "/root/project", "/home/project", "/srv/project"] {
            let directory = Path::new(directory);
            assert!(!directory.starts_with(home(directory)), "{}", directory.display());
        }
    }

    #[test]
    fn every_profile_of_the_library_can_be_read() {
        let pages = library::embedded();
        let profiles: Vec<_> = pages.iter().filter(|page| page.path.starts_with("programs/")).collect();
        let names: Vec<&str> = profiles.iter().map(|page| page.path.as_str()).collect();
        for name in ["claude", "codex", "opencode", "gemini", "qwen", "aider", "mini"] {
            assert!(names.contains(&format!("programs/{name}.json").as_str()), "{name}: {names:?}");
        }
        for page in profiles {
            let profile = ProgramProfile::parse(&page.path, &page.text).unwrap();
            assert!(
                !profile.about.is_empty() && !profile.tried_with.is_empty() && !profile.install.is_empty(),
                "{}",
                page.path
            );
            let all = serde_json::to_string(&profile.variables(&values("m", Path::new("/srv/p")))).unwrap();
            assert!(!all.contains("{gateway}"), "{all}");
        }
    }
}
