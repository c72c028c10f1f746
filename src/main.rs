fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == acheron::sandbox::WORD) {
        acheron::sandbox::init_main(args);
    }
}
