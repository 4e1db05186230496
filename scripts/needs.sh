# Sourced by the other scripts: what a job needs, installed where that is possible.
# Everything is installed by the system's package manager, as root; otherwise it is named.

# try COMMAND PACKAGE [FLAG]: installs PACKAGE, with a flag of apt-get, if COMMAND is missing and that is
# possible.
try() {
    command -v "$1" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $2 (for $1)" >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q ${3:-} "$2" >/dev/null ||
            { apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q ${3:-} "$2" >/dev/null; } || true
    fi
    command -v "$1" >/dev/null
}

# need COMMAND PACKAGE: makes sure that COMMAND exists.
need() {
    try "$1" "$2" && return
    echo "error: $1 is missing; install the package $2 (Debian's name) and try again" >&2
    exit 1
}

# need_rust: makes sure that cargo exists; rustup then gets the version in rust-toolchain.toml.
need_rust() {
    [ -x "$HOME/.cargo/bin/cargo" ] && PATH="$HOME/.cargo/bin:$PATH"
    if ! command -v cargo >/dev/null; then
        echo "error: cargo is missing; install Rust from https://rustup.rs and try again" >&2
        exit 1
    fi
}
