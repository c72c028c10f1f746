# Functions for the other scripts. This file is sourced, not run.

# need COMMAND PACKAGE: if COMMAND is missing, marks the Debian PACKAGE for `install_missing`.
need() {
    command -v "$1" > /dev/null && return
    missing+=("$2")
}

# Installs the packages that `need` has marked.
install_missing() {
    [ ${#missing[@]} -eq 0 ] && return
    local sudo=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null || {
            echo "error: these packages are missing and only root can install them: ${missing[*]}" >&2
            echo "hint: as root: apt-get install ${missing[*]}" >&2
            return 1
        }
        sudo=sudo
    fi
    command -v apt-get > /dev/null || {
        echo "error: these packages are missing, and this is not Debian or Ubuntu: ${missing[*]}" >&2
        echo "hint: install the packages of your system that correspond to them" >&2
        return 1
    }
    echo "installing ${missing[*]}" >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null || {
        echo "error: apt-get could not install ${missing[*]}" >&2
        echo "hint: as root: apt-get install ${missing[*]}" >&2
        return 1
    }
}

missing=()

# Checks for cargo, but does not install it: the choice of a toolchain is the user's.
need_cargo() {
    command -v cargo > /dev/null && return
    [ -x "$HOME/.cargo/bin/cargo" ] && PATH=$HOME/.cargo/bin:$PATH && return
    echo "error: cargo is missing" >&2
    echo "hint: install Rust 1.91 or newer, from https://rustup.rs" >&2
    return 1
}

# Checks that the caller can open /dev/fuse, which root and users need alike.
fuse_is_open() {
    if ! [ -c /dev/fuse ]; then
        echo "error: /dev/fuse is missing, so nothing can be mounted" >&2
        echo "hint: as root: modprobe fuse (start a container with --device /dev/fuse --cap-add SYS_ADMIN)" >&2
        return 1
    fi
    if ! [ -r /dev/fuse ] || ! [ -w /dev/fuse ]; then
        echo "error: /dev/fuse cannot be opened by $(id -un)" >&2
        echo "hint: as root: chmod 666 /dev/fuse" >&2
        return 1
    fi
}
