# Sourced by scripts whose parts are programs of Node.js or Python: `ensure_node` puts Node.js 20 or newer with npm on the PATH, and
# `ensure_venv` has Python make virtual environments. Both install what is missing on Debian and Ubuntu, and do nothing otherwise.

install_packages() {
    command -v apt-get >/dev/null || {
        echo "These packages are needed, and there is no apt-get to install them: $*." >&2
        return 1
    }
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    echo "Installing $*." >&2
    "${root[@]}" apt-get update -qq >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

ensure_node() {
    local newer=${BUILDSCALE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/buildscale}/node
    command -v npm >/dev/null || install_packages nodejs npm || return 1
    if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
        # The registry of npm has Node.js itself.
        [ -x "$newer/node_modules/.bin/node" ] ||
            npm install --prefix "$newer" --no-audit --no-fund --no-save --loglevel=error node@24.9.0 >&2 || return 1
        PATH=$newer/node_modules/.bin:$PATH
        export PATH
    fi
}

ensure_venv() {
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3 python3-venv
}

# The path of a Python that has the packages of a file of requirements, in the build cache.
python_with() {
    local requirements=$1 cache=${BUILDSCALE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/buildscale}/python folder
    ensure_venv || return 1
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "Python 3.11 or newer is needed." >&2
        return 1
    }
    folder=$cache/$(python3 --version | cat - "$requirements" | sha256sum | cut -c1-12)
    mkdir -p "$cache"
    (
        flock 8
        [ ! -x "$folder/bin/python" ] || exit 0
        echo "Installing packages of Python, once: some seconds." >&2
        rm -rf "$folder.partial" "$folder"
        python3 -m venv "$folder.partial" &&
            "$folder.partial/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 &&
            mv "$folder.partial" "$folder"
    ) 8>"$cache/lock" || return 1
    echo "$folder/bin/python"
}

# The modules that the lock file of a package names, in its folder; nothing when they are there.
install_modules() {
    local folder=$1
    if [ "$folder/package-lock.json" -nt "$folder/node_modules/.package-lock.json" ]; then
        (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error) >&2 || return 1
        touch "$folder/node_modules/.package-lock.json"
    fi
}

# The client for TypeScript in clients/typescript/dist; nothing when no source has changed. One script at a time builds it.
build_client() {
    local folder=clients/typescript digest built
    mkdir -p target
    (
        flock 8
        install_modules $folder || exit 1
        digest=$(find $folder/src $folder/*.json -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
        # Apart from what is published.
        built=$folder/node_modules/.client-built-from
        if [ ! -e $folder/dist/index.js ] || [ "$(cat $built 2>/dev/null)" != "$digest" ]; then
            (cd $folder && npm run --silent build) && echo "$digest" >$built
        fi
    ) 8>target/client-lock
}

# A Chromium for tests. Debian has one without windows, which takes half of the processor time; pages look the same in both.
ensure_chromium() {
    local shell=chromium-headless-shell
    if [ -x /usr/lib/chromium/$shell ]; then
        return
    elif ! command -v chromium >/dev/null; then
        install_packages $shell || install_packages chromium
    elif [ "$(id -u)" = 0 ] && apt-cache show $shell >/dev/null 2>&1; then
        # The whole browser does the same, so nobody is asked for a password.
        install_packages $shell || true
    fi
}

# The hub as `cargo build` leaves it.
debug_binary() {
    local target
    target=$(cargo metadata --format-version 1 --no-deps --offline | grep -o '"target_directory":"[^"]*"' | cut -d'"' -f4)
    [ -x "$target/debug/buildscale" ] || cargo build --locked --package buildscale-hub --bin buildscale >&2 || return 1
    echo "$target/debug/buildscale"
}

# The options of `node` for tests: a line per test, and an end for a file that hangs.
# shellcheck disable=SC2034 # Scripts that source this use it.
NODE_TESTS=(--test --test-timeout=600000 --test-reporter=./scripts/lib/reporter.mjs)
