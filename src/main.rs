use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // A sandbox begins as this same program; nothing of ours may run in it first.
    if args.next().is_some_and(|word| word == acheron_sandbox::INIT_ARG) {
        acheron_sandbox::init_main(args);
    }
    acheron::cli::run()
}
