# Is sourced by scripts that build with Go: `has_go` succeeds where Go 1.26 or newer is installed, which PATH
# then has.
# shellcheck shell=sh
if ! command -v go >/dev/null && [ -x /usr/local/go/bin/go ]; then
    PATH=$PATH:/usr/local/go/bin
fi
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly

has_go() {
    command -v go >/dev/null || return 1
    version=$(go env GOVERSION | sed 's/^go//')
    [ "$(printf '1.26\n%s\n' "$version" | sort -V | head -n 1)" = 1.26 ]
}
